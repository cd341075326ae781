#!/usr/bin/env bats
# The driver's own job gives nodes back that no stage to come needs, while it goes on.
load slurm.bash

setup_file() {
    cluster_up -n 5 --racks 2 --fast --conf KillWait=10
}

teardown() {
    on head scancel -u alice
    on head scancel -u bob
}

# A stage of three whole nodes, then one of one core of one node.
narrowing() {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  wide: {executor: {cores: 4, memory: 300m, memoryOverhead: 56m}, task: {cpus: 4}}
  thin: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: wide
    tasks: 3
    profile: wide
    run: echo $$ >run.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done
  - name: thin
    after: [wide]
    profile: thin
    run: hostname >thin; until [ -e end ]; do sleep 0.1; done
END
}

started() {
    [ "$(cat run.* 2>/dev/null | wc -l)" -ge "$1" ]
}

# A run of it in a job of three nodes, when its first stage is over.
narrowed() {
    narrowing
    submit alice -N3 -n3 -c4 --mem=2000 -- "$TROUPE" run "$@" p.yaml
    wait_until started 3
    touch go
    wait_until test -s thin
}

nodes_are() {
    [ "$(on head squeue -h -j "$job" -o %D)" = "$1" ]
}

# The counts of nodes that the event log has.
nodes_told() {
    grep -o '"TroupeNodes","Nodes":[0-9]*' troupe-runs/last/events.jsonl | sed 's/.*://' | xargs
}

# bobs_job NODES: whole ones; its number.
bobs_job() {
    printf '#!/bin/bash\nsleep 300\n' >bob.sh
    as bob head sbatch --parsable -o /dev/null -N "$1" -n "$1" -c 4 --mem=100 bob.sh
}

# waits_for_nodes JOB: Slurm has looked, and there are none for it.
waits_for_nodes() {
    [ "$(on head squeue -h -j "$1" -o '%T %r')" = "PENDING Resources" ]
}

# executors_went N
executors_went() {
    [ "$(grep -c SparkListenerExecutorRemoved troupe-runs/last/events.jsonl)" -ge "$1" ]
}

# is_now JOB STATE
is_now() {
    [ "$(on head squeue -h -j "$1" -o %T)" = "$2" ]
}

@test "nodes of the driver's job that no stage needs any more are others' then" {
    local first second
    first=$(bobs_job 2)
    narrowing
    submit alice -N3 -n3 -c4 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started 3
    second=$(bobs_job 2)
    wait_until waits_for_nodes "$second"
    touch go
    wait_until is_now "$second" RUNNING
    on head scontrol show job "$job" | grep -q ' *NumNodes=1 '
    wait_until test -s thin
    [ "$(on head squeue -h -j "$job" -o '%N %B')" = "$(cat thin) $(cat thin)" ] # all there is
    on head scancel "$first" "$second"
    touch end
    run -0 finished
    [ "$(nodes_told)" = "3 1" ]
    grep -q 'nodes of Slurm job .* were given back: node.*,node' troupe-runs/last/events.jsonl
    wait_until nothing_left node1 node2 node3 node4 node5
}

@test "a job that has given nodes back has them again when Slurm starts it again" {
    narrowing
    # Stages of one profile: the executor goes on.
    sed -i 's/profile: thin/profile: wide/' p.yaml
    job=$(as alice head "$TROUPE" submit --run-name r -N3 -n3 -c4 --mem=2000 p.yaml | tr -dc 0-9)
    wait_until started 3
    touch go
    wait_until test -s thin
    wait_until nodes_are 1
    rm thin
    on head scontrol requeue "$job"
    wait_until is_now "$job" PENDING
    on head scontrol show job "$job" | grep -q ' *TRES=.*node=3'
    start_now "$job"
    wait_until test -s thin
    touch end
    wait_until job_is_over "$job"
    [ "$(nodes_told)" = "3 1 3" ] # all that is left to do never needed two of them
    [ "$(grep -o '"status":"[a-z]*"' troupe-runs/r/state/run.json)" = '"status":"succeeded"' ]
}

@test "what is left can be cut anew: Slurm has the cores of all steps free" {
    narrowing
    # An executor of the first stage goes on in the second; then there are two smaller ones.
    sed -i 's/profile: thin/profile: wide/; s/\[ -e end \]/[ -e next ]/' p.yaml
    cat >>p.yaml <<'END'
  - name: pair
    after: [thin]
    profile: pair
    tasks: 2
    run: hostname >pair.$TROUPE_TASK; until [ -e end ]; do sleep 0.1; done
END
    sed -i 's/^stages:/  pair: {executor: {cores: 2, memory: 100m, memoryOverhead: 56m}, task: {cpus: 2}}\n&/' p.yaml
    submit alice -N3 -n3 -c4 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started 3
    touch go
    wait_until test -s thin
    touch next
    wait_until test -s pair.0 -a -s pair.1
    nodes_are 1
    [ "$(on head squeue -h -u alice | wc -l)" = 1 ]
    [ "$(cat pair.0 pair.1 | sort -u)" = "$(on head squeue -h -j "$job" -o %N)" ]
    touch end
    run -0 finished
}

# By what slurmctld says.
shrinking_is() {
    local word=enabled
    ! on head scontrol show config | grep -q disable_job_shrink || word=disabled
    [ "$word" = "$1" ]
}

@test "alloc.shrink=false, or Slurm's refusal, leaves the driver's job as it is" {
    narrowed --set alloc.shrink=false
    wait_until executors_went 2
    nodes_are 3
    touch end
    run -0 finished
    [ "$(nodes_told)" = 3 ]
    own_folder
    local conf
    conf=$(cluster folder)/../etc/slurm.conf
    sed -i 's/^SchedulerParameters=.*/&,disable_job_shrink/' "$conf"
    on head scontrol reconfigure
    wait_until shrinking_is disabled
    narrowed --set slurm.poll=1s
    wait_until grep -q "Slurm: .*(job $job was to give back node.*, and keeps what it has)" out
    touch end
    run -0 finished
    sed -i 's/,disable_job_shrink//' "$conf"
    on head scontrol reconfigure
    wait_until shrinking_is enabled
    [ "$(grep -c "was to give back" out)" = 1 ]
    [ "$(nodes_told)" = 3 ]
}

@test "a node on which another step of the job runs is given back when that is over" {
    narrowing
    # The last node has a step that is not ours.
    # shellcheck disable=SC2016 # the job's words
    submit alice -N3 -n3 -c4 --mem=2000 -- bash -c "'"'
        last=$(scontrol show hostnames | tail -n 1)
        srun -N1 -n1 -c1 --mem=100 -w $last --overlap bash -c "until [ -e stop ]; do sleep 0.1; done; echo ended >stopped" &
        '"$TROUPE run --set slurm.poll=500ms p.yaml; s=\$?; wait; exit \$s'"
    wait_until started 3
    touch go
    wait_until test -s thin
    wait_until executors_went 2
    looks_again
    nodes_are 3
    touch stop
    wait_until nodes_are 1
    [ "$(cat stopped)" = ended ]
    touch end
    run -0 finished
    nothing_left node1 node2 node3 node4 node5
}

# Of this run's jobs.
one_node_is_held() {
    [ "$(on head squeue -h -t RUNNING -o '%i %D')" = "$job 1" ]
}

@test "Slurm cannot be called when nodes and a job are to be given back: it is told again" {
    narrowing
    # Beside each other: the thin one at the driver's, a wide one inside, two in an additional job.
    sed -i 's/cores: 4/cores: 3/; s/cpus: 4/cpus: 3/; /after:/d' p.yaml
    submit alice -N2 -n2 -c4 --mem=2000 -- "$TROUPE" run --set driver.cores=3 p.yaml
    wait_until started 3
    wait_until test -s thin
    on "$(cat thin)" mount --bind /dev/null /run/munge/munge.socket.2
    touch go
    wait_until executors_went 3
    [ "$(on head squeue -h -t RUNNING -o %D | xargs)" = "2 2" ]
    on "$(cat thin)" umount /run/munge/munge.socket.2
    wait_until one_node_is_held
    touch end
    run -0 finished
    wait_until nothing_left node1 node2 node3 node4 node5
}
