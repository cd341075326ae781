# Shared by the drills: every test runs in a folder of its own, and after it no process
bats_require_minimum_version 1.5.0
# that it started may be alive. Processes are known by a token in their environment.

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export DRILL_TOKEN=$BATS_TEST_TMPDIR
    export PATH=$TROUPE_BUILD/bin:$PATH
    programs=$TROUPE_BUILD/tests/programs
}

# PIDs of live processes that this test started, but for its own shell.
ours() {
    local e pid state
    for e in /proc/[0-9]*/environ; do
        pid=${e//[^0-9]/}
        [ "$pid" != "$BASHPID" ] && [ "$pid" != "$$" ] || continue
        tr '\0' '\n' <"$e" 2>/dev/null | grep -qxF "DRILL_TOKEN=$DRILL_TOKEN" || continue
        read -r _ _ state _ <"/proc/$pid/stat" 2>/dev/null || continue
        [ "$state" = Z ] || echo "$pid"
    done 2>/dev/null
}

# nothing_left SECONDS: waits so long for all of ours to be gone.
nothing_left() {
    local until=$((SECONDS + $1)) left
    while left=$(ours) && [ -n "$left" ]; do
        if [ $SECONDS -ge $until ]; then
            echo "left behind:"
            ps -o pid,ppid,stat,args -p "$(echo $left | tr ' ' ,)"
            return 1
        fi
        sleep 0.1
    done
}

teardown() {
    local status=0
    nothing_left 5 || status=1
    [ $status = 0 ] || kill -9 $(ours) 2>/dev/null
    return $status
}

# wait_until SECONDS COMMAND…: until the command succeeds.
wait_until() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || { echo "never: $*"; return 1; }
        sleep 0.05
    done
}

# pid_of WHAT RUN: "executor 0", "driver", "spawner 0" of a run, by its title.
pid_of() { pgrep -f "^troupe: $1 $2\$"; }

events() { cat "troupe-runs/$1/events.jsonl"; }
count() { grep -c -- "$1" <<<"$2" || true; }
