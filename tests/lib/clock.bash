# shellcheck shell=bash
# A clock that a drill moves (tests/clock/clock.c).

# moving_clock: what is started from here on has it; skips where this build has none.
moving_clock() {
    [ -x "$TROUPE_BUILD/tests/advance" ] || skip "this build has no TROUPE_TEST_CLOCK"
    export TROUPE_CLOCK=$BATS_TEST_TMPDIR/clock
    advance 0s
}

# advance TIME [PID…]: moves it, and returns when all that comes of that has happened.
advance() {
    "$TROUPE_BUILD/tests/advance" "$@"
}

# hold_clock: it moves by advance alone from here on; release_clock: it runs again.
hold_clock() {
    advance --hold
}
release_clock() {
    advance --release
}
