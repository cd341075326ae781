#!/usr/bin/env bats
# The engine's trace of a real run: the engine decides the same again.
load drill.bash

@test "a run with retries, profiles and a gang is decided again from its trace" {
    cat >p.yaml <<'Y'
troupe: 1
profiles:
  two: {executor: {cores: 2, memory: 64m}, task: {cpus: 1}}
stages:
  - {name: a, tasks: 200, run: "true"}
  - {name: b, tasks: 4, after: [a], profile: two, run: "test $TROUPE_ATTEMPT != 0", retries: {max_failures: 4}}
  - {name: g, after: [b], mpi: {ranks: 2}, run: "true"}
  - {name: c, tasks: 30, after: [g], prefer: [nowhere], run: "true"}
Y
    run -0 troupe run --local=2 --set events.engine=true --run-name r p.yaml
    [ "$(stat -c %a troupe-runs/r/state/engine.trace)" = 600 ]
    run -0 troupe sim --replay troupe-runs/r/state/engine.trace
    [[ "$output" == *"the same again"* ]]
}

@test "without events.engine there is no trace" {
    echo '{troupe: 1, stages: [{name: a, run: "true"}]}' >p.yaml
    run -0 troupe run --run-name r p.yaml
    [ ! -e troupe-runs/r/state/engine.trace ]
}

@test "a stage that gives up is decided again" {
    echo '{troupe: 1, stages: [{name: a, tasks: 3, run: "false"}]}' >p.yaml
    run -1 troupe run --local=2 --set events.engine=true --run-name r p.yaml
    run -0 troupe sim --replay troupe-runs/r/state/engine.trace
}
