#!/usr/bin/env bats
# How a run ends before it is done: its driver is lost, its job is told to end or starts
# again, its time is up; and how it goes on.
load slurm.bash
load run.bash

setup_file() {
    cluster_up -n 4 --racks 2 --fast --conf KillWait=10 --conf SlurmdTimeout=30
}

teardown() {
    on head scancel -u alice
    cluster heal node1
}

# resume_in_new_job OPTION…
resume_in_new_job() {
    submit alice --no-kill "$@" -- "$TROUPE" run --resume r
}

nobody_on() {
    local host
    for host in "$@"; do
        on "$host" bash -c '! pgrep -u alice .' || return 1
    done
}

@test "the driver's node loses power: what lives elsewhere ends by itself" {
    pipeline 6 'sleep 300'
    run_on -N3 -n3 -c2 --mem=2000 -w node1,node2,node3 -- "${quick[@]}"
    wait_until have_run 6
    cluster cut node1
    cluster kill node1
    wait_until nobody_on node2 node3
    nothing_left node2 node3
}

@test "SIGUSR1: what runs may finish, exit status 75; a new job does the rest only" {
    pipeline 12 'while [ ! -e go ]; do sleep 0.1; done'
    run_on -N2 -n2 -c2 --mem=2000 -w node2,node3 --
    wait_until have_run 4
    on head scancel --batch --signal=USR1 "$job"
    wait_until grep -q "time is up soon" out
    touch go
    run -75 finished
    [[ "$output" == *"--resume r"* ]]
    [ "$(cat ran.* | wc -l)" = 4 ]
    nothing_left node2 node3
    resume_in_new_job -N2 -n2 -c2 --mem=2000 -w node3,node4
    well
    [ "$(cat ran.* | wc -l)" = 12 ]
    nothing_left node2 node3 node4
}

@test "a job that Slurm starts again goes on with its run" {
    pipeline 8 '[ $TROUPE_TASK -lt 4 ] || while [ ! -e go ]; do sleep 0.1; done'
    submit alice --requeue --open-mode=append -N2 -n2 -c2 --mem=2000 -w node2,node3 -- \
        "$TROUPE" run --set alloc.placement=inside p.yaml
    wait_until have_run 8
    wait_until bash -c '[ "$(grep -c SparkListenerTaskEnd troupe-runs/last/events.jsonl)" -ge 4 ]'
    run=$(readlink troupe-runs/last)
    on head scontrol requeue "$job"
    wait_until nobody_on node2 node3
    touch go
    wait_until bash -c '[ "$(cluster exec head squeue -h -o %T -j '"$job"')" = PENDING ]'
    start_now "$job"
    wait_until job_is_over "$job"
    cat out "troupe-runs/$run/state/run.json"
    grep -qx "troupe: Slurm has started job $job again: going on with run $run" out
    [ "$(readlink troupe-runs/last)" = "$run" ]
    [ "$(grep -o '"status":"[a-z]*"' "troupe-runs/$run/state/run.json")" = '"status":"succeeded"' ]
    # The second half had begun, and was begun again; the first was not.
    [ "$(cat ran.[0-3].* | wc -l)" = 4 ]
    [ "$(cat ran.* | wc -l)" = 12 ]
    nothing_left node2 node3
}

no_job_of_alice() {
    [ -z "$(on head squeue -h -u alice)" ]
}

only_job_of_alice() {
    [ "$(on head squeue -h -u alice -o %i)" = "$job" ]
}

@test "the driver's job starts again: its additional jobs are gone, and others are had" {
    pipeline 4 'while [ ! -e go ]; do sleep 0.1; done'
    submit alice --requeue --open-mode=append -N1 -n1 -c1 --mem=1000 -w node1 -- \
        "$TROUPE" run --set alloc.placement=jobs p.yaml
    wait_until have_run 4
    on head scontrol requeue "$job"
    wait_until only_job_of_alice
    wait_until nobody_on node1 node2 node3 node4
    start_now "$job"
    wait_until have_run 8
    touch go
    wait_until job_is_over "$job"
    [ "$(grep -o '"status":"[a-z]*"' troupe-runs/last/state/run.json)" = '"status":"succeeded"' ]
    wait_until nothing_left node1 node2 node3 node4
    wait_until no_job_of_alice
}

# ends_in SECONDS: Slurm ends $job then.
ends_in() {
    on head scontrol update jobid="$job" EndTime="now+$1seconds"
}

@test "time is nearly up: nothing is begun that cannot end" {
    moving_clock node2
    pipeline 6 'until [ -e go ]; do sleep 0.1; done'
    run_on -N1 -n1 -c2 --mem=2000 -w node2 -- --set slurm.poll=1s
    wait_until have_run 2
    ends_in 220
    looks_again
    advance_on node2 120s
    touch go
    run -75 finished
    [[ "$output" =~ "time is up: the tasks of stage s take 1"[0-9]+" s (median), and "[0-9]+" s are left".*"--resume r" ]]
    [ "$(cat ran.* | wc -l)" = 2 ]
    unset TROUPE_CLOCK
    resume_in_new_job -N1 -n1 -c2 --mem=2000 -w node4
    well
    [ "$(cat ran.* | wc -l)" = 6 ]
    nothing_left node2 node4
}

@test "time is nearly up: what runs is ended in time" {
    moving_clock node3
    pipeline 2 '[ -e go ] || sleep 300'
    run_on -N1 -n1 -c2 --mem=2000 -w node3 -- --set slurm.poll=1s
    wait_until have_run 2
    ends_in 120
    looks_again
    advance_on node3 100s
    run -75 finished
    [[ "$output" == *"time is up: the Slurm job ends at "*"--resume r"* ]]
    touch go
    unset TROUPE_CLOCK
    resume_in_new_job -N1 -n1 -c2 --mem=2000 -w node4
    well
    [ "$(cat ran.* | wc -l)" = 4 ]
    nothing_left node3 node4
}
