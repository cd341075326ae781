#!/bin/bash
# The core library stays pure: its objects need memory and string functions and nothing
# else, and its sources include nothing of the other folders. So do the accounts of what
# Slurm has granted, which take from `core` and `conf` besides. Speaks TAP.
set -u
export LC_ALL=C

archive=$TROUPE_BUILD/lib/core/libtroupe_core.a
sources=$TROUPE_SOURCE/lib/core

# Functions that depend on nothing but their arguments and the heap, and what the
# compiler and the C library put in their place (_chk, sanitizers).
allowed='^(malloc|calloc|realloc|reallocarray|free|qsort|bsearch'
allowed+='|mem(cpy|move|set|cmp|chr|rchr|mem|pcpy)|bcmp'
allowed+='|str(len|nlen|cmp|ncmp|cpy|ncpy|cat|ncat|chr|rchr|chrnul|str|spn|cspn|pbrk|dup|ndup)'
allowed+='|stp(cpy|ncpy)|rawmemchr'
allowed+='|v?snprintf|strto(l|ll|ul|ull)|__isoc23_strto(l|ll|ul|ull)'
allowed+='|__(mem|str|stp)[a-z]*_chk|__v?snprintf_chk|__stack_chk_fail'
allowed+='|__assert_fail|_GLOBAL_OFFSET_TABLE_'
allowed+='|__(asan|ubsan|tsan|lsan|sanitizer)_.*)$'

# told NUMBER SENTENCE FINDINGS: a point that holds when there are no findings.
told() {
    if [ -z "$3" ]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        sed 's/^/# found: /' <<<"$3"
    fi
}

echo 1..5
if ! symbols=$(nm -g "$archive" 2>&1); then
    told 1 "the library can be read" "$symbols"
    echo 'Bail out! no library to look at'
    exit 1
fi
defined=$(awk 'NF == 3 { print $3 }' <<<"$symbols" | sort -u)
told 1 "the library can be read" "$([ -n "$defined" ] || echo "no symbols in $archive")"

undefined=$(awk 'NF == 2 && $1 ~ /^[Uw]$/ { print $2 }' <<<"$symbols" | sort -u)
strange=$(comm -23 <(echo "$undefined") <(echo "$defined") | grep -vE "$allowed")
told 2 "it needs memory and string functions only" "$strange"

others=$(grep -rnE '^#include "' "$sources" --include='*.[ch]' | grep -v '#include "core/')
told 3 "its sources include headers of the core only" "$others"

accounts=$(find "$TROUPE_BUILD/lib/cluster" -path "*/slurm/accounts/*.c.o" -exec nm {} +)
strange=$(awk 'NF == 2 && $1 ~ /^[Uw]$/ { print $2 }' <<<"$accounts" | grep -v "^trp_" |
    sort -u | grep -vE "$allowed")
told 4 "accounts of nodes need memory and string functions only" \
    "$([ -n "$accounts" ] || echo "no objects"; echo -n "$strange")"

# Decision 75: these know nothing of the engine's state, only what comes before it.
apart='base/* profile/* topo/* alloc/caps alloc/idle alloc/move_worth alloc/shares
alloc/targets alloc/targets_counts dag/graph dag/outputs sched/barrier_sync sched/health
sched/health_text sched/health_tracker sched/pool_tree sched/pools sched/speculation'
objects=()
for name in $apart; do
    # shellcheck disable=SC2206 # a name may be a pattern
    found=("$TROUPE_BUILD"/lib/core/CMakeFiles/troupe_core.dir/$name.c.o)
    [ -e "${found[0]}" ] || objects+=("no-such-object:$name")
    objects+=("${found[@]}")
done
symbols=$(nm "${objects[@]}" 2>&1)
own=$(awk 'NF == 3 && $2 ~ /^[TDRB]$/ { print $3 }' <<<"$symbols" | sort -u)
strange=$(awk '/^nm:/ { print; next } NF == 2 && $1 == "U" && $2 ~ /^trp_/ { print $2 }' \
    <<<"$symbols" | sort -u | comm -23 - <(echo "$own"))
told 5 "what stands outside the circle of the core takes nothing from it" "$strange"
