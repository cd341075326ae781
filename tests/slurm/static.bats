#!/usr/bin/env bats
# A C program as one MPI job over several nodes: srun --mpi=pmix, mpirun in a batch job.
load slurm.bash

setup_file() {
    cluster_up -n 4 --racks 2 --gpus 3 --fast
}

# ranks OPTION… PROGRAM WORD…: as a step of its own job. Once more where Slurm 22.05 refused a
# connection of its own (docs/platform.md), which it says.
ranks() {
    local status errors=$BATS_TEST_TMPDIR/errors
    for _ in 1 2; do
        status=0
        as alice node1 env SLURM_PMIX_TIMEOUT=60 srun -K1 --mpi=pmix \
            --mem-per-cpu=300 "$@" 2>"$errors" || status=$?
        grep -q "Munge decode failed" "$errors" || break
    done
    cat "$errors" >&2
    return $status
}

# The localities of tasks when they ended, by task.
localities() {
    grep SparkListenerTaskEnd troupe-runs/last/events.jsonl |
        sed 's/.*"Index":\([0-9]*\).*"Locality":"\([A-Z_]*\)".*/\1 \2/' | sort | cut -d' ' -f2 | xargs
}

hosts() {
    grep -o 'ran on .*' <<<"$output" | cut -d' ' -f3 | xargs
}

# node1 and node2 are one rack, node3 and node4 another; node1 has the driver as well. The
# first task on node1 lasts until the second has given up waiting for it and has taken its
# rack, although node3 is free.
@test "tasks run on all nodes, on the host they want or else in its rack" {
    local waits=TROUPE_OPT_locality_wait_node=300ms,TROUPE_OPT_locality_wait_rack=1h
    run -0 --separate-stderr ranks --export=ALL,$waits -w node1,node2,node3 -N3 -n4 \
        "$programs/places" 3 node1 node1 node3
    case $(hosts) in
    "node1 node2 node3") [ "$(localities)" = "NODE_LOCAL RACK_LOCAL NODE_LOCAL" ] ;;
    "node2 node1 node3") [ "$(localities)" = "RACK_LOCAL NODE_LOCAL NODE_LOCAL" ] ;;
    *) echo "$output" && return 1 ;;
    esac
    run -0 --separate-stderr ranks -N4 -n5 \
        --export=ALL,TROUPE_OPT_admission_munge=on,TROUPE_OPT_locality_wait=1h \
        "$programs/places" 0 node4 node3 node2 node1
    [ "$(hosts)" = "node4 node3 node2 node1" ]
    [ "$(localities)" = "NODE_LOCAL NODE_LOCAL NODE_LOCAL NODE_LOCAL" ]
    nothing_left node1 node2 node3 node4
}

@test "a site file's racks are stronger than Slurm's" {
    local waits=TROUPE_OPT_locality_wait_node=300ms,TROUPE_OPT_locality_wait_rack=1h
    printf 'node1,node3 odd\nnode2,node4 even\n' >racks
    printf 'site: 1\nracks: {file: racks}\n' >site.yaml
    run -0 --separate-stderr ranks --export=ALL,TROUPE_SITE="$PWD/site.yaml",$waits \
        -w node1,node2,node3 -N3 -n4 "$programs/places" 3 node1 node1 node2
    [[ "$(hosts)" == "node1 node3 node2" || "$(hosts)" == "node3 node1 node2" ]]
    [[ "$(localities)" == *RACK_LOCAL* ]]
}

@test "the same under mpirun in a batch job" {
    submit alice -w node2,node3 -N2 -n3 -c1 --mem-per-cpu=300 -- \
        env TROUPE_OPT_locality_wait=1h mpirun -n 3 "$programs/places" 0 node3 node2
    run -0 finished
    [ "$(hosts)" = "node3 node2" ]
    [ "$(localities)" = "NODE_LOCAL NODE_LOCAL" ]
    nothing_left node2 node3
}

# "HOST ADDRESSES" of all executors.
executors() {
    grep SparkListenerExecutorAdded troupe-runs/last/events.jsonl |
        sed 's/.*"Host":"\([^"]*\)".*"addresses":\["\([^]]*\)"\].*/\1 \2/' | sort | xargs
}

@test "the ranks of a node share the devices that Slurm gave their step, or the run ends at once" {
    local gpus=TROUPE_OPT_executor_resource_gpu_amount=1,TROUPE_OPT_task_resource_gpu_amount=1
    run -0 --separate-stderr ranks --export=ALL,$gpus -w node1,node2 -N2 -n6 \
        --ntasks-per-node=3 --gres=gpu:3 "$programs/shapes" -d gpu
    [ "$(grep -c 'gpu=[012]$' <<<"$output")" = 6 ]
    [ "$(executors)" = "node1 0 node1 1 node2 0 node2 1 node2 2" ]
    run -3 ranks --export=ALL,$gpus -w node3 -N1 -n3 --gres=gpu:1 "$programs/shapes" -d gpu
    [[ "$output" == *"executor.resource.gpu.amount is 1, but of the 1 gpu on node3 (by CUDA_VISIBLE_DEVICES) 0 are left for rank 2"* ]]
    run -3 ranks --export=ALL,$gpus -w node3 -N1 -n2 "$programs/shapes" -d gpu
    [[ "$output" == *"nothing says which gpu rank 1 on node3 may use"* ]]
    nothing_left node1 node2 node3 node4
}

@test "executor profiles are refused with the reason, at once and on all ranks" {
    run -3 ranks -N2 -n3 "$programs/shapes"
    [[ "$output" == *"profile wide: it asks for executors of its own, but the executors of this run are fixed"* ]]
    [[ "$output" != *"not expected"* && "$output" != *"went away"* ]]
    nothing_left node1 node2 node3 node4
}

@test "a driver that cannot start ends all ranks" {
    mkdir -m 555 here && cd here
    run ranks -N2 -n3 "$programs/places" 0 -
    [ "$status" != 0 ]
    [[ "$output" == *"cannot make the folder "*"troupe-runs"* ]]
    run ranks --export=ALL,TROUPE_OPT_task_cpus=many -N2 -n3 "$programs/places" 0 -
    [ "$status" != 0 ]
    [[ "$output" == *TROUPE_OPT_task_cpus* ]]
    nothing_left node1 node2 node3 node4
}
