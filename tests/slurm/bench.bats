#!/usr/bin/env bats
# The benchmarks that need a Slurm cluster: that they measure, not what.
load slurm.bash

# They bring up one of their own, and take as long as they do.
setup_file() { export BATS_TEST_TIMEOUT=1100; }
setup() { cd "$BATS_TEST_TMPDIR" || return 1; }
teardown_file() { :; }

@test "starts of executors are measured in the job and in an additional one" {
    "$TROUPE_SOURCE/bench/run" --runs=1 --json start 2>said >list 3>&- || [ $? = 1 ]
    grep -F 'executor of a new profile, in the job' list
    grep -F 'in an additional job' list
}
