#!/usr/bin/env bats
# Random programs over every operation there is print with executors what they print
# without, whatever happens to executors and map outputs. More seeds:
#     TROUPE_SEEDS="100 101 102" bats tests/mpi/anything.bats
load drill.bash

setup_file() {
    seeds=${TROUPE_SEEDS:-1 2 3}
    export seeds steps=30
}

# begin SEED [OPTION…]: what is wanted is in `want`; the program runs as $pid.
begin() {
    local seed=$1
    shift
    rm -rf troupe-runs want got err
    TROUPE_INLINE=1 "$programs/anything" "$seed" $steps >want
    [ "$(wc -l <want)" -gt 5 ]
    troupe run --quiet --run-name r --local=2 --set scheduler.resource.profileMergeConflicts=true \
        "$@" -- "$programs/anything" "$seed" $steps >got 2>err &
    pid=$!
}

# ends SEED: it succeeds, and says the same.
ends() {
    wait $pid && cmp want got || { echo "seed $1:"; cat err; diff want got; return 1; } >&2
}

@test "any program says the same with executors as without" {
    for seed in $seeds; do
        begin $seed
        ends $seed
    done
}

# an_output: one of the map outputs on this machine, with something in it.
an_output() {
    find troupe-runs/r/state/scratch -path '*shuffle*' -type f -size +0 2>/dev/null | shuf -n 1
}

# A fault of each kind in turn.
fault() {
    local victim
    case $1 in
    0) victim=$(ours_like '^troupe: executor [0-9]* r$' | shuf -n 1) && kill -9 $victim ;;
    1) victim=$(an_output) && [ -n "$victim" ] && rm -f "$victim" ;;
    2) victim=$(an_output) && [ -n "$victim" ] &&
        printf damaged | dd of="$victim" bs=1 seek=$((RANDOM % 200)) conv=notrunc status=none ;;
    esac
}

# suffers SEED: a run with a fault every now and then.
suffers() {
    local i
    begin "$1" --set task.maxFailures=100 --set stage.maxConsecutiveAttempts=100
    for ((i = 0; i < 40; i++)); do
        sleep 0.0$((RANDOM % 9 + 1)) # over sockets all of it takes half a second
        kill -0 $pid 2>/dev/null || break
        if fault $((i % 3)) 2>/dev/null; then faults=$((faults + 1)); fi
    done
    ends "$1"
}

@test "and also when executors are killed, and map outputs deleted and damaged" {
    local faults=0 seed
    RANDOM=1
    while [ $faults -le 2 ]; do # a run may be over before its first one
        for seed in $seeds; do suffers "$seed"; done
    done
    echo "$faults faults"
}
