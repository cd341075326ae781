#!/usr/bin/env bats
# How a run may be called, and what it says where.
load drill.bash

one() { # one STAGE-KEYS: a pipeline of one stage
    printf 'troupe: 1\nstages:\n  - {name: s, %s}\n' "$1" >p.yaml
}

waiting='run: "until [ -e go ]; do sleep 0.05; done"'

@test "the summary is on stdout once, the rest on stderr; --quiet leaves both empty" {
    one 'tasks: 3, run: "echo $TROUPE_TASK; [ $TROUPE_TASK != 1 ] || [ $TROUPE_ATTEMPT = 1 ]", retries: {max_failures: 4}'
    run -0 --separate-stderr troupe run --run-name r p.yaml
    [ "$(count '^stage .*core-seconds$\|^stage .* used' "$output")" = 1 ]
    [ "$(count '^total ' "$output")" = 1 ]
    [ "$(count '^logs: troupe-runs/r/logs$' "$output")" = 1 ]
    [ "$(count '^total \|^logs: ' "$stderr")" = 0 ]
    # no line of the one is in the other
    [ "$(count '^troupe: ' "$output")" = 0 ]
    [[ "$stderr" == *"T"*" troupe: stage s: task 1, attempt 0: exit status 1; it is run again"* ]]
    run -0 --separate-stderr troupe run --quiet p.yaml
    [ -z "$output" ]
    [ -z "$stderr" ]
}

@test "what is not permitted is named: folder, pipeline, site file, program" {
    [ "$(id -u)" = 0 ] || skip "needs root to become somebody else"
    others_folder
    chmod 755 "$d"
    mkdir -m 777 "$d/open"
    one 'argv: [../p.yaml], retries: {max_failures: 1}'
    cp p.yaml "$d/p.yaml"
    echo 'site: 1' >"$d/secret.yaml"
    chmod 644 "$d/p.yaml"
    chmod 600 "$d/secret.yaml"
    nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$d" "$@"; }
    cd "$d"
    run -4 nobody troupe run p.yaml
    [ "$output" = "troupe: cannot make the folder $d/troupe-runs: Permission denied" ]
    run -2 nobody troupe run secret.yaml
    [ "$output" = "troupe: secret.yaml: cannot be read: Permission denied" ]
    run -2 nobody troupe run -- ./p.yaml
    [ "$output" = "troupe: ./p.yaml: not a program that can be run" ]
    cd open
    run -2 nobody troupe run --site ../secret.yaml ../p.yaml
    [[ "$output" == *"../secret.yaml"*"Permission denied"* ]]
    run -1 nobody troupe run ../p.yaml
    [[ "$output" == *"cannot run ../p.yaml: Permission denied"* ]]
    cd "$BATS_TEST_TMPDIR"
}

@test "cancel says what it waits for, and how not to" {
    printf 'troupe: 1\nstages: [{name: a, run: "until [ -e go ]; do sleep 0.1; done"}]\n' >p.yaml
    troupe run --run-name r p.yaml >/dev/null 2>&1 3>&- &
    wait_until grep -q TaskStart troupe-runs/r/events.jsonl
    troupe cancel r >out 2>err 3>&- &
    wait_until grep -qx 'troupe: cancel: running tasks of r may finish, for as long as its run.grace; with --now they are killed' err
    touch go
    wait $!
    [ "$(cat out)" = "r ended" ]
}

@test "a run that still goes on cannot be resumed; cancel --now kills its tasks" {
    one "$waiting"
    troupe run --set run.grace=30s --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    run -2 troupe run --resume r
    [ "$output" = "troupe: run troupe-runs/r is still running" ]
    run -2 troupe plan --resume r
    [ "$output" = "troupe: run troupe-runs/r is still running" ]
    run -0 troupe cancel --now r
    [ "$output" = "r ended" ]
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    grep ' troupe: killed$' out
}

@test "--from takes the stages above as done" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, outputs: [a.out], run: "echo made >a.out"}
  - {name: other, run: "echo other"}
  - {name: b, after: [a], run: "cat a.out"}
  - {name: c, after: [b, other], run: "echo c"}
Y
    echo mine >a.out
    run -0 troupe run --from b --run-name r p.yaml
    [ "$(cat a.out troupe-runs/r/logs/*/0.0.out | tr '\n' ' ')" = "mine mine c other " ]
    [ ! -e troupe-runs/r/logs/a ]
}

# as USER COMMAND…, in the folder where all may write
as() {
    local user=$1
    shift
    setpriv --reuid="$user" --regid=nogroup --clear-groups env HOME="$d" "$@"
}

shared_folder() {
    [ "$(id -u)" = 0 ] || skip "needs root to become two others"
    others_folder
    chmod 777 "$d"
    one 'run: "echo here; cat private >out-$(id -un) || id -un >ran"'
    install -m 644 p.yaml "$d"
    as nobody sh -c "umask 077; echo mine >$d/private"
    cd "$d"
}

# What daemon puts in the place of nobody's troupe-runs once there is a file NAME: a run
# folder that says what is run, and by which program.
swap_at() {
    as daemon bash -c '
        until [ -e "$0" ]; do sleep 0.05; done
        mv troupe-runs away && mkdir -m 777 troupe-runs && cp -r evil troupe-runs/r
        server=$(sed -n "s/.*--ompi-server file:\([^ ]*\) .*/\1/p" args)
        sed -i "s,\"control\": \"[^\"]*\",\"control\": \"\",
            s,\"ompi_server\": \"[^\"]*\",\"ompi_server\": \"$server\",
            s,\"rank_program\": \"[^\"]*\",\"rank_program\": \"$PWD/steal\"," \
            troupe-runs/r/state/run_spec.json
        chmod -R a+rwX troupe-runs
        touch swapped' "$1"
}

evil_run() {
    as daemon troupe run --quiet --run-name r p.yaml
    rm -f out-* ran
    as daemon mv troupe-runs/r evil
    rm -r troupe-runs
    printf '#!/bin/sh\ncat %s/private >%s/stolen\n' "$d" "$d" >steal
    chmod 755 steal
    touch args
    chmod 666 args
}

@test "a folder of runs that another user made, can write in, or links to, is not used" {
    shared_folder
    as daemon mkdir -m 777 troupe-runs
    run -4 as nobody troupe run p.yaml
    [ "$output" = "troupe: $d/troupe-runs belongs to daemon: use another folder for runs: --runs-dir DIR, or TROUPE_RUNS in the environment" ]
    for call in ls report "cancel r" "run --resume r"; do
        run -4 as nobody troupe $call
        [[ "$output" == *"troupe-runs belongs to daemon"* ]]
    done
    as daemon rmdir troupe-runs
    as daemon ln -s "$d/somewhere" troupe-runs
    run -4 as nobody troupe run p.yaml
    [[ "$output" == *"$d/troupe-runs is a link, and runs follow none: name the folder that is meant by --runs-dir DIR"* ]]
    rm troupe-runs
    as nobody mkdir -m 770 troupe-runs
    run -4 as nobody troupe run p.yaml
    [[ "$output" == *"others can write in $d/troupe-runs (mode 0770): take that from them by chmod go-w"* ]]
    [ -z "$(ls troupe-runs)" ]
    cd "$BATS_TEST_TMPDIR"
}

@test "two users of one folder: the second is told, and has runs elsewhere" {
    shared_folder
    run -0 as daemon troupe run --run-name r p.yaml
    run -4 as nobody troupe run --run-name r p.yaml
    [ "$output" = "troupe: $d/troupe-runs belongs to daemon: use another folder for runs: --runs-dir DIR, or TROUPE_RUNS in the environment" ]
    run -0 as nobody troupe run --runs-dir mine/ --run-name r p.yaml
    [[ "$output" == *"logs: $d/mine/r/logs"[[:space:]]* ]]
    [ "$(cat out-nobody)" = mine ]
    run -0 as nobody troupe ls --runs-dir=mine
    [[ "$output" == *"r  "*succeeded* ]]
    run -0 as nobody env TROUPE_RUNS="$d/mine" troupe report last
    [[ "$output" == *"logs: $d/mine/r/logs"[[:space:]]* ]]
    run -0 as nobody env TROUPE_RUNS=mine troupe run --resume r
    run -2 as nobody env TROUPE_RUNS=mine troupe cancel r
    [[ "$output" == *"run r is not running"* ]]
    cd "$BATS_TEST_TMPDIR"
}

# bats test_tags=mpi
@test "a run's folder that another user swaps for one of its own is not read" {
    over_mpi # the driver's mpirun gives time
    export TROUPE_OPT_comm_transport=mpi
    shared_folder
    evil_run
    mkdir bin # an mpirun so that there is time before the driver is started
    cat >bin/mpirun <<'S'
#!/bin/sh
case "$*" in *" driver "*) echo "$*" >args; touch waits; until [ -e swapped ]; do sleep 0.05; done;; esac
PATH=${PATH#*:} exec mpirun "$@"
S
    chmod 755 bin/mpirun
    swap_at waits &
    run -4 as nobody env "PATH=$d/bin:$PATH" troupe run --run-name r p.yaml
    wait $!
    [ ! -e stolen ]
    [ ! -e out-nobody ]
    [[ "$output" == *"troupe: $d/troupe-runs/r belongs to daemon"* ]]
    [ -z "$(find troupe-runs -user nobody)" ]
    cd "$BATS_TEST_TMPDIR"
}

@test "a run of another user, which only that user can reach, is said to be so" {
    [ "$(id -u)" = 0 ] || skip "not root"
    others_folder
    chmod 755 "$d"
    mkdir -p "$d/troupe-runs/r/state"
    touch "$d/troupe-runs/r/state/run.json"
    chmod 700 "$d/troupe-runs"
    for call in status explain logs report; do
        run -4 setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/ \
            troupe $call "$d/troupe-runs/r"
        [[ "$output" == *"/troupe-runs/r cannot be reached: Permission denied; only the user whose run it is may ask"* ]]
    done
}

@test "a run whose folder is moved away goes on in it" {
    shared_folder
    evil_run
    one 'run: "touch waits; until [ -e go ]; do sleep 0.05; done; id -un"'
    printf '  - {name: t, after: [s], tasks: 3, run: "id -un"}\n' >>p.yaml
    as nobody touch go
    swap_at waits &
    as nobody sh -c 'rm go; troupe run --local=1 --run-name r p.yaml >out 2>&1' &
    wait_until test -e swapped
    as nobody touch go
    wait $!
    [ "$(cat away/r/logs/s/0.0.out)" = nobody ]
    [ "$(cat away/r/logs/t/2.0.out)" = nobody ]
    grep -q '"status":"succeeded"' away/r/state/run.json
    [ -z "$(find troupe-runs -user nobody)" ]
    cd "$BATS_TEST_TMPDIR"
}
