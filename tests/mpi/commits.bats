#!/usr/bin/env bats
# Files of C programs: of the attempts of a task one gives its part its name.
# bats file_tags=both
load drill.bash

# commits DO [VARIABLE=VALUE…]: begins it in run r; its first attempt of task 0 stands
# before its commit.
commits() {
    env COMMITS_HOLD="$PWD/hold" "${@:2}" troupe run --run-name r --local=2 --set network.timeout=4s \
        --set executor.heartbeatInterval=1s -- \
        "$programs/commits" "$1" out >answer 2>err &
    pid=$!
    wait_until test -s hold.here
}

# Ends of attempts of a task that have such a reason.
ends() {
    events r | grep '"SparkListenerTaskEnd","Stage ID":0,' | grep "\"Index\":$1," | grep -c "$2" || true
}

# Two parts of 1000 lines, that of task 0 by its attempt $1, and nothing else.
two_parts() {
    local want="1000 0 $1 1000 1 0"
    [ "$(ls -A out | grep -v '^checkpoint$' | xargs)" = "part-00000 part-00001" ]
    [ "$(sort "${@:2}" | uniq -c | xargs)" = "$want" ]
}

# Its executor is stopped, taken for lost, and another attempt commits. While the job still
# runs the first one would go on, on a node that was cut off: with the rename that it stood
# before.
stopped_at_its_commit() {
    commits "$1"
    local executor from to
    read -r executor from to <hold.here
    kill -STOP "$executor"
    wait_until test -e out/part-00000
    run -2 perl -e 'rename $ARGV[0], $ARGV[1] or exit $!' "$from" "$to" # ENOENT
    touch hold.end
    wait "$pid" || { cat err; return 1; }
    [ "$(ends 0 ExecutorLostFailure)" = 1 ]
    [ "$(ends 0 '"Reason":"Success"')" = 1 ]
}

@test "an executor that is lost at its commit writes nothing any more" {
    stopped_at_its_commit save
    two_parts 1 out/part-*
}

@test "nor does one that writes a checkpoint" {
    stopped_at_its_commit checkpoint
    grep "^[01] " answer >rows
    two_parts 1 rows
}

@test "a slow commit is waited for, and is the one" {
    commits save
    touch hold.end hold.go
    wait "$pid"
    two_parts 0 out/part-*
}

# draws collect|save [marked]: while the first task that reads holds what it has read, an
# output is lost that the others have still to read; the lines of all end up in `lines`.
draws() {
    troupe run --run-name r --local=1 --set executor.cores=1 -- \
        "$programs/draws" "$1" out hold "${@:2}" >answer 2>err &
    pid=$!
    wait_until test -e hold.here || { cat err; return 1; }
    rm troupe-runs/r/state/scratch/shuffle/[0-9]*-2-*
    touch hold.go
    wait "$pid" || { cat err; return 1; }
    [ "$1" = collect ] || cat out/part-* >answer
    grep -x '[0-3] [0-9a-f]*' answer >lines
    [ "$(wc -l <lines)" = 12 ]
}
numbers() { sort -u lines | wc -l; }

@test "without a mark what is lost is drawn again, and stands beside what was drawn before" {
    draws collect
    [ "$(numbers)" = 5 ]
}

@test "what is indeterminate is made again as a whole, and so is what was made of it" {
    draws collect marked
    [ "$(numbers)" = 4 ]
    [ "$(events r | grep SparkListenerTaskEnd | grep '"Stage ID":0,' | grep -c '"Reason":"Success"')" = 8 ]
}

@test "parts that were saved of it before are written again" {
    draws save marked
    [ "$(numbers)" = 4 ]
}
