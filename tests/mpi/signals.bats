#!/usr/bin/env bats
# SIGINT, SIGTERM, SIGUSR1, cancel.
# bats file_tags=both
load drill.bash

# Everything that a run has on this host for a while, Open MPI's session folders
# (ompi.HOST.UID/pid.N) included, lies in a folder of the test's own, $d.
own_temporary() {
    others_folder
    export TMPDIR=$d TROUPE_SCRATCH=$d
}

swept() {
    [ -z "$(ls -A "$d")" ] || { find "$d"; return 1; }
}

long() {
    printf 'troupe: 1\nstages:\n  - {name: s, tasks: 6, run: "%s"}\n' "$1" >p.yaml
}

@test "SIGINT once lets running tasks finish, starts no more, and --resume goes on" {
    own_temporary
    long 'until [ -e go ]; do sleep 0.1; done; echo ok'
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/{0,1}.0.out
    ls "$d"/troupe-*
    kill -INT $!
    wait_until grep -q "once more to kill them" out
    touch go
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    n=$(cat troupe-runs/r/logs/s/*.out | grep -c ok)
    [ "$n" = 2 ]
    run ! grep TaskKilled troupe-runs/r/events.jsonl
    run -0 troupe run --resume r
    [ "$(cat troupe-runs/r/logs/s/*.out | grep -c ok)" = 6 ]
    swept
}

@test "SIGINT twice kills" {
    own_temporary
    long 'sleep 100'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -INT $!
    wait_until grep -q "once more to kill them" out
    kill -INT $!
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    swept
}

@test "a C program that is stopped is not told of --resume, which is for pipelines" {
    troupe run --run-name r -- "$programs/sleepy" 2 60000 >out 2>&1 &
    wait_until ls begun.0
    kill -INT $!
    wait_until grep -q "once more to kill them" out
    kill -INT $!
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    grep -q cancelled out
    run ! grep resume out
}

@test "SIGTERM as SIGINT; after run.grace running tasks are killed" {
    own_temporary
    long 'sleep 100'
    troupe run --set run.grace=1s --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    swept
}

@test "after run.grace a task gets SIGTERM before it is killed" {
    long 'trap \"echo term; exit 3\" TERM; sleep 100 & wait'
    troupe run --set run.grace=1s --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -INT $!
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    grep -q term troupe-runs/r/logs/s/0.0.out
}

@test "SIGUSR1 drains and ends with 75" {
    long 'until [ -e go ]; do sleep 0.1; done; echo ok'
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -USR1 $!
    wait_until grep -q "running tasks may finish" out
    touch go
    status=0
    wait $! || status=$?
    [ $status = 75 ]
    run -0 troupe run --resume r
}

# away HOW SIGNAL [OPTION…]: a program that does something else than to call Troupe gets it by
# `troupe`, as $run. In 8 s there are the grace, time to come back, and 5 s to handle SIGTERM.
away() {
    rm -rf troupe-runs out
    troupe run --local=2 --run-name r --set run.grace=1s "${@:3}" -- "$programs/ends" "$1" >out 2>err &
    run=$!
    wait_until grep -q counted out
    kill "-$2" $run
    wait_until grep -q -e stopping -e 'time is up' err
}
# ended STATUS: that of the run; the event log has its end.
ended() {
    local status=0
    wait $run || status=$?
    [ $status = "$1" ]
    [ "$(troupe ls | awk '$1 == "r" { print $3 }')" = "$1" ]
    events r | tail -n 1 | grep -q "ApplicationEnd.*\"ExitCode\":$1"
    events r | grep -q 'ExecutorRemoved.*released'
}

@test "a program that is between two calls when its run is stopped is ended with it" {
    moving_clock
    away away TERM
    advance 4s
    ended 130
    away away USR1
    advance 4s
    ended 75
    away handles TERM # it ends in order
    advance 4s
    ended 130
    away ignores TERM
    advance 10s
    ended 130
}

@test "the second SIGTERM ends it at once" {
    away away TERM --set run.grace=1h
    kill -TERM $run
    ended 130
}

# bats test_tags=mpi
@test "over MPI as well, and a broken heap ends it, too" {
    joins || skip "Open MPI has no ompi-server here, by which programs are joined"
    away away TERM --set comm.transport=mpi
    ended 130
    # A sanitizer has no lock there, and what it reports of this is not a fault.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:log_path=$PWD/heap run -4 troupe run --local=1 --run-name h --set comm.transport=mpi -- "$programs/ends" heap
}

@test "a crash behind the end of the run is told, and is the run's" {
    run -1 troupe run --quiet --local=1 --run-name r -- "$programs/ends" after
    [[ "$output" == *"ends ended behind its run, in or after trp_finalize: killed by SIGKILL (9)"* ]]
    [ "$(troupe ls | awk '$1 == "r" { print $2 }')" = failed ]
}

@test "a program may take its time behind the end of the run" {
    moving_clock
    troupe run --quiet --local=1 --run-name r -- "$programs/ends" late >out 2>&1 &
    run=$!
    wait_until eval 'events r | grep -q ApplicationEnd'
    advance 20s
    touch go
    status=0
    wait $run || status=$?
    [ $status = 7 ]
}

@test "a driver that does not answer is told of" {
    local driver
    moving_clock
    troupe run --local=1 --run-name r -- "$programs/ends" away >out 2>err &
    run=$!
    wait_until grep -q counted out
    driver=$(awk '$2 == "driver" { print $1; exit }' troupe-runs/r/state/pids)
    kill -STOP "$driver"
    advance 45s
    [ "$(grep -c 'the driver has not answered for 30 s; Ctrl-C twice, or' err)" = 1 ]
    kill -CONT "$driver"
    advance 10s
    wait_until grep -q 'the driver answers again' err
    touch go
    wait $run
}

@test "troupe cancel ends a run of this folder" {
    long 'sleep 100'
    troupe run --set run.grace=1s --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    run -0 troupe ls
    [[ "$output" == *r*running* ]]
    run -0 troupe cancel r
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    run -2 troupe cancel nosuch
}

@test "Ctrl-C at a terminal reaches the whole group, and only troupe acts on it" {
    own_temporary
    long 'trap \"echo hit\" INT; until [ -e go ]; do sleep 0.1; done; echo ok'
    # A shell ignores SIGINT for what it puts into the background; a terminal's does not.
    env --default-signal=INT setsid -w \
        bash -c 'trap : INT; troupe run --run-name r p.yaml >out 2>&1; echo $? >status' &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -INT -- "-$(ps -o pgid= -p "$(ours_like '^troupe run ')" | tr -d ' ')"
    wait_until grep -q "once more to kill them" out
    touch go
    wait_until [ -s status ]
    wait $!
    [ "$(cat status)" = 130 ]
    run ! grep -q hit troupe-runs/r/logs/s/*.out
    grep -q ok troupe-runs/r/logs/s/*.out
    swept
}
