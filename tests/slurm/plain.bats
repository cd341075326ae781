#!/usr/bin/env bats
# A cluster that hands out cores only, whole ones, and has no topology: memory is the
# node's, kept by ourselves.
load slurm.bash

setup_file() {
    cluster_up -n 2 --racks 0 --fast --conf SelectTypeParameters=CR_Core --conf DefMemPerCPU=0
}

@test "a flat cluster has no racks, and memory is what a node has" {
    submit alice -N2 -n2 -c2 -- "$TROUPE" topo --json
    run -0 finished
    [[ "$output" == *'"node1"'*'"node2"'* ]]
    [[ "$output" != *rack1* ]]
    [[ "$output" == *'"memory"'*4096* ]]
}

# bats test_tags=plain
@test "executors' memory is watched where Slurm does not hold them to it" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 150m, memoryOverhead: 50m}, task: {cpus: 1}}
stages:
  - name: hog
    tasks: 3
    profile: small
    tolerate: 1
    retries: {max_failures: 1}
    run: |
      [ $TROUPE_TASK = 0 ] || { hostname; sleep 1; exit; }
      exec perl -e '$x = "a" x 300_000_000; sleep 9'
END
    submit alice -N2 -n2 -c2 -- "$TROUPE" run p.yaml
    run -0 finished
    [[ "$output" == *"task 0"*"killed for memory (limit 200 MiB, peak "* ]]
    nothing_left node1 node2
}

@test "a C program runs over the job's nodes" {
    printf 'a b a\nb a\n' >text
    submit alice -N2 -n2 -c2 -- "$TROUPE" run --set executor.cores=2 -- "$TROUPE_BUILD/tests/programs/wordcount" text
    run -0 finished
    nothing_left node1 node2
}
