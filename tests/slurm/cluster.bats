#!/usr/bin/env bats
# The test cluster itself: that it is a Slurm as on several machines, and that nothing of it
# stays behind.
load slurm.bash

setup_file() {
    cluster_up -n 4 --gpus 2 --racks 2 --fast --conf SlurmdTimeout=30
}

# A second cluster, where a test had one and failed.
teardown() {
    cluster --name "$TROUPE_CLUSTER-b" down
}

# copy_of_it FOLDER: another checkout's cluster.
copy_of_it() {
    mkdir -p "$1/tests"
    cp -r "$BATS_TEST_DIRNAME" "$1/tests/slurm"
    cp -r "$TROUPE_SOURCE/slurm-conf" "$1/"
}

# What of cluster NAME can be seen from outside, a line each.
traces() {
    grep -lsE "/troupe-slurm-$1(/|\$)" /proc/[0-9]*/cgroup || true
    find /sys/fs/cgroup -depth -name "troupe-slurm-$1" 2>/dev/null || true
    find /var/lib/troupe-slurm /dev /run -xdev -path "*troupe-slurm/$1*" 2>/dev/null || true
}

# What the machine itself has that a cluster might leave.
machine() {
    ip -o link | sed 's/ state .*//'
    ip netns list
    sed 's/^[0-9]* [0-9]* //' /proc/self/mountinfo
    ls /dev /run /etc/slurm
    cksum /etc/passwd /etc/group /etc/hosts
}

@test "four nodes are there, all idle" {
    run -0 on head sinfo -h -N -o '%N %T'
    [ "$output" = $'node1 idle\nnode2 idle\nnode3 idle\nnode4 idle' ]
}

@test "nodes are in two racks" {
    run -0 on head scontrol show topology
    [[ "$output" == *"SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=node[1-2]"* ]]
    [[ "$output" == *"SwitchName=rack2 Level=0 LinkSpeed=1 Nodes=node[3-4]"* ]]
    [[ "$output" == *"SwitchName=spine Level=1"*"Switches=rack[1-2]"* ]]
}

@test "a step runs on two nodes" {
    run -0 as alice head srun -N2 -l hostname
    [ "$(sort <<<"$output")" = $'0: node1\n1: node2' ]
}

@test "a step over two nodes has PMIx" {
    has_pmix || skip "this Slurm has no PMIx"
    run -0 as alice node3 srun --mpi=pmix -N2 -l printenv PMIX_RANK
    [ "$(sort <<<"$output")" = $'0: 0\n1: 1' ]
}

@test "hosts have files in /tmp, shared memory and processes of their own, and share a folder" {
    on node1 bash -c 'touch /tmp/mine /var/tmp/mine /dev/shm/mine; exec -a mine sleep 300' &
    wait_until on node1 pgrep -f ^mine
    on node2 touch "$PWD/ours"
    [ "$(on node1 bash -c 'ls /tmp/mine /var/tmp/mine /dev/shm/mine | wc -l')" = 3 ]
    on node1 test -e "$PWD/ours"
    run ! on node2 bash -c 'ls /tmp/mine || ls /var/tmp/mine || ls /dev/shm/mine'
    run ! on node2 pgrep -f ^mine
    [ ! -e /tmp/mine ]
    on node1 pkill -f ^mine
    wait $! || true
}

@test "a step over its memory is killed, its neighbour on the node is not" {
    on head srun -w node1 --mem=200 bash -c 'touch there; until [ -e go ]; do sleep 0.1; done' &
    wait_until test -e there
    run on head srun -w node1 --mem=100 perl -e '$x = "a" x 300_000_000; sleep'
    [ "$status" != 0 ]
    [[ "$output" == *"Out Of Memory"* ]]
    touch go
    wait $!
}

@test "a step sees the GPUs it asked for and can open no other" {
    run as alice head srun --gres=gpu:a100:1 bash -c 'echo "$CUDA_VISIBLE_DEVICES"
        for i in 0 1; do : </dev/nvidia$i; done 2>&1 | sed "s/.*: //"'
    [ "${lines[0]}" = 0 ]
    [ "${lines[1]}" = "No such device or address" ]
    [ "${lines[2]}" = "Operation not permitted" ]
}

@test "an ordinary user's batch job runs on a node" {
    run -0 as alice head sbatch --parsable -o "$PWD/out" --wrap 'hostname; id -un; pwd'
    wait_until test -s out
    wait_until grep -q "$PWD" out
    [ "$(stat -c %U out)" = UNKNOWN ]
    [ "$(<out)" = $'node1\nalice\n'"$PWD" ]
}

@test "a credential says on every host who made it" {
    as bob node4 munge -n >credential
    run -0 on node1 unmunge <credential
    [[ "$output" == *"UID:"*"bob (59002)"* ]]
}

@test "exec hands on input, arguments, folder, environment and status" {
    mkdir 'a b'
    cd 'a b'
    run -0 env WORD=w bash -c 'echo in | cluster exec node2 bash -c '\''cat; pwd; echo "$1 $WORD"'\'' - "x  y"'
    [ "$output" = $'in\n'"$PWD"$'\nx  y w' ]
    run -37 on node2 bash -c 'exit 37'
    run -127 on node2 no-such-command
    run -0 as bob node2 bash -c 'id -un; cd; pwd'
    [ "${lines[0]}" = bob ]
    [[ "${lines[1]}" == */home/bob ]]
}

@test "a command ends when its exec is killed" {
    for signal in TERM KILL; do
        cluster exec --user alice node2 bash -c 'exec -a lingers sleep 300' &
        wait_until on node2 pgrep -f ^lingers
        kill -$signal $!
        wait $! || true
        wait_until bash -c '! cluster exec node2 pgrep -f ^lingers'
    done
}

@test "a host that was cut off for a moment loses nothing" {
    on head srun -w node2 bash -c 'echo 1; until [ -e cut ]; do sleep 0.1; done
        echo 2; touch said; until [ -e healed ]; do sleep 0.1; done; echo 3' >out &
    wait_until grep -q 1 out
    cluster cut node2
    touch cut
    wait_until test -e said
    run ! on head timeout 1 bash -c ': </dev/tcp/node2/6818'
    cluster heal node2
    touch healed
    wait $!
    [ "$(<out)" = $'1\n2\n3' ]
}

@test "a host whose processes were killed is known to be down, and comes back" {
    on head srun -w node3 sleep 300 &
    wait_until on node3 pgrep -x sleep
    on node3 touch /dev/shm/memory /tmp/disk
    cluster kill node3
    run ! on node3 pgrep -x 'slurmd|slurmstepd'
    run ! on head bash -c ': </dev/tcp/node3/6818'
    # srun may miss the word of it, when its step has just begun.
    wait_until grep -q 'setting DOWN' "$shared/../log/slurmctld.log"
    kill $! || true
    wait $! || true
    [ "$(grep -o 'Nodes .* setting DOWN' "$shared/../log/slurmctld.log")" = "Nodes node3 not responding, setting DOWN" ]
    cluster heal node3
    wait_until state_is node3 idle
    on node3 test -e /tmp/disk
    run ! on node3 test -e /dev/shm/memory
    run -0 on head srun -w node3 hostname
    [ "${lines[-1]}" = node3 ]
}

@test "slurmctld may be away for a while, and a job goes on" {
    on head srun -w node1 bash -c 'touch there; until [ -e go ]; do sleep 0.1; done; echo done' >out &
    wait_until test -e there
    # Told to end it saves what it knows; killed it may forget what it started just now.
    on head pkill slurmctld
    wait_until slurmctld_is_gone
    run ! on head timeout 1 squeue
    touch go
    cluster heal head
    wait_until on head squeue
    wait $!
    [ "$(<out)" = done ]
}

@test "slurmctld is there again at once when it was told to end and the head is healed" {
    on head pkill slurmctld
    cluster heal head
    wait_until on head squeue
    on head pkill -KILL slurmctld
    cluster heal head
    wait_until on head squeue
}

connect_ms() {
    on head perl -MIO::Socket::INET -MTime::HiRes=time -e '$t = time;
        IO::Socket::INET->new(PeerAddr => "node4:6818") or die;
        printf "%d\n", 1000 * (time - $t)'
}

@test "a slow host answers late, also after it was cut off, and then no longer" {
    run cluster slow node4 300
    [ "$status" != 69 ] || skip "${output#cluster: }"
    [ "$(connect_ms)" -ge 300 ]
    cluster slow node4 100
    [ "$(connect_ms)" -ge 100 ]
    cluster cut node4
    cluster heal node4
    [ "$(connect_ms)" -ge 100 ]
    # Large frames that wait for being cut up pass unharmed.
    run -0 on head srun -w node4 bash -c 'head -c 9000000 /dev/zero | tr "\0" x'
    [ "${#output}" -ge 9000000 ]
    cluster slow node4 900
    [ "$(connect_ms)" -ge 900 ]
    cluster slow node4 60000
    cluster slow node4 0
    [ "$(connect_ms)" -lt 60000 ]
    cluster slow node4 0
}

@test "another cluster beside it has the same names and neither notices the other" {
    before=$(machine)
    local there=(cluster --name "$TROUPE_CLUSTER-b")
    mkdir "/tmp/$TROUPE_CLUSTER folder"
    "${there[@]}" up -n 2 --racks 0 --cpus 8 --memory 1000 \
        --share "/tmp/$TROUPE_CLUSTER folder" --conf 'PartitionName=more Nodes=node2'
    run -0 "${there[@]}" exec head sinfo -h -N -o '%N %T %c %m %P'
    # Slurm's own order changes.
    [ "$(sort <<<"$output")" = $'node1 idle 8 1000 main*\nnode2 idle 8 1000 main*\nnode2 idle 8 1000 more' ]
    run "${there[@]}" exec head scontrol show topology
    [[ "$output" != *SwitchName* ]]
    "${there[@]}" exec --user alice head srun -J beside -w node2 sleep 300 &
    wait_until "${there[@]}" exec node2 pgrep -x sleep
    "${there[@]}" exec node2 touch "/tmp/$TROUPE_CLUSTER folder/seen"
    [ -e "/tmp/$TROUPE_CLUSTER folder/seen" ]
    rm -r "/tmp/$TROUPE_CLUSTER folder"
    on head bash -c ': >/dev/tcp/node2/6818'
    [ "$(on head squeue -h -n beside)" = "" ]
    [ "$("${there[@]}" exec head squeue -h -n beside -o %N)" = node2 ]
    [ -n "$(traces "$TROUPE_CLUSTER-b")" ]
    "${there[@]}" down
    [ -z "$(traces "$TROUPE_CLUSTER-b")" ]
    [ "$(machine)" = "$before" ]
    "${there[@]}" down
    wait $! || true
    run -0 on head srun -N4 hostname
}

@test "down ends also what escaped, was stopped, or whose folder is gone" {
    local name=$TROUPE_CLUSTER-b
    cluster --name "$name" up -n 1
    cluster --name "$name" exec node1 setsid -f bash -c 'trap "" TERM HUP; exec -a "$0" sleep 300' "$name-x"
    cluster --name "$name" exec node1 setsid -f bash -c 'kill -STOP $$' "$name-x"
    rm -rf "/var/lib/troupe-slurm/$name"
    cluster --name "$name" down
    [ -z "$(traces "$name")" ]
    run ! pgrep -f "$name-x"
}

@test "down takes away what an up left that was killed at any moment" {
    local name=$TROUPE_CLUSTER-b delay before
    before=$(machine)
    for delay in 0.02 0.05 0.1 0.15 0.2 0.3 0.4 0.6; do
        cluster --name "$name" up -n 2 --gpus 1 2>/dev/null &
        sleep $delay
        kill -KILL $! || true
        wait $! || true
        cluster --name "$name" down
        [ -z "$(traces "$name")" ]
    done
    [ "$(machine)" = "$before" ]
}

@test "an up that is told to end, or fails, takes itself down" {
    local name=$TROUPE_CLUSTER-b status=0
    cluster --name "$name" up -n 2 &
    wait_until test -e "/var/lib/troupe-slurm/$name/hosts/node1"
    kill -TERM $!
    wait $! || status=$?
    [ $status = 130 ]
    [ -z "$(traces "$name")" ]
    run -1 cluster --name "$name" up -n 1 --conf 'SelectType=select/none_such'
    # slurmctld, or a slurmd that was there before it
    [[ "$output" == "cluster: "*slurm*"none_such"* ]]
    [ -z "$(traces "$name")" ]
}

@test "it works from a path with spaces, as another checkout" {
    local name=$TROUPE_CLUSTER-b there="$BATS_TEST_TMPDIR/a  b"
    copy_of_it "$there"
    "$there/tests/slurm/cluster" --name "$name" up -n 1
    run -0 "$there/tests/slurm/cluster" --name "$name" exec head ls "$there/tests/slurm/cluster"
    "$there/tests/slurm/cluster" --name "$name" down
    [ -z "$(traces "$name")" ]
}

@test "what cannot be is said in one line" {
    run -1 cluster up
    [ "$output" = "cluster: cluster $TROUPE_CLUSTER is up already" ]
    run -1 cluster --name nobody-made-it exec head true
    [[ "$output" == "cluster: no cluster nobody-made-it is up;"* ]]
    run -1 cluster cut node9
    [ "$output" = "cluster: cluster $TROUPE_CLUSTER has no host node9; it has: head node1 node2 node3 node4" ]
    run -1 as nobody-else head true
    [[ "$output" == *"has no user nobody-else"* ]]
    run -2 cluster --name ../x down
    run -2 cluster up -n 0
    run -2 cluster up -n two
    run -2 cluster up -n 2 --racks 3
    run -2 cluster up --what 1
    run -2 cluster slow node1 -5
    run -2 cluster exec node1
    run -2 cluster
    [[ "$output" == *"usage: cluster"* ]]
}

@test "without root it says so and exits with 69" {
    copy_of_it "$BATS_TEST_TMPDIR/c"
    chmod -R a+rX "$BATS_RUN_TMPDIR"
    for command in check up down; do
        run -69 setpriv --reuid 65534 --regid 65534 --clear-groups \
            "$BATS_TEST_TMPDIR/c/tests/slurm/cluster" --name "$TROUPE_CLUSTER-c" $command
        [ "$output" = "cluster: needs root, for namespaces and control groups" ]
    done
}

@test "without Slurm's packages it names them and exits with 69" {
    mkdir bin
    for command in bash readlink dirname id stat awk grep sort tr cat mkdir rmdir; do
        ln -s "$(command -v $command)" bin
    done
    PATH=$PWD/bin run -69 "$BATS_TEST_DIRNAME/cluster" check
    [[ "$output" == "cluster: packages are missing: "*"slurm-client slurmctld slurmd"* ]]
    [ "${#lines[@]}" = 1 ]
}

@test "the scripts are clean for shellcheck" {
    cd "$BATS_TEST_DIRNAME"
    shellcheck -x cluster parts/*.bash
}
