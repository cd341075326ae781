#!/usr/bin/env bats
# Where tasks run, and when executors come and go, on real executors.
load drill.bash

# A field of the events of a kind: fields RUN EVENT FIELD…
fields() {
    events "$1" | perl -MJSON::PP -e '
        my ($kind, @path) = @ARGV;
        for (<STDIN>) {
            my $e = decode_json($_);
            next if $e->{Event} ne "SparkListener$kind";
            $e = $e->{$_} for @path;
            print "$e\n";
        }' "${@:2}"
}

@test "a gang may be an MPI program: its ranks meet" {
    mpicc -o meets "$TROUPE_SOURCE/tests/mpi/meets.c"
    echo '{troupe: 1, stages: [{name: g, mpi: {ranks: 2}, run: ./meets}]}' >p.yaml
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/g/0.0.0.out)" = "rank 0 of 2, sum 3" ]
    [ "$(cat troupe-runs/r/logs/g/0.0.1.out)" = "rank 1 of 2, sum 3" ]
}

@test "executors of one core have a processor each, and their tasks stay on it" {
    [ "$(nproc)" -ge 2 ] || skip "one processor"
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 2
    run: |
      touch begun.$TROUPE_TASK
      until [ -e begun.0 ] && [ -e begun.1 ]; do sleep 0.05; done
      sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status
    timeout: 60
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    cat troupe-runs/r/logs/s/?.0.out | tee cpus
    [ "$(grep -cx '[0-9]*' cpus)" = 2 ]
    [ "$(sort -u cpus | wc -l)" = 2 ]
}

@test "excludeOnFailure: a task that failed waits for another executor; without one its stage ends" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 2
    run: |
      echo $TROUPE_EXECUTOR
      touch begun.$TROUPE_TASK
      until [ -e begun.0 ] && [ -e begun.1 ]; do sleep 0.05; done
      [ $TROUPE_TASK != 0 ] || [ $TROUPE_ATTEMPT = 1 ] || { touch failed; exit 1; }
      [ $TROUPE_TASK = 0 ] || { until [ -e failed ]; do sleep 0.05; done; sleep 0.5; }
    timeout: 60
    retries: {max_failures: 4}
Y
    run -0 troupe run --local=2 --set excludeOnFailure.enabled=true \
        --set excludeOnFailure.application.maxFailedTasksPerExecutor=1 --run-name r p.yaml
    cd troupe-runs/r/logs/s
    [ "$(cat 0.1.out)" = "$(cat 1.0.out)" ]
    [ "$(cat 0.1.out)" != "$(cat 0.0.out)" ]
    grep "TroupeMessage.*executor $(cat 0.0.out) is excluded for its failures" ../../events.jsonl
    cd - >/dev/null
    echo '{troupe: 1, stages: [{name: s, run: "false", retries: {max_failures: 4}}]}' >p.yaml
    run -1 troupe run --local=1 --set excludeOnFailure.enabled=true \
        --set scheduler.excludeOnFailure.unschedulableTaskSetTimeout=100 p.yaml
    [[ "$output" == *"p.yaml:1:"*"stage s: "*"task 0 cannot run anywhere due to node and executor excludeOnFailure"* ]]
}

@test "alloc.grow=ramp asks for 1, then 2, then what is left" {
    echo '{troupe: 1, stages: [{name: s, tasks: 4, run: "until [ -e go ]; do sleep 0.05; done"}]}' >p.yaml
    troupe run --local=4 --set alloc.grow=ramp --set dynamicAllocation.schedulerBacklogTimeout=300 \
        --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/3.0.out
    touch go
    wait $!
    fields r ExecutorAdded "Executor Info" "Request Time" | sort -n | uniq -c | tee asked
    [ "$(awk '{ print $1 }' asked | tr '\n' ' ')" = "1 2 1 " ]
}

@test "alloc.release=idle keeps an executor for the timeout after its last task" {
    cat >p.yaml <<'Y'
troupe: 1
profiles:
  a: {executor: {cores: 1, memory: 100m}}
  b: {executor: {cores: 1, memory: 101m}}
stages:
  - {name: s, profile: a, run: "until [ -e begun ]; do sleep 0.05; done"}
  - name: t # nobody waits for room while it runs
    profile: b
    run: touch begun; until grep -q ExecutorRemoved $TROUPE_RUN_DIR/events.jsonl; do sleep 0.1; done
Y
    run -0 troupe run --local=2 --set alloc.release=idle \
        --set dynamicAllocation.executorIdleTimeout=1500 --run-name r p.yaml
    ended=$(fields r TaskEnd "Task Info" "Finish Time" | head -n 1)
    removed=$(fields r ExecutorRemoved Timestamp | head -n 1)
    echo "idle for $((removed - ended)) ms"
    [ $((removed - ended)) -ge 1490 ]
}

# had RUN EVENT N: so many of them are in its log.
had() { [ "$(fields "$1" "$2" Event | wc -l)" = "$3" ]; }

@test "a barrier stage does not wait for the stages after it to end" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: long, tasks: 1, run: "until [ -e go ]; do sleep 0.05; done"}
  - {name: g, barrier: true, tasks: 2, run: "echo g >>began; touch g.$TROUPE_TASK; until [ -e g.0 -a -e g.1 ]; do sleep 0.05; done"}
  - {name: many, tasks: 80, run: "echo many >>began"}
Y
    troupe run --local=2 --run-name r --set barrier.reserve=1h p.yaml &
    wait_until had r ExecutorAdded 2
    touch go
    await $!
    [ "$(head -n 2 began | xargs)" = "g g" ]
    [ "$(wc -l <began)" = 82 ]
    rm go
    troupe run --local=2 --run-name never --set barrier.reserve=0 p.yaml &
    wait_until had never TaskEnd 80
    touch go
    await $!
    # Stages are numbered as they stand in the file.
    [ "$(fields never TaskStart "Stage ID" | tail -n 2 | tr '\n' ' ')" = "1 1 " ]
}
