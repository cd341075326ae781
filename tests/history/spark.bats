#!/usr/bin/env bats
# Runs of all kinds, as Spark's History Server shows them: its figures are those of
# `troupe report`.
load ../mpi/drill.bash
load server.bash

# Skipping here would leave bats 1.8 in doubt of teardown_file: each test does.
setup_file() {
    export TROUPE_RUNS=$BATS_FILE_TMPDIR/troupe-runs no_server=
    have_server || { no_server=${why:-there is no Java} && return 0; }
    start_server "$TROUPE_RUNS/.history" "$BATS_FILE_TMPDIR/server"
    export url
}

eval "drill_$(declare -f setup)"
setup() {
    drill_setup
    [ -z "$no_server" ] || skip "$no_server"
}

teardown_file() {
    stop_server "$BATS_FILE_TMPDIR/server"
}

# runs STATUS NAME ARGUMENT…: a run of that name, which ends so.
runs() {
    run "-$1" troupe run --run-name "$2" --local=2 "${@:3}"
}

# same RUN: both say the same of it, and the server nothing that is wrong.
same() {
    perl "$TROUPE_SOURCE/tests/history/compare.perl" "$url" "$TROUPE_RUNS/$1/events.jsonl"
}

@test "the server is reached from this machine alone" {
    local port=${url##*:} addresses
    addresses=$(awk -v port="$(printf ':%04X' "$port")" '
        $4 == "0A" && substr($2, length($2) - 4) == port { print $2 }' /proc/net/tcp /proc/net/tcp6)
    [ -n "$addresses" ]
    run ! grep -vE '^(0100007F|0000000000000000FFFF00000100007F):' <<<"$addresses"
}

@test "a run in three shapes, with halves of devices and an empty stage" {
    cat >p.yaml <<'Y'
troupe: 1
name: plain
profiles:
  half: {executor: {cores: 2, memory: 200m, memoryOverhead: 64m, gpu: 1}, task: {gpu: 0.5}}
  most: {executor: {cores: 1, memory: 200m, gpu: 1}, task: {gpu: 1}}
  part: {task: {cpus: 1}}
stages:
  - {name: split, tasks: 5, profile: part, run: "sleep 0.0$TROUPE_TASK"}
  - {name: train, after: [split], tasks: 4, profile: half, run: sleep 0.05}
  - {name: tune, after: [split], tasks: 2, profile: most, run: sleep 0.05}
  - {name: nothing, tasks: 0, run: ":"}
  - {name: join, after: [train, tune, nothing], run: sleep 0.02}
Y
    printf 'site: 1\nlocal: {gpu: ["0", "1"]}\n' >site.yaml
    runs 0 plain --site site.yaml p.yaml
    same plain
}

@test "tasks that fail and are run again" {
    cat >p.yaml <<'Y'
troupe: 1
name: "failures & <tries>"
stages:
  - {name: s, tasks: 4, run: "[ $TROUPE_TASK != 2 ] || [ $TROUPE_ATTEMPT = 2 ] || exit 3", retries: {max_failures: 4}}
Y
    runs 0 retries p.yaml
    same retries
}

@test "a stage that gives up, and one behind it" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: good, tasks: 2, run: ":"}
  - {name: bad, after: [good], tasks: 2, retries: {max_failures: 2}, run: "[ $TROUPE_TASK = 0 ] || kill -SEGV $$"}
  - {name: never, after: [bad], tasks: 3, run: ":"}
Y
    runs 1 gives-up p.yaml
    same gives-up
}

@test "a barrier stage that is run again" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 2
    barrier: true
    run: "[ $TROUPE_TASK = 0 ] || { sleep 0.2; [ $TROUPE_ATTEMPT = 2 ]; }"
Y
    runs 0 barrier p.yaml
    same barrier
    [ "$(grep -c '"SparkListenerStageSubmitted"' "$TROUPE_RUNS/barrier/events.jsonl")" = 3 ]
}

@test "a run that was resumed is one application" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: first, tasks: 3, run: ":"}
  - {name: second, after: [first], tasks: 3, retries: {max_failures: 1}, run: "[ $TROUPE_TASK != 2 ] || [ -e good ]"}
  - {name: third, after: [second], run: ":"}
Y
    runs 1 resumed --keep-going p.yaml
    same resumed
    touch good
    run -0 troupe run --local=2 --resume resumed
    same resumed
}

@test "a start that died ends when the run is resumed" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, tasks: 3, run: "[ $TROUPE_TASK = 0 ] || [ -e good ] || { touch begun; exec sleep 60; }"}
Y
    troupe run --run-name died --local=2 p.yaml >out 2>&1 3>&- &
    wait_until test -e begun
    wait_until grep -q '"SparkListenerTaskEnd"' "$TROUPE_RUNS/died/events.jsonl"
    kill -9 "$(pid_of driver died)"
    wait $! || true
    touch good
    run -0 troupe run --local=2 --resume died
    same died
}

@test "gangs" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: solve, mpi: {ranks: 2}, run: "[ $TROUPE_ATTEMPT = 1 ]", retries: {max_failures: 4}}
  - {name: after, after: [solve], tasks: 2, run: ":"}
Y
    runs 0 gangs p.yaml
    same gangs
}

@test "records that go from stage to stage" {
    runs 0 shuffles --set events.tasks=all -- "$TROUPE_BUILD/examples/sort" --size 100000 sorted
    same shuffles
    [ "$(troupe report --json shuffles | perl -MJSON::PP -MList::Util=sum0 -0777 -ne '
        my @of = map { $_->{data}{shuffled} } @{ decode_json($_)->{starts}[0]{stages} };
        print join " ", map { my $key = $_; sum0 map { $_->{$key} } @of } qw(records_written records_read)')" = "100000 100000" ]
}

@test "datasets that are kept" {
    runs 0 kept --set events.tasks=all -- "$programs/cached" wide memory calls
    grep -q '"SparkListenerBlockUpdated"' "$TROUPE_RUNS/kept/events.jsonl"
    same kept
}

@test "what tasks add up" {
    runs 0 sums --set events.tasks=all -- "$programs/sums" once
    same sums
}

@test "map outputs that are lost while they are read" {
    troupe run --run-name lost --local=2 --set events.tasks=all -- "$programs/sums" lost >out 2>&1 3>&- &
    wait_until test -e counted
    find "$TROUPE_RUNS/lost/state/scratch" -type f -path "*shuffle*" -name "[0-9]*-[0-3]-*" -delete
    : >go
    wait $!
    grep -q '"FetchFailed","Block Manager Address":{' "$TROUPE_RUNS/lost/events.jsonl"
    same lost
}

@test "a function that crashes its executor" {
    runs 0 crashes -- "$programs/crash"
    grep -q '"ExecutorLostFailure"' "$TROUPE_RUNS/crashes/events.jsonl"
    same crashes
}

@test "several actions at once, of which one is cancelled" {
    run -0 troupe run --run-name actions --local=4 --set events.tasks=all -- "$programs/jobs" cancel
    same actions
}

@test "a run that is cancelled" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: quick, tasks: 2, run: ":"}
  - {name: slow, after: [quick], tasks: 4, run: "touch begun; exec sleep 60"}
  - {name: never, after: [slow], run: ":"}
Y
    troupe run --run-name cancelled --local=2 p.yaml >out 2>&1 3>&- &
    wait_until test -e begun
    run -0 troupe cancel --now cancelled
    local ended=0
    wait $! || ended=$?
    [ "$ended" = 130 ]
    same cancelled
}

@test "tasks that are killed for memory and for time" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 1, memory: 100m, memoryOverhead: 28m}}}
stages:
  - {name: memory, profile: p, run: "perl -e '$x = \"a\" x ($ARGV[0]); sleep 1' 300000000", retries: {max_failures: 3, memory_factor: 4}}
  - {name: time, timeout: 1, run: sleep 30, retries: {max_failures: 1}, after: [memory]}
Y
    runs 1 over p.yaml
    same over
}

@test "tasks that are only counted, but for those that fail" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: many, tasks: 200, run: "[ $TROUPE_TASK != 7 ] || [ $TROUPE_ATTEMPT = 1 ]", retries: {max_failures: 4}}
  - {name: few, after: [many], tasks: 2, run: ":"}
Y
    runs 0 summary --set events.tasks=summary p.yaml
    same summary
}

@test "pools" {
    cat >p.yaml <<'Y'
troupe: 1
options: {scheduler.mode: FAIR}
pools: {one: {weight: 3}, two: {weight: 1}}
stages:
  - {name: a, tasks: 6, pool: one, run: sleep 0.02}
  - {name: b, tasks: 6, pool: two, run: sleep 0.02}
Y
    runs 0 pools p.yaml
    same pools
}

@test "tasks and stages that are skipped" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: align, foreach: {items: [a, b, c, d]}, retries: {max_failures: 2}, run: "[ $TROUPE_ITEM != c ]"}
  - {name: sort, after: [{stage: align, each: true}], foreach: {items: [a, b, c, d]}, run: ":"}
  - {name: merge, after: [sort], run: ":"}
  - {name: beside, run: sleep 0.1}
Y
    runs 1 skips --keep-going p.yaml
    same skips
}
