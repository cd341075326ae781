#!/bin/sh
# text-report WORK ROOT: what the stages of pipeline.yaml found, for a person, on stdout.
set -eu
cd "$1"
root=$2
tab=$(printf '\t')

awk -F"$tab" -v root="$root" '
    function grouped(n,    text, out) {
        text = sprintf("%.0f", n)
        while (length(text) > 3) {
            out = "," substr(text, length(text) - 2) out
            text = substr(text, 1, length(text) - 3)
        }
        return text out
    }
    FILENAME ~ /different$/ { different += $1; next }
    { files += $1; bytes += $2; words += $3 }
    END {
        printf "The texts below %s: %s files, %.1f MB, %s words, %s different ones\n", root,
            grouped(files), bytes / 1e6, grouped(words), grouped(different)
    }' sizes/* merged/*.different

# Short words say little about what a text is about.
sort -t"$tab" -k2,2nr merged/*.words | awk -F"$tab" '
    length($1) >= 6 { line = line (n++ ? ", " : "") $1 " (" $2 ")" }
    n == 8 { exit }
    END { print "The commonest words of six letters and more:\n  " line }'

# The best of all lists for each text.
sort -t"$tab" -k1,1 -k2,2nr scores/* | awk -F"$tab" '!seen[$1]++' > best
awk -F"$tab" '
    FILENAME == "best" { like[$1] = $3; similar[$1] = $2; next }
    FILENAME == "ranking" {
        printf "\nThe most important of %d texts, by %d references (PageRank, %d ranks, " \
            "%d rounds)\n", $1, $2, $3, $4
        next
    }
    {
        manual = $1 ~ /\)$/
        if (!(manual in shown))
            printf " %7s  %11s  %-26s %s\n", "share", "referred to",
                manual ? "manual page" : "licence", "most like it"
        shown[manual]
        printf " %5.2f %%  %10d×  %-26s %s\n", 100 * $2, $3, $1,
            ($1 in like) ? sprintf("%s (%.2f)", like[$1], similar[$1]) : "-"
    }' best ranking top
printf '\nDevices: '
awk -F"$tab" '
    !seen[FILENAME]++ && $4 != "" { lists[$4]++ }
    END { for (d in lists) line = line (n++ ? ", " : "") d " did " lists[d] " lists"
          print line ? line : "not needed" }' scores/*
