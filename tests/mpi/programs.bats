#!/usr/bin/env bats
# C programs on troupe.h: elastic under `troupe run`, static under mpirun.
load drill.bash

static() { # as root too
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "$@"
}

@test "the same program counts the same words elastic and static" {
    printf 'a b a\nc a\n' >text
    run -0 troupe run --quiet -- "$programs/wordcount" text
    elastic=$output
    run -0 static -n 3 "$programs/wordcount" text
    for line in $elastic; do [[ "$output" == *"$line"* ]]; done
}

@test "started alone it says how to start it" {
    run "$programs/wordcount" text
    [ "$status" -ne 0 ]
    [[ "$output" == *"troupe run --"* ]]
}

@test "a function that crashes its executor is counted against its task and run again" {
    run -0 troupe run --run-name r -- "$programs/crash"
    [[ "$output" == *SIGSEGV* ]]
    # its neighbours were lost with it, which is no failure of theirs
    [[ "$output" == *"20 tasks, 1 failed attempt,"* ]]
    [ "$(awk '$1 == "total" { print $4 }' <<<"$output")" = 1 ]
}

@test "what a function says of its failure is told once" {
    run -1 troupe run --run-name r -- "$programs/fails" 9
    [[ "$output" == *": task 1, attempt 0: exit status 37: attempt 0 is no good; it is run again"* ]]
    [[ "$output" == *"task 1 failed 4 times, last with exit status 37: attempt 3 is no good"* ]]
    [[ "$output" != *"no good: attempt"* ]]
}

@test "one that always crashes is given up after four attempts; its neighbours are not charged" {
    run -1 troupe run --run-name r -- "$programs/crash" always
    [[ "$output" == *"task 3 failed 4 times"*SIGSEGV* ]]
    ! grep -o 'task [0-9]*, attempt [0-9]*: .*' <<<"$output" | grep -v '^task 3,'
}

@test "a function over its executor's memory is named, and its neighbours run again uncharged" {
    run -1 troupe run --run-name r -- "$programs/memory" 600
    [[ "$output" =~ "task 1 failed 4 times, last with killed for memory (limit 256 MiB, peak "[0-9]+" MiB)" ]]
    ! grep -o 'task [0-9]*, attempt [0-9]*: .*' <<<"$output" | grep -v '^task 1,'
}

@test "a result of 50 MB comes back whole" {
    run -0 troupe run --quiet -- "$programs/bigresult"
}

@test "executor profiles are refused in a static run, with the reason" {
    run static -n 2 "$programs/shapes"
    [ "$status" -ne 0 ]
    [[ "$output" == *profile* ]]
}

@test "tasks of a barrier stage start together, wait for each other and tell each other" {
    run -0 troupe run --quiet --local=4 -- "$programs/together" 4
    [[ "$output" == *"4 tasks said: 0 1 2 3"* ]]
    run -0 static -n 3 --oversubscribe "$programs/together" 2
    [[ "$output" == *"2 tasks said: 0 1"* ]]
    run -1 troupe run --quiet -- "$programs/together" 2 plain
    [[ "$output" == *"its stage is no barrier stage"* ]]
}

@test "when a task of a barrier stage fails all run again" {
    run -0 troupe run --local=3 -- "$programs/together" 3 fail
    [[ "$output" == *"3 tasks said: 0 1 2"* ]]
    [[ "$output" == *"is run again: task 1 of barrier stage"*"exit status 9"* ]]
    [ "$(awk '$1 == "total" { print $3 }' <<<"$output")" = 6 ]
}

@test "a barrier stage that can never have its slots says so" {
    run -3 troupe run --local=2 -- "$programs/together" 3
    [[ "$output" == *"a barrier stage of 3 tasks needs as many slots at once"* ]]
}
