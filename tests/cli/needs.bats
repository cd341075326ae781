# What troupe run needs of the machine: limits, and Open MPI 4.1.
load common

plain_pipeline() {
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
}

@test "limits that are too small are named, with what is needed" {
    plain_pipeline
    export -f troupe
    check 4 "open files.*: 20, and a run needs 64.*ulimit -n" bash -c 'ulimit -n 20; troupe run p.yaml'
    check 4 "open files.*: 28, and a run needs 64" bash -c 'ulimit -n 28; troupe run p.yaml'
    check 4 "files.*large enough.*: 1024 KiB, and a run needs 16 MiB.*ulimit -f" bash -c 'ulimit -f 1024; troupe run p.yaml'
    [ ! -e troupe-runs ]
    check 0 "" bash -c 'ulimit -n 20; troupe run --dry-run p.yaml'
}

# mpirun SAYS: the only program in PATH, which says so for --version.
mpirun_that_says() {
    mkdir -p bin
    printf '#!/bin/sh\necho "%s"\n' "$1" >bin/mpirun
    chmod +x bin/mpirun
    run env PATH="$PWD/bin" "$TROUPE_BUILD/bin/troupe" run p.yaml
    [ "$status" = 4 ]
    echo "$output"
}

@test "an MPI with which a run does not work is named; where there is none, the package" {
    plain_pipeline
    mpirun_that_says "mpirun (Open MPI) 5.0.7"
    [[ "$output" == "troupe: mpirun is Open MPI 5.0.7, with which"*"needs Open MPI 4.1"* ]]
    mpirun_that_says "HYDRA build details:
    Version:                                 4.0.2"
    [[ "$output" == "troupe: mpirun is MPICH 4.0.2, with which"* ]]
    mpirun_that_says "mpirun (Open MPI) 4.1.4"
    [[ "$output" == "troupe: mpirun is Open MPI 4.1.4, but its ompi-server is not in PATH"* ]]
    rm bin/mpirun
    run env PATH="$PWD/bin" "$TROUPE_BUILD/bin/troupe" run p.yaml
    [ "$status" = 4 ]
    [[ "$output" == *"install Open MPI 4.1"*"openmpi-bin"* ]]
    [ ! -e troupe-runs ]
}
