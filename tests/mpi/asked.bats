#!/usr/bin/env bats
# A run that is asked where it is and why it waits, by whom it may concern and by others.
load drill.bash
load ../lib/json.bash

# long_run: one that goes on until `go` is there; it tells nothing of itself, but with $told.
long_run() {
    cat >p.yaml <<Y
troupe: 1
name: asked
profiles: {wide: {executor: {cores: 2, memory: 64m}, task: {cpus: 2}}}
stages:
  - {name: one, tasks: 3, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: two, after: [one], profile: wide, run: "true"}
Y
    troupe run ${told:---quiet} --run-name r --local=2 --set=executor.memory=64m p.yaml &
    wait_until [ -e began ]
    wait_until grep -q TaskStart troupe-runs/r/events.jsonl # written once a second
}

# flat: $output in one line.
flat() {
    output=$(tr -s ' \n' ' ' <<<"$output")
}

# A socket that is asked with the rest of the words; PERL has it as $s.
talk() {
    perl -MIO::Socket::UNIX -e '
        sub dial { IO::Socket::UNIX->new(Peer => "troupe-runs/r/state/asked") // die "no: $!" }
        '"$1"
}

@test "a run is asked from elsewhere: stages, tasks, executors, and what is waited for" {
    long_run
    mkdir elsewhere
    wait_until eval '[ "$(troupe status --json r | json "\$d->{stages}[0]{running}")" = 2 ]'
    run -0 troupe status "$PWD/troupe-runs/r"
    flat
    [[ "$output" == "r: running on $(hostname), for "*" 0 of 4 tasks done, 2 running"* ]]
    [[ "$output" == *"one"*"running"*"default"* ]]
    [[ "$output" == *"2 executors of profile default (1 core, "* ]]
    [[ "$output" == *"two: waiting for stage one"* ]]
    troupe status --json >d.json
    [ "$(json '$d->{from}' <d.json)" = driver ]
    [ "$(json '$d->{stages}[0]{tasks}' <d.json)" = 3 ]
    [ "$(json '$d->{stages}[1]{state}' <d.json)" = waiting ]
    [ "$(stat -c %a troupe-runs/r/state)" = 700 ]
    touch go
    wait $!
    [ ! -e troupe-runs/r/state/asked ]
    run -0 troupe status
    [[ "$output" == "r: succeeded"*"exit status 0; 4 of 4 tasks done, 0 running"* ]]
    [ "$(troupe status --json | json '$d->{from}')" = log ]
    [ "$(troupe status --json | json '$d->{stages}[0]{done}')" = 3 ]
}

@test "what the log does not have yet is asked of the driver" {
    long_run
    mv troupe-runs/r/events.jsonl told # the driver writes there
    : >troupe-runs/r/events.jsonl
    run -0 troupe explain r two
    [[ "$output" == "two: waiting, 1 task"*"why: waiting for stage one"* ]]
    run -0 troupe explain r one
    [[ "$output" == "one: running, 3 tasks"* ]]
    run -0 troupe explain r
    [[ "$output" == "two: waiting, 1 task"* ]]
    run -2 troupe explain r six
    mv told troupe-runs/r/events.jsonl
    touch go
    wait $!
}

@test "the progress line counts as status does: all tasks that are known" {
    moving_clock
    told=--keep-going long_run 2>err
    advance 6s
    wait_until grep -q ' 0/4 tasks, 2 running' err
    run -0 troupe status r
    flat
    [[ "$output" == *" 0 of 4 tasks done, 2 running"* ]]
    touch go
    wait $!
}

@test "why a stage waits is explained: stages, executors, a gang, max_running" {
    cat >p.yaml <<'Y'
troupe: 1
name: waits
profiles:
  wide: {executor: {cores: 3, memory: 64m}, task: {cpus: 3}}
  rank: {task: {cpus: 1}}
stages:
  - {name: one, tasks: 6, max_running: 1, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: late, after: [one], run: "true"}
  - {name: wide, profile: wide, tasks: 2, run: "true"}
  - {name: quick, run: "true"}
  - {name: gang, after: [quick], profile: rank, mpi: {ranks: 3}, run: "true"}
Y
    troupe run --quiet --run-name r --local=3 --set=executor.memory=64m p.yaml &
    wait_until [ -e began ]
    wait_until eval 'troupe explain r wide | grep -q "1 asked for"'
    run -0 troupe explain r
    flat
    [[ "$output" == *"late: waiting, 1 task"*"why: waiting for stage one"* ]]
    [[ "$output" == *"wide: ready, 2 tasks"*"why: waiting for an executor of profile wide (3 cores, "* ]]
    [[ "$output" == *"needs: executors of profile wide (3 cores, "*"of which a task takes 3 cores"* ]]
    [[ "$output" == *"has: 0 of them, 1 more, asked for "*" ago"* ]]
    [[ "$output" == *"there is: "*" of 3 cores, "*"are free on 1 host"* ]]
    wait_until eval 'troupe explain r gang | grep -q "gang: ready"'
    run -0 troupe explain r gang
    flat
    [[ "$output" == *"gang: ready, 1 task"*"waiting for room for 3 ranks of profile rank at once (3 cores, "* ]]
    [[ "$output" == *"needs: 3 ranks of profile rank at once, together 3 cores, "* ]]
    [[ "$output" != *"has: "* ]]
    run -0 troupe explain r one
    [[ "$output" == *"one: running, 6 tasks"*"why: max_running: 1 task runs"* ]]
    troupe explain --json r wide >d.json
    [ "$(json '$d->{from}' <d.json)" = driver ]
    [ "$(json '$d->{stages}[0]{now}{coming}' <d.json)" = 1 ]
    run -2 troupe explain r wied
    [[ "$output" == *"run r has no stage wied; did you mean \"wide\""* ]]
    touch go
    wait $!
    run -0 troupe explain r
    [ "$output" = "5 stages ran with nothing to explain (--all)" ]
}

@test "what a limit over all profiles keeps a stage from is explained" {
    cat >p.yaml <<'Y'
troupe: 1
name: limits
profiles:
  small: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
  other: {executor: {cores: 1, memory: 96m}, task: {cpus: 1}}
stages:
  - {name: one, profile: small, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
  - {name: two, profile: other, run: "true"}
Y
    local limit
    for limit in executors=1 cores=1; do
        rm -f began go
        troupe run --quiet --run-name "r-${limit%=1}" --local=3 --set "alloc.max_$limit" p.yaml &
        wait_until [ -e began ]
        wait_until eval 'troupe explain "r-${limit%=1}" two | tee out | grep -q "why: no executor of profile other: alloc.max_${limit%=1} (1) are in use"' ||
            { cat out; return 1; }
        grep -q '^two: ready, 1 task' out
        touch go
        wait $!
    done
}

# narrow COMMAND…: it says something, in lines of 80 columns at most but for those with a path.
narrow() {
    run -0 "$@"
    [ "${#lines[@]}" -gt 0 ]
    local line
    for line in "${lines[@]}"; do
        [ "${#line}" -le 80 ] || [[ $line == *" /"* ]] || { echo "$*: $line"; return 1; }
    done
}

@test "explain and report fit 80 columns with names as people give them" {
    cat >p.yaml <<'Y'
troupe: 1
name: single-cell-atlas
profiles:
  alignment: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
  deep-learning: {executor: {cores: 2, memory: 64m}, task: {cpus: 2}}
stages:
  - {name: quality-control, tasks: 4, profile: alignment, run: "[ $TROUPE_TASK.$TROUPE_ATTEMPT != 0.0 ] || exit 3; touch began; until [ -e go ]; do sleep 0.1; done", retries: {max_failures: 4}}
  - {name: train-classifier, tasks: 2, profile: deep-learning, run: "true"}
  - {name: alignment-to-reference, after: [quality-control], tasks: 3, profile: alignment, run: "true"}
Y
    troupe run --quiet --run-name atlas-2026-11-26-first-attempt --local=2 p.yaml &
    wait_until [ -e began ]
    wait_until eval 'troupe explain last train-classifier | grep -q needs:'
    narrow troupe explain last
    narrow troupe explain last train-classifier
    narrow troupe report last
    touch go
    wait $!
    narrow troupe explain --all last
    narrow troupe report last
}

@test "of what has run it is explained where, what was tried again, given up, skipped, and is to be run again" {
    cat >p.yaml <<'Y'
troupe: 1
name: past
options: {run.keep_going: true}
stages:
  - {name: one, tasks: 4, run: '[ $TROUPE_TASK != 2 ] || { [ $TROUPE_ATTEMPT = 1 ] && exit 0; exit 37; }', retries: {max_failures: 4}}
  - {name: bad, tasks: 3, retries: {max_failures: 2}, run: '[ $TROUPE_TASK != 1 ] || exit 3'}
  - {name: next, after: [{stage: bad, each: true}], tasks: 3, run: "true"}
  - {name: end, after: [bad], run: "true"}
Y
    run -1 troupe run --quiet --run-name other p.yaml
    run -1 troupe run --quiet --run-name r p.yaml
    ln -sfn other troupe-runs/last
    run -0 troupe explain r
    flat
    [[ "$output" == *"one: succeeded, 4 tasks"*"ran: "*" on executor "*" on $(hostname), "* ]]
    [[ "$output" == *"task 2, attempt 0: exit status 37, after "* ]]
    [[ "$output" == *"task 2, attempt 1: succeeded, after "* ]]
    [[ "$output" == *"bad: failed"*"task 1, attempt 1: exit status 3, "*"task 1 was given up after 2 failures"* ]]
    [[ "$output" == *"task 1 was skipped: task 1 of stage bad was given up"* ]]
    [[ "$output" == *"end: skipped, 1 task"* ]]
    [[ "$output" == *"with --resume, one: does not run"*"with --resume, bad: 2 tasks are done, 1 of 3 runs"* ]]
    # To look at a run does not make it the newest.
    [ "$(readlink troupe-runs/last)" = other ]
    sed -i 's/name: one, /&env: {A: b}, /' p.yaml
    run -0 troupe explain r one
    [[ "$output" == *"with --resume, one: 4 of 4 run: its env changed"* ]]
    [ "$(troupe explain --json r bad | json '$d->{stages}[0]{tries}[1]{end}')" = "exit status 3" ]
    rm p.yaml
    run -0 troupe explain r one
    [[ "$output" == *"with --resume: p.yaml: the pipeline of "*" is not there any more"* ]]
}

@test "clients that say nothing, too much, or take nothing hold up neither the run nor others" {
    long_run
    talk 'my @c = map { dial() } 1 .. 20; mkdir "silent"; sleep' &
    wait_until [ -d silent ]
    talk 'my $s = dial(); $SIG{PIPE} = "IGNORE"; print $s "x" x 100000; print <$s>' >long.out
    grep -q '"error":"a request is JSON' long.out
    talk 'my $s = dial(); print $s "{\"ask\":\"everything\"}\n"; print <$s>' >unknown.out
    grep -q '"error":"nothing is known of' unknown.out
    talk 'my @c = map { dial() } 1 .. 10; print $_ "{\"ask\":\"status\"}\n" for @c; $_->flush for @c; mkdir "deaf"; sleep' &
    wait_until [ -d deaf ]
    # Several at once; an answer is never held up by those.
    for i in 1 2 3 4 5 6 7 8; do
        (troupe status --json r >"$i.json"; echo $? >"$i.status") &
    done
    wait_until eval '[ "$(cat [1-8].status | wc -l)" = 8 ]'
    [ "$(cat [1-8].status | sort -u)" = 0 ]
    [ "$(for i in 1 2 3 4 5 6 7 8; do json '$d->{from}' <$i.json; done | sort -u)" = driver ]
    kill $(ours_like "perl -MIO::Socket")
    touch go
    wait_until grep -q succeeded troupe-runs/r/state/run.json
}

@test "of many stages alike ones are told together, one alone by its own name" {
    {
        printf 'troupe: 1\nstages:\n'
        printf '  - {name: p-%d, run: ":"}\n' $(seq 40)
        echo '  - {name: q-7, after: [p-1, p-2], run: ":"}'
        echo '  - {name: bad-1, after: [q-7], retries: {max_failures: 1}, run: "exit 3"}'
        printf '  - {name: late-%d, after: [bad-1], run: ":"}\n' 8 9 10
    } >p.yaml
    run -0 troupe plan p.yaml
    [[ "$output" == *"p-* ×40"*$'\n'"q-7 "*"p-* ×2"*$'\n'"bad-1 "*" q-7 "* ]]
    run -1 troupe run --keep-going --run-name r --local=2 p.yaml
    run -0 troupe status r
    [[ "$output" == *$'\n'"p-* ×40 "*$'\n'"q-7 "*$'\n'"bad-1 "* ]]
    run -0 troupe explain r
    [[ "$output" == *$'\n\n'"late-* ×3: skipped, 3 tasks; of the first, late-8:"$'\n'"  because: stage bad-1 did not succeed"$'\n\n'"41 stages ran"* ]]
    [[ "$output" == *$'\n'"with --resume, p-* ×40: does not run"$'\n'"with --resume, q-7: does not run"$'\n'"with --resume, bad-1: 1 of 1 runs"$'\n'"with --resume, late-* ×3: 1 of 1 runs" ]]
    [ "$(troupe explain --all r | grep -c '^late-[0-9]*: skipped, 1 task')" = 3 ]
    run -0 troupe plan --resume r
    [[ "$output" == *$'\n'"p-* ×40: does not run"$'\n'"q-7: does not run"$'\n'"bad-1: 1 of 1 runs"$'\n'"late-* ×3: 1 of 1 runs" ]]
    [ "$(troupe plan --all --resume r | grep -c '^p-[0-9]*: does not run')" = 40 ]
    [ "$(troupe explain --all r | grep -c '^with --resume, p-[0-9]*: does not run')" = 40 ]
}

@test "1,700 stages stay readable: in plan, progress, status and summary" {
    graph >p.yaml
    run -0 troupe plan p.yaml
    [[ "$output" == *"project-* ×1700"*"1700"*"concat"*"project-* ×1700"* ]]
    [ "${#lines[@]}" -lt 30 ]
    run -0 troupe plan --all p.yaml
    [ "${#lines[@]}" -gt 1700 ]
    troupe run --run-name r --local=2 --set=executor.memory=64m p.yaml >out 2>err &
    wait_until grep -q ' 2 running, 2 executors; stage 0/1701; project-\*$' err
    run -0 troupe status
    echo "$output"
    [[ "$output" == *"project-* ×2"*"running"*"project-* ×1698"*"ready"*"concat"*"waiting"* ]]
    [ "${#lines[@]}" -lt 30 ]
    [ "$(troupe status --json | json 'scalar @{$d->{stages}}')" = 1701 ]
    run -0 troupe explain r
    [[ "$output" == *"project-* ×100: ready, 100 tasks; of the first, project-3:"* ]]
    [[ "$output" == *$'\n\n'"1599 more stages wait; troupe explain r STAGE says for what" ]]
    run -0 troupe status --all
    [ "${#lines[@]}" -gt 1700 ]
    touch go
    wait $!
    grep -q '^project-\* ×1700' out
    [ "$(wc -l <out)" -lt 15 ]
    [ "$(troupe report --all | grep -o '^project-[0-9]*' | sort -u | wc -l)" = 1700 ]
}

@test "10,000 tasks that run do not keep a run from answering" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: many, tasks: 10000, run: "true"}
  - {name: last, run: "until [ -e go ]; do sleep 0.1; done"}
Y
    troupe run --quiet --run-name r p.yaml &
    wait_until grep -q SparkListenerTaskEnd troupe-runs/r/events.jsonl
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        troupe status --json r >d.json
        [ "$(json '$d->{from}' <d.json)" = driver ]
    done
    touch go
    wait
}

@test "a run that died, one on a host that is gone, and one without its socket are told from the log" {
    long_run
    kill -9 "$(pid_of driver r)"
    wait_until eval '! grep -q \"running\" troupe-runs/r/state/run.json'
    run -0 troupe status r
    [[ "$output" == "r: failed"*"one"*"unfinished"* ]]
    sed -i 's/"status":"[a-z]*"/"status":"running"/' troupe-runs/r/state/run.json
    run -0 --separate-stderr troupe status r
    [[ "$output" == "r: died"* ]]
    # Somebody holds its lock: it may go on, there.
    exec 7<troupe-runs/r/state/lock
    flock -n 7
    sed -i 's/"host":"[^"]*"/"host":"login1.gone"/' troupe-runs/r/state/run.json
    run -0 --separate-stderr troupe status r
    [[ "$stderr" == *"its driver is on login1.gone, and the run is in no Slurm job: this is what its event log says, last written "*" ago" ]]
    [[ "$output" == "r: running on login1.gone"* ]]
    run -2 troupe cancel r
    [ "$output" = "troupe: cancel: run r is on login1.gone: the run is in no Slurm job; cancel it there" ]
    sed -i "s/\"host\":\"[^\"]*\"/\"host\":\"$(hostname)\"/" troupe-runs/r/state/run.json
    run -0 --separate-stderr troupe status r
    [[ "$stderr" == *"its driver does not answer here: this is what its event log says"* ]]
    exec 7<&-
}

# srun_is COMMANDS: an srun that does only this.
srun_is() {
    mkdir -p fake
    printf '#!/bin/sh\n%s\n' "$1" >fake/srun
    chmod +x fake/srun
}

@test "a run on another host is cancelled by a step of its job that may hang, fail, or find its troupe gone" {
    long_run
    touch go
    wait $!
    PATH=$PWD/fake:$PATH
    sed -i 's/"status":"[a-z]*"/"status":"running"/; s/"host":"[^"]*"/"host":"login1.gone"/' troupe-runs/r/state/run.json
    sed -i 's/"batch_job": *[0-9]*/"batch_job": 7/' troupe-runs/r/state/run_spec.json
    exec 7<troupe-runs/r/state/lock # it may go on, there
    flock -n 7
    srun_is 'echo "$@" >words; while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"'
    sed -i 's/"pid":[0-9]*/"pid":1/' troupe-runs/r/state/run.json # somebody else's by now
    run -2 troupe cancel r
    [ "$output" = "troupe: cancel: run r has no process of ours any more" ]
    grep -- '--jobid=7 --nodelist=login1.gone' words
    srun_is 'echo "srun: error: no such job" >&2; exit 1'
    run -4 troupe cancel r
    [ "$output" = "troupe: cancel: run r is on login1.gone: no step of its job reaches it: no such job; scancel 7 ends the job" ]
    srun_is 'trap "" TERM; touch hangs; exec sleep 60.4'
    moving_clock
    troupe cancel r >said 2>&1 &
    local status=0
    wait_until [ -e hangs ]
    advance 25s
    await $! || status=$?
    output=$(<said)
    [ $status = 4 ]
    [ -z "$(pgrep -f '^sleep 60.4$')" ]
    [ "$output" = "troupe: cancel: run r is on login1.gone: a step of its job has not answered for 20 s; scancel 7 ends the job" ]
    exec 7<&-
}

@test "nobody else is answered" {
    [ "$(id -u)" = 0 ] || skip "not root"
    others_folder
    chown nobody "$d"
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$d" sh -c "
        cd $d && echo '{troupe: 1, stages: [{name: s, run: \"touch $d/began; until [ -e $d/go ]; do sleep 0.1; done\"}]}' >p.yaml
        exec troupe run --quiet --run-name r p.yaml" &
    wait_until [ -e "$d/began" ]
    cd "$d"
    run ! troupe status r
    [[ "$output" == *"belongs to nobody"* ]]
    # Root may open the folder, and is not answered either.
    [ -z "$(talk 'my $s = dial(); $SIG{PIPE} = "IGNORE"; print $s "{\"ask\":\"status\"}\n"; print <$s>' 2>&1)" ]
    run -0 setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$d" troupe status --json r
    [[ "$output" == *'"from":"driver"'* ]]
    touch "$d/go"
    wait $!
    cd "$BATS_TEST_TMPDIR"
}

@test "explain tells the stages of several starts apart, and what was given up in the last" {
    cat >p.yaml <<'Y'
troupe: 1
name: p
options: {run.keep_going: true}
stages:
  - {name: a, tasks: 2, run: '[ ! -e bad$TROUPE_TASK ]', retries: {max_failures: 1}}
  - {name: b, after: [{stage: a, each: true}], tasks: 2, tolerate: 1, run: "true"}
Y
    touch bad1
    run -1 troupe run --local=2 --quiet --run-name r p.yaml
    run -0 troupe run --local=2 --quiet --resume r --from b
    run -1 troupe run --local=2 --quiet --resume r
    run -0 troupe explain --json r
    [ "$(json 'join " ", map { ($_->{name}, eval join("+", map { $_->{tasks} } @{$_->{places}})) } @{$d->{stages}}' <<<"$output")" = "a 1 b 2" ]
    [ "$(json 'join " ", map { (scalar(@{$_->{given_up}}), scalar(@{$_->{skipped}})) } @{$d->{stages}}' <<<"$output")" = "1 0 0 1" ]
    run -0 troupe explain r a
    [[ "$output" == *"task 1, attempt 0: exit status 1"*"task 1, attempt s2.0: exit status 1"* ]]
    rm bad1
    run -0 troupe run --local=2 --quiet --resume r
    run -0 troupe explain r
    [[ "$output" == *"task 1, attempt s3.0: succeeded"* ]]
    [[ "$output" != *"given up"* && "$output" != *skipped* ]]
}

@test "a task of a later stage of the same name is not taken for one of the first" {
    run -0 troupe run --quiet --run-name r -- "$programs/fails" 1 4 1
    run -0 troupe explain --json r
    [ "$(json 'join " ", map { $_->{task} . ($_->{end} ? " failed" : " well") } map { @{$_->{tries}} } @{$d->{stages}}' <<<"$output")" = "1 failed 1 well" ]
}

@test "what was handed back before it started is no try of a task" {
    run -0 troupe run --quiet --run-name r -- "$programs/fails" 0 4
    perl -i -pe 'if (/TaskEnd/ && /"Index":3,/) {
            my $again = s/"Task End Reason":\{"Reason":"Success"\}/"Task End Reason":{"Reason":"TaskKilled","Kill Reason":"x","Troupe Status":"recalled"}/r;
            $_ = $again . $_;
        }' troupe-runs/r/events.jsonl
    grep -q recalled troupe-runs/r/events.jsonl
    run -0 troupe explain --json r
    [ "$(json 'join " ", map { scalar @{$_->{tries}} } @{$d->{stages}}' <<<"$output")" = 0 ]
}
