#!/usr/bin/env bats
# Others on the cluster's network, at the admission socket of a run: nobody gets in, each
# is told of in the event log, and the run goes on as if they were not there.
load slurm.bash

setup_file() {
    cluster_up -n 3 --fast --conf KillWait=10
}

teardown() {
    local host
    for host in node1 node3; do
        on "$host" pkill -KILL -f stranger.perl || true
    done
    on head scancel -u alice
}

# stranger USER HOST WORD…: at $address.
stranger() {
    as "$1" "$2" perl "$TROUPE_SOURCE/tests/slurm/parts/stranger.perl" "$address" "${@:3}"
}

# without_munge HOST COMMAND…: as root, where the MUNGE daemon cannot be reached.
without_munge() {
    # shellcheck disable=SC2016 # the host's words
    on "$1" unshare -m bash -c 'mount -t tmpfs none /run/munge && exec "$@"' - "${@:2}"
}

# The variable that the executor of a process on a host was started with.
shape_on() {
    # shellcheck disable=SC2016 # the host's words
    on "$1" bash -c 'tr "\0" "\n" </proc/"$(pgrep -o -f "^[^ ]*/troupe-rank step")"/environ' |
        sed -n 's/^TROUPE_EXECUTOR=//p'
}

started() {
    [ "$(cat run."$1".* 2>/dev/null | wc -l)" = "$2" ]
}

messages() {
    grep -o '"Text":"[^"]*' troupe-runs/last/events.jsonl | cut -d'"' -f4
}

said() {
    messages | grep -q -- "$1"
}

# Two stages of two tasks each, the second in executors of its own; each waits for a file.
two_stages() {
    cat >task <<'END'
hostname >run.$TROUPE_STAGE.$TROUPE_TASK
until [ -e go.$TROUPE_STAGE ]; do sleep 0.1; done
echo done
END
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  other: {executor: {cores: 1, memory: 150m, memoryOverhead: 50m}, task: {cpus: 1}}
stages:
  - {name: one, tasks: 2, profile: small, run: . ./task}
  - {name: two, tasks: 2, profile: other, run: . ./task, after: [one]}
END
    submit alice -w node1,node2 -N2 -n2 -c1 --mem=1500 -- "bash -c 'ulimit -n 512; exec $TROUPE run $* p.yaml'"
    wait_until started one 2
    shape=$(shape_on node2)
    address=$(grep -o 'driver=[^;]*' <<<"$shape" | cut -d= -f2)
}

right_result() {
    run -0 finished
    [ "$(cat troupe-runs/last/logs/{one,two}/{0,1}.0.out | xargs)" = "done done done done" ]
    nothing_left node1 node2
}

@test "scanners, garbage, other users and thousands that say nothing" {
    two_stages
    [[ "$shape" == *"munge=1"* ]]
    [ "$(stranger bob node3 babble)" = babbled ]
    stranger bob node3 scan 300
    wait_until said "garbage (from [0-9]*\.[0-9.]*:[0-9]*)"
    # Who does not have the secret, and cannot read it.
    run ! as bob node3 cat troupe-runs/last/state/secret
    head -c 32 /dev/zero >zeros
    [[ "$(stranger bob node3 prove zeros mine)" == "refused: wrong proof"* ]]
    # Half-open connections, many more than the driver may have, while executors come.
    stranger root node1 record "$PWD/record" >recorder 2>&1 3>&- &
    wait_until grep -q recording recorder
    stranger bob node3 silent 10000 4000 >flood 2>&1 3>&- &
    wait_until grep -q begun flood
    touch go.one
    wait_until started two 2
    wait_until grep -q held flood
    # What a true executor said is worth nothing a second time.
    wait_until test -s record
    [[ "$(stranger bob node3 replay "$PWD/record")" == "refused: wrong proof"* ]]
    # Who has the secret is still not the user.
    cp troupe-runs/last/state/secret leaked && chmod 644 leaked
    [[ "$(stranger bob node3 prove "$PWD/leaked" none)" == "refused: "*"shows no MUNGE credential"* ]]
    cd "$(mktemp -d "$shared/bob.XXXX")" && chmod 777 .
    local secret=$OLDPWD/leaked
    [[ "$(stranger bob node3 prove "$secret" mine)" == "refused: "*"of user "*", the run is of "* ]]
    [[ "$(stranger bob node3 prove "$secret" mine bob)" == "refused: "*"another user's"* ]]
    [[ "$(stranger alice node3 prove "$secret" other)" == "refused: "*"another connection"* ]]
    [ "$(stranger alice node3 prove "$secret" mine)" = proof ]
    cd "$OLDPWD"
    touch go.two
    right_result
    said "shows no MUNGE credential"
    said "more connections were refused"
    [ "$(messages | wc -l)" -lt 200 ]
}

@test "an executor that connects after it was given up" {
    two_stages
    on node2 pkill -KILL -f '^troupe: executor'
    wait_until grep -q SparkListenerExecutorRemoved troupe-runs/last/events.jsonl
    run as alice node3 env TROUPE_EXECUTOR="$shape" "$TROUPE_BUILD/bin/troupe-rank" executor
    [ "$status" != 0 ]
    [[ "$output" == *"is not expected"* ]]
    wait_until said "executor [0-9]* is not expected (from "
    touch go.one go.two
    run -0 finished
    nothing_left node1 node2 node3
}

@test "without MUNGE the secret alone proves an executor, and only when the driver says so" {
    two_stages --set admission.munge=off
    [[ "$shape" == *"munge=0"* ]]
    cp troupe-runs/last/state/secret leaked && chmod 644 leaked
    [ "$(stranger alice node3 prove "$PWD/leaked" none)" = proof ]
    run without_munge node3 setpriv --reuid alice --regid alice --init-groups \
        env TROUPE_EXECUTOR="${shape/munge=0/munge=1}" \
        "$TROUPE_BUILD/bin/troupe-rank" executor
    [[ "$output" == *"the driver wants a proof by MUNGE, which does not answer on this node"* ]]
    # An executor that was told to ask for MUNGE does not do without.
    run as alice node3 env TROUPE_EXECUTOR="${shape/munge=0/munge=1}" \
        "$TROUPE_BUILD/bin/troupe-rank" executor
    [ "$status" != 0 ]
    [[ "$output" == *"shows no MUNGE credential"* ]]
    touch go.one go.two
    right_result
}

@test "where MUNGE does not answer a run does without, unless it must not" {
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
    run -0 without_munge node1 "$TROUPE" run --local=1 p.yaml
    run -4 without_munge node1 "$TROUPE" run --local=1 --set admission.munge=on p.yaml
    [[ "$output" == *"admission.munge is on, and MUNGE does not answer on this node: "* ]]
    run -0 on node1 "$TROUPE" run --local=1 --set admission.munge=on p.yaml
    job=0
}
