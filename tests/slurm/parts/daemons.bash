# The daemons of a cluster, sourced by ../cluster: files they read, starting them, waiting
# for them. Needs $cluster, $folder, $here, and hosts.bash.
# shellcheck disable=SC2154 # those

# fill FILE KEY VALUE KEY VALUE…: copies etc/FILE into the cluster with @KEY@ filled in.
fill() {
    local file=$1 text
    text=$(<"$here/etc/$file")
    shift
    while [ $# -gt 0 ]; do
        text=${text//"@$1@"/"$2"}
        shift 2
    done
    printf '%s\n' "$text" >"$folder/etc/$file"
}

# write_conf NODES GPUS RACKS CPUS MEMORY LINE…: everything in the cluster's /etc/slurm.
write_conf() {
    local nodes=$1 gpus=$2 racks=$3 cpus=$4 memory=$5 topology=topology/none
    shift 5
    [ "$racks" = 0 ] || topology=topology/tree
    fill slurm.conf name "$cluster" folder "$folder" topology $topology \
        memory_per_cpu $((memory / cpus)) \
        nodes "$(node_lines "$nodes" "$gpus" "$racks" "$cpus" "$memory")"
    [ $# = 0 ] || printf '%s\n' "$@" >>"$folder/etc/slurm.conf"

    local swap=no devices=yes systemd=no
    if [ "$cgroup_version" = v2 ]; then
        systemd=yes
        [ -e "$cgroup_mount/troupe-slurm-$cluster/head/memory.swap.max" ] && swap=yes
    else
        [ -e "$cgroup_mount/memory/memory.memsw.limit_in_bytes" ] && swap=yes
        [ -d "$cgroup_mount/devices" ] || devices=no
    fi
    fill cgroup.conf cgroup_plugin "cgroup/$cgroup_version" ignore_systemd $systemd \
        constrain_swap $swap constrain_devices $devices

    fill gres.conf gpus "$(device_lines "$nodes" "$gpus")"
    [ "$racks" = 0 ] || fill topology.conf switches "$(switch_lines "$nodes" "$racks")"
    cp "$here/../../slurm-conf/mpi.conf" "$folder/etc/"
}

# write_plugin: Troupe's plugin and what belongs to it, as slurm-conf/ has them, but that
# /etc/troupe is a folder of the cluster's, and troupe and the plugin those of $TROUPE_BUILD.
write_plugin() {
    local conf=$here/../../slurm-conf file partition build
    build=$(readlink -e "$TROUPE_BUILD")
    mkdir -p "$folder/etc/troupe"
    # Scratch folders in a folder of root's that each host has for itself.
    sed 's,^scratch:.*,scratch: /run/scratch,' "$conf/site.yaml" >"$folder/etc/troupe/site.yaml"
    cp "$conf/cli_filter.lua" "$folder/etc/" # the plugin tells it where the shapes are
    for file in plugstack.conf job_submit.lua; do
        sed "s,/etc/troupe/,/etc/slurm/troupe/,
            s,spank_troupe.so .*,$build/lib/& troupe=$build/bin/troupe," \
            "$conf/$file" >"$folder/etc/$file"
    done
    "$build/bin/troupe" site-shape --all --site "$folder/etc/troupe/site.yaml" \
        --output "$folder/etc/troupe/shapes"
    {
        echo "CliFilterPlugins=lua"
        echo "JobSubmitPlugins=lua"
        for partition in cpu gpu fat dgx; do
            echo "PartitionName=$partition Nodes=ALL State=UP"
        done
    } >>"$folder/etc/slurm.conf"
}

# range PREFIX FIRST LAST: node[1-4], or node1 when there is one.
range() {
    if [ "$2" = "$3" ]; then echo "$1$2"; else echo "$1[$2-$3]"; fi
}

# first_of_rack RACK NODES RACKS: racks are filled evenly and in order.
first_of_rack() {
    echo $((($1 - 1) * $2 / $3 + 1))
}

# nodes_of_rack RACK NODES RACKS
nodes_of_rack() {
    range node "$(first_of_rack "$1" "$2" "$3")" \
        $(($(first_of_rack $(($1 + 1)) "$2" "$3") - 1))
}

# gpus_of NODE GPUS: of "1,2" node1 has one, the others two.
gpus_of() {
    local list
    IFS=, read -ra list <<<"$2"
    echo "${list[$1 - 1]:-${list[-1]}}"
}

# A line for each run of nodes with the same number.
device_lines() {
    local node gpus first=1
    for ((node = 1; node <= $1; node++)); do
        gpus=$(gpus_of $node "$2")
        [ $node -lt "$1" ] && [ "$(gpus_of $((node + 1)) "$2")" = "$gpus" ] && continue
        [ "$gpus" = 0 ] || echo "NodeName=$(range node $first $node) Name=gpu Type=a100 File=$(
            range /dev/nvidia 0 $((gpus - 1)))"
        first=$((node + 1))
    done
}

node_lines() {
    local nodes=$1 racks=$3 cpus=$4 memory=$5 node rack=1 gpus more
    local shape="CPUs=$cpus Sockets=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=$memory"
    for ((node = 1; node <= nodes; node++)); do
        gpus=$(gpus_of $node "$2")
        more=
        [ "$gpus" = 0 ] || more=" Gres=gpu:a100:$gpus"
        [ "$racks" = 0 ] || {
            [ $rack = "$racks" ] || [ $node -lt "$(first_of_rack $((rack + 1)) "$nodes" "$racks")" ] ||
                rack=$((rack + 1))
            more+=" Feature=rack$rack"
        }
        echo "NodeName=node$node $shape$more"
    done
}

switch_lines() {
    local nodes=$1 racks=$2 rack
    for ((rack = 1; rack <= racks; rack++)); do
        echo "SwitchName=rack$rack Nodes=$(nodes_of_rack $rack "$nodes" "$racks")"
    done
    echo "SwitchName=spine Switches=$(range rack 1 "$racks")"
}

# write_files HOST=ADDRESS…: what of /etc the hosts have instead of the machine's: names, and
# users and groups with two ordinary ones more.
write_files() {
    local end name id=59001 files=$folder/files
    echo "127.0.0.1 localhost" >"$files/hosts"
    for end; do
        echo "${end#*=} ${end%%=*}" >>"$files/hosts"
    done
    cp /etc/passwd /etc/group "$files"
    for name in alice bob; do
        sed -i "/^$name:/d" "$files/passwd" "$files/group"
        echo "$name:x:$id:$id::$folder/home/$name:/bin/bash" >>"$files/passwd"
        echo "$name:x:$id:" >>"$files/group"
        install -d -o $id -g $id -m 755 "$folder/home/$name"
        id=$((id + 1))
    done
}

# Its own key, and one daemon whose socket all hosts have at the usual place.
start_munged() {
    (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
    start_on switch munged --key-file "$folder/munge.key" \
        --socket "$folder/munge/munge.socket.2" --pid-file /run/munged.pid \
        --seed-file "$folder/munge.seed" --log-file "$folder/munged.log"
}

# start_on HOST DAEMON…: one that goes to the background itself.
start_on() {
    local host=$1 said=$folder/log/host.$1.log
    shift
    (host_daemon "$host" "$@") </dev/null >>"$said" 2>&1 ||
        fail "$1 does not start on $host: $(last_words "$said" "$folder/log/$1".log \
            "$folder/log/$1.$host.log")"
}

# last_words FILE…: of logs, in one line.
last_words() {
    tail -qn 3 "$@" 2>/dev/null | tr -s '\n' ';'
}

# daemon_of HOST
daemon_of() {
    if [ "$1" = head ]; then echo slurmctld; else echo slurmd; fi
}

# start_daemon HOST: unless it runs, and not only because it was just told to end: then it may
# be there for some time yet, and even answer at first.
start_daemon() {
    local daemon seen=0 until=$((SECONDS + 30))
    daemon=$(daemon_of "$1")
    [ "$1" != head ] || [ ! -d "$folder/accounts" ] || start_accounting
    while host_run "$1" pgrep -x "$daemon" >/dev/null; do
        if [ "$1" != head ] || host_run "$1" scontrol ping | grep -q 'is UP'; then
            seen=$((seen + 1))
        fi
        [ $seen -lt 10 ] || return 0
        [ $SECONDS -lt $until ] || fail "slurmctld runs but does not answer"
        sleep 0.1
    done
    start_on "$1" "$daemon"
}

# nodes_ready SECONDS NODE…: all of them idle (or with jobs) and answering.
nodes_ready() {
    local until=$((SECONDS + $1)) all=$2 states
    shift
    all=$(IFS=,; echo "$*")
    while :; do
        states=$(host_run head sinfo -h -N -n "$all" -o '%N %t' 2>/dev/null | sort -u || true)
        [ "$(grep -cE ' (idle|mix|alloc|drain|drng)$' <<<"$states")" = $# ] && return 0
        if ! host_run head pgrep -x slurmctld >/dev/null; then
            echo "slurmctld ended: $(last_words "$folder/log/slurmctld.log")"
            return 1
        elif [ $SECONDS -ge $until ]; then
            echo "${states:-slurmctld does not answer}" | tr '\n' ' '
            return 1
        fi
        sleep 0.1
    done
}
