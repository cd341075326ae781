#!/usr/bin/env bats
# What a run has taken is given back, however it ends, also when slurmctld is away at that
# moment: all ways side by side, in one outage.
load slurm.bash

# $small: a file system that a test can fill, for the run that ends with 4 by that.
setup_file() {
    export small
    small=$(mktemp -d /var/tmp/debts.XXXXXX)
    mount -t tmpfs -o size=8m,mode=1777 tmpfs "$small"
    cluster_up -n 4 --cpus 16 --memory 16000 --racks 0 --fast --conf KillWait=10 \
        --conf SlurmdTimeout=300 --share "$small"
}

teardown_file() {
    cluster down
    umount "$small"
    rmdir "$small"
}

teardown() {
    on head scancel -u alice
    cluster heal head
    rm -rf "${small:?}"/*
}

# run_in NAME OPTION…: a run in a folder NAME, with an additional job that has no time limit; its
# stage goes on until there is a file "go". The next stage of "never" needs more
# executors at once than there may be, as is known when its files are there. That of "full" has
# more to tell than fits into what its files have left of their pages.
run_in() {
    local over=''
    case $1 in mpirun | server) over="--set comm.transport=mpi" ;; esac
    [ "$1" != full ] || { mkdir "$small/full" && ln -s "$small/full" full; }
    mkdir -p "$1" && chmod 777 "$1"
    cat >"$1/p.yaml" <<'END'
troupe: 1
profiles:
  wide: {executor: {cores: 2, memory: 300m, memoryOverhead: 56m}, task: {cpus: 2}}
stages:
  - {name: s, tasks: 1, profile: wide, run: 'touch began; until [ -e go ]; do sleep 0.1; done; [ ! -e fail ]'}
END
    [ "$1" != never ] || cat >>"$1/p.yaml" <<'END'
  - {name: t, after: [s], profile: wide, barrier: true, foreach: {files: 'part.*'}, run: 'true'}
options: {alloc.max_executors: 2}
END
    [ "$1" != full ] ||
        echo "  - {name: t, after: [s], tasks: 20, profile: wide, run: 'true'}" >>"$1/p.yaml"
    (cd -P "$1" && submit alice -N1 -n1 -c1 --mem="${mem:-1000}" --no-kill --no-requeue -J "$1" -- \
        "$TROUPE" run --run-name "$1" $over "${@:2}" p.yaml && echo "$job" >job)
}

host_of() {
    on head squeue -h -j "$(cat "$1/job")" -o %N
}

# hit NAME SIGNAL WHAT: a process of a run, as its state/pids names it.
hit() {
    local pid
    pid=$(sed -n "s/^\([0-9]*\) $3\$/\1/p" "$1/troupe-runs/$1/state/pids" | tail -n 1)
    on "$(cat "$1/host")" kill -s "$2" "$pid"
}

# hit_troupe NAME SIGNAL: the command itself.
hit_troupe() {
    on "$(cat "$1/host")" pkill "-$2" -f "^[^ ]*/troupe run --run-name $1 p.yaml"
}

ways="success failure never full interrupt terminate_twice limit drain driver guard troupe helper"
# Over MPI, where that is Open MPI 4: they end by either process of its.
! command -v ompi-server >/dev/null || ways+=" mpirun server"

# hit_as_slurm NAME: SIGTERM of a slurmstepd, as at the job's time limit, and 10 s later (KillWait)
# SIGKILL for all of the job there.
hit_as_slurm() {
    local host
    host=$(cat "$1/host")
    cp /bin/bash slurmstepd
    # shellcheck disable=SC2016 # the host's words
    on "$host" "$PWD/slurmstepd" -c 'pkill -TERM -f "^[^ ]*/troupe run --run-name $1 p.yaml"; sleep 10
        for pid in $(pgrep -u alice .); do
            ! grep -qszx "SLURM_JOB_ID=$2" "/proc/$pid/environ" || kill -KILL "$pid"
        done' - "$1" "$(cat "$1/job")" &
    as_slurm=$!
}

end_of() {
    case $1 in
    never) touch "$1"/part.{1..9} "$1/go" ;;
    full)
        dd if=/dev/zero of="$1/fill" bs=64k 2>/dev/null || touch "$1/go"
        ;;
    limit) hit_as_slurm "$1" ;;
    success) touch "$1/go" ;;
    failure) touch "$1/fail" "$1/go" ;;
    interrupt) hit_troupe "$1" INT && touch "$1/go" ;;
    terminate_twice) hit_troupe "$1" TERM && sleep 0.3 && hit_troupe "$1" TERM ;;
    drain) hit_troupe "$1" USR1 && touch "$1/go" ;;
    driver) on "$(cat "$1/host")" pkill -KILL -f "^troupe: driver $1\$" ;;
    mpirun) hit "$1" KILL "mpirun of the driver" ;;
    server) hit "$1" KILL ompi-server && touch "$1/go" ;;
    guard) hit "$1" KILL guard && touch "$1/go" ;; # another one takes its place
    troupe) hit_troupe "$1" KILL ;;
    helper) hit "$1" KILL troupe-slurm && touch "$1/go" ;;
    esac
}

# What ended while slurmctld was away is COMPLETING for a minute yet.
runs_of_alice() {
    on head squeue -h -u alice -o '%i %T %j %k' | grep -v COMPLETING
}

none_of_alice() {
    ! runs_of_alice
}

has_begun() {
    local way
    for way in $ways; do
        [ -e "$way/began" ] || { echo "not $way"; return 1; }
    done
}

# ended_with STATUS NAME
ended_with() {
    on head scontrol -o show job "$(cat "$2/job")" | grep -q " ExitCode=$1:0 "
}

# kill_guards_but JOBS NODE: of those whose SLURM_JOB_ID that regular expression does not match.
kill_guards_but() {
    # shellcheck disable=SC2016 # the host's words
    on "$2" bash -c 'for pid in $(pgrep -f "troupe-ran[k] guard"); do
        grep -qszxE "SLURM_JOB_ID=($1)" "/proc/$pid/environ" || kill -KILL "$pid"
    done' - "$1"
}

# Each additional job has its guard: one that was queued its batch script, another a step.
guards_have_come() {
    [ "$(on head squeue -h -s -u alice -o %j | grep -c ':guard$')" = \
        "$(on head scontrol -o show job | grep -c ' JobName=troupe .* JobState=RUNNING .* BatchFlag=0 ')" ]
}

@test "each way to end, with slurmctld away at that time: nothing is left" {
    local way node
    for way in $ways; do
        run_in "$way"
    done
    wait_until has_begun
    wait_until guards_have_come
    for way in $ways; do
        host_of "$way" >"$way/host"
    done
    local guarded
    guarded=$(on head squeue -h -u alice -o '%i %j' |
        sed -nE 's/ troupe (troupe|limit)$//p' | paste -sd'|')
    [[ $guarded == *"|"* ]]
    slurmctld_goes
    # As in the first second of a job, when its guard has not come. Where `troupe` is killed, or
    # all by Slurm, only the guard can give the other job back (docs/limits.md).
    for node in node1 node2 node3 node4; do
        kill_guards_but "$guarded" "$node"
    done
    for way in $ways; do
        end_of "$way" || echo "cannot: $way"
    done
    wait "$as_slurm"
    for node in $(cat ./*/host | sort -u); do
        wait_until more_refusals "$node" $(($(refusals_on "$node") + 10))
    done
    cluster heal head
    wait_until none_of_alice
    wait_until ended_with 0 success
    wait_until ended_with 1 failure
    wait_until ended_with 3 never
    wait_until ended_with 4 full
    [[ $ways != *server* ]] || wait_until ended_with 4 server
}

# additional_of NAME: number and state of the run's additional job.
additional_of() {
    on head squeue -h -u alice -o '%i %T %j' | sed -n "s/ troupe $1\$//p"
}

gave_back() {
    ! additional_of "$1" | grep -v COMPLETING
}

# Its own job stays until Slurm misses the node, or is told; the other one has a guard.
@test "the driver's node dies while slurmctld is away: its additional job is given back" {
    mem=16000 run_in far # no room beside it
    wait_until test -e far/began
    host_of far >far/host
    local elsewhere
    elsewhere=$(on head squeue -h -u alice -o '%N %j' | sed -n 's/ troupe far$//p')
    [ "$elsewhere" != "$(cat far/host)" ]
    wait_until guards_have_come
    slurmctld_goes
    cluster kill "$(cat far/host)"
    wait_until more_refusals "$elsewhere" $(($(refusals_on "$elsewhere") + 3))
    cluster heal head
    wait_until gave_back far
    on head scontrol update nodename="$(cat far/host)" state=down reason=drill
    cluster heal "$(cat far/host)"
    on head scontrol update nodename="$(cat far/host)" state=resume || true # it is back
    wait_until none_of_alice
    wait_until state_is "$(cat far/host)" idle
}

only_additional() {
    [ "$(runs_of_alice | cut -d ' ' -f 2-4)" = "RUNNING troupe lost" ]
}

# The driver's host and all of its additional job at once: nobody is left who could.
@test "what nobody could give back goes when the run is resumed" {
    run_in lost
    wait_until test -e lost/began
    host_of lost >lost/host
    local node
    node=$(on head squeue -h -u alice -o '%N %j' | sed -n 's/ troupe lost$//p')
    [ -n "$node" ]
    on "$(cat lost/host)" pkill -STOP -u alice .
    on "$node" pkill -KILL -u alice . || true
    on "$(cat lost/host)" pkill -KILL -u alice . || true
    on "$node" pkill -KILL -u alice . || true
    wait_until only_additional
    touch lost/go
    cd lost
    submit alice -N1 -n1 -c3 --mem=2000 --no-kill -- "$TROUPE" run --resume lost
    run -0 finished
    wait_until none_of_alice
}
