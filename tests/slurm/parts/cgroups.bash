# Control groups of a cluster, sourced by ../cluster and init.bash.
#
# Every host has a group of its own in each hierarchy, /troupe-slurm-NAME/HOST, and sees it
# as the top (cgroup namespace, bind mounts): Slurm then behaves as on a machine of its
# own, and whatever a cluster started is found by its groups, whoever its parent is now.
# In version 2 only leaves may have processes: a host's are in HOST/system, once its namespace
# was made in HOST.

cgroup_mount=/sys/fs/cgroup

# Sets cgroup_version to v1, v2 or nothing, cgroup_tops to where the hierarchies begin,
# cgroup_leaf to where below its group a host's processes are.
cgroup_look() {
    cgroup_version=
    cgroup_leaf=
    cgroup_tops=()
    if [ -e "$cgroup_mount/cgroup.controllers" ]; then
        cgroup_version=v2
        cgroup_leaf=/system
        cgroup_tops=("$cgroup_mount")
        return 0
    fi
    # Every command looks, so that it is done without a process.
    local top line
    while read -r _ _ _ _ top line; do
        [[ $line == *" - cgroup "* && $line != *name=* && $top == "$cgroup_mount"/* ]] || continue
        [[ " ${cgroup_tops[*]-} " == *" $top "* ]] || cgroup_tops+=("$top")
    done </proc/self/mountinfo
    [ ${#cgroup_tops[@]} = 0 ] || cgroup_version=v1
}

# What a host needs and this machine does not let us have, in a few words.
cgroup_missing() {
    local controller
    if [ -z "$cgroup_version" ]; then
        echo "no cgroup hierarchy is mounted under $cgroup_mount"
        return
    fi
    for controller in memory freezer; do
        if [ "$cgroup_version" = v1 ] && [ ! -d "$cgroup_mount/$controller" ]; then
            echo "the cgroup controller $controller is not mounted"
            return
        fi
    done
    if [ "$cgroup_version" = v2 ] &&
        ! grep -qw memory "$cgroup_mount/cgroup.controllers" 2>/dev/null; then
        echo "the cgroup controller memory is not there in $cgroup_mount"
        return
    fi
    local probes=("${cgroup_tops[@]/%//troupe-slurm-probe-$$}") why
    why=$(mkdir "${probes[@]}" 2>&1) || echo "no cgroup can be made: $why"
    rmdir "${probes[@]}" 2>/dev/null || true
}

# cgroup_delegate GROUP: lets groups below it have the controllers that Slurm wants. (They
# stay switched on in the top group, where others may want them by now.) The last one is
# for Slurm 22.05, which does not know the last word of a list for its end of line.
cgroup_delegate() {
    local controller
    for controller in cpu cpuset memory pids; do
        grep -qw "$controller" "$1/cgroup.subtree_control" ||
            echo "+$controller" 2>/dev/null >"$1/cgroup.subtree_control" || true
    done
}

# cgroup_make CLUSTER HOST
cgroup_make() {
    local top group
    mkdir -p "${cgroup_tops[@]/%//troupe-slurm-$1/$2}"
    for top in "${cgroup_tops[@]}"; do
        for group in "$top/troupe-slurm-$1" "$top/troupe-slurm-$1/$2"; do
            if [ -e "$group/cpuset.cpus" ] && [ "$cgroup_version" = v1 ]; then
                echo "$(<"$group/../cpuset.cpus")" >"$group/cpuset.cpus"
                echo "$(<"$group/../cpuset.mems")" >"$group/cpuset.mems"
            fi
        done
        if [ "$cgroup_version" = v2 ]; then
            cgroup_delegate "$top"
            cgroup_delegate "$top/troupe-slurm-$1"
            mkdir -p "$group$cgroup_leaf"
        fi
    done
}

# cgroup_move CLUSTER/HOST PID…: there in all hierarchies; what they start is born there.
cgroup_move() {
    local top pid group=$1
    shift
    for top in "${cgroup_tops[@]}"; do
        for pid; do
            echo "$pid" 2>/dev/null >"$top/troupe-slurm-$group/cgroup.procs" || return 1
        done
    done
}

# cgroup_settle CLUSTER HOST: moves those in whose group the host's namespace began to its leaf,
# and makes what slurmd would have of systemd.
cgroup_settle() {
    [ "$cgroup_version" = v2 ] || return 0
    local host=${cgroup_tops[0]}/troupe-slurm-$1/$2 pids group
    mapfile -t pids <"$host/cgroup.procs"
    cgroup_move "$1/$2$cgroup_leaf" "${pids[@]}"
    for group in "$host" "$host/system.slice" "$host/system.slice/$2_slurmstepd.scope"; do
        mkdir -p "$group"
        cgroup_delegate "$group"
    done
}

# cgroup_bind CLUSTER HOST FOLDER: the host's view of /sys/fs/cgroup, put in FOLDER.
cgroup_bind() {
    local top
    if [ "$cgroup_version" = v2 ]; then
        mount --bind "$cgroup_mount/troupe-slurm-$1/$2" "$3"
        return
    fi
    mount -t tmpfs -o mode=755 tmpfs "$3"
    # cpuacct where it is one with cpu
    find "$cgroup_mount" -maxdepth 1 -type l -exec cp -P {} "$3" \;
    for top in "${cgroup_tops[@]}"; do
        mkdir -p "$3${top#"$cgroup_mount"}"
        mount --bind "$top/troupe-slurm-$1/$2" "$3${top#"$cgroup_mount"}"
    done
}

# cgroup_pids GROUP: processes in a group of any hierarchy and below it.
cgroup_pids() {
    find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# cgroup_groups CLUSTER: its groups that are there, one a hierarchy.
cgroup_groups() {
    local top
    for top in "${cgroup_tops[@]}"; do
        [ ! -d "$top/troupe-slurm-$1" ] || echo "$top/troupe-slurm-$1"
    done
}

# cgroup_end CLUSTER: kills all in its groups and removes them.
cgroup_end() {
    local group file pids until=$((SECONDS + 60))
    while [ -n "$(cgroup_groups "$1")" ]; do
        for group in $(cgroup_groups "$1"); do
            # What is frozen does not die.
            find "$group" -name freezer.state 2>/dev/null | while read -r file; do
                echo THAWED 2>/dev/null >"$file" || true
            done
            pids=$(cgroup_pids "$group")
            # shellcheck disable=SC2086 # a list of numbers
            [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
            cgroup_prune "$group"
            rmdir "$group" 2>/dev/null || true
        done
        [ -n "$(cgroup_groups "$1")" ] || return 0
        [ $SECONDS -lt $until ] || return 1
        sleep 0.05
    done
}

# cgroup_prune GROUP: removes the groups below it in which nobody is.
cgroup_prune() {
    find "$1" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
}

# cgroup_below GROUP: a group below it other than the one a version 2 host lives in.
cgroup_below() {
    find "$1" -mindepth 1 -type d ! -name system -print -quit 2>/dev/null
}
