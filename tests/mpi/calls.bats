#!/usr/bin/env bats
# How a run may be called, and what it says where.
load drill.bash

one() { # one STAGE-KEYS: a pipeline of one stage
    printf 'troupe: 1\nstages:\n  - {name: s, %s}\n' "$1" >p.yaml
}

waiting='run: "until [ -e go ]; do sleep 0.05; done"'

@test "the summary is on stdout once, the rest on stderr; --quiet leaves both empty" {
    one 'tasks: 3, run: "[ $TROUPE_TASK != 1 ] || [ $TROUPE_ATTEMPT = 1 ]"'
    run -0 --separate-stderr troupe run --run-name r p.yaml
    [ "$(count '^stage .*core-seconds$\|^stage .* used' "$output")" = 1 ]
    [ "$(count '^total ' "$output")" = 1 ]
    [ "$(count '^logs: troupe-runs/r/logs ' "$output")" = 1 ]
    [ "$(count '^total \|^logs: ' "$stderr")" = 0 ]
    # no line of the one is in the other
    [ "$(count '^troupe: ' "$output")" = 0 ]
    [[ "$stderr" == *"troupe: stage s: task 1, attempt 0: exit status 1; it is run again"* ]]
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

@test "a run that still goes on cannot be resumed; cancel --now kills its tasks" {
    one "$waiting"
    troupe run --set run.grace=30s --run-name r p.yaml >out 2>&1 &
    wait_until 20 ls troupe-runs/r/logs/s/0.0.out
    run -4 troupe run --resume r
    [ "$output" = "troupe: run troupe-runs/r is still running" ]
    run -0 troupe cancel --now r
    [ "$output" = "r ended" ]
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    grep '^troupe: killed' out
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
