#!/usr/bin/env bats
# Gangs on nodes that are not alike, and on one that does not answer.
# shellcheck disable=SC2154 # variables of slurm.bash
load slurm.bash
load run.bash

setup_file() {
    cluster_up -n 4 --gpus 0,1,2,2 --racks 0 --fast
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
    submit alice -N1 -n1 -c1 --mem=1000 -w node1 -- "$TROUPE" run --run-name r "$@" p.yaml
    well
}

has() {
    grep -h . has.* | sort | xargs
}

@test "a gang with devices is given nodes that have as many each" {
    gang 4
    run_gang
    [ "$(has)" = "node3 0 node3 1 node4 0 node4 1" ]
    wait_until nobody_has_a_job
}

@test "where they are not free it has more nodes, with fewer on each" {
    as bob head sbatch -w node3 --gres=gpu:1 -n1 --mem=100 -o /dev/null --wrap "sleep 100"
    wait_until eval 'on head squeue -h -u bob -o %T | grep -x RUNNING'
    gang 3
    run_gang
    [[ "$(has)" =~ ^node2\ 0\ node3\ [01]\ node4\ [01]$ ]]
}

@test "in the driver's job it takes nodes that have enough" {
    gang 4
    submit alice -N3 -n3 -c3 --mem=1000 --gpus=5 -- \
        "$TROUPE" run --run-name r --set alloc.placement=inside p.yaml
    well
    [ "$(has)" = "node3 0 node3 1 node4 0 node4 1" ]
}

@test "more devices than as many on each node never fit" {
    gang 5
    submit alice -N1 -n1 -c1 --mem=1000 -w node1 -- "$TROUPE" run --run-name r p.yaml
    run -3 finished
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
    run_on -N4 -n4 -c2 --mem=900 --
    wait_until test -e began
    cluster cut node2
    touch go
    wait_until have_run 6 # two ranks of the first try, which had begun
    touch all
    wait_until grep -q "stage s succeeded" out
    run ! has_run_on node2
    cluster heal node2 # else Slurm does not end the job
    well
}

# gang_of COMMAND: two ranks of it, without devices.
gang_of() {
    cat >p.yaml <<END
troupe: 1
profiles:
  one: {executor: {cores: 1, memory: 300m, memoryOverhead: 100m}, task: {cpus: 1}}
stages:
  - {name: s, profile: one, mpi: {ranks: 2}, retries: {max_failures: 1}, argv: [$1]}
END
}

# srun_without_pmix: an srun that writes down what it is called with, and lists no pmix.
srun_without_pmix() {
    mkdir -p bin
    cat >bin/srun <<END
#!/bin/bash
echo "\$*" >>$PWD/calls
[ "\$1" != --mpi=list ] || { printf 'MPI plugin types are...\n\tnone\n\tpmi2\n' >&2 && exit; }
exec /usr/bin/srun "\$@"
END
    chmod 755 bin/srun
    install -m 666 /dev/null calls
}

# calls WORD: how many sruns were called with it.
calls() {
    grep -cw -- "$1" calls || true
}

@test "a gang is started by what srun lists, which is asked once, unless the site file says it" {
    srun_without_pmix
    gang_of hostname
    submit alice -N2 -n2 -c2 --mem=1500 -- "env PATH=$PWD/bin:\$PATH $TROUPE run --run-name r p.yaml"
    well
    [ "$(calls --mpi=list) $(calls --mpi=pmi2)" = "1 1" ]
    printf 'site: 1\nmpi: none\n' >site.yaml
    submit alice -N2 -n2 -c2 --mem=1500 -- "env PATH=$PWD/bin:\$PATH $TROUPE run --site site.yaml p.yaml"
    well
    [ "$(calls --mpi=list) $(calls --mpi=pmi2)" = "1 1" ]
    [ "$(grep -c -- '--ntasks=2.*--mpi=none' calls)" = 1 ]
}

@test "without gangs srun is not asked for its list" {
    srun_without_pmix
    gang_of hostname
    sed -i 's/mpi: {ranks: 2}/tasks: 2/' p.yaml
    submit alice -N2 -n2 -c2 --mem=1500 -- "env PATH=$PWD/bin:\$PATH $TROUPE run p.yaml"
    well
    [ "$(calls --mpi=list)" = 0 ]
    [ "$(calls --mpi=none)" -ge 1 ]
}

@test "a gang whose MPI nothing on the list serves can never be: it says so, and ends with 3" {
    srun_without_pmix
    mpicc -o meets "$TROUPE_SOURCE/tests/mpi/meets.c"
    gang_of ./meets
    submit alice -N2 -n2 -c2 --mem=1500 -- "env PATH=$PWD/bin:\$PATH $TROUPE run p.yaml"
    run -3 finished
    [[ "$output" == *"stage s: its program is linked with Open MPI, which srun --mpi=pmix would start, and this Slurm has only none pmi2; build it with MPICH, or say mpi: in the site file"* ]]
    [ "$(grep -c -- '--ntasks=2' calls)" = 0 ]
}
