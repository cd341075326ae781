#!/usr/bin/env bats
# Runs whose messages travel over MPI, which is asked for: that they go as others do, and how
# they end when MPI fails.
# bats file_tags=mpi
load drill.bash

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export DRILL_TOKEN=$BATS_TEST_TMPDIR TROUPE_OPT_comm_transport=mpi
    export PATH=$TROUPE_BUILD/bin:$PATH
    programs=$TROUPE_BUILD/tests/programs
    d=''
    over_mpi
}

one() { # one STAGE-KEYS: a pipeline of one stage
    printf 'troupe: 1\nstages:\n  - {name: s, %s}\n' "$1" >p.yaml
}

@test "a pipeline whose executors come and go, and a program, as over sockets" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {big: {executor: {cores: 2}, task: {cpus: 2}}}
stages:
  - {name: s, tasks: 40, run: "echo $TROUPE_TASK"}
  - {name: t, after: [s], profile: big, tasks: 2, run: "echo $TROUPE_TASK"}
  - {name: u, after: [t], tasks: 2, run: "echo $TROUPE_TASK"}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    events r | grep -q 'messages travel over MPI (comm.transport=mpi)'
    [ "$(cat troupe-runs/r/logs/s/*.out | sort -n | xargs)" = "$(seq 0 39 | xargs)" ]
    [ "$(events r | grep -c '"Reason":"Success"')" = 44 ]
    printf 'a b a\nc a\n' >text
    run -0 troupe run --local=3 -- "$programs/wordcount" text
    [[ "$output" == *"lines 2 words 5 bytes 10"* ]]
}

@test "an executor killed in mid-stage: its tasks run elsewhere and the result is right" {
    one 'tasks: 8, run: "until [ -e go ]; do sleep 0.05; done; echo $TROUPE_TASK"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -9 "$(pid_of "executor 0" r)"
    wait_until grep -q "lost its executor" out
    touch go
    await $!
    [ "$(cat troupe-runs/r/logs/s/*.out | sort -un | wc -l)" = 8 ]
}

@test "driver, or troupe, killed, or cancelled: the run ends and leaves nothing" {
    local who status
    one 'tasks: 4, run: "setsid sleep 100 & sleep 100"'
    for who in driver troupe cancel; do
        troupe run --run-name $who p.yaml >out 2>&1 &
        wait_until ls troupe-runs/$who/logs/s/0.0.out
        case $who in
        driver) kill -9 "$(pid_of driver driver)" ;;
        troupe) kill -9 $! ;;
        cancel) troupe cancel --now cancel ;;
        esac
        status=0
        await $! || status=$?
        [ "$status" = "$(case $who in driver) echo 4 ;; troupe) echo 137 ;; *) echo 130 ;; esac)" ]
        nothing_left
    done
}

@test "a program's function that crashes its executor is counted and run again" {
    run -0 troupe run -- "$programs/crash"
    [[ "$output" == *SIGSEGV* ]]
    [[ "$output" == *"20 tasks, 1 failed attempt,"* ]]
}

# server_is COMMANDS: an ompi-server that does only this with the file for its URI, $3.
server_is() {
    mkdir -p fake
    printf '#!/bin/sh\n%s\n' "$1" >fake/ompi-server
    chmod +x fake/ompi-server
    PATH=$PWD/fake:$PATH
}

advice="set comm.transport=socket, or leave it at auto"

@test "ompi-server does not start, or dies before the driver is there: the run ends with 4 and says what to set" {
    one 'run: "echo ran >>ran"'
    for does in 'exit 1' 'echo "1.0;tcp://127.0.0.1:9" >"$3"'; do
        rm -rf troupe-runs
        server_is "$does"
        run -4 troupe run --run-name r p.yaml
        [[ "$output" == *"troupe: ompi-server di"*"; see state/ompi-server.err; $advice"* ]]
        [ ! -e ran ]
        nothing_left
    done
    run -4 troupe run --run-name c -- "$TROUPE_BUILD/examples/first"
    [[ "$output" == *"; $advice"* ]]
    run -0 env -u TROUPE_OPT_comm_transport troupe run --resume r
    [ "$(cat ran)" = ran ]
}

@test "a run that is cancelled while ompi-server is waited for ends at once" {
    one 'run: "true"'
    server_is 'touch begun; exec sleep 100'
    troupe run --run-name c p.yaml >out 2>&1 &
    wait_until [ -e begun ]
    kill -INT $!
    status=0
    await $! || status=$?
    [ $status = 130 ]
    grep -q "troupe: run troupe-runs/c was cancelled" out
    nothing_left
}

@test "ompi-server killed, alone or with the guard: the run ends with 4, gives all back, and --resume goes on" {
    local victim
    one 'tasks: 4, run: "touch began.$TROUPE_TASK; [ $TROUPE_TASK = 0 ] || until [ -e go ]; do sleep 0.1; done; echo $TROUPE_TASK >>did"'
    others_folder
    for victim in ompi-server guard; do
        rm -rf troupe-runs began.* did go
        TROUPE_SCRATCH=$d troupe run --local=2 --run-name r p.yaml >out 2>&1 &
        wait_until [ -e began.1 -a -e began.2 ]
        kill -9 "$(sed -n "s/ $victim$//p" troupe-runs/r/state/pids)"
        local status=0
        await $! || status=$?
        cat out
        [ $status = 4 ]
        grep -q "troupe: ompi-server died; see .*; $advice: \`troupe run --resume r --set comm.transport=socket\` goes on" out
        nothing_left
        [ -z "$(ls -A "$d")" ]
        touch go
        run -0 troupe run --resume r --set comm.transport=socket
        [ "$(sort did | xargs)" = "0 1 2 3" ]
    done
}

@test "where /tmp is full a run under auto ends well; over MPI it ends with 4 and says what to set" {
    local own=-m
    [ "$(id -u)" = 0 ] || own=-rm
    unshare $own mount -t tmpfs tmpfs /mnt || skip "no mounts of one's own here"
    one 'tasks: 4, run: "echo $TROUPE_TASK"'
    unset TMPDIR TROUPE_SCRATCH
    # This folder, which may lie there, is put back.
    unshare $own bash -c '
        mount --bind "$PWD" /mnt && mount -t tmpfs -o size=1m tmpfs /tmp && mkdir -p "$PWD" &&
            mount --bind /mnt "$PWD" && cd "$PWD" || exit 99
        head -c 2000000 /dev/zero >/tmp/filled 2>/dev/null
        env -u TROUPE_OPT_comm_transport troupe run --local=2 --run-name a p.yaml >a.out 2>&1
        echo $? >a.status
        troupe run --local=2 --run-name m p.yaml >m.out 2>&1
        echo $? >m.status' 3>&-
    cat a.out m.out
    [ "$(<a.status)" = 0 ]
    [ "$(<m.status)" = 4 ]
    grep -q "^troupe: .*; $advice" m.out
}

# As when somebody holds ompi-server's port up.
@test "a meeting that does not come about in 20 s ends the run with 4, gives all back, and --resume goes on" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {big: {executor: {cores: 2}, task: {cpus: 2}}}
stages:
  - {name: s, run: "touch began; until [ -e stopped ]; do sleep 0.1; done"}
  - {name: t, after: [s], profile: big, run: "touch ran"}
Y
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until [ -e began ]
    kill -STOP "$(sed -n 's/ ompi-server$//p' troupe-runs/r/state/pids)"
    touch stopped
    local status=0
    await $! || status=$?
    cat out
    [ $status = 4 ]
    grep -q "^troupe: .*MPI.*20 s.*; $advice" out
    [ ! -e ran ]
    nothing_left
    run -0 troupe run --resume r --set comm.transport=socket
    [ -e ran ]
    [ "$(count '^s ' "$output")" = 0 ]
}

# Open MPI as Debian has it joins nobody by IPv6. Executors that fail with their accepts
# may be gone before these return.
@test "three meetings in a row that fail end the run with 4" {
    local own=-n
    [ "$(id -u)" = 0 ] || own=-rn
    unshare $own true || skip "no network of one's own here"
    one 'run: "echo ran >>ran"'
    local status=0
    unshare $own bash -c '
        ip link set lo up && ip link add name eth0 type veth peer name eth1 &&
            ip link set eth0 up && ip link set eth1 up || exit 99
        until ip addr show dev eth0 | grep -q "inet6 fe80"; do sleep 0.1; done
        exec troupe run --local=2 --run-name r p.yaml' >out 2>&1 || status=$?
    cat out
    [ $status = 4 ]
    grep -q "MPI lets no executor in: .*; $advice" out
    [ "$(events r | grep -c TroupeExecutorDropped)" -le 3 ]
    [ ! -e ran ]
}
