#!/usr/bin/env bats
# The examples, over small texts: what the README shows and ./quickstart runs.
load drill.bash

examples=$TROUPE_SOURCE/examples
licences=/usr/share/common-licenses # on every Debian machine

# Seven texts below ./root. ls(1) is referred to three times, cp(1) and GPL-9 once each.
make_texts() {
    mkdir -p root/doc/tools root/man/man1 root/common-licenses
    printf '.TH LS 1\nls lists folders; see\n.BR cp (1).\n' >root/man/man1/ls.1
    printf '.TH CP 1\ncp copies folders; see ls(1).\n' | gzip >root/man/man1/cp.1.gz
    printf '.TH MV 1\nmv moves folders; see\n.BR ls (1).\n' >root/man/man1/mv.1
    printf '.TH RM 1\nrm removes folders; see\n.Xr ls 1\n' >root/man/man1/rm.1
    printf 'This licence permits copies of folders.\n' >root/common-licenses/GPL-9
    printf 'See /usr/share/common-licenses/GPL-9 for folders.\n' >root/doc/tools/copyright
    printf 'The tools permit copies.\n' >root/doc/tools/README
}

@test "text: words, a gang's ranking and what half a device found, in one report" {
    make_texts
    run -0 troupe run --local=4 --site "$examples/text/site.yaml" --run-name r \
        --param bin="$TROUPE_BUILD/examples" --param root="$PWD/root" \
        "$examples/text/pipeline.yaml"
    cat report.txt
    [ "$(head -n 1 report.txt)" = "The texts below $PWD/root: 7 files, 0.0 MB, 38 words, 23 different ones" ]
    grep -q '^  folders (6)' report.txt
    grep -q 'by 5 references (PageRank, 2 ranks' report.txt
    grep -qE '[0-9.]+ % +3× +ls\(1\) ' report.txt
    grep -qE '[0-9.]+ % +1× +GPL-9 +doc/tools/' report.txt
    grep -qE '^Devices: .*a[01] did [0-9] lists' report.txt
}

@test "first.yaml: the commonest words of the licences" {
    run -0 troupe run --local=2 "$examples/first.yaml"
    cat "$licences"/* | tr -cs A-Za-z '\n' | tr A-Z a-z | sort | uniq -c |
        awk '{ print $1, $2 }' | sort -rn | awk 'length($2) > 6' | head -n 5 >expected
    diff expected first-top
    [ "$(wc -l <first-top)" = 5 ]
}

@test "first.c: how many words the licences have" {
    run -0 --separate-stderr troupe run --quiet --local=2 -- "$TROUPE_BUILD/examples/first"
    [ "$output" = "$(cat "$licences"/* | perl -ne '$n += () = /\S+/g; END { print $n }') words" ]
}

@test "ngrams: words and phrases of files that it is given, elastic and static" {
    mkdir texts
    for i in 1 2 3; do echo 'Many small tasks run here; many small tasks wait.'; done |
        tee texts/a >texts/b
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/ngrams" --top 2 --min 1 'texts/*'
    elastic=$output
    [[ "$output" == *"other texts: 54 words"* ]]
    [[ "$output" == *"words    many (12), small (12)"* ]]
    [[ "$output" == *"phrases  many small tasks (12), here many small (6)"* ]]
    run -0 --separate-stderr env -u TROUPE_OPT_comm_transport mpirun --allow-run-as-root --oversubscribe -n 2 "$TROUPE_BUILD/examples/ngrams" --top 2 --min 1 'texts/*'
    [[ "$output" == "$elastic"* ]] # and then the summary
}

@test "wordcount: how often each word stands in the licences, in at most 40 lines" {
    [ "$(wc -l <"$examples/wordcount.c")" -le 40 ]
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/wordcount" "$licences/*"
    LC_ALL=C sort <<<"$output" >got
    cat "$licences"/* | LC_ALL=C tr -cs A-Za-z '\n' |
        LC_ALL=C awk 'NF { n[$1]++ } END { for (w in n) print w, n[w] }' |
        LC_ALL=C sort | cmp - got
    grep -q '"Stage Name":"sum"' troupe-runs/last/events.jsonl
}
