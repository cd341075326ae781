#!/usr/bin/env bats
# What tasks may do themselves in a Slurm job, and C programs whose tasks meet.
load slurm.bash

setup_file() {
    cluster_up -n 3 --racks 0 --fast
}

@test "a task may itself call srun, mpirun and sbatch" {
    local type=pmix
    mpicc -o meets "$TROUPE_SOURCE/tests/mpi/meets.c"
    cp meets meets-pmix
    if ! has_pmix; then
        type=pmi2
        mpicc.mpich -o meets-pmi2 "$TROUPE_SOURCE/tests/mpi/meets.c"
    fi
    sed "s/TYPE/$type/g" >p.yaml <<'END'
troupe: 1
profiles:
  one: {executor: {cores: 1, memory: 300m, memoryOverhead: 100m}, task: {cpus: 1}}
stages:
  - {name: srun, profile: one, run: "srun -N2 --ntasks-per-node=1 hostname | sort"}
  - {name: ranks, profile: one, after: [srun], run: "srun -N2 -n2 --mpi=TYPE ./meets-TYPE | sort"}
  - {name: mpirun, profile: one, after: [ranks], run: "mpirun -np 2 --oversubscribe ./meets | sort"}
  - {name: sbatch, profile: one, after: [mpirun], run: "sbatch --wait -o sub.out --mem=100 --wrap 'echo in $SLURM_JOB_ID'"}
END
    submit alice -N2 -n2 -c2 --mem=1500 -- "$TROUPE" run p.yaml
    run -0 finished
    cd troupe-runs/last/logs
    [ "$(cat srun/0.0.out)" = $'node1\nnode2' ]
    [ "$(cat ranks/0.0.out)" = $'rank 0 of 2, sum 3\nrank 1 of 2, sum 3' ]
    [ "$(cat mpirun/0.0.out)" = $'rank 0 of 2, sum 3\nrank 1 of 2, sum 3' ]
    # It was a job of its own.
    grep -q '^in [0-9]*$' ../../../sub.out
    [ "$(cat ../../../sub.out)" != "in $job" ]
    nothing_left node1 node2 node3
}

@test "tasks of a barrier stage meet over the job's nodes; one that fails takes all along" {
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run --set executor.memory=300m -- "$programs/together" 4
    run -0 finished
    [[ "$output" == *"4 tasks said: 0 1 2 3"* ]]
    [ -e troupe-runs/last/logs/executor-0.log ]
    run ! grep -R "mpirun noticed" troupe-runs/last/logs/
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run --set executor.memory=300m -- "$programs/together" 4 fail
    run -0 finished
    [[ "$output" == *"is run again: task 1 of barrier stage"*"4 tasks said: 0 1 2 3"* ]]
    nothing_left node1 node2 node3
}

# bats test_tags=mpi
@test "messages travel over MPI between nodes, where that is asked for" {
    command -v ompi-server >/dev/null || skip "Open MPI has no ompi-server here"
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run --set comm.transport=mpi --set executor.memory=300m -- "$programs/together" 4
    run -0 finished 60
    [[ "$output" == *"4 tasks said: 0 1 2 3"* ]]
    grep -q 'messages travel over MPI' troupe-runs/last/events.jsonl
    [ "$(grep -o '"Host":"node[12]"' troupe-runs/last/events.jsonl | sort -u | wc -l)" = 2 ]
    nothing_left node1 node2 node3
}

# ranks_meet COMPILER WORDS [ARGUMENT]: four ranks as a gang over two nodes, of which each
# says so, and then one that fails.
ranks_meet() {
    "$1" -o meets "$TROUPE_SOURCE/tests/mpi/meets.c"
    cat >p.yaml <<END
troupe: 1
profiles:
  one: {executor: {cores: 1, memory: 300m, memoryOverhead: 100m}, task: {cpus: 1}}
stages:
  - {name: meet, profile: one, mpi: {ranks: 4}, argv: [./meets${3:+, $3}]}
  - {name: fail, profile: one, after: [meet], retries: {max_failures: 1}, mpi: {ranks: 2}, argv: [./meets, exit, "5"]}
END
    submit alice -N2 -n2 -c2 --mem=1800 -- "$TROUPE" run p.yaml
    run -1 finished
    for rank in 0 1 2 3; do
        [ "$(cat "troupe-runs/last/logs/meet/0.0.$rank.out")" = "rank $rank of 4$2" ]
    done
    [[ "$output" == *"stage fail: task 0 failed once, with exit status 5"* ]]
    nothing_left node1 node2 node3
}

@test "ranks of Open MPI meet, as a gang over two nodes" {
    has_pmix || skip "this Slurm has no PMIx"
    ranks_meet mpicc ", sum 10"
}

# What is linked with MPICH is started by what Slurm calls pmi2.
mpich_here() {
    type mpicc.mpich >/dev/null 2>&1 || skip "MPICH is not here under Debian's name"
    as alice node1 srun --mpi=list 2>&1 | grep -qw pmi2 || skip "this Slurm has no --mpi=pmi2"
}

@test "ranks of MPICH meet, as a gang over two nodes" {
    mpich_here
    ranks_meet mpicc.mpich "" apart
}

# Over nodes its MPI_Finalize may hang, without Troupe as well (docs/platform.md).
@test "a static run of MPICH" {
    mpich_here
    printf 'a b a\nc a\n' >text
    run -0 as alice node1 srun -K1 --mpi=pmi2 -N1 -n3 --mem-per-cpu=300 \
        "$programs/wordcount" "$PWD/text"
    [[ "$output" == *"lines 2 words 5 bytes 10"* ]]
    nothing_left node1 node2 node3
}

# reads_with ARGUMENT… -- OPTION…: how many copies of its tasks were started.
reads_with() {
    local arguments=()
    while [ "$1" != -- ]; do arguments+=("$1") && shift; done
    rm -rf troupe-runs
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run --set executor.memory=300m \
        --set speculation=true --set speculation.quantile=0.5 --set speculation.multiplier=1.5 \
        --set speculation.efficiency.longRunTaskFactor=100 "${@:2}" -- "$programs/reads" "${arguments[@]}"
    finished || return 1
    grep -qx "read $(((arguments[0] - 1) * arguments[1] + arguments[3]))" out
    copies=$(grep TaskStart troupe-runs/last/events.jsonl | grep -c '"Speculative":true' || true)
}

@test "a long task is copied when it reads slowly, not when it has more to read" {
    reads_with 8 4 100 24 1 --
    [ "$copies" = 0 ]
    reads_with 8 4 100 4 6 --
    [ "$copies" -ge 1 ]
    reads_with 8 4 100 24 1 -- --set speculation.efficiency.enabled=false
    [ "$copies" -ge 1 ]
    nothing_left node1 node2 node3
}

# Its guard is another program than its driver: that of a pipeline is the same.
@test "an additional job of a C program is kept while its tasks run" {
    submit alice -N1 -n1 -c1 --mem=1500 -- "$TROUPE" run --set executor.memory=300m \
        --set alloc.max_executors=3 -- "$programs/sleepy" 6 8000
    run -0 finished
    [[ "$output" == *"slept 6"* && "$output" != *cancelled* ]]
    local log=troupe-runs/last/events.jsonl
    grep SparkListenerTaskEnd $log >ends
    [ "$(wc -l <ends)" = 6 ]
    [ "$(grep -c '"Reason":"Success"' ends)" = 6 ]
    grep -q '"TroupeSlurmJob".*"Further":true' $log
    nothing_left node1 node2 node3
}
