#!/usr/bin/env bats
# A run that is looked at live, in terminals of tmux.
load drill.bash
load ../lib/json.bash

setup_file() {
    command -v tmux >/dev/null || skip "no tmux"
}

tm() { tmux -S "$BATS_TEST_TMPDIR/tmux" -f /dev/null -u "$@"; }

# terminal COLUMNS ROWS COMMAND…: runs it in a terminal of that size (tests/lib/in_terminal).
terminal() {
    local columns=$1 rows=$2
    shift 2
    rm -f before after status
    LC_ALL=C.UTF-8 tm new-session -d -x "$columns" -y "$rows" \
        "LC_ALL=${locale:-C.UTF-8} $BATS_TEST_DIRNAME/../lib/in_terminal $*"
}

shown() { tm capture-pane -p "$@"; }
sees() { shown | grep -qF -- "$1"; }
# no_terminals: closes them, and waits for the server's end.
no_terminals() {
    local server
    server=$(tm display-message -p '#{pid}' 2>/dev/null) || return 0
    tm kill-server
    wait_until eval "! kill -0 $server"
}

keys() { tm send-keys "$@"; }

# The terminal is as it was: modes, screen, cursor, what happens at the end of a line.
is_restored() {
    wait_until [ -s after ]
    cmp before after
    [ "$(tm display-message -p '#{alternate_on} #{cursor_flag} #{wrap_flag}')" = "0 1 1" ]
    wait_until sees SHELL
    run ! sees "q quit"
}

teardown() {
    local status=0
    kill -CONT $(ours) 2>/dev/null
    no_terminals
    touch go
    [ -z "${d:-}" ] || rm -rf "$d"
    nothing_left || status=1 # the run is at its end
    [ $status = 0 ] || kill -9 $(ours) 2>/dev/null
    return $status
}

# long_run: one that goes on until `go` is there.
long_run() {
    cat >p.yaml <<Y
troupe: 1
name: looked-at
profiles: {wide: {executor: {cores: 2, memory: 64m}, task: {cpus: 2}}}
stages:
  - {name: quick, tasks: 4, run: "true"}
  - {name: one, after: [quick], tasks: 3, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: two, after: [one], profile: wide, run: "true"}
Y
    troupe run --quiet --run-name r --local=2 --set=executor.memory=64m p.yaml &
    wait_until [ -e began ]
}

@test "stages, executors and what is waited for are shown, in terminals of three sizes and while they change" {
    long_run
    terminal 80 24 troupe top r
    wait_until eval 'shown | grep -Eq "^one +running .* 0/3 +2 "'
    wait_until sees "2 of 2 executors busy"
    shown
    [[ "$(shown | sed -n 1p)" == "r running for "*" on $(hostname)" ]]
    [[ "$(shown | sed -n 2p)" == "["*"] 4/8 tasks, ? left, 2 running"* ]]
    sees "1/3 stages ended, 2 of 2 executors busy"
    shown | grep -Eq '^one +running +\[ +\] +0/3 +2 +\? '
    shown | grep -Eq '^quick +succeeded +\[█+\] +4/4 '
    shown | grep -Eq '^two +waiting '
    shown | grep -Eq '^default +2 +2 +1 core, '
    sees "two: waiting for stage one"
    [[ "$(shown | sed -n 24p)" == "q quit"*"by state, all" ]]
    tm resize-window -x 40 -y 10
    wait_until eval '[[ "$(shown | sed -n 10p)" == "q quit"* ]]'
    shown
    [[ "$(shown | sed -n 2p)" == "["*"4/8 tasks"* ]]
    shown | grep -Eq '^one +running +0/3 +2 +\?$'
    [ "$(shown | grep -c .)" -le 10 ]
    tm resize-window -x 200 -y 50
    wait_until eval '[[ "$(shown | sed -n 50p)" == "q quit"*"g group"*"by state, all" ]]'
    shown
    shown | grep -Eq '^one .* 0/3 +2 .* default'
    [ "$(shown | grep -c '^one ')" = 1 ]
    keys q
    is_restored
    [ "$(cat status)" = 0 ]
    sees "r: running on "
    sees "4 of 8 tasks done, 2 running"
}

@test "it stays when the run ends, shows how, and q leaves with that in a line" {
    long_run
    terminal 80 24 troupe top --interval 100ms
    wait_until sees "two: waiting for stage one"
    touch go
    wait $!
    wait_until sees "The run does not go on: q quits"
    [[ "$(shown | sed -n 1p)" == "r succeeded, exit status 0, after "* ]]
    shown | grep -Eq '^one +succeeded +\[█+\] +3/3 '
    run ! sees "its driver"
    keys q
    is_restored
    [ "$(cat status)" = 0 ]
    sees "r: succeeded on "
    # One that has ended is shown as well, and one that died.
    terminal 80 24 troupe top r
    wait_until sees "The run does not go on: q quits"
    shown | grep -Eq '^one +succeeded '
    no_terminals
    sed -i 's/"status":"succeeded"/"status":"running"/; s/"ended":[0-9]*/"ended":0/' troupe-runs/r/state/run.json
    terminal 80 24 troupe top r
    wait_until sees "r died"
    keys q
    is_restored
}

@test "signals leave the terminal as it was, and it can be stopped" {
    long_run
    for signal in TERM INT HUP QUIT; do
        terminal 80 24 troupe top r
        wait_until sees "q quit  ? help"
        pid=$(ours_like '^troupe top r$' | sort -n | head -n 1)
        [ "$(tm display-message -p '#{alternate_on} #{cursor_flag}')" = "1 0" ]
        kill -$signal "$pid"
        is_restored
        [ "$(cat status)" = $((128 + $(kill -l $signal))) ]
        wait_until eval '! ours_like "^troupe top r\$"'
        no_terminals
    done
    LC_ALL=C.UTF-8 tm new-session -d -x 80 -y 24 "LC_ALL=C.UTF-8 PS1='ready> ' bash --norc --noprofile -i"
    wait_until sees "ready>"
    keys "stty -g >before; troupe top r; echo over" Enter
    wait_until sees "q quit  ? help"
    keys C-z
    wait_until sees "Stopped"
    [ "$(tm display-message -p '#{alternate_on} #{cursor_flag} #{wrap_flag}')" = "0 1 1" ]
    keys "stty -g >after; fg" Enter
    wait_until sees "q quit  ? help"
    run ! sees "Stopped"
    keys q
    wait_until sees "r: running on "
    # What readline sets for itself is not in it: bash gives its commands the others.
    keys "cmp before after && echo same" Enter
    wait_until eval 'shown | grep -qx same'
    # Ctrl-C is a signal, too; and one that is lost with its terminal goes.
    keys "troupe top r" Enter
    wait_until sees "q quit  ? help"
    keys C-c
    wait_until eval '! ours_like "^troupe top r\$"'
    keys "troupe top r" Enter
    wait_until eval 'ours_like "^troupe top r\$"'
    wait_until sees "q quit  ? help"
    kill -9 $(tm display-message -p '#{pid}')
    wait_until eval '! ours_like "^troupe top r\$"'
}

@test "a driver that does not answer, and a terminal that takes nothing, hold up neither keys nor signals" {
    long_run
    wait_until grep -q StageSubmitted troupe-runs/r/events.jsonl # it is written now and then
    kill -STOP "$(pid_of driver r)"
    terminal 80 24 troupe top r
    wait_until sees "asking the run"
    keys q
    is_restored
    no_terminals
    terminal 200 50 troupe top r
    wait_until sees "its driver has not answered for 5 s: this is what its event log says"
    wait_until eval "shown | grep -Eq '^one '"
    kill -CONT "$(pid_of driver r)"
    wait_until eval '! sees "its driver has not answered"'
    server=$(tm display-message -p '#{pid}')
    pid=$(ours_like '^troupe top r$' | sort -n | head -n 1)
    kill -STOP "$server"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -WINCH "$pid"
        sleep 0.05
    done
    kill -TERM "$pid"
    gone=0
    wait_until eval '! kill -0 "$pid"' || gone=1
    kill -CONT "$server"
    [ "$gone" = 0 ]
    wait_until [ -s status ]
    [ "$(cat status)" = 143 ]
    wait_until eval '! ours_like "^troupe top r\$"'
}

@test "an answer that is late is told, and why it is the log that is shown, in as many rows as that takes" {
    long_run
    terminal 60 24 troupe top r
    wait_until sees "2 of 2 executors busy"
    wait_until grep -q StageSubmitted troupe-runs/r/events.jsonl
    kill -STOP "$(pid_of driver r)"
    wait_until eval 'shown | grep -Eq "^no answer for [0-9]+ s: what is shown is as old"'
    wait_until eval '[[ "$(shown | tr -s " \n" " ")" == *"this is what its event log says, last written "*" ago"* ]]'
    shown
    kill -CONT "$(pid_of driver r)"
    wait_until eval '! sees "event log"'
    run ! sees "no answer"
    keys q
    is_restored
}

@test "1,700 stages: those that run first, alike ones together, and all of them by keys" {
    graph >p.yaml
    troupe run --run-name r --local=2 --set=executor.memory=64m p.yaml >out 2>err &
    wait_until grep -q ' 2 running, 2 executors; stage 0/1701; project-\*$' err
    terminal 80 24 troupe top r
    wait_until sees "project-* ×1698"
    shown
    shown | grep -Eq '^project-1 +running '
    shown | grep -Eq '^project-2 +running '
    shown | grep -Eq '^project-\* ×1698 +ready '
    shown | grep -Eq '^concat +waiting '
    [ "$(shown | grep -n '^project-2 ' | cut -d: -f1)" -lt "$(shown | grep -n -m 1 '^project-\* ' | cut -d: -f1)" ]
    keys 1 g
    wait_until eval 'shown | grep -q "^project-19 "'
    sees "1-19 of 1701"
    keys PageDown
    wait_until eval 'shown | grep -q "^project-20 "'
    keys Down
    wait_until sees "21-39 of 1701"
    keys End
    wait_until eval 'shown | grep -q "^concat "'
    keys Home f
    wait_until sees "by state, not ended"
    keys f
    wait_until sees "by state, with failures"
    run ! sees "project-"
    keys f s
    wait_until sees "by name, all"
    [[ "$(shown | sed -n 5p)" == "concat "* ]]
    keys '?'
    wait_until sees "order: by state, name, begin, time left"
    keys x 4 g
    wait_until sees "what is waited for"
    sees "project-* ×"
    keys Tab
    wait_until sees "executors of"
    keys 3
    wait_until sees "no Slurm jobs"
    keys q
    is_restored
}

@test "names cannot move the cursor, nor a locale without UTF-8 or NO_COLOR be overlooked" {
    echo '{troupe: 1, stages: [{name: one, tasks: 2, run: "true"}]}' >p.yaml
    troupe run --quiet --run-name r p.yaml
    sed -i 's/"one"/"o\\u001b[2J\\u009b31m\\u0007\\n\\u202e漢e\\u0301"/g' troupe-runs/r/events.jsonl
    terminal 80 24 troupe top r
    wait_until sees "does not go on"
    shown
    shown | grep -q '^o?\[2J?31m???漢e.*succeeded'
    [ "$(shown | grep -c .)" = 6 ]
    [[ "$(shown -e)" == *$'\e[32m'* ]]
    keys q
    is_restored
    no_terminals
    export NO_COLOR=1
    locale=C terminal 80 24 troupe top r
    wait_until sees "does not go on"
    shown -e
    shown | grep -q '^o?\[2J?31m????e? *succeeded *\[##*\]'
    [ -z "$(shown | LC_ALL=C grep '[^ -~]')" ]
    [[ "$(shown -e)" != *$'\e[3'[1-7]m* ]]
    keys q
    is_restored
}

@test "a document a line, up to the run's end; to nobody else, and no picture where there is no terminal" {
    long_run
    wait_until eval '[ "$(troupe status --json r | json "\$d->{stages}[1]{running}")" = 2 ]'
    troupe top --json --interval 0.1 r >stream &
    stream=$!
    wait_until eval '[ "$(wc -l <stream)" -ge 3 ]'
    touch go
    wait "$stream"
    [ "$(head -n 1 stream | json '$d->{from}')" = driver ]
    [ "$(head -n 1 stream | json '$d->{stages}[1]{running}')" = 2 ]
    [ "$(head -n 1 stream | json '$d->{stages}[0]{ran}')" = 4 ]
    [ "$(head -n 1 stream | json '$d->{stages}[1]{left}')" = null ]
    [ "$(head -n 1 stream | json '$d->{left}')" = null ]
    [ "$(head -n 1 stream | json '$d->{executors}[0]{busy}')" = 2 ]
    [ "$(head -n 1 stream | json 'scalar @{$d->{jobs}}')" = 0 ]
    [ "$(tail -n 1 stream | json '"$d->{status} $d->{exit} $d->{stages}[2]{done}"')" = "succeeded 0 1" ]
    [ "$(sed '$d' stream | grep -c '"status":"succeeded"' || true)" = 0 ]
    wait
    [ "$(troupe top --json r | wc -l)" = 1 ]
    run -2 troupe top r </dev/null
    [ "$output" = "troupe: top needs a terminal; troupe status shows a run once, --json prints a document a line" ]
    run -2 troupe top --interval 1ms r
    [[ "$output" == *"from 100ms to 1h"* ]]
    run -2 troupe top --interval soon r
    [[ "$output" == *"--interval: "* ]]
    run -2 troupe top nothing
    TERM=dumb terminal 80 24 "env TERM=dumb troupe top r"
    wait_until [ -s status ]
    [ "$(cat status)" = 2 ]
    sees "TERM=dumb"
}

@test "a stream ends with who reads it, and with a signal" {
    long_run
    troupe top --json --interval 0.1 r | head -n 2 | wc -l >lines
    [ "$(cat lines)" = 2 ]
    wait_until eval '! ours_like "^troupe top --json"'
    for signal in TERM INT HUP; do
        # Signals that a background command of a shell ignores are to be had again.
        env --default-signal troupe top --json --interval 0.1 r >stream &
        wait_until [ -s stream ]
        kill -$signal $!
        wait_until eval '! ours_like "troupe top --json"'
        rm stream
    done
}

@test "another user's run is not shown" {
    [ "$(id -u)" = 0 ] || skip "not root"
    others_folder
    chown nobody "$d"
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$d" sh -c "
        cd $d && echo '{troupe: 1, stages: [{name: s, run: \"true\"}]}' >p.yaml
        exec troupe run --quiet --run-name r p.yaml"
    terminal 80 24 troupe top --runs-dir "$d/troupe-runs" r
    wait_until [ -s status ]
    [ "$(cat status)" != 0 ]
    sees "belongs to nobody"
    run ! sees "q quit"
}
