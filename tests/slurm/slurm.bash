# Shared by the tests on a real Slurm: one cluster a file, brought up by cluster_up in
# setup_file and taken down at the end of the file; a folder a test that hosts see and all may
# write into.
bats_require_minimum_version 1.5.0

export PATH=${BASH_SOURCE[0]%/*}:$PATH
export TROUPE_OPT_events_tasks=all # each task has its events, however busy the machine is

# cluster_up OPTION…
cluster_up() {
    # No other one, nor one of another fresh machine, whose processes have the same numbers.
    TROUPE_CLUSTER=t$(od -An -N4 -tx1 /dev/urandom | tr -d ' ')
    export TROUPE_CLUSTER
    cluster up "$@" >"$BATS_FILE_TMPDIR/up" 2>&1 || { cat "$BATS_FILE_TMPDIR/up" && return 1; }
    shared=$(cluster folder)
    export shared TROUPE=$TROUPE_BUILD/bin/troupe programs=$TROUPE_BUILD/tests/programs
}

# Whether srun can start what finds itself by PMIx; not every Slurm is built with it.
has_pmix() {
    on head srun --mpi=list 2>&1 | grep -qw pmix
}

teardown_file() {
    cluster down
}

# What the test before has left to Slurm is waited for here, where a hang is told.
setup() {
    wait_until nobody_has_a_job
    own_folder
}

nobody_has_a_job() {
    [ -z "$(on head squeue -h)" ]
}

own_folder() {
    cd "$(mktemp -d "$shared/$BATS_TEST_NUMBER.XXXX")" && chmod 777 .
}

# on HOST COMMAND…, as USER HOST COMMAND…
on() { cluster exec "$@"; }
as() { cluster exec --user "$@"; }

# wait_until COMMAND…: until the command succeeds. There is no bound but the point's own timeout
# (./drill), which tells the line that waited; after 200 looks it says what there is.
wait_until() {
    local looks=0
    until "$@" >/dev/null 2>&1; do
        looks=$((looks + 1))
        [ $looks != 200 ] || so_far "$@" >&4 2>&1 || true
        sleep 0.1
    done
}

# so_far COMMAND…: for who reads why it never succeeded.
so_far() {
    echo "still waiting for: $*"
    "$@" || true
    on head squeue -a
    on head sinfo -N -o '%N %T %E'
    tail -n 30 out 2>/dev/null
}

# state_is NODE STATE. (Of one node alone, sinfo -n, slurmctld may tell an old state.)
state_is() {
    [ "$(on head sinfo -h -N -o '%N %T' | grep "^$1 " | sort -u)" = "$1 $2" ]
}

# submit USER OPTION… -- COMMAND…: runs a command as a batch job in this folder, its output
# in the file out; sets $job.
submit() {
    local user=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    # Options of the whole suite (TROUPE_OPT_comm_transport=mpi) hold in its jobs, and its clock.
    printf '#!/bin/bash\n%s\nexec %s\n' "$(export -p | grep -E ' TROUPE_(OPT_|CLOCK=)')" "$*" >job.sh
    job=$(as "$user" head sbatch --parsable -o "$PWD/out" "${options[@]}" job.sh)
}

# moving_clock: jobs that are submitted from here on have a clock that the drill moves
# (../clock/clock.c), where this build has one. A host has its own, and what runs has to be on one.
moving_clock() {
    local host
    [ -x "$TROUPE_BUILD/tests/advance" ] || skip "this build has no TROUPE_TEST_CLOCK"
    export TROUPE_CLOCK=/tmp/clock
    for host; do
        on "$host" rm -f $TROUPE_CLOCK
        advance_on "$host" 0s
    done
}

# advance_on HOST TIME
advance_on() {
    on "$1" "$TROUPE_BUILD/tests/advance" "$2"
}

# start_now JOB: starts a requeued job, for which Slurm waits two minutes by itself. Nodes
# refuse a credential of the second in which that of its first start was revoked.
start_now() {
    sleep 1.1
    on head scontrol update jobid="$1" StartTime=now
}

# misses NODE: Slurm is told what it would notice after SlurmdTimeout. A job waits for all of its
# nodes before it is over, and its user for Slurm's word of a rank.
misses() {
    on head scontrol update nodename="$1" state=down reason=drill
}

slurmctld_is_gone() {
    ! on head pgrep -x slurmctld
}

# Until `cluster heal head`.
slurmctld_goes() {
    on head pkill slurmctld
    wait_until slurmctld_is_gone
}

# calls_of USER: how often slurmctld has been called by a user since it was started. Commands of
# the tests call as root or slurm, so that alice's calls are those of her run.
calls_of() {
    on head sdiag | sed -nE "s/^\s*$1 *\( *[0-9]+\) *count:([0-9]+) .*/\1/p"
}

# looks_again: until alice's run has asked Slurm twice more: the second time after it has done
# what it made of the first answer.
looks_again() {
    wait_until has_called $(($(calls_of alice) + 2))
}
has_called() { [ "$(calls_of alice)" -ge "$1" ]; }

# refusals_on HOST: how many calls from there nobody has answered, as when slurmctld is away.
refusals_on() { tcp_count "$1" AttemptFails; }

# tcp_count HOST NAME: what its kernel has counted so far.
tcp_count() {
    on "$1" awk -v name="$2" '$1 == "Tcp:" && !n++ { for (i = 2; i <= NF; i++) at[$i] = i }
        $1 == "Tcp:" { count = $at[name] } END { print count }' /proc/net/snmp
}

# more_refusals HOST N: there are more than N.
more_refusals() {
    [ "$(refusals_on "$1")" -gt "$2" ]
}

job_is_over() {
    local states
    states=$(on head squeue -h -j "$1" -o %T 2>&1) && [ -z "$states" ] || [[ "$states" == *"Invalid job id"* ]]
}

# finished: waits for $job and shows its output; its exit status, or 128 and the signal that
# ended it.
finished() {
    wait_until job_is_over "$job"
    cat out
    local code
    code=$(on head scontrol show job "$job" | grep -o -m 1 ' ExitCode=[0-9]*:[0-9]*') || return 1
    code=${code#*=}
    [ "${code#*:}" = 0 ] || return $((128 + ${code#*:}))
    return "${code%:*}"
}

# What runs have left on the hosts: processes and files, a line each.
leftovers() {
    local host
    for host in "$@"; do
        # shellcheck disable=SC2016 # the host's words
        on "$host" bash -c '
            pgrep -a -u alice,bob . | sed "s/^/$HOSTNAME: /"
            ls -d /tmp/troupe-* /var/tmp/troupe-* /dev/shm/* 2>/dev/null | sed "s/^/$HOSTNAME: /"
            true'
    done
}

# nothing_left HOST…: waits until that is gone; Slurm tells the end of a job before its last
# processes have tidied up.
nothing_left() {
    wait_until none_left "$@" || { leftovers "$@" && return 1; }
}
none_left() { ! leftovers "$@" | grep .; }
