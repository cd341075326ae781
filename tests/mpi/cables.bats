#!/usr/bin/env bats
# What goes wrong on the way between a driver and an executor whose messages travel over
# sockets (tests/mpi/relay.perl): the executor is lost with a reason, the result is right.
load drill.bash
load ../lib/json.bash

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export DRILL_TOKEN=$BATS_TEST_TMPDIR TROUPE_OPT_comm_transport=socket
    export PATH=$TROUPE_BUILD/bin:$PATH
    programs=$TROUPE_BUILD/tests/programs
    d=''
    mkdir cable
    printf '#!/bin/sh\nexec perl "%s" "%s" "$@"\n' \
        "$TROUPE_SOURCE/tests/mpi/relay.perl" "$PWD/cable" >through
    chmod +x through
}

# order EXECUTOR WORD…: to its cable.
order() { echo "${@:2}" >"cable/$1"; }
was_done() { [ -s "cable/$1.done" ]; }

# begin OPTION… -- PROGRAM WORD…: a run r of two executors of one core, which has both before
# it begins.
begin() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    troupe run --local=2 --run-name r --set executor.heartbeatInterval=1s \
        --set scheduler.minRegisteredResourcesRatio=1 \
        --set scheduler.maxRegisteredResourcesWaitingTime=1h "${options[@]}" \
        -- ./through "$programs/$1" "${@:2}" >out 2>err 3>&- &
    run=$!
}

# naps OPTION…: 8 tasks that last until `go` is there; both executors have begun.
naps() {
    begin "$@" -- sleepy 8 3600000
    wait_until [ -e begun.0 -a -e begun.1 ]
}

# well WORDS: it succeeded and printed them.
well() {
    local status=0
    wait $run || status=$?
    cat out err
    [ $status = 0 ]
    grep -q "$1" out
}

relays() { ours_like 'relay\.perl'; }

removed() {
    sed -n 's/.*"Removed Reason":"\([^"]*\).*/\1/p' troupe-runs/r/events.jsonl | tee /dev/stderr
}
said() { grep -q -- "$1" troupe-runs/r/events.jsonl; }

# ended_elsewhere N: at least so many tasks ended on the second executor.
ended_elsewhere() {
    [ "$(events r | grep -c "TaskEnd.*\"Executor ID\":\"1\"")" -ge "$1" ]
}
# done_at_least N: tasks of the run's first stage.
done_at_least() {
    [ "$(troupe status --json r | json '$d->{stages}[0]{done}')" -ge "$1" ]
}
kib_at_most() { sed -n 's/.* \([0-9]*\) KiB at most/\1/p' out; }

@test "a cable is cut: the executor is given up for its silence, its task runs elsewhere" {
    moving_clock
    echo network_timeout_ns=60000000000 >cable/shape
    naps --set network.timeout=4s
    hold_clock
    # shellcheck disable=SC2046
    advance 1s $(relays) # a heartbeat
    order 0 cut
    wait_until was_done 0
    # shellcheck disable=SC2046
    advance 2500ms $(relays)
    run ! said 'SparkListenerExecutorRemoved'
    # shellcheck disable=SC2046
    advance 3s $(relays)
    [ "$(removed)" = "silent for network.timeout" ]
    touch go
    release_clock
    well "slept 8"
    grep -q "lost its executor" err
}

@test "a cable is cut: an executor whose driver is patient leaves by itself, and says why" {
    echo network_timeout_ns=2000000000 >cable/shape
    naps --set network.timeout=1h
    order 0 cut
    wait_until grep -rq 'nothing was heard of the driver for 2 s' troupe-runs/r/state/executors
    touch go
    well "slept 8"
}

@test "a connection that only the driver has any more: the executor's end is seen" {
    naps --set network.timeout=1h
    order 0 close executor
    wait_until was_done 0
    wait_until said 'SparkListenerExecutorRemoved'
    touch go
    well "slept 8"
    grep -rq 'its connection to the driver closed' troupe-runs/r/state/executors
}

@test "a connection that only the executor has any more: it is ended, its task runs elsewhere" {
    naps --set network.timeout=1h
    order 0 close driver
    wait_until was_done 0
    wait_until said 'SparkListenerExecutorRemoved'
    touch go
    well "slept 8"
    removed | head -n 1 | grep "^its connection closed"
}

# (The first cable may be that of either executor.)
# sent_through ORDER…: 20,000 tasks of 400 bytes there and back, with an order to the first
# executor's cable that holds from its first byte on.
sent_through() {
    order 0 "$@"
    begin -- sent 20000 400
    well "^8000000 bytes came back"
    was_done 0
}

@test "a connection is reset in the middle of a batch" {
    for n in 3000 50000 1000001; do
        rm -rf troupe-runs cable/0*
        sent_through reset $n
        # Whichever is heard first, the connection's end or the executor's, tells of it.
        removed | head -n 1 | grep "its connection \(to the driver \)\?closed: "
    done
}

@test "garbled bytes to the driver: the executor is lost with that reason" {
    for n in 3000 200001; do
        rm -rf troupe-runs cable/0*
        sent_through garble driver $n
        [ "$(removed | head -n 1)" = "what came on its connection is not what was sent" ]
    done
}

@test "garbled bytes to an executor: it ends and says so" {
    for n in 3000 200001; do
        rm -rf troupe-runs cable/0*
        sent_through garble executor $n
        # It says so, unless it is killed before it can, since its connection is closed.
        grep -rq 'what came on the connection is not what the driver sent' troupe-runs/r/state/executors ||
            removed | head -n 1 | grep "its connection closed"
        # Heard by its last words, or by its end.
        removed | head -n 1 | grep -e "what came on .* connection is not what .* sent" -e "its connection closed"
    done
}

# given_up KIND PROGRAM WORD…: the first such message (wire/message.h) lacks its last byte;
# its tag is right, so that it came from an executor of ours.
given_up() {
    rm -rf troupe-runs out err garbled
    GARBLE_KIND=$1 GARBLE_ONCE=$PWD/garbled troupe run --local=2 --run-name r \
        --set scheduler.resource.profileMergeConflicts=true -- "$programs/$2" "${@:3}" >out 2>err
    [ -e garbled ]
    grep -q "executor [01] on .* is given up: it sent a message about $about that cannot be right" err
    removed | grep -q "it sent a message about $about that cannot be right"
}

@test "an executor that sends a garbled message is given up, and the result is right" {
    about="tasks that ended" given_up 6 sent 2000 400
    grep -q "^800000 bytes came back" out
    about="a task that waits" given_up 7 together 2
    grep -q "^2 tasks said: 0 1" out
    about="its map outputs" given_up 13 tally /usr/share/common-licenses/GPL-3 counts
    about="kept partitions" given_up 14 cached plain memory calls
    # Of a command, too.
    about="tasks that ended"
    rm garbled
    echo '{troupe: 1, stages: [{name: s, tasks: 4, run: "echo x"}]}' >p.yaml
    GARBLE_KIND=6 GARBLE_ONCE=$PWD/garbled troupe run --local=2 --run-name c p.yaml 2>err
    grep -q "is given up: it sent a message about $about" err
}

# bats test_tags=nightly
@test "200 runs with executors that garble what they send: all end, right or with the reason" {
    local status seed
    for seed in {1..200}; do
        rm -rf troupe-runs
        status=0
        GARBLE_CHANCE=$((3 + seed % 40)) troupe run --quiet --local=2 --run-name r \
            --set scheduler.resource.profileMergeConflicts=true \
            -- "$programs/anything" "$seed" 20 >out 2>err || status=$?
        # 4: what the driver was sent as a result is none.
        [ $status = 0 ] || { [[ $status = [14] ]] && grep -q . err; } || { cat err && false; }
    done
}

# Unless it turns in the frame around what a task sent, or the executor has come too late for
# so many bytes: then the next one is tried.
@test "without comm.mac a bit that turns on the way reaches the program" {
    local n
    for ((n = 200001; ; n += 200002)); do
        rm -rf troupe-runs cable/0*
        order 0 garble driver $((n % 1000000))
        begin --set comm.mac=false -- sent 20000 400
        wait $run || true
        ! grep "sent: other bytes came back" err || break
    done
}

# bats test_tags=plain
@test "an executor that reads nothing holds up nobody, and the driver's memory stays small" {
    begin -- sent 40000 1000
    well "^40000000 bytes came back"
    local free slow
    free=$(kib_at_most)
    rm -rf troupe-runs
    order 0 hold executor 100000
    begin -- sent 40000 1000
    wait_until was_done 0
    wait_until done_at_least 30000
    order 0 pass
    well "^40000000 bytes came back"
    slow=$(kib_at_most)
    echo "$free KiB, $slow KiB with one that does not read"
    [ "$slow" -lt $((free + 4096)) ]
    run ! grep -v released <<<"$(removed)"
}

@test "an executor that reads ten bytes a second holds up nobody" {
    begin --set network.timeout=1h -- sleepy 60 100
    wait_until [ -e begun.0 -a -e begun.1 ]
    order 0 trickle executor 10
    wait_until was_done 0
    wait_until ended_elsewhere 50
    run ! said SparkListenerExecutorRemoved
    order 0 pass
    well "slept 60"
}

# bats test_tags=plain
@test "what an executor reads slowly waits within bounds" {
    begin -- sent 40000 1000
    well "^40000000 bytes came back"
    local free slow
    free=$(kib_at_most)
    rm -rf troupe-runs
    order 0 trickle executor 4000
    begin -- sent 40000 1000
    wait_until was_done 0
    wait_until done_at_least 30000
    order 0 pass
    well "^40000000 bytes came back"
    slow=$(kib_at_most)
    echo "$free KiB, $slow KiB with one that reads slowly"
    [ "$slow" -lt $((free + 4096)) ]
    run ! grep -v released <<<"$(removed)"
}

@test "a driver out of descriptors says so; who comes waits, and the run ends well" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {small: {executor: {cores: 1, memory: 32m, memoryOverhead: 32m}}}
stages:
  - {name: s, profile: small, tasks: 90, run: "sleep 1"}
Y
    (ulimit -n 64; exec troupe run --local=60 --run-name r p.yaml >out 2>err)
    cat err
    grep -q 'Too many open files: executors that come now wait until others have gone' err
    [ "$(events r | grep -c '"Reason":"Success"')" = 90 ]
    [ "$(grep -c 'ExecutorAdded' troupe-runs/r/events.jsonl)" -ge 16 ]
}
