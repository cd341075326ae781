#!/usr/bin/env bats
# What tasks add up, what they all read, and results that do not fit a message.
load drill.bash

options=''
# sums STATUS ARGUMENT…
sums() {
    local status=$1
    shift
    # shellcheck disable=SC2086
    run "-$status" --separate-stderr troupe run --run-name r --local=4 $options -- \
        "$programs/sums" "$@"
}
said() { grep -qx -- "$1" <<<"$output" || { echo "never said: $1"; echo "$output"; echo "$stderr"; return 1; }; }

# updates NAME: the sum of what tasks added to it, and its last value, by the log.
updates() {
    events r | grep SparkListenerTaskEnd | name=$1 perl -ne '
        while (/"ID":\d+,"Name":"([^"]*)","Update":"(-?\d+)","Value":"(-?\d+)","Internal":false,"Count Failed Values":false/g) {
            next if $1 ne $ENV{name};
            $n += $2;
            $v = $3;
        }
        END { print $n + 0, " ", $v + 0, "\n" }'
}

# 8000 records; the odd ones add up to 16,000,000.
@test "a sum counts each partition once, whatever fails, runs again, or computes it too" {
    sums 0 once
    said "before: 0"
    [ "$(grep -c '^seen: 8000$' <<<"$output")" = 2 ]
    [ "$(grep -c '^odd: 16000000$' <<<"$output")" = 2 ]
    said "each: 110"
    # three partitions of eight failed at the end of their first attempt, in each job
    [ "$(events r | grep SparkListenerTaskEnd | grep -c ExceptionFailure)" -ge 6 ]
    # the log has them as Spark's, in tasks and stages; summary and report tell them
    [ "$(updates "records seen")" = "8000 8000" ]
    [ "$(updates odd)" = "16000000 16000000" ]
    [ "$(updates "in foreach")" = "110 110" ]
    events r | grep SparkListenerStageCompleted |
        grep -F '"Accumulables":[{"ID":1,"Name":"records seen","Value":"8000","Internal":false,"Count Failed Values":false},{"ID":2,'
    said "accumulated: records seen 8000, odd 16000000, in foreach 110"
    diff <(troupe report r | grep accumulated:) <(grep accumulated: <<<"$output")
}

@test "outputs that are lost and made again count once" {
    troupe run --run-name r --local=2 -- "$programs/sums" lost >out 2>&1 3>&- &
    wait_until test -e counted || { cat out; false; }
    find troupe-runs/r/state/scratch -type f -path "*shuffle*" -name "[0-9]*-[0-3]-*" -print -delete
    : >go
    wait $! || { cat out; false; }
    [ "$(grep -c "^seen: 8000$" out)" = 2 ]
    [ "$(grep -c "^odd: 16000000$" out)" = 2 ]
    [ "$(events r | grep '"Task Type":"ShuffleMapTask"' | grep -c '"Reason":"Success"')" -gt 8 ]
    [ "$(updates "records seen")" = "8000 8000" ]
}

# mapped FILE: executors that have it mapped.
mapped() {
    local pid n=0
    for pid in $(pid_of 'executor [0-9]*' r); do
        grep -q -- "$1" "/proc/$pid/maps" && n=$((n + 1))
    done
    echo "$n"
}
is_mapped() { [ "$(mapped "$1")" = "$2" ]; }

@test "all executors of a host read one file of a broadcast, which goes when it is freed" {
    local file="$PWD/troupe-runs/r/state/scratch/broadcasts/1"
    SUMS_WAIT=1 troupe run --run-name r --local=4 --set executor.cores=1 -- "$programs/sums" table 100000000 >out 2>&1 3>&- &
    wait_until grep -q right out || { cat out; false; }
    [ "$(stat -c %s "$file")" = 100000000 ]
    [ "$(ls troupe-runs/r/state/scratch/broadcasts)" = 1 ]
    is_mapped "$file" 4
    : >go
    wait_until grep -q freed out
    [ ! -e "$file" ]
    # who asks for it then is told, and nothing of it stays mapped
    : >on
    wait $!
    grep "after: -11 .*broadcast 1 is gone, or never was" out
    [ ! -e troupe-runs/r/state/scratch ]
}

# copies: of files that all hosts read, on this one.
copies() { find disk -name '4294967295-*' -path '*/shuffle/*'; }

@test "where hosts have disks of their own, each has one copy of a large broadcast" {
    mkdir disk
    printf "site: 1\nscratch: %s\n" "$PWD/disk" >site.yaml
    SUMS_WAIT=1 troupe run --run-name r --local=4 --site site.yaml --set executor.cores=1 -- "$programs/sums" table 30000000 >out 2>&1 3>&- &
    wait_until grep -q right out || { cat out; false; }
    [ "$(copies | wc -l)" = 1 ]
    cmp "$(copies)" troupe-runs/r/state/scratch/broadcasts/1
    is_mapped "$(copies)" 4
    is_mapped "$PWD/troupe-runs/r/state/scratch/broadcasts/1" 0
    : >go
    wait_until grep -q freed out
    : >on
    wait $!
    grep "after: -11 .*broadcast 1 is gone, or never was" out
    [ -z "$(find disk -mindepth 1)" ]
}

@test "a broadcast that was damaged is not read" {
    local file=troupe-runs/r/state/scratch/broadcasts/1
    cat >damage <<'SH'
#!/bin/bash
until [ -e "${2-$1}" ]; do sleep 0.001; done
chmod u+w "$1"
printf x | dd of="$1" bs=1 seek=5000 conv=notrunc status=none
: >damaged
SH
    chmod +x damage
    ./damage "$file" 3>&- &
    export SUMS_DAMAGE=damaged
    sums 0 table 1000000
    said "wrong"
    grep -q "broadcasts/1 is damaged" <<<"$stderr"
    # While tasks read it.
    rm -r troupe-runs damaged
    ./damage "$file" mapped 3>&- &
    export -n SUMS_DAMAGE
    export SUMS_MAPPED=damaged
    sums 0 table 1000000
    said "wrong"
    grep -q "broadcasts/1 is damaged" <<<"$stderr"
}

# bats test_tags=mpi
@test "broadcasts of no bytes, and in a static run" {
    sums 0 table 0
    said "right"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run -0 mpirun --oversubscribe -n 3 "$programs/sums" table 5000
    said "right"
    run -0 mpirun --oversubscribe -n 3 "$programs/sums" once
    said "each: 110"
}

results=troupe-runs/r/state/scratch/results
results_are() { [ "$(ls $results | grep -c -v tmp)" = "$1" ]; }

# bats test_tags=plain
@test "200 MiB are collected: they go by files, not by the control channel" {
    troupe run --run-name r --local=4 -- "$programs/sums" silent 8 25 >out 2>&1 3>&- &
    wait_until results_are 8 || { cat out; false; }
    [ "$(du -sm $results | cut -f 1)" -ge 200 ]
    : >go
    wait $! || { cat out; false; }
    grep -x "collected: 0 200, 0 wrong" out
    # the log knows how large they were
    [ "$(events r | grep SparkListenerTaskEnd | grep -c '"Result Size":26214[4-9][0-9][0-9],')" = 8 ]
}

# bats test_tags=plain
@test "a task may give more records than its executor has memory" {
    run -0 troupe run --quiet --local=1 --set executor.memory=128m -- "$programs/bigresult" 300 1
    [ "$output" = "collected 314572800 bytes in 76800 records" ]
}

@test "a result that was damaged is made again" {
    troupe run --run-name r --local=4 -- "$programs/sums" silent 2 1 >out 2>&1 3>&- &
    wait_until results_are 2 || { cat out; false; }
    truncate -s 1000 "$results/$(ls $results | tail -1)"
    : >go
    wait $! || { cat out; false; }
    grep -x "collected: 0 2, 0 wrong" out
    grep "warning: the result of partition [01] is made again: .*/results/.* is damaged" out
}
