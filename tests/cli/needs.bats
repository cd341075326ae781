# What troupe run needs of the machine, and how its messages travel there.
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

# mpirun_that_says TEXT: the mpirun in PATH, which says so for --version.
mpirun_that_says() {
    mkdir -p bin
    printf '#!/bin/sh\necho "%s"\n' "$1" >bin/mpirun
    chmod +x bin/mpirun
}

# here COMMAND…: troupe, where only bin is in PATH.
here() {
    env PATH="$PWD/bin" "$TROUPE_BUILD/bin/troupe" "$@"
}

# cannot WHY: no MPI here that joins programs: what mpi is told.
cannot() {
    local mpi
    for mpi in run "run --dry-run" plan; do
        # shellcheck disable=SC2086
        check 2 "^troupe: --set: comm.transport=mpi: $1.*; set comm.transport=socket, or leave it at auto" \
            here $mpi --set comm.transport=mpi p.yaml
    done
    [ ! -e troupe-runs ]
}

@test "messages travel over sockets unless MPI is asked for, and no mpirun is asked" {
    plain_pipeline
    mkdir bin
    printf '#!/bin/sh\ntouch asked\n' >bin/mpirun
    chmod +x bin/mpirun
    check 0 '"here":"over sockets \(comm.transport=auto\)"' here config --json comm.transport
    check 0 '^messages travel over sockets \(comm.transport=auto\)$' here plan p.yaml
    check 0 '^messages travel over sockets \(comm.transport=socket\)$' here plan --set comm.transport=socket p.yaml
    [ ! -e asked ]
    check 2 "comm.transport: .*one of auto, mpi, socket|comm.transport.*auto\|mpi\|socket" here plan --set comm.transport=tcp p.yaml
}

@test "MPI is refused for the messages where it cannot join separately started programs" {
    plain_pipeline
    mpirun_that_says "mpirun (Open MPI) 5.0.7"
    cannot "mpirun is Open MPI 5.0.7, which cannot join separately started programs"
    mpirun_that_says "HYDRA build details:
    Version:                                 4.0.2"
    cannot "mpirun is MPICH 4.0.2, which cannot"
    mpirun_that_says "mpirun (Open MPI) 4.1.4"
    cannot "mpirun is Open MPI 4.1.4, but its ompi-server is not in PATH"
    rm bin/mpirun
    cannot "there is no mpirun in PATH"
    # One of another MPI lies further back in PATH.
    printf '#!/bin/sh\n' >bin/ompi-server
    chmod +x bin/ompi-server
    cannot "there is no mpirun in PATH"
    mpirun_that_says "mpirun (Open MPI) 5.0.7"
    cannot "mpirun is Open MPI 5.0.7, which cannot join separately started programs"
    if unshare -rn true; then
        mpirun_that_says "mpirun (Open MPI) 4.1.4"
        check 2 "^troupe: --set: comm.transport=mpi: there is no network here but the loopback interface, over which" \
            unshare -rn env PATH="$PWD/bin" "$TROUPE_BUILD/bin/troupe" plan --set comm.transport=mpi p.yaml
    fi
    mpirun_that_says ""
    cannot "mpirun is of an MPI that is not known here, which cannot join"
}

@test "an mpirun that does not answer holds nobody up" {
    plain_pipeline
    mkdir bin
    printf '#!/bin/sh\nexec %s 100\n' "$(command -v sleep)" >bin/mpirun
    chmod +x bin/mpirun
    check 2 "comm.transport=mpi: mpirun is of an MPI that is not known here" \
        env PATH="$PWD/bin:/usr/bin" "$TROUPE_BUILD/bin/troupe" plan --set comm.transport=mpi p.yaml
}
