#!/usr/bin/env bats
# bench/run: what it prints, and when. Not what it measures.
load drill.bash

@test "rows are printed as soon as they are measured, also those of a benchmark that is cut short" {
    "$TROUPE_SOURCE/bench/run" --runs=2 stages exec >rows 2>said 3>&- &
    local bench=$!
    wait_until grep -q '^stages ' rows
    run ! grep -q '^exec ' rows
    wait_until grep -q 'exec, run 2 of 2' said
    kill -TERM $bench
    local status=0
    wait $bench || status=$?
    [ $status = 130 ]
    [ "$(grep -c '^name ' rows)" = 1 ]
    [ "$(grep -c '^stages ' rows)" = "$([ -x "$TROUPE_BUILD/bench/pair" ] && echo 2 || echo 1)" ]
    [ "$(grep -c '^exec ' rows)" = 1 ]
}

@test "with --json stdout is one list" {
    "$TROUPE_SOURCE/bench/run" --runs=1 --json stages 2>said >list 3>&- || [ $? = 1 ]
    run -0 jq_of list
    local over
    for over in $([ ! -x "$TROUPE_BUILD/bench/pair" ] || echo mpi) socket; do
        echo "stages 8 tasks a stage, $over"
    done | diff - <(echo "$output")
}

jq_of() {
    perl -MJSON::PP -0777 -ne 'for (@{decode_json $_}) { print "$_->{name} $_->{case}\n" }' "$1"
}
