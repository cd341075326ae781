#!/usr/bin/env bats
# Pools of a pipeline share the slots of real executors. Tasks end one by one, as the test
# says, and each end is followed by one start: the counts are exact.
load drill.bash

# A pipeline of stages `a` and `b`, 24 tasks each, with the pools that are on stdin.
two_stages() {
    {
        cat
        cat <<'Y'
troupe: 1
options: {scheduler.mode: FAIR}
stages:
  - {name: a, tasks: 24, pool: one, run: exec ./task, timeout: 120}
  - {name: b, tasks: 24, pool: two, run: exec ./task, timeout: 120}
Y
    } >p.yaml
    # A task takes a ticket, then runs until that was called.
    cat >task <<'SH'
#!/bin/bash
exec 9>lock
flock 9
echo "$TROUPE_STAGE" >>started
n=$(wc -l <started)
exec 9>&-
until [ -e all ] || [ -e "called.$n" ]; do sleep 0.02; done
SH
    chmod +x task
    : >started
}

has_started() { [ "$(wc -l <started)" -ge "$1" ]; }

# Calls the first 20 tickets one by one; what runs then is what was started after them.
call_twenty() {
    wait_until has_started 4
    for n in $(seq 20); do
        touch "called.$n"
        wait_until has_started $((4 + n))
    done
    running=$(tail -n +21 started | head -4 | sort | uniq -c | xargs)
    begun=$(tail -n +9 started | head -16 | sort | uniq -c | xargs)
    touch all
}

@test "weights divide the slots: 3 of 4 and 1 of 4" {
    two_stages <<<'pools: {one: {weight: 3}, two: {weight: 1}}'
    troupe run --local=4 --run-name r p.yaml >out 2>&1 3>&- &
    call_twenty
    wait $!
    echo "running $running, begun $begun"
    [ "$running" = "3 a 1 b" ]
    [ "$begun" = "12 a 4 b" ]
    # The log says it as Spark's does.
    grep -q '"SparkListenerStageSubmitted".*"Stage Name":"a".*"spark.scheduler.pool":"one"' \
        troupe-runs/r/events.jsonl
}

@test "a minimum share comes before weights; pools may stand in a file" {
    two_stages </dev/null
    echo 'pools: {one: {weight: 1000}, two: {min_share: 2}}' >pools.yaml
    troupe run --local=4 --run-name r --set scheduler.allocation.file=pools.yaml \
        p.yaml >out 2>&1 3>&- &
    call_twenty
    wait $!
    echo "running $running"
    [ "$running" = "2 a 2 b" ]
}

@test "without FAIR the first stage has all slots until it has none left to start" {
    two_stages </dev/null
    sed -i '/options/d; s/pool: [a-z]*, //' p.yaml
    troupe run --local=4 --run-name r p.yaml >out 2>&1 3>&- &
    call_twenty
    wait $!
    [ "$running" = "4 a" ]
}
