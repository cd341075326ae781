#!/usr/bin/env bats
# Wide operations of C programs: records go from the tasks of one stage to those of the
# next, over map outputs on this machine.
load drill.bash

setup_file() {
    # Seven cuts fall inside of it wherever they fall.
    find /usr/share/doc -name copyright -print0 | sort -z | xargs -0 cat |
        head -c 2000000 >"$BATS_FILE_TMPDIR/text"
    LC_ALL=C tr -cs a-zA-Z '\n' <"$BATS_FILE_TMPDIR/text" | LC_ALL=C tr A-Z a-z |
        LC_ALL=C awk 'NF { n[$1]++ } END { for (w in n) print w "\t" n[w] }' |
        LC_ALL=C sort >"$BATS_FILE_TMPDIR/want"
}

# right DIR: what tally saved there is what awk counts, each part in order of its words.
right() {
    local part
    [ "$(ls "$1" | xargs)" = "part-00000 part-00001 part-00002 part-00003 part-00004" ]
    for part in "$1"/part-*; do
        [ -s "$part" ]
        LC_ALL=C sort -c "$part"
    done
    LC_ALL=C sort "$1"/part-* | cmp - "$BATS_FILE_TMPDIR/want"
}

# row STAGE: "TASKS ATTEMPTS FAILED" of the summary on stdin, whose row is the line after
# the stage's name.
row() {
    awk -v name="$1" 'index($0, name) == 1 { found = 1; next }
        found { print $2, $3, $4; exit }'
}
# Those that were handed back before they started end as well, and are none.
done_tasks() { events r | grep SparkListenerTaskEnd | grep '"Reason":"Success"'; }

map="trp_reduce_by_key trp_text_files"
reduce="save trp_reduce_by_key"

# tally [VARIABLE=VALUE…]: starts it on the text; it waits in its last map task, when all
# others have left their outputs.
tally() {
    env "$@" troupe run --run-name r --local=2 -- "$programs/tally" "$BATS_FILE_TMPDIR/text" \
        out wait >summary 2>err &
    pid=$!
    wait_until test -s wait.here || { cat err; return 1; }
    wait_until outputs_are 6
}
outputs=troupe-runs/r/state/scratch/shuffle
outputs_are() { [ "$(find $outputs -name '[0-9]*-*' | wc -l)" = "$1" ]; }

# goes_on: lets it go; it succeeds.
goes_on() {
    : >wait.go
    wait $pid || { cat err summary >&2; ls -la $outputs >&2; return 1; }
    right out
}

@test "words are counted as awk counts them, each stage in its own shape" {
    run -0 --separate-stderr troupe run --run-name r -- "$programs/tally" "$BATS_FILE_TMPDIR/text" out
    right out
    [ "$(row "$map" <<<"$output")" = "7 7 0" ]
    [ "$(row "$reduce" <<<"$output")" = "5 5 0" ]
    grep -q "^  *split  *7 " <<<"$output"
    grep -q "^  *sum  *5 " <<<"$output"
    # each reads what the others wrote; the log has it as Spark's
    [[ "$output" =~ "shuffled: "(.*)" written, "(.*)" read (0 bytes from other hosts)" ]]
    local written read records_written records_read
    logged() { events r | grep -o "\"$1\":[0-9]*" | awk -F: '{ n += $2 } END { print n }'; }
    written=$(logged 'Shuffle Bytes Written')
    read=$(logged 'Local Bytes Read')
    records_written=$(logged 'Shuffle Records Written')
    records_read=$(logged 'Total Records Read')
    [ "$records_written" -gt 1000 ]
    [ "$records_read" = "$records_written" ]
    [ "$read" -gt 10000 ]
    [ "$written" -ge "$read" ]
    [ "$(done_tasks | grep -c '"Task Type":"ShuffleMapTask"')" = 7 ]
    [ "$(done_tasks | grep -c '"Task Type":"ResultTask"')" = 5 ]
    diff <(troupe report r | grep shuffled:) <(grep shuffled: <<<"$output")
    diff - <(data r) <<END
kept disk 0
kept hits 0
kept memory 0
kept misses 0
kept read 0
shuffled local $read
shuffled read $read
shuffled records_read $records_read
shuffled records_written $records_written
shuffled remote 0
shuffled spilled 0
shuffled written $written
END
    # what lay between the stages is gone with the run
    [ ! -e troupe-runs/r/state/scratch ]
}

@test "tasks may have more map outputs open than the shell allows files" {
    run -0 bash -c 'ulimit -Sn 128; exec troupe run --quiet -- "$0"' "$programs/many"
    [ "$output" = "36000 pairs" ]
}

# bats test_tags=mpi
@test "a static run counts the same" {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TALLY_PLAIN=1
    run -0 mpirun --oversubscribe -n 3 "$programs/tally" \
        "$BATS_FILE_TMPDIR/text" out
    right out
    [ -z "$(find troupe-runs -name 'shuffle')" ]
}

two_executors() { [ "$(ours_like '^troupe: executor [0-9]* r$' | wc -l)" = 2 ]; }

@test "an executor that dies behind its map tasks takes none of their outputs along" {
    tally
    wait_until two_executors # one may do all tasks but the last before the other is there
    local waits id killed=0
    waits=$(cat wait.here)
    for id in 0 1 2 3; do
        [ $id != "$waits" ] && pid_of "executor $id" r >pids || continue
        kill -9 $(cat pids)
        killed=$((killed + 1))
    done
    [ $killed -ge 1 ]
    goes_on
    [ "$(row "$map" <summary)" = "7 7 0" ]
    [ "$(row "$reduce" <summary)" = "5 5 0" ]
}

# damaged COMMAND…: with an output made bad by it, that map task alone runs again.
damaged() {
    tally
    local file
    file=$(find $outputs -name '[0-9]*-2-*')
    [ -f "$file" ]
    "$@" "$file"
    goes_on
    [ "$(row "$map" <summary)" = "7 8 0" ]
    grep -q "stage save trp_reduce_by_key → print is run again: .*output of map 2 " err
    events r | grep -q '"Reason":"FetchFailed","Block Manager Address":{"Executor ID":"[0-9]*","Host":"[^"]*","Port":1},"Shuffle ID":0,"Map ID":[0-9]*,"Map Index":2,"Reduce ID":[0-9]*,"Message":"'
    # task 2, twice; no other
    [ "$(done_tasks | grep '"Stage ID":0,' |
        grep -o '"Index":[0-9]*' | sort | uniq -c | awk '$1 > 1 { print $2, $1 }')" = '"Index":2 2' ]
}

@test "a map output that was deleted is made again, and no other" {
    damaged rm
}

@test "a map output that was cut is made again, and no other" {
    damaged truncate -s 1000
}

flip() { # a byte in the middle of its records
    local size
    size=$(stat -c %s "$1")
    printf '\xff\xff\xff\xff' | dd of="$1" bs=1 seek=$((size / 2)) conv=notrunc status=none
}

@test "a map output with wrong bytes is made again, and no other" {
    damaged flip
}

# five_damaged: each in another way, all are found by the first reader that misses one.
five_damaged() {
    local file n=0
    tally
    for file in $(find "$outputs" -name '[0-9]*-[0-4]-*'); do
        case $((n++)) in
        0 | 1 | 2) flip "$file" ;;
        3) truncate -s 1000 "$file" ;;
        4) rm "$file" ;;
        esac
    done
    [ $n = 5 ]
    goes_on
    [ "$(row "$map" <summary)" = "7 12 0" ]
    [ "$(grep -c 'is run again' err)" = 1 ]
}

@test "outputs that are damaged, each in another way, are made again in one go" {
    five_damaged
}

@test "so are those that are fetched: their host looks through its others" {
    fetched
    five_damaged
}

# written RUN: bytes of its map outputs.
written() { events "$1" | grep -o '"Shuffle Bytes Written":[0-9]*' | awk -F: '{ n += $2 } END { print n }'; }

@test "map outputs that are compressed are smaller, and the same" {
    local plain packed how
    for how in false true; do
        run -0 troupe run --run-name $how --set shuffle.compress=$how -- "$programs/tally" "$BATS_FILE_TMPDIR/text" out-$how
        right out-$how
    done
    plain=$(written false) packed=$(written true)
    echo "$plain bytes, $packed compressed"
    [ "$packed" -gt 10000 ]
    [ $((packed * 10)) -lt $((plain * 8)) ]
    grep -q '"Shuffle Bytes Written":[1-9][0-9]*,"Shuffle Write Time":[1-9]' troupe-runs/true/events.jsonl
    run ! grep '"Shuffle Bytes Written":[1-9][0-9]*,"Shuffle Write Time":0,' troupe-runs/true/events.jsonl
}

@test "what tasks without lines of their own shuffled counts, too" {
    run -0 troupe run --run-name r --set events.tasks=summary -- "$programs/tally" "$BATS_FILE_TMPDIR/text" out
    run ! grep SparkListenerTaskEnd troupe-runs/r/events.jsonl
    data r >figures
    [ "$(awk '/^shuffled (written|read) / && $3 > 10000' figures | wc -l)" = 2 ]
}

# fetched: files are not opened, as if every executor were on a host of its own.
fetched() { export TROUPE_OPT_shuffle_readHostLocalDisk=false; }

@test "what is not opened is fetched, and is the same" {
    fetched
    run -0 --separate-stderr troupe run --run-name r -- "$programs/tally" "$BATS_FILE_TMPDIR/text" out
    right out
    [ "$(row "$map" <<<"$output")" = "7 7 0" ]
    [[ "$output" =~ " written, "([0-9.]+" "[A-Za-z]+)" read ("(.*)" from other hosts)" ]]
    [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
    [ "$(events r | grep -o '"Remote Bytes Read":[0-9]*' | awk -F: '{ n += $2 } END { print (n > 10000) }')" = 1 ]
    run ! grep '"Local Bytes Read":[1-9]' troupe-runs/r/events.jsonl
    data r >figures
    grep -qx 'shuffled local 0' figures
    grep -qx "shuffled remote $(awk '/^shuffled read/ { print $3 }' figures)" figures
}

@test "what is fetched and was deleted, cut or flipped is made again, and no other" {
    local how
    fetched
    for how in rm "truncate -s 1000" flip; do
        damaged $how
        rm -r troupe-runs out wait.here wait.go
    done
}

# serving SIGNAL: an executor that waits for work, and serves what it and others have
# written, gets it when the next stage begins.
serving() {
    local id waits
    fetched
    tally TALLY_PLAIN=1 TROUPE_OPT_network_timeout=4s TROUPE_OPT_executor_heartbeatInterval=1s
    wait_until two_executors
    waits=$(cat wait.here)
    for id in 0 1 2; do
        [ $id != "$waits" ] && pid_of "executor $id" r >pids && break
    done
    kill -STOP $(cat pids) # or it may have been released when the signal comes
    : >wait.go
    kill -"$1" $(cat pids)
    goes_on
    [ "$(row "$map" <summary)" = "7 7 0" ]
}

# bats test_tags=both
@test "when a block server is killed another one of its host serves" {
    serving KILL
}

@test "when a block server says nothing another one of its host is asked" {
    serving STOP
}

@test "when all map outputs are gone they are made again in one go" {
    tally
    rm "$outputs"/[0-9]*
    goes_on
    # all that were there; the last one came behind
    [ "$(row "$map" <summary)" = "7 13 0" ]
    [ "$(grep -c 'is run again' err)" = 1 ]
}

@test "words dealt out by a function, and partitions taken together, are as sort has them" {
    local text=$BATS_FILE_TMPDIR/text part
    run -0 --separate-stderr troupe run --run-name r -- "$programs/index" "$text" out
    LC_ALL=C tr -cs a-zA-Z '\n' <"$text" | LC_ALL=C tr A-Z a-z |
        LC_ALL=C sed '/^$/d' | LC_ALL=C sort >want
    [ "$(wc -l <want)" -gt 10000 ]
    # 26 letters in 4 runs
    for part in 0:a-f 1:g-m 2:n-s 3:t-z; do
        LC_ALL=C grep "^[${part#*:}]" want | cmp - "out/part-0000${part%:*}"
    done
    [ "$(ls out | wc -l)" = 4 ]
    [ "$(row "trp_partition_by trp_text_files → trp_coalesce" <<<"$output")" = "3 3 0" ]
    [ "$(row "save trp_partition_by → trp_coalesce" <<<"$output")" = "4 4 0" ]
}

@test "a partition that is not there is a mistake, told at once" {
    echo zebra >zoo
    run -1 --separate-stderr troupe run --run-name r -- "$programs/index" zoo out wrong
    [[ "$stderr" == *"failed once, with a mistake in the program: trp_partition_by: letter returned 26; there are 26 partitions"* ]]
}

@test "no records: every wide operation has none, and so have its files" {
    for how in "troupe run --quiet --local=2 --" "env TROUPE_INLINE=1"; do
        run -0 --separate-stderr $how "$programs/edges" empty
        [ "$output" = "$(printf '%s 0\n' reduce combine group distinct repartition sort back inner \
                outer cogroup coalesce)" ]
    done
    : >none
    run -0 --separate-stderr troupe run --quiet --local=2 -- "$programs/tally" none out
    [ "$(cat out/* | wc -c)" = 0 ]
    [ "$(ls out | wc -l)" = 5 ]
}

@test "keys of no bytes and of 1 MiB are keys as others" {
    for how in "troupe run --quiet --local=2 --" "env TROUPE_INLINE=1"; do
        run -0 --separate-stderr $how "$programs/edges" keys
        e=0:- a=1048576:a b=1048576:b
        diff - <(echo "$output") <<END
reduce 3 $e:8 $a:8 $b:8
combine 3 $e:8 $a:8 $b:8
group 3 $e:36 $a:24 $b:24
distinct 7 $e:8 $e:8 $e:8 $a:8 $a:8 $b:8 $b:8
repartition 7 $e:8 $e:8 $e:8 $b:8 $a:8 $b:8 $a:8
sort 7 $e:8 $e:8 $e:8 $a:8 $a:8 $b:8 $b:8
back 7 $b:8 $b:8 $a:8 $a:8 $e:8 $e:8 $e:8
inner 17 $(for i in {1..9}; do printf '%s:24 ' $e; done; for k in $a $b; do
            printf '%s:24 %s:24 %s:24 %s:24 ' $k $k $k $k; done | sed 's/ $//')
outer 7 $e:16 $e:16 $e:16 $a:16 $a:16 $b:16 $b:16
cogroup 3 $e:8 $a:8 $b:8
coalesce 7 $a:8 $e:8 $e:8 $e:8 $a:8 $b:8 $b:8
END
    done
}

@test "scratch that is removed under running executors is made again, and what lay there" {
    tally
    rm -r troupe-runs/r/state/scratch
    goes_on
    # the task that waited had opened its output
    [ "$(row "$map" <summary)" = "7 14 1" ]
}

@test "a function that emits while it is told to end is told so, or its executor goes" {
    local how
    for how in "obedient" "obedient plain" "stubborn" "stubborn plain"; do
        rm -f emitting told
        run -1 --separate-stderr troupe run --quiet --local=2 --set task.maxFailures=1 \
            --set executor.cores=2 -- "$programs/edges" $how
        [[ "$stderr" == *"task 0 failed once, with exit status 3: enough"* ]]
        nothing_left
        [[ "$how" == stubborn* || -e told ]]
        [ -z "$(find . -name '[0-9]*-[0-9]*-*' -size +0)" ]
    done
}
