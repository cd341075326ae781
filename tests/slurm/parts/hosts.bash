# Hosts of a cluster, sourced by ../cluster: namespaces, links, and how to get in. Needs
# $cluster, $folder, $parts; the lock of the cluster is file descriptor 9.
# shellcheck disable=SC2154 # those
#
# A host lives as long as its first process (init.bash). One more, "switch", has the bridge
# and the MUNGE daemon, so nothing of the network is in the machine's own namespace: no
# names, addresses or ports that another cluster or the machine could collide with.

# What daemons are started with: nothing of the caller's environment but what ./check knows
# its processes by.
clean=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    LANG=C.UTF-8 ${TROUPE_CHECK:+"TROUPE_CHECK=$TROUPE_CHECK"})

# Closes all but the first three: who waits for the end of a pipe of ours (bats does) does not
# wait for daemons. The lock is closed too.
close_files() {
    local file
    for file in /proc/"$BASHPID"/fd/*; do
        file=${file##*/}
        # 255 is bash's own.
        if [ "$file" -gt 2 ] && [ "$file" != 255 ]; then exec {file}>&-; fi
    done
}

# host_start HOST GPUS SHARED-FOLDER…: does not wait for it to be ready.
host_start() {
    local host=$1
    mkdir -p "$folder/hosts/$host/spool"
    cgroup_make "$cluster" "$host"
    (
        # Who holds the lock is waited for by `down`, who is in the group is ended by it:
        # so first the one, then the other.
        cgroup_move "$cluster/$host" "$BASHPID"
        close_files
        "${clean[@]}" setsid unshare --net --uts --ipc --mount --pid --cgroup --fork \
            --kill-child bash "$parts/init.bash" "$cluster" "$folder" "$@" \
            </dev/null >"$folder/log/host.$host.log" 2>&1 &
    )
}

# host_pid HOST: number of its first process; fails when the host does not run. A number
# that was left behind by an earlier boot of the machine belongs to somebody else now.
host_pid() {
    local pid groups
    read -r pid 2>/dev/null <"$folder/hosts/$1/pid" || return 1
    { groups=$(<"/proc/$pid/cgroup"); } 2>/dev/null || return 1
    [[ $groups$'\n' == *"/troupe-slurm-$cluster/$1"[/$'\n']* ]] || return 1
    echo "$pid"
}

host_wait() {
    local alive=yes
    until host_pid "$1" >/dev/null; do
        [ "$alive" ] ||
            unavailable "host $1 does not start: $(tail -n 1 "$folder/log/host.$1.log")"
        # Looked at before the file: it may end well just now.
        alive=$(cgroup_pids "${cgroup_tops[0]}/troupe-slurm-$cluster/$1")
        sleep 0.02
    done
    cgroup_settle "$cluster" "$1"
}

# host_run HOST COMMAND…: in all its namespaces and groups, as root, for commands that end.
host_run() {
    (host_enter "$@")
}

# host_enter HOST COMMAND…: replaces this (sub)shell by the command.
host_enter() {
    host_join "$1"
    exec 9<&-
    host_exec "${@:2}"
}

# host_daemon HOST COMMAND…: the same for what stays.
host_daemon() {
    host_join "$1"
    trap '' HUP
    close_files
    host_exec "${clean[@]}" "${@:2}"
}

# host_join HOST: sets joined to the host's first process. From now on `down` ends us.
host_join() {
    joined=$(host_pid "$1") || fail "host $1 of cluster $cluster does not run"
    cgroup_move "$cluster/$1$cgroup_leaf" "$BASHPID" ||
        fail "host $1 of cluster $cluster is going down"
}

# nsenter stays as the parent, in the machine's process namespace; who kills it ends the
# command too.
host_exec() {
    exec nsenter --target "$joined" --mount --uts --ipc --net --pid --cgroup \
        setpriv --pdeathsig TERM -- "$@"
}

# host_links HOST=ADDRESS…: cables from the switch to these. Process numbers are the machine's,
# so ip enters only the switch's network.
host_links() {
    local end host
    {
        echo "link add name bridge type bridge"
        echo "addr add 10.77.0.254/16 dev bridge"
        echo "link set dev bridge up"
        for end; do
            host=${end%%=*}
            echo "link add name $host type veth peer name eth0 netns $(host_pid "$host")"
            echo "link set dev $host master bridge up"
        done
    } | nsenter --target "$(host_pid switch)" --net ip -batch -
    for end; do
        host_run "${end%%=*}" ip -batch - <<COMMANDS
addr add ${end#*=}/16 dev eth0
link set dev eth0 up
COMMANDS
    done
}

# host_cable HOST up|down
host_cable() {
    host_run switch ip link set dev "$1" "$2"
}

# host_slow HOST MS: delays what the host sends.
host_slow() {
    local log=$folder/log/delay.$1.log until=$((SECONDS + 10))
    command -v perl >/dev/null || unavailable "packages are missing: perl"
    if host_run switch pkill -KILL -f "delay.perl $1 " 2>/dev/null; then
        host_run switch ip link set dev "$1" master bridge
        # The device goes with its process.
        while host_run switch ip link show "slow-$1" >/dev/null 2>&1; do
            sleep 0.01
        done
    fi
    [ "$2" != 0 ] || return 0
    host_daemon switch perl "$parts/delay.perl" "$1" "slow-$1" "$2" \
        </dev/null >"$log" 2>&1 &
    until grep -qx ready "$log"; do
        { [ -d /proc/$! ] && [ $SECONDS -lt $until ]; } ||
            unavailable "cannot slow $1: $(tail -n 1 "$log")"
        sleep 0.01
    done
}

# host_kill HOST: every process but the first, at once and whatever they do against it.
host_kill() {
    local group until=$((SECONDS + 10))
    host_run "$1" bash -c 'kill -KILL -1' || true
    # Dying takes a moment. Groups of steps go too, as in a reboot.
    for group in $(cgroup_groups "$cluster"); do
        while cgroup_prune "$group/$1" && [ -n "$(cgroup_below "$group/$1")" ]; do
            [ $SECONDS -lt $until ] || fail "processes of $1 do not die"
            sleep 0.02
        done
    done
    cgroup_settle "$cluster" "$1"
}
