#!/usr/bin/env bats
# The examples, over small inputs: what the README shows and ./quickstart runs, held against what
# awk, perl, sort and join find.
load drill.bash

examples=$TROUPE_SOURCE/examples
licences=/usr/share/common-licenses # on every Debian machine

# inline EXAMPLE [ARGUMENT…]: it prints the same without executors.
inline() {
    local program=$1
    shift
    TROUPE_INLINE=1 "$TROUPE_BUILD/examples/$program" "$@" |
        diff - <([ -z "$output" ] || printf '%s\n' "$output")
}

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
    grep -v "^Devices" report.txt >four
    run -0 troupe run --local=4 --site "$examples/text/site.yaml" --run-name e \
        --param bin="$TROUPE_BUILD/examples" --param root="$PWD/root" \
        --param buckets=8 "$examples/text/pipeline.yaml"
    [ -e troupe-runs/e/logs ]
    [ -e texts-work/merged/7.words ]
    grep -v "^Devices" report.txt | diff four -
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
    inline first
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
    run -0 --separate-stderr mpirun --allow-run-as-root --oversubscribe -n 2 "$TROUPE_BUILD/examples/ngrams" --top 2 --min 1 'texts/*'
    [[ "$output" == "$elastic"* ]] # and then the summary
    output=$elastic
    inline ngrams --top 2 --min 1 'texts/*'
}

@test "wordcount: how often each word stands in the licences, in at most 40 lines" {
    [ "$(wc -l <"$examples/wordcount.c")" -le 40 ]
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/wordcount" "$licences/*"
    inline wordcount "$licences/*"
    LC_ALL=C sort <<<"$output" >got
    cat "$licences"/* | LC_ALL=C tr -cs A-Za-z '\n' |
        LC_ALL=C awk 'NF { n[$1]++ } END { for (w in n) print w, n[w] }' |
        LC_ALL=C sort | cmp - got
    grep -q '"Stage Name":"sum"' troupe-runs/last/events.jsonl
}

@test "index: the files of each word, as sort has them" {
    mkdir texts
    cp "$licences"/GPL-2 "$licences"/Artistic "$licences"/Apache-2.0 "$licences"/LGPL-2.1 texts
    gzip -c "$licences/MPL-1.1" >texts/MPL.gz
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/index" out 'texts/*'
    for file in texts/*; do
        zcat -f "$file" | LC_ALL=C tr -cs A-Za-z '\n' | LC_ALL=C tr A-Z a-z |
            awk -v file="$file" 'length >= 3 && length <= 64 { print $0 "\t" file }'
    done | LC_ALL=C sort -u | awk -F '\t' '
        $1 != word { printf "%s%s\t%s", (NR > 1 ? "\n" : ""), $1, $2; word = $1; next }
        { printf " %s", $2 }
        END { print "" }' >want
    [ "$(wc -l <want)" -gt 1000 ]
    [ "$(ls out | wc -l)" = 16 ]
    cat out/part-* | cmp - want
    inline index other 'texts/*'
    diff -r other out
}

# The records of sort.c, by another program: records COUNT SEED
records() {
    perl -e '
        sub random {
            my ($seed, $place) = @_;
            my $z = mul($place + 1, 0x9e3779b97f4a7c15);
            { use integer; $z = $z + $seed; }
            $z = mul(mix($z, 30), 0xbf58476d1ce4e5b9);
            $z = mul(mix($z, 27), 0x94d049bb133111eb);
            return mix($z, 31);
        }
        sub mix { my $z = $_[0] & ~0; return $z ^ $z >> $_[1]; }
        sub mul { use integer; return $_[0] * $_[1]; }
        sub letters {
            my ($n, $bits, $text) = ($_[0], 0, "");
            for my $i (0 .. $n - 1) {
                $bits = $state = random($state, $i) if $i % 10 == 0;
                $text .= chr(65 + $bits % 26);
                $bits = ($bits - $bits % 26) / 26;
            }
            return $text;
        }
        for my $i (0 .. $ARGV[0] - 1) {
            $state = random($ARGV[1], $i);
            my $key = letters(10);
            printf "%s\t%016x%s\n", $key, $i, letters(72);
        }' "$1" "$2"
}

@test "sort: records are as sort has them; the verifier notices what is done to them" {
    local sort="$TROUPE_BUILD/examples/sort --size 5000 --seed 7"
    verify() { troupe run --quiet --local=2 -- $sort --verify "$1"; }
    run -0 --separate-stderr troupe run --quiet --local=2 -- $sort out
    records 5000 7 | LC_ALL=C sort >want
    cat out/part-* | cmp - want
    inline sort --size 5000 --seed 7 other
    diff -r other out
    run -0 --separate-stderr verify out
    [ "$output" = "5000 records, 5000 expected" ]

    cp -r out lost && sed -i 3d lost/part-00002
    run -1 --separate-stderr verify lost
    [ "$output" = "4999 records, 5000 expected" ]
    [ "$stderr" = "sort: records are lost or doubled" ]
    cp -r out doubled && sed -i '3d; 4p' doubled/part-00002
    run -1 --separate-stderr verify doubled
    [ "$stderr" = "sort: they are not those that were made" ]
    cp -r out changed && sed -i '3s/.$/?/' changed/part-00002
    run -1 --separate-stderr verify changed
    [ "$stderr" = "sort: they are not those that were made" ]
    cp -r out swapped && sed -i '3{h;d}; 4G' swapped/part-00002
    run -1 --separate-stderr verify swapped
    [ "$stderr" = "sort: they are not sorted" ]
    cp -r out parts && mv parts/part-00001 x && mv parts/part-00002 parts/part-00001 &&
        mv x parts/part-00002
    run -1 --separate-stderr verify parts
    [ "$stderr" = "sort: they are not sorted" ]
}

@test "sessions: those of each user, the longest first, as awk finds them" {
    mkdir log
    LC_ALL=C awk 'BEGIN { srand(7); for (i = 0; i < 3000; i++) print "u" int(rand() * 40), int(rand() * 400000) }' |
        split -l 700 - log/
    run -0 --separate-stderr troupe run --quiet --local=2 -- "$TROUPE_BUILD/examples/sessions" --top 5000 'log/*'
    inline sessions --top 5000 'log/*'
    LC_ALL=C sort -k 1,1 -k 2,2n log/* | awk '
        $1 != user || $2 - last > 1800 { if (n) print user, start, n; user = $1; start = $2; n = 0 }
        { n++; last = $2 }
        END { print user, start, n }' | LC_ALL=C sort -k 3,3nr -k 2,2n -k 1,1 >want
    [ "$(wc -l <want)" -gt 500 ]
    diff want - <<<"$output"
    run -0 --separate-stderr troupe run --quiet --local=2 -- "$TROUPE_BUILD/examples/sessions" --top 7 'log/*'
    head -7 want | diff - <(printf '%s\n' "$output")
}

@test "widths: records without anything between them are sorted as sort has them" {
    mkdir in
    LC_ALL=C awk 'BEGIN { srand(3); for (i = 0; i < 5000; i++) printf "%07d %07d\n", (i * 7919) % 5003, rand() * 1e7 }' |
        split -b 16000 - in/
    run -0 troupe run --quiet --local=2 -- "$TROUPE_BUILD/examples/widths" --width 16 --key 7 'in/*' out
    cat in/* | LC_ALL=C sort | cmp - <(cat out/part-*)
    run -2 troupe run --quiet --local=2 -- "$TROUPE_BUILD/examples/widths" --width 16 --key 17 'in/*' none
}

@test "pagerank: ranks are those that awk finds in the same graph" {
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/pagerank" --size 500 --links
    echo "$output" >links
    [ "$(wc -l <links)" -gt 1000 ]
    run -0 --separate-stderr troupe run --quiet --local=2 --run-name r -- \
        "$TROUPE_BUILD/examples/pagerank" --size 500 --rounds 6 --top 1000
    echo "$output" >got
    # the graph is dealt out once
    [ "$(events r | grep SparkListenerStageSubmitted | grep -c "\"Stage Name\":\"links\"")" = 1 ]
    inline pagerank --size 500 --rounds 6 --top 1000
    sort -c -s -k 2,2gr got
    [ "$(wc -l <got)" = 500 ]
    awk '
        FILENAME == "links" { from[++n] = $1; to[n] = $2; links[$1]++; next }
        FNR == 1 {
            for (p = 0; p < 500; p++) rank[p] = 1
            for (round = 0; round < 6; round++) {
                for (p = 0; p < 500; p++) sum[p] = 0
                for (i = 1; i <= n; i++) sum[to[i]] += rank[from[i]] / links[from[i]]
                for (p = 0; p < 500; p++) rank[p] = 0.15 + 0.85 * sum[p]
            }
        }
        { far = rank[$1] - $2; seen[$1]++ }
        far > 1e-8 || far < -1e-8 || seen[$1] > 1 { print $1, $2, rank[$1]; bad = 1 }
        END { exit bad }' links got
}

@test "kmeans: centres are those that awk finds, and shapes change between rounds" {
    run -0 --separate-stderr troupe run --quiet --local=2 -- \
        "$TROUPE_BUILD/examples/kmeans" --size 3000 --clusters 4 --points
    echo "$output" >points
    run -0 --separate-stderr troupe run --quiet --local=2 --run-name r -- \
        "$TROUPE_BUILD/examples/kmeans" --size 3000 --clusters 4 --rounds 5
    awk '
        { x[NR - 1] = $1; y[NR - 1] = $2 }
        END {
            for (k = 0; k < 4; k++) { cx[k] = x[k]; cy[k] = y[k] }
            for (round = 0; round < 5; round++) {
                for (k = 0; k < 4; k++) sx[k] = sy[k] = n[k] = 0
                for (i = 0; i < NR; i += round < 2 ? 10 : 1) {
                    best = 0
                    for (k = 0; k < 4; k++) {
                        dx = x[i] - cx[k]; dy = y[i] - cy[k]; far = dx * dx + dy * dy
                        if (k == 0 || far < least) { least = far; best = k }
                    }
                    sx[best] += x[i]; sy[best] += y[i]; n[best]++
                }
                for (k = 0; k < 4; k++)
                    if (n[k]) { cx[k] = sx[k] / n[k]; cy[k] = sy[k] / n[k] }
            }
            for (k = 0; k < 4; k++) printf "%.6f %.6f %d\n", cx[k], cy[k], n[k]
        }' points >want
    echo "$output" | diff - want
    inline kmeans --size 3000 --clusters 4 --rounds 5
    [ "$(events r | grep SparkListenerResourceProfileAdded | grep -c .)" = 4 ]
    [ "$(events r | grep SparkListenerStageSubmitted | grep -o '"Resource Profile Id":[0-9]*' |
        cut -d: -f2 | xargs)" = "1 3 1 3 2 3 2 3 2 3" ]
}

@test "join: pairs of two tables, inner, left and outer, as join has them" {
    local join="troupe run --quiet --local=2 -- $TROUPE_BUILD/examples/join --fact 2"
    # keys 0 to 99, a third of the lines has key 7; 50 to 199, some twice
    awk 'BEGIN { for (i = 0; i < 3000; i++) print i ":" (i % 3 ? i * 31 % 100 : 7) ":" i * 7 }' >facts
    awk 'BEGIN { for (i = 50; i < 200; i++) {
        print i ":name" i ":" i % 5; if (i % 10 == 0) print i ":again:" i } print "7:seven:0" }' >dimensions
    LC_ALL=C sort -t : -k 2,2 facts >f
    LC_ALL=C sort -t : -k 1,1 dimensions >d
    while read -r type flags; do
        run -0 --separate-stderr $join ${type/inner/} facts dimensions out
        cat out/part-* | LC_ALL=C sort >got
        LC_ALL=C join -t : -1 2 -2 1 $flags -e - -o 0,1.1,1.3,2.2,2.3 f d | awk -F : '
            { print $1 "\t" ($2 $3 == "--" ? "-" : $2 ":" $3) ":" ($4 $5 == "--" ? "-" : $4 ":" $5) }' |
            LC_ALL=C sort | diff - got
        [ "$(wc -l <got)" -gt 2000 ]
        inline join --fact 2 ${type/inner/} facts dimensions other
        diff -r other out
        rm -r other
        rm -r out
    done <<<$'inner \n--left -a 1\n--outer -a 1 -a 2'
    grep -q $'^199\t-:name199:4$' got && grep -q '^0.*:-$' got
    # where a field is not there the line is told
    run -1 --separate-stderr $join --fact 9 facts dimensions out
    [[ "$stderr" == *"join: "*"stage facts: task "*" failed 4 times, last with exit status -1: a line has no such field: "* ]]
}

# What an example's README shows: its indented lines.
shown() { sed -n 's/^    //p' "$examples/$1/README.md"; }

# Whether the output has each line on stdin.
has_lines() {
    local line n=0
    while IFS= read -r line; do
        n=$((n + 1))
        grep -qF -- "$line" <<<"$output" || { echo "the README has: $line"; echo "$output"; return 1; }
    done
    [ $n -gt 0 ]
}

@test "variants: a bad sample costs its own chain; what is called is what was put in" {
    ln -s "$examples" examples
    run -0 troupe run --local=2 --run-name variants-0 examples/variants/pipeline.yaml
    output=${output//variants-0/variants-…}
    shown variants | grep '^troupe: ' | has_lines
    shown variants | sed -n '/head -n 4/,$p' | sed 1d | diff -b - <(head -n 4 variants/table.tsv)
    grep -q 'align/3.0.err: variants/dora.fq:9600: .* the file was cut off$' <<<"$output"
    grep -q '^troupe: stage call: task dora was skipped: task dora of stage align was given up' <<<"$output"
    [ "$(head -n 1 variants/table.tsv | xargs)" = "position from to adam beate chen erik" ]
    # Nothing that is not so, and nearly all that is; where few reads lie, nobody can tell.
    for sample in adam beate chen erik; do
        sort variants/truth/$sample >truth
        sort variants/called/$sample >called
        [ -z "$(comm -13 truth called)" ]
        [ "$(comm -23 truth called | wc -l)" -le 2 ]
        column=$(head -n 1 variants/table.tsv | tr '\t' '\n' | grep -nx $sample | cut -d: -f1)
        [ "$(awk -F'\t' -v c="$column" '$c == 1 { print $1 "\t" $2 "\t" $3 }' variants/table.tsv | sort)" = "$(cat called)" ]
    done
    # The mended sheet.
    cp -r "$examples/variants" here
    sed -i 's/cut$/whole/' here/samples.tsv
    run -0 troupe run --local=2 --resume last --param here="$PWD/here"
    [ "$(head -n 1 variants/table.tsv | xargs)" = "position from to adam beate chen dora erik" ]
}

@test "sweep: every combination as one process finds it" {
    [ -x "$TROUPE_BUILD/examples/heat" ] || skip "built without an MPI"
    run -0 troupe run --local=4 --param bin="$TROUPE_BUILD/examples" "$examples/sweep/pipeline.yaml"
    shown sweep | sed '1,/cat sweep.txt/d' | diff - sweep.txt
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for grid in 16 32; do
        for k in 0.25 0.5 1; do
            "$TROUPE_BUILD/examples/heat" $k $grid
        done
    done >alone
    diff <(sed 1d sweep.txt) alone
    # A finer grid needs more steps; the middle of the plate is as the theory has it.
    awk '$4 < 22 || $4 > 25 { exit 1 }' alone
    run -2 "$TROUPE_BUILD/examples/heat" 2 16
}

# bats test_tags=plain
@test "train: two share a device; what is killed for memory is tried again with more" {
    run -0 troupe run --local=2 --run-name r --site "$examples/train/site.yaml" \
        --param here="$examples/train" "$examples/train/pipeline.yaml"
    if grep -q 'it is run again with' <<<"$output"; then
        grep -q 'killed for memory (limit 192 MiB, peak .*); it is run again with 384 MiB' <<<"$output"
        [ "$(cut -d' ' -f2 train.txt | xargs)" = "0.3 0.05 1.2" ]
        output=$(sed 's/peak [0-9]* MiB/peak 192 MiB/' <<<"$output")
        shown train | grep '^stage train' | has_lines
    else
        skip "memory is not limited here"
    fi
    shown train | sed '1,/cat train.txt/d' | diff - train.txt
    [ "$(grep -h device troupe-runs/r/logs/train/*.err | sort -u)" = "on device 0" ]
    perl "$examples/train/train.pl" 0.3 400000 5 | diff - train/rate-0.3
}
