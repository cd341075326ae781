#!/usr/bin/env bats
# Gangs on nodes that are not alike, and on one that does not answer.
# shellcheck disable=SC2154 # variables of slurm.bash
load slurm.bash
load run.bash

setup_file() {
    cluster_up -n 4 --gpus 0,1,2,2 --racks 0 --fast
    site_of_plain_gangs
}

teardown() {
    on head scancel -u alice
    on head scancel -u bob
    cluster heal node2
}

# gang RANKS KEY…: of ranks with a GPU each, which say where they run and what they have.
gang() {
    cat >p.yaml <<END
troupe: 1
profiles:
  g: {executor: {cores: 1, memory: 200m, memoryOverhead: 56m, gpu: 1}, task: {cpus: 1, gpu: 1}}
stages:
  - name: s
    profile: g
    mpi: {ranks: $1}
$(printf '    %s\n' "${@:2}")
    run: hostname >ran.\$TROUPE_RANK; echo "\$(hostname) \$TROUPE_RESOURCE_gpu" >has.\$TROUPE_RANK
END
}

# From node1, which has none of them.
run_gang() {
    submit alice -N1 -n1 -c1 --mem=1000 -w node1 -- "$TROUPE" run --site "$site" --run-name r "$@" p.yaml
    well 40
}

has() {
    grep -h . has.* | sort | xargs
}

@test "a gang with devices is given nodes that have as many each" {
    gang 4
    run_gang
    [ "$(has)" = "node3 0 node3 1 node4 0 node4 1" ]
    wait_until 10 [ -z "$(on head squeue -h -u alice)" ]
}

@test "where they are not free it has more nodes, with fewer on each" {
    as bob head sbatch -w node3 --gres=gpu:1 -n1 --mem=100 -o /dev/null --wrap "sleep 100"
    wait_until 10 eval 'on head squeue -h -u bob -o %T | grep -x RUNNING'
    gang 3
    run_gang
    [[ "$(has)" =~ ^node2\ 0\ node3\ [01]\ node4\ [01]$ ]]
}

@test "in the driver's job it takes nodes that have enough" {
    gang 4
    submit alice -N3 -n3 -c3 --mem=1000 --gpus=5 -- \
        "$TROUPE" run --site "$site" --run-name r --set alloc.placement=inside p.yaml
    well 40
    [ "$(has)" = "node3 0 node3 1 node4 0 node4 1" ]
}

@test "more devices than as many on each node never fit" {
    gang 5
    submit alice -N1 -n1 -c1 --mem=1000 -w node1 -- "$TROUPE" run --site "$site" --run-name r p.yaml
    run -3 finished 40
    [[ "$output" == *"has no room for 5 ranks with as many devices on each node"* ]]
}

@test "a node of a gang does not answer, and nobody knows it: it runs elsewhere, no failure" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 2, memory: 200m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - {name: first, profile: g, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - name: s
    after: [first]
    profile: g
    mpi: {ranks: 4}
    retries: {max_failures: 1}
    run: hostname >>ran.$TROUPE_RANK; until [ -e all ]; do sleep 0.1; done
END
    run_on -N4 -n4 -c2 --mem=900 -- --site "$site"
    wait_until 20 test -e began
    cluster cut node2
    touch go
    wait_until 60 have_run 6 # two ranks of the first try, which had begun
    touch all
    wait_until 20 grep -q "stage s succeeded" out
    run ! has_run_on node2
    cluster heal node2 # else Slurm does not end the job
    well 60
}
