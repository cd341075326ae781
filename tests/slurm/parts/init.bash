#!/bin/bash
# First process of a host, started by hosts.bash in namespaces of its own: gives the host
# its name and its own view of files, says that it is ready, and then only waits (being
# process 1 of the host it reaps what others leave).
#
#   init.bash CLUSTER FOLDER HOST GPUS SHARED-FOLDER…
#
# Own to the host: /tmp, /var/tmp, /dev (with its GPUs), /dev/shm, /run, /proc, /sys.
# The cluster's: /etc/slurm, /etc/hosts, users and groups, /run/munge. All else is the
# machine's, as if it were a file system that all hosts mount.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
. "$(dirname "$0")/cgroups.bash"
cgroup_look
cluster=$1 folder=$2 host=$3 gpus=$4
shift 4
own=$folder/hosts/$host

# As long as /proc is the machine's this is our number there.
read -r pid _ </proc/self/stat
echo "$host" >/proc/sys/kernel/hostname

# Folders that all hosts have in common stay visible where a folder of the host covers them.
for covered in tmp var/tmp run; do
    mkdir -p "$own/$covered"
    for shared; do
        [[ $shared == /$covered/?* ]] || continue
        mkdir -p "$own$shared"
        mount --rbind "$shared" "$own$shared"
    done
done
chmod 1777 "$own/tmp" "$own/var/tmp"

mkdir -p "$own/dev" "$own/cgroup" "$own/run/munge" "$own/run/lock"
mount -t tmpfs -o mode=755 tmpfs "$own/dev"
mkdir "$own/dev/pts" "$own/dev/shm" "$own/dev/net"
mount --bind /dev/pts "$own/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$own/dev/shm"
while read -r name major minor; do
    mknod -m 666 "$own/dev/$name" c "$major" "$minor"
done <<DEVICES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
ptmx 5 2
net/tun 10 200
DEVICES
# A range of majors for experiments: no driver answers, so that a GPU that may be used is
# "No such device or address" and another "Operation not permitted".
for ((i = 0; i < gpus; i++)); do
    mknod -m 666 "$own/dev/nvidia$i" c 120 "$i"
done
ln -s /proc/self/fd "$own/dev/fd"
for i in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${i%:*}" "$own/dev/${i#*:}"
done

cgroup_bind "$cluster" "$host" "$own/cgroup"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount --move "$own/cgroup" /sys/fs/cgroup
mount --move "$own/dev" /dev
mount --bind "$folder/munge" "$own/run/munge"
mount --bind "$folder/etc" /etc/slurm
for file in hosts passwd group; do
    mount --bind "$folder/files/$file" "/etc/$file"
done
for covered in tmp var/tmp run; do
    mount --rbind "$own/$covered" "/$covered"
done

ip link set dev lo up
cd /
echo "$pid" >"$own/pid.new"
mv "$own/pid.new" "$own/pid"
while :; do
    sleep infinity &
    wait $! || true
done
