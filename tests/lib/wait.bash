# shellcheck shell=bash
# How tests wait for what is to happen. No wait has a bound of its own, since a busy machine
# may take any time for anything: a point has ten minutes in all, and one that hangs says
# what it waited for.
point_seconds=600

# wait_until COMMAND…: until the command succeeds.
wait_until() {
    [[ $1 != [0-9]* ]] || { echo "wait_until takes no time: $*" && return 1; }
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$point_seconds" ] || { echo "waited in vain for: $*" && return 1; }
        sleep 0.05
    done
}

# await PID: until this child of the test has ended; its exit status.
await() {
    wait_until is_gone "$1" && wait "$1"
}
is_gone() { ! kill -0 "$1" 2>/dev/null; }
