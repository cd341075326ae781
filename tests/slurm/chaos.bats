#!/usr/bin/env bats
# Random faults, each round with its seed: ten rounds of ./chaos, which says more, over both
# transports. A round that fails is repeated by hand as its line says.
bats_require_minimum_version 1.5.0

# rounds TRANSPORT SEED
rounds() {
    [ "$1" != mpi ] || command -v ompi-server >/dev/null ||
        skip "Open MPI has no ompi-server here: messages travel over sockets"
    run "${BATS_TEST_DIRNAME}/chaos" --rounds 5 --seed "$2" --transport "$1" \
        --keep "$TROUPE_BUILD/chaos-failed"
    echo "$output"
    [ "$status" = 0 ]
}

@test "five rounds of random faults over MPI: right results, and nothing left" {
    rounds mpi 1
}

@test "five rounds of random faults over sockets: right results, and nothing left" {
    rounds socket 6
}

@test "without faults a short run takes few additional jobs, and few calls of Slurm" {
    run "${BATS_TEST_DIRNAME}/chaos" --rounds 2 --seed 1 --faults none \
        --most-jobs 3 --most-rpcs 60 --keep "$TROUPE_BUILD/chaos-failed"
    echo "$output"
    [ "$status" = 0 ]
}
