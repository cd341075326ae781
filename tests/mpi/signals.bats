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
