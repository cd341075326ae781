# Shared by the tests of the command line. TROUPE_BUILD and TROUPE_SOURCE come from ctest.

troupe() {
    "$TROUPE_BUILD/bin/troupe" "$@"
}

# shellcheck source=SCRIPTDIR/../lib/json.bash
. "${BASH_SOURCE[0]%/*}/../lib/json.bash"

# shellcheck source=SCRIPTDIR/../lib/clock.bash
. "${BASH_SOURCE[0]%/*}/../lib/clock.bash"
# shellcheck source=SCRIPTDIR/../lib/wait.bash
. "${BASH_SOURCE[0]%/*}/../lib/wait.bash"

# Each test works in an empty folder of its own, without the user's settings.
setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    unset TROUPE_SITE
    export XDG_CONFIG_HOME=$PWD/config
    export XDG_RUNTIME_DIR=/nonexistent # all cores: none are shared with other tests
    local name
    for name in ${!TROUPE_OPT_@}; do unset "$name"; done
}

# check STATUS PATTERN COMMAND…: its exit status, and a pattern that its output has.
check() {
    local want=$1 pattern=$2
    shift 2
    run "$@"
    if [ "$status" != "$want" ]; then
        echo "wanted status $want, got $status from: $*"
        echo "$output"
        return 1
    fi
    if ! grep -qE -- "$pattern" <<<"$output"; then
        echo "wanted /$pattern/ from: $*"
        echo "$output"
        return 1
    fi
}

pipeline() {
    cat >p.yaml
}

# The names of all subcommands.
commands() {
    troupe --help | sed -n 's/^  troupe \([a-z][a-z-]*\) .*/\1/p'
}
