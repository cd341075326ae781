#!/usr/bin/env bats
# Records that are hard on what sorts and moves them: by their number, their keys, their
# sizes, and by a disk that is full.
# bats file_tags=plain
load drill.bash

quiet=(--quiet)
# hostile MEMORY WORDS…: with two executors of one core and so much memory.
hostile() {
    local memory=$1
    shift
    troupe run "${quiet[@]}" --run-name r --local=2 --set=executor.cores=1 \
        --set=executor.memory="$memory" --set=dynamicAllocation.maxExecutors=2 \
        -- "$programs/hostile" "$@"
}

# figures KEY: of all tasks of the run.
figures() { events r | grep -o "\"$1\":[0-9]*" | cut -d: -f2; }

# within MIB: no executor ever held more.
within() {
    local most
    most=$(figures "Peak Execution Memory" | sort -n | tail -n 1)
    echo "peak: $most"
    [ "$most" -gt 0 ] && [ "$most" -le $(($1 << 20)) ]
}

@test "10,000,000 keys are counted in little memory, by spills" {
    run -0 hostile 128m distinct 10000000 8
    [ "$output" = "10000000 records, 0 in order" ]
    [ "$(figures "Disk Bytes Spilled" | awk '{ n += $1 } END { print n }')" -gt 0 ]
    within 128
}

@test "all records may have one key" {
    run -0 hostile 128m one 2000000 8
    [ "$output" = "1 records, 2000000 in order" ]
    within 128
}

@test "all records of a join may have one key, on the right side, too" {
    run -0 hostile 128m join 1000000 3
    [ "$output" = "3000000 records, 3000000 in order" ]
    # 100 MB, more than a task has, once in each of two actions
    [ "$(figures "Disk Bytes Spilled" | awk '{ n += $1 } END { print (n > 20000000) }')" = 1 ]
    [ "$(data r | awk '/^shuffled spilled/ { print $3 }')" = "$(figures "Disk Bytes Spilled" | awk '{ n += $1 } END { print n }')" ]
    within 128
}

@test "all values of a group may be of one key, more than memory holds" {
    local what
    for what in group cogroup; do
        rm -rf troupe-runs
        run -0 hostile 128m $what 2000000 3
        [ "$output" = "1 records, 2000000 in order" ]
        # 200 MB, once in each of two actions
        [ "$(figures "Disk Bytes Spilled" | awk '{ n += $1 } END { print (n >= 400000000) }')" = 1 ]
    done
}

@test "keys have 0 bytes, or 1 MiB" {
    run -0 hostile 128m keys 200 4
    [ "$output" = "400 records, 400 in order" ]
    within 128
}

@test "there is one partition, or there are 100,000" {
    for partitions in 1 100000; do
        rm -rf troupe-runs
        run -0 hostile 128m distinct 1000 $partitions
        [ "$output" = "1000 records, 0 in order" ]
        within 128
    done
}

limited() {
    ulimit -f 16384 # KiB
    hostile "$@"
}

@test "a file that may not be as large fails its task, and no executor" {
    run -1 limited 128m distinct 8000000 4
    [[ "$output" == *"shuffle data cannot be written: File too large"* ]]
    [[ "$output" != *SIGXFSZ* ]]
}

@test "a comparison that is no order is found out" {
    run -1 hostile 256m compare 100000 4
    [[ "$output" == *"no_order: the comparison of keys is no order"* ]]
}

@test "a record that memory does not hold is named, and so is one above what records may have" {
    run -1 hostile 128m large 300000000 2
    [[ "$output" == *"killed for memory (limit 192 MiB, peak "* ]]
    rm -rf troupe-runs
    run -1 hostile 6g large 1200000000 2
    [[ "$output" == *"larger than the 1073741824 that one may have"* ]]
}

@test "a full disk under map outputs is told, nothing hangs, and nothing stays on it" {
    [ "$(id -u)" = 0 ] || skip "needs root for a small file system"
    mkdir small && mount -t tmpfs -o size=20m tmpfs small || skip "mount is not permitted"
    cd small
    status=0
    hostile 1g distinct 10000000 4 >../out 2>&1 || status=$?
    cat ../out
    du -sk troupe-runs/r
    left=$(du -sk . | cut -f1)
    cd ..
    wait_until umount small
    [[ $status = 1 || $status = 4 ]]
    grep -q 'No space left on device' out
    [ "$left" -lt 2000 ]
}

@test "a full disk under kept partitions is told, and what has no room is computed again" {
    [ "$(id -u)" = 0 ] || skip "needs root for a small file system"
    mkdir small && mount -t tmpfs -o size=20m tmpfs small || skip "mount is not permitted"
    cd small
    status=0
    quiet=()
    hostile 64m kept 600000 8 >../out 2>&1 || status=$?
    cat ../out
    events r | grep -o '"Text":"executor [0-9]* on .*: the disk takes no more kept partitions: No space left on device;' | head -1 >../told
    cd ..
    wait_until umount small
    [ $status = 0 ]
    grep -qx "600000 records, 600000 in order" out
    [ -s told ]
    [ "$(grep -c 'the disk takes no more kept partitions: No space left on device' out)" = 1 ]
}
