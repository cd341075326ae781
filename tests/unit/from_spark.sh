#!/bin/bash
# docs/from-spark.md names each function of troupe.h, and nothing that troupe.h has not.
# Speaks TAP.
set -u
export LC_ALL=C

header=$TROUPE_SOURCE/lib/api/troupe.h page=$TROUPE_SOURCE/docs/from-spark.md
# What the library exports, and what the header defines by itself.
functions=$(
    {
        grep -o 'trp_[a-z0-9_]*;' "$TROUPE_SOURCE/lib/api/troupe.map" | tr -d ';'
        sed -n 's/^static inline .*\(trp_[a-z0-9_]*\)(.*/\1/p' "$header"
    } | sort -u
)
named=$(grep -o '\(trp\|TRP\)_[A-Za-z0-9_]*[A-Za-z0-9]' "$page" | sort -u)
in_header=$(grep -o '\(trp\|TRP\)_[A-Za-z0-9_]*[A-Za-z0-9]' "$header" | sort -u)

# told NUMBER SENTENCE FINDINGS: a point that holds when there are no findings.
told() {
    if [ -z "$3" ]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        sed 's/^/# found: /' <<<"$3"
    fi
}

echo 1..3
count=$(wc -l <<<"$functions")
told 1 "there are functions" "$([ "$count" -gt 80 ] || echo "$count")"
told 2 "each function of troupe.h stands in from-spark.md" \
    "$(comm -23 <(echo "$functions") <(echo "$named"))"
told 3 "what from-spark.md names is in troupe.h" \
    "$(comm -23 <(echo "$named") <(echo "$in_header"))"
