# Shared by ./quickstart and ./check: packages, builds, leftovers. Sourced by bash.

TROUPE_RUN_PACKAGES=(build-essential cmake ninja-build pkg-config libopenmpi-dev
    openmpi-bin libhwloc-dev libuv1-dev libfyaml-dev libjansson-dev uthash-dev libzstd-dev
    zlib1g-dev nettle-dev libmunge-dev libxxhash-dev)
TROUPE_CHECK_PACKAGES=(libglib2.0-dev bats perl clang clang-format clang-tidy llvm
    libclang-rt-dev valgrind man-db shellcheck file mpich libmpich-dev
    environment-modules zsh fish chromium chromium-driver python3-selenium tmux)
# What tests/slurm/cluster is made of, and troupe-slurm built with.
TROUPE_SLURM_PACKAGES=(libslurm-dev slurmctld slurmd slurmdbd slurm-client munge
    mariadb-server-core mariadb-client-core iproute2 util-linux procps perl)

say() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Says which command failed where, instead of ending in silence.
trap 'fail "failed in line $LINENO: $BASH_COMMAND"' ERR

# as_root COMMAND…
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root for: $*
    run that as root once, or install sudo"
    fi
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages NAME…: only those that are missing.
install_packages() {
    local name missing=()
    command -v dpkg-query >/dev/null ||
        fail "not a Debian system: install what corresponds to: $*"
    for name; do
        is_installed "$name" || missing+=("$name")
    done
    [ ${#missing[@]} = 0 ] && return 0
    say "installing ${missing[*]}"
    # An earlier installation may have been interrupted.
    as_root dpkg --configure -a
    apt_install "${missing[@]}" || {
        as_root apt-get -q update
        apt_install "${missing[@]}"
    }
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        install "$@"
}

# bookworm, trixie or sid, which calls itself testing's name.
debian_release() {
    case $(cat /etc/debian_version 2>/dev/null) in
    */sid) echo sid ;;
    *) sed -n 's/^VERSION_CODENAME=//p' /etc/os-release ;;
    esac
}

# build PRESET [cmake options]: configures and builds; quick when nothing changed.
build() {
    local preset=$1 folder
    shift
    folder=$(preset_folder "$preset")
    say "building $folder"
    # A cache of another place (a copied tree) cannot be used.
    if [ -f "$folder/CMakeCache.txt" ] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
        rm -rf "$folder"
    fi
    local log
    log=$(mktemp)
    if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        fail "cannot configure $folder"
    fi
    rm -f "$log"
    cmake --build --preset "$preset" --parallel "$(jobs_at_once)"
}

preset_folder() {
    case $1 in
    default) echo build ;;
    *) echo "build-$1" ;;
    esac
}

# Compilers need about 1 GiB each.
jobs_at_once() {
    local cores memory
    cores=$(nproc)
    memory=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
    [ "$memory" -lt 1 ] && memory=1
    echo $((cores < memory ? cores : memory))
}

# leftovers TOKEN BEFORE: processes that were started by a test: those that have
# TROUPE_CHECK=TOKEN in their environment (commands of tasks, mpiruns), and those of our own
# programs that are not among BEFORE, since some write their title over it.
leftovers() {
    {
        grep -lszxF "TROUPE_CHECK=$1" /proc/[0-9]*/environ | cut -d/ -f3
        own_processes | grep -vxF "$2"
    } | sort -u | while read -r pid; do
        env -u TROUPE_CHECK ps -o pid=,ppid=,args= -p "$pid" || true
    done
}

# PIDs of processes whose program was built here.
own_processes() {
    local pid
    for pid in /proc/[0-9]*; do
        [[ "$(readlink "$pid/exe")" != "$PWD"/build* ]] || echo "${pid#/proc/}"
    done
}
