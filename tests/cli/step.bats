# What stands before an executor in a Slurm step, without Slurm.
load common

# step WORD: a step that is told this, and then no more.
step() {
    mkdir -p r/state/executors
    TROUPE_EXECUTOR="id=0;cores=1;slots=1;memory_mib=100;cpuset=;cgroup=;driver=localhost:1"
    TROUPE_EXECUTOR+=";secret_file=;run_name=x;run_dir=$PWD/r;run_id=;scratch="
    TROUPE_EXECUTOR+=";network_timeout_ns=1000000000;heartbeat_ns=1000000000;in_cgroup=0"
    TROUPE_EXECUTOR+=";munge=0;sockets=1;mac=0"
    export TROUPE_EXECUTOR
    { echo "$1" && sleep 0.5; } | "$TROUPE_BUILD/bin/troupe-rank" step own -- \
        sh -c 'echo "$TMPDIR" >seen; exec sleep 60' >said || true
    grep -q '^0 started ' said
}

@test "a step that is told to go starts its executor, and ends it with the driver" {
    step go
    [ -s seen ]
    [ ! -e "$(cat seen)" ]
    grep -q '^0 ended ' said
}

@test "a step that is told to end before it has started its executor starts none" {
    step end
    [ ! -e seen ]
    ! grep ' end' said
}
