#!/usr/bin/env bats
# Bad days at the wrong moment: executors that die as they start, slurmctld away while
# steps end and begin. The run goes on, with the right result, and nothing stays.
load slurm.bash
load run.bash

setup_file() {
    cluster_up -n 3 --cpus 6 --memory 3000 --racks 0 --fast --conf KillWait=10 \
        --conf SlurmdTimeout=30
}

setup() {
    own_folder
    # Slurm 22.05 looks at jobs that wait for a node that is down after a minute only.
    wait_until state_is node2 idle
}

teardown() {
    on head scancel -u alice
    cluster heal head
    cluster heal node2
    cluster slow node2 0
}

# two_stages COMMAND: stage a, and stage b whose executors are other ones. Both fill a node.
two_stages() {
    cat >p.yaml <<END
troupe: 1
profiles:
  a: {executor: {cores: 1, memory: 300m, memoryOverhead: 100m}, task: {cpus: 1}}
  b: {executor: {cores: 1, memory: 350m, memoryOverhead: 100m}, task: {cpus: 1}}
stages:
  - name: a
    tasks: 5
    profile: a
    run: |
      hostname >ran.\$TROUPE_TASK.\$TROUPE_ATTEMPT
      $1
  - {name: b, after: [a], tasks: 5, profile: b, run: 'echo \$TROUPE_TASK >b.\$TROUPE_TASK'}
END
}

# The driver has node1 for itself.
run_beside() {
    run_on -N2 -n2 -c6 --mem=2500 -w "$1" -- --set driver.cores=6 "${@:2}"
}

all_of_b() {
    [ "$(cat b.? | sort | xargs)" = "0 1 2 3 4" ]
}

# Executors are there within a fraction of a second, not long enough for five to be hit:
# so what node2 says is late.
slow_start() {
    export TROUPE_OPT_comm_transport=socket # MPI may not let anybody in afterwards
    run cluster slow node2 300
    [ "$status" != 69 ] || skip "${output#cluster: }"
    [ "$status" = 0 ]
}

killed_as_they_start() {
    on "$1" pkill -KILL -u alice -f "^troupe: executor"
}

@test "all executors are killed as they start: that is one failure" {
    slow_start
    two_stages true
    run_beside node1,node2
    wait_until killed_as_they_start node2
    for _ in 1 2 3 4 5; do
        killed_as_they_start node2 || true
        sleep 0.1
    done
    cluster slow node2 0
    well
    all_of_b
    [ "$(grep -c 'was killed by SIGKILL' troupe-runs/r/events.jsonl)" -ge 5 ]
}

@test "a node dies on which five executors start: none of that is a failure" {
    slow_start
    two_stages true
    run_on -N3 -n3 -c6 --mem=2500 -- --set driver.cores=6 "${quick[@]}"
    wait_until on node2 pgrep -u alice -f "^troupe: executor"
    cluster kill node2
    wait_until grep -q "stage b succeeded" out
    misses node2
    well
    all_of_b
}

# next_stage_waits_for_slurmctld: of two stages the first ends while it is away.
next_stage_waits_for_slurmctld() {
    run_beside node1,node2
    wait_until have_run 5
    slurmctld_goes
    local before
    before=$(refusals_on node1)
    touch go
    wait_until grep -q "stage a succeeded" out
    wait_until more_refusals node1 "$before"
    cluster heal head
    well
}

# Slurm counts what ended without slurmctld for a minute yet: its slurmstepd tells it then.
@test "steps end while slurmctld is away: it is told so, and the next ones start" {
    two_stages 'until [ -e go ]; do sleep 0.1; done'
    next_stage_waits_for_slurmctld
    all_of_b
}

@test "steps end while slurmctld is away: a gang that comes next waits for their room" {
    two_stages 'until [ -e go ]; do sleep 0.1; done'
    sed -i 's/^  - {name: b.*/  - {name: b, after: [a], mpi: {ranks: 5}, profile: b, run: "echo $TROUPE_RANK >b.$TROUPE_RANK"}/' p.yaml
    next_stage_waits_for_slurmctld
    all_of_b
}
