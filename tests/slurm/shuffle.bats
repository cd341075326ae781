#!/usr/bin/env bats
# Map outputs on the nodes of a Slurm job: each node has its own, and others fetch them.
load slurm.bash
load tally.bash

setup_file() {
    cluster_up -n 3 --racks 0 --fast
    write_text
}

@test "records go from the tasks on one node to those on another" {
    tally TALLY_PLAIN=1
    maps
    [ "$(maps | cut -d' ' -f1 | sort -u | xargs)" = "node1 node2" ]
    [ "$(folders node1 | wc -l)" = 1 ]
    [ "$(folders node2 | wc -l)" = 1 ]
    [ ! -e troupe-runs/r/state/scratch/shuffle ]
    touch wait.go
    run -0 finished
    right
    [ "$(maps | wc -l)" = 7 ]
    [ "$(bytes Remote)" -gt 10000 ]
    [ "$(bytes Local)" -gt 10000 ]
    [[ "$output" =~ "shuffled: ".*" read ("[1-9].*" from other hosts)" ]]
    nothing_left node1 node2
}

@test "map outputs stay on their nodes while these are cut anew" {
    tally
    touch wait.go
    run -0 finished
    right
    maps
    echo "$(bytes Remote) fetched, $(bytes Local) opened"
    [ "$(maps | wc -l)" = 7 ]
    [ "$(bytes Remote)" -gt 10000 ]
    nothing_left node1 node2
}

@test "the map outputs of a node that dies are made again, and no others" {
    tally TALLY_PLAIN=1
    maps | sort >before
    grep -q node1 before && grep -q node2 before
    cluster kill node2
    touch wait.go
    wait_until grep -q '^events: ' out
    right
    # what was done on the node that stayed was done once, the rest twice
    sed -n 's/node2 //p' before | sort >want-twice
    maps | sed 's/.* //' | sort | uniq -d | diff want-twice -
    # Slurm has a job end on a node before it says that it has: the dead one too
    cluster heal node2
    run -0 finished
    nothing_left node1
    # what it has left there goes with the user's next run
    [ "$(folders node2 | wc -l)" = 1 ]
    submit alice -N1 -n1 -c2 --mem=1000 -w node2 -- "$TROUPE" run --run-name later \
        --set executor.memory=300m -- "$programs/tally" "$PWD/text" "$PWD/later"
    run -0 finished
    LC_ALL=C sort later/part-* | cmp - "$BATS_FILE_TMPDIR/want"
    nothing_left node1 node2
}

@test "map outputs of executors that are killed are served by others, and go with the run" {
    tally TALLY_PLAIN=1
    on node2 pkill -9 -u alice .
    touch wait.go
    run -0 finished
    right
    nothing_left node1 node2
}

@test "map outputs go when the driver is killed" {
    tally TALLY_PLAIN=1
    [ "$(folders node1 | wc -l)" = 1 ]
    [ "$(folders node2 | wc -l)" = 1 ]
    on node1 pkill -9 -u alice -f "^$programs/tally"
    run finished
    [ "$status" != 0 ]
    nothing_left node1 node2
}

none_on() { [ -z "$(folders "$1")" ]; }

@test "they go from a node that takes its time, too" {
    tally TALLY_PLAIN=1
    on node2 pkill -STOP -f '^[^ ]*troupe-rank step'
    on node1 pkill -9 -u alice -f "^$programs/tally"
    wait_until none_on node1
    on node2 pkill -CONT -f '^[^ ]*troupe-rank step'
    run finished
    [ "$status" != 0 ]
    nothing_left node1 node2
}

# copy_on NODE: the node's copy of a broadcast.
copy_on() { on "$1" bash -c 'ls /tmp/troupe-*/shuffle/4294967295-*'; }

@test "a node gets its copy of a broadcast from a node that has one" {
    submit alice --no-kill -N2 -n2 -c2 --mem=2000 -w node1,node2 -- env SUMS_FIRST=node1 SUMS_SECOND="$PWD/second" SUMS_WAIT=1 \
        "$TROUPE" run --run-name r --set executor.memory=300m --set events.tasks=all \
        --set scheduler.minRegisteredResourcesRatio=1 -- "$programs/sums" table 20000000
    wait_until copy_on node1
    # what is left of the file is on node1
    rm troupe-runs/r/state/scratch/broadcasts/1
    touch second
    wait_until copy_on node2
    touch go on
    run -0 finished
    [[ "$output" =~ "right" ]]
    [[ "$output" =~ "after: -11 " ]]
    nothing_left node1 node2
}

# An srun is outside of the run: whoever floods its ports can have it wait for ever.
@test "an srun that tidies up and never ends is waited for so long, and the run says so" {
    cp "$BATS_FILE_TMPDIR/text" . && chmod 644 text
    mkdir bin
    cat >bin/srun <<END
#!/bin/bash
[[ " \$* " != *" tidy "* ]] || { touch $PWD/tidies && exec sleep 1000; }
exec /usr/bin/srun "\$@"
END
    chmod 755 bin/srun
    moving_clock node1
    local run=("$TROUPE" run --set executor.memory=300m --run-name)
    submit alice -N1 -n1 -c2 --mem=1000 -w node1 -- env PATH="$PWD/bin:$PATH" \
        "${run[@]}" r -- "$programs/tally" "$PWD/text" "$PWD/out-dir"
    wait_until test -e tidies
    advance_on node1 3s
    wait_until grep -qx "troupe: waiting for srun to remove what executors left on node1, 10 s at most" out
    advance_on node1 10s
    run -0 finished
    right
    # what it has left there goes with the user's next run
    submit alice -N1 -n1 -c2 --mem=1000 -w node1 -- "${run[@]}" later -- "$programs/tally" "$PWD/text" "$PWD/later"
    run -0 finished
    nothing_left node1
}
