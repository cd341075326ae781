#!/usr/bin/env bats
# Random faults, each round with its seed: ten rounds of ./chaos, which says more. A round that
# fails is repeated by hand as its line says.
bats_require_minimum_version 1.5.0

# Ten rounds may take as long as other files.
setup_file() {
    export BATS_TEST_TIMEOUT=2400
}

@test "ten rounds of random faults: right results, and nothing left" {
    run "${BATS_TEST_DIRNAME}/chaos" --rounds 10 --seed 1 --keep "$TROUPE_BUILD/chaos-failed"
    echo "$output"
    [ "$status" = 0 ]
}

@test "without faults a short run takes few additional jobs, and few calls of Slurm" {
    run "${BATS_TEST_DIRNAME}/chaos" --rounds 2 --seed 1 --faults none \
        --most-jobs 3 --most-rpcs 60 --keep "$TROUPE_BUILD/chaos-failed"
    echo "$output"
    [ "$status" = 0 ]
}
