#!/usr/bin/env bats
# Map outputs of hosts that go: what is still to be read is moved to the run's folder before,
# and no byte where it need not be.
load slurm.bash
load tally.bash

setup_file() {
    cluster_up -n 3 --racks 0 --fast
    write_text
}

teardown() {
    on head scancel -u alice
}

# moved: bytes that went from their hosts to the run's folder.
moved() {
    grep '"Event":"TroupeOutputsMoved"' troupe-runs/r/events.jsonl | grep -o '"Bytes":[0-9]*' |
        awk -F: '{ n += $2 } END { print n + 0 }'
}

some_were_moved() { [ "$(moved)" -gt 10000 ]; }

# in_run: outputs that are there.
in_run() { find troupe-runs/r/state/scratch/shuffle -name '[0-9]*' 2>/dev/null | wc -l; }

# once: every map task was done once, and its output read.
once() {
    right
    maps
    [ "$(maps | wc -l)" = 7 ]
    [ "$(maps | sed 's/.* //' | sort -u | wc -l)" = 7 ]
    [[ "$output" != *"is run again"* ]]
}

@test "between stages of different shapes on the same node no byte moves" {
    cp "$BATS_FILE_TMPDIR/text" . && chmod 644 text
    submit alice --no-kill -N1 -n1 -c2 --mem=2000 -w node1 -- "$TROUPE" run --run-name r \
        --set executor.memory=300m --set events.tasks=all -- "$programs/tally" "$PWD/text" "$PWD/out-dir"
    run -0 finished
    once
    [ "$(bytes Remote)" = 0 ]
    [ "$(bytes Local)" -gt 10000 ]
    [ "$(moved)" = 0 ]
    [[ "$output" =~ " read (0 bytes from other hosts)"$'\n' ]]
    nothing_left node1
}

@test "what lies on a node where the next stage has no room is moved" {
    cpus="-n3 -c1" tally # a part of the second stage's executor on one of the nodes
    maps | sort >before
    grep -q node1 before && grep -q node2 before
    touch wait.go
    run -0 finished
    once
    some_were_moved
    [[ "$output" =~ "shuffled: ".*" moved"$'\n' ]]
    nothing_left node1 node2
}

# abroad: as tally; two executors in the driver's job, the third one in an additional
# job, on $there; who reads has room in the driver's.
abroad() {
    cp "$BATS_FILE_TMPDIR/text" . && chmod 644 text
    submit alice --no-kill -N1 -n1 -c4 --mem=2000 -w node1 -- env TALLY_MS=4000 TALLY_PARTS=2 \
        "$TROUPE" run --run-name r --set executor.memory=300m --set network.timeout=8s \
        --set executor.heartbeatInterval=1s --set events.tasks=all --set slurm.poll=200ms \
        --set driver.cores=2 --set alloc.max_executors=3 -- "$programs/tally" "$PWD/text" "$PWD/out-dir" "$PWD/wait"
    wait_until test -s wait.here
    wait_until others_are_done
    there=$(maps | grep -v node1 | cut -d' ' -f1 | sort -u)
    [[ "$there" == node? ]] || { maps && cat out; return 1; }
    further=$(on head squeue -h -u alice -o '%i %j' | awk '/ troupe / { print $1; exit }')
    [ "$further" ]
}

@test "an additional job is given back: what it holds is moved before" {
    abroad
    [ "$(in_run)" = 0 ]
    touch wait.go
    run -0 finished
    once
    some_were_moved
    grep '"Event":"TroupeOutputsMoved"' troupe-runs/r/events.jsonl | grep "\"Host\":\"$there\""
    nothing_left node1 node2 node3
}

@test "an additional job is cancelled: what it holds is moved in time" {
    abroad
    on head scancel "$further"
    wait_until some_were_moved
    wait_until job_is_over "$further"
    touch wait.go
    run -0 finished
    once
    nothing_left node1 node2 node3
}

@test "an additional job reaches its end soon: what it holds is moved before" {
    abroad
    on head scontrol update jobid="$further" EndTime="now+40seconds"
    wait_until some_were_moved
    run ! job_is_over "$further"
    touch wait.go
    run -0 finished
    once
    nothing_left node1 node2 node3
}

# drained: node2 is, once its tasks have left outputs there.
drained() {
    tally TALLY_PLAIN=1 TROUPE_OPT_slurm_poll=200ms
    maps | sort >before
    grep -q node1 before && grep -q node2 before
    "$@"
    on head scontrol update nodename=node2 state=drain reason=drill
    wait_until grep -q "is to go: node2 is being drained" troupe-runs/r/events.jsonl
}

undrain() { on head scontrol update nodename=node2 state=resume; }

@test "a node is drained: what it holds is moved" {
    drained
    wait_until some_were_moved
    [ "$(in_run)" = "$(grep -c node2 before)" ]
    touch wait.go
    run finished
    undrain
    [ "$status" = 0 ]
    once
    nothing_left node1 node2
}

# As node2 sees it, the run's folder is on a disk of 4 KiB, which goes with the folder.
fill() {
    mkdir -p troupe-runs/r/state/scratch/shuffle
    chown -R --reference=troupe-runs/r troupe-runs/r/state/scratch
    chmod -R go= troupe-runs/r/state/scratch
    on node2 mount -t tmpfs -o "size=4k,mode=700,uid=$(stat -c %u troupe-runs/r)" none "$PWD/troupe-runs/r/state/scratch/shuffle"
}

@test "the disk is full when a node goes: what could not be moved is made again" {
    drained fill
    wait_until grep -q "could not be moved to the run's folder: .*No space left" troupe-runs/r/events.jsonl
    [ "$(in_run)" = 0 ]
    touch wait.go
    run finished
    undrain
    [ "$status" = 0 ]
    right
    nothing_left node1 node2
}

hang() { on node2 pkill -STOP -u alice -f "^troupe: executor"; }

@test "the executor that moves them is killed meanwhile: what it had is made again, and no more" {
    drained hang
    on node2 pkill -KILL -u alice -f "^troupe: executor"
    wait_until grep -q "could not be moved to the run's folder: the executor that did it is gone" troupe-runs/r/events.jsonl
    touch wait.go
    run finished
    undrain
    [ "$status" = 0 ]
    right
    sed -n 's/node1 //p' before >want-once
    maps | sed 's/.* //' | sort | uniq -c | awk '$1 == 1 { print $2 }' | sort >once
    [ -z "$(comm -23 <(sort want-once) once)" ]
    nothing_left node1 node2
}
