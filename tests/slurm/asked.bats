#!/usr/bin/env bats
# A run in a Slurm job that is asked from a login node: by one step of its job.
load slurm.bash
load ../lib/json.bash

setup_file() {
    cluster_up -n 2 --fast
}

# Steps of ours that ask.
asking() { on head squeue -s -h -j "$job" -o %j | grep -c '^troupe-ask$'; }

long_run() {
    cat >p.yaml <<'END'
troupe: 1
name: asked
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  large: {executor: {cores: 4, memory: 100m, memoryOverhead: 56m}, task: {cpus: 4}}
stages:
  - {name: one, tasks: 4, profile: small, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: large, tasks: 1, profile: large, run: "true"}
  - {name: two, after: [one], profile: small, run: "true"}
END
    submit alice -N1 -n1 -c4 --mem=2000 -- "$TROUPE" run --quiet --set alloc.placement=inside --run-name r "$@" p.yaml
    wait_until [ -e began ]
    wait_until grep -q TaskStart troupe-runs/r/events.jsonl # written once a second
}

@test "from a login node a run is asked by a step of its job, which takes no room" {
    long_run
    run -0 --separate-stderr as alice head "$TROUPE" status r
    echo "$output" "$stderr"
    [ -z "$stderr" ]
    [[ "$output" == "r: running on node"*"one"*"running"*"two: waiting for stage one"* ]]
    as alice head "$TROUPE" status --json r >d.json
    [ "$(json '$d->{from}' <d.json)" = driver ]
    [ "$(json '$d->{stages}[0]{done} + $d->{stages}[0]{running} + $d->{stages}[0]{pending}' <d.json)" = 4 ]
    run -0 --separate-stderr as alice head "$TROUPE" explain r large
    echo "$output" "$stderr"
    [[ "$output" == *"large: ready, 1 task"*"why: waiting for an executor of profile large (4 cores, "*"there is: "*" of 4 cores, "*" free on 1 host"* ]]
    # The step goes with who asked.
    wait_until eval '[ "$(asking)" = 0 ]'
    as alice head touch go
    wait_until grep -q '"status":"succeeded"' troupe-runs/r/state/run.json
    run -0 as alice head "$TROUPE" explain r
    [ "$output" = "3 stages ran with nothing to explain (--all)" ]
}

@test "from a login node a run is cancelled by a step of its job" {
    long_run
    run -0 --separate-stderr as alice head "$TROUPE" cancel --now r
    echo "$output" "$stderr"
    [ "$output" = "r ended" ]
    grep -q '"status":"cancelled"' troupe-runs/r/state/run.json
    run -2 as alice head "$TROUPE" cancel r
    [ "$output" = "troupe: cancel: run r is not running" ]
    rm -r troupe-runs began
}

@test "troupe top keeps one step of the job open for as long as it looks, and shows the jobs" {
    long_run
    as alice head "$TROUPE" top --json --interval 200ms r >stream 2>err &
    wait_until eval '[ "$(wc -l <stream)" -ge 3 ]'
    step=$(on head squeue -s -h -j "$job" -o '%j %i' | grep '^troupe-ask ')
    [ "$(wc -l <<<"$step")" = 1 ]
    had=$(wc -l <stream)
    wait_until eval '[ "$(wc -l <stream)" -ge $((had + 10)) ]'
    [ "$(on head squeue -s -h -j "$job" -o '%j %i' | grep '^troupe-ask ')" = "$step" ]
    tail -n 1 stream | cut -c1-3000
    head -n "$had" stream >had # it goes on being written
    [ "$(grep -c '"from":"driver"' had)" = "$had" ]
    tail -n 1 had >d.json
    [ "$(json '$d->{jobs}[0]{job}' <d.json)" = "$job" ]
    [ "$(json '"$d->{jobs}[0]{state} $d->{jobs}[0]{nodes}"' <d.json)" = "running 1" ]
    [ "$(json '$d->{jobs}[0]{ends} > $d->{now}' <d.json)" = 1 ]
    as alice head touch go
    wait_until grep -q '"status":"succeeded"' troupe-runs/r/state/run.json
    wait $!
    [ "$(tail -n 1 stream | json '"$d->{status} $d->{from}"')" = "succeeded log" ]
    wait_until eval '[ "$(asking)" = 0 ]'
    # The step goes with who asks, however that ends.
    rm -r go began troupe-runs
    long_run
    as alice head "$TROUPE" top --json --interval 200ms r >stream 2>err &
    wait_until eval '[ "$(asking)" = 1 ]'
    kill -KILL "$(pgrep -o -f "^$TROUPE top --json --interval 200ms r\$")"
    wait_until eval '[ "$(asking)" = 0 ]'
    as alice head touch go
    wait_until grep -q '"status":"succeeded"' troupe-runs/r/state/run.json
}

# A terminal of the login node's.
tm() { as alice head tmux -S "$PWD/terminal" -f /dev/null -u "$@"; }
shown() { tm capture-pane -p; }
sees() { shown | grep -qE -- "$1"; }

# terminal COLUMNS ROWS COMMAND…: runs it in a terminal of that size (tests/lib/in_terminal).
terminal() {
    local columns=$1 rows=$2
    shift 2
    as alice head rm -f before after status
    tm new-session -d -x "$columns" -y "$rows" "LC_ALL=C.UTF-8 $BATS_TEST_DIRNAME/../lib/in_terminal $*"
}

@test "troupe top on a login node's terminal: stages, executors, jobs; keys, signals, and a step that hangs" {
    on head sh -c 'command -v tmux' || skip "no tmux"
    long_run
    terminal 100 30 "$TROUPE" top r
    wait_until sees "^one +running .* 0/4 +4 "
    shown
    sees "^r running for .* on node[12]"
    sees "4 of 4 executors busy, 1 Slurm job"
    sees "^small +4 +4 +1 core, 156 MiB"
    sees "^$job +running +1 +.* the run's own"
    sees "^two: waiting for stage one"
    wait_until eval '[ "$(asking)" = 1 ]'
    # Its step hangs: how old it is, and then the log with the reason, whole.
    host=$(json '$d->{host}' <troupe-runs/r/state/run.json)
    on "$host" pkill -STOP -f "troupe-rank ask"
    wait_until sees "^no answer for [0-9]+ s: what is shown is as old"
    tm send-keys 3
    wait_until eval '! sees "^one +running"' # keys do not wait for it
    tm send-keys 0
    wait_until eval '[[ "$(shown | tr -s " \n" " ")" == *"a step of its job has not answered for 20 s: this is what its event log says"*" ago"* ]]'
    shown
    # It tries another one.
    wait_until eval '! sees "event log says" && sees "the run.s own"'
    on head pkill -INT -o -f "^$TROUPE top r\$"
    wait_until [ -s after ]
    cmp before after
    [ "$(cat status)" = 130 ]
    wait_until sees SHELL
    wait_until eval '[ "$(asking)" = 0 ]'
    tm kill-server
    # One that ends while it is looked at.
    terminal 100 30 "$TROUPE" top r
    wait_until sees "^one +running .* 0/4 +4 "
    as alice head touch go
    wait_until sees "The run does not go on: q quits"
    sees "^r succeeded, exit status 0, after .* on $host"
    tm send-keys q
    wait_until eval '[ "$(cat status)" = 0 ]'
    wait_until sees "^r: succeeded on $host"
    wait_until eval '[ "$(asking)" = 0 ]'
    tm kill-server
}

@test "where no step can be had the event log is read, and it is said why" {
    long_run
    host=$(json '$d->{host}' <troupe-runs/r/state/run.json)
    # Another user's job of that number would refuse, too.
    as alice head sed -i "s/\(\"batch_job\": *\)[0-9]*/\1999999/" troupe-runs/r/state/run_spec.json
    run -0 --separate-stderr as alice head "$TROUPE" status r
    echo "$output" "$stderr"
    [[ "$stderr" == *"its driver is on $host, and no step of its job can be had: "*": this is what its event log says, last written "* ]]
    [[ "$output" == "r: running on $host"* ]]
    run -4 as bob head "$TROUPE" status "$PWD/troupe-runs/r"
    [[ "$output" == *"only the user whose run it is may ask"* ]]
    as alice head touch go
    wait_until grep -q '"status":"succeeded"' troupe-runs/r/state/run.json
}

@test "what a job waits for in Slurm's queue is explained" {
    cat >p.yaml <<'END'
troupe: 1
name: queued
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  all: {executor: {cores: 4, memory: 100m, memoryOverhead: 56m}, task: {cpus: 4}}
stages:
  - {name: one, profile: small, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: wide, profile: all, tasks: 1, run: "true"}
END
    as alice head sbatch -t 10 -N1 -n1 -c4 --mem=100 -w node2 --wrap "sleep 600"
    submit alice -N1 -n1 -c2 --mem=1000 -w node1 -- "$TROUPE" run --quiet --run-name r p.yaml
    wait_until [ -e began ]
    wait_until eval 'as alice head "$TROUPE" explain r wide | tee out.wide | grep -q "Slurm job [0-9]* is pending"'
    cat out.wide
    grep -q "wide: ready, 1 task" out.wide
    grep -q "why: waiting for an executor of profile all (4 cores, " out.wide
    # When it has been thought of, Slurm says when it expects to begin it.
    wait_until eval 'as alice head "$TROUPE" explain r wide | grep -qE "Slurm job [0-9]* is pending: .*, expected at [0-2][0-9]:[0-5][0-9]"'
    told() { as alice head "$TROUPE" status --json r | json '"$d->{jobs}[1]{state} $d->{jobs}[1]{additional} $d->{jobs}[1]{profile} $d->{jobs}[1]{reason}"'; }
    wait_until eval '[[ "$(told)" == "pending 1 all "[A-Z]* ]]'
    wait_until eval '[[ "$(as alice head "$TROUPE" status r)" == *"Slurm job $job: running, 1 node, "*" left"*"for profile all: pending, "* ]]'
    as alice head touch go
    on head scancel -u alice -n wrap
    wait_until grep -q '"status":"succeeded"' troupe-runs/r/state/run.json
}
