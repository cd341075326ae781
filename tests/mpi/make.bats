#!/usr/bin/env bats
# Runs as make has them: what is done again, why, and what is not.
load drill

pipeline() {
    cat >p.yaml <<'Y'
troupe: 1
name: mk
params: {k: 1}
stages:
  - {name: a, foreach: {files: "in/*.txt"}, outputs: ["out/$TROUPE_TASK"], run: 'mkdir -p out; cp "$TROUPE_ITEM" out/$TROUPE_TASK; echo a$TROUPE_TASK >>ran'}
  - {name: b, inputs: [ref.fa, "parts/*"], run: 'echo b >>ran'}
  - {name: c, after: [a], run: 'echo c $TROUPE_PARAM_k >>ran'}
Y
    mkdir in parts
    touch in/0.txt in/1.txt in/2.txt ref.fa parts/0
}

# again OPTION…: what a resumed run does.
again() {
    rm -f ran
    troupe run --local=2 --resume r "$@" >out.txt 2>err.txt || return 1
    sort ran 2>/dev/null | tr '\n' ' '
}

planned() {
    troupe plan --resume r --local=2 "$@" | sed '1,/^of /d'
}

@test "an edited input, output or stage is done again, with what comes after it, and nothing else" {
    pipeline
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(again)" = "" ]
    [ "$(planned | sort | tr '\n' ';')" = "a: does not run;b: does not run;c: does not run;" ]
    echo x >>in/1.txt
    [ "$(planned | tr '\n' ';')" = "a: 2 tasks are done, 1 of 3 runs: inputs of task 1 changed;b: does not run;c: 1 of 1 runs: stage a runs again;" ]
    [ "$(planned)" = "$(planned)" ] # looking changes nothing
    [ "$(again)" = "a1 c 1 " ]
    grep -qx 'troupe: stage a: 1 task that was done is to run again: inputs of task 1 changed' err.txt
    grep -qx 'troupe: stage b: does not run' err.txt # a line for each stage
    grep -qx 'troupe: stage c is to run again: stage a runs again' err.txt
    echo x >>ref.fa
    [ "$(again)" = "b " ]
    touch parts/1 # one more that matches
    [ "$(again)" = "b " ]
    rm out/2
    [ "$(planned | sed -n 1p)" = "a: 2 tasks are done, 1 of 3 runs: output out/2 is not there" ]
    [ "$(again)" = "a2 c 1 " ]
    # The file is read again.
    sed -i "s/echo b >>ran/echo bb >>ran/" p.yaml
    [ "$(planned | sed -n 2p)" = "b: 1 of 1 runs: its command changed" ]
    [ "$(again)" = "bb " ]
    grep -q 'stage b: 1 task that was done is to run again: its command changed' err.txt
    sed -i "s/name: b,/name: b, env: {X: 1},/" p.yaml
    [ "$(again)" = "bb " ]
    grep -q ': its env changed$' err.txt
    sed -i "s/name: b,/name: b, profile: w,/; s/^stages:/profiles: {w: {executor: {cores: 2}}}\nstages:/" p.yaml
    [ "$(again)" = "" ] # more room repeats nothing
    sed -i "s/echo bb/echo b/; s/X: 1/X: 2/" p.yaml
    [ "$(planned | sed -n 2p)" = "b: 1 of 1 runs: its command, its env changed" ]
    [ "$(again)" = "b " ]
    [ "$(again --param k=2)" = "c 2 " ]
    grep -q 'stage c: 1 task that was done is to run again: params changed' err.txt
    [ "$(again)" = "" ]
    run -0 troupe plan --resume r --local=2 --json --param k=3
    [ "$(grep -c '"why": "params changed"' <<<"$output")" = 1 ]
    run -0 troupe run --dry-run --resume r --local=2 --param k=3
    [[ "$output" == *"c: 1 of 1 runs: params changed"* ]]
    rm in/2.txt
    [ "$(planned | tr '\n' ';')" = "a: does not run;b: does not run;c: 1 of 1 runs: tasks of stage a are gone;" ]
    [ "$(again)" = "c 2 " ]
    grep -qx 'troupe: stage c is to run again: tasks of stage a are gone' err.txt
    [ "$(again)" = "" ]
}

@test "a run whose pipeline is gone, or another one, goes on only when it is told so" {
    pipeline
    run -0 troupe run --local=2 --run-name r p.yaml
    sed -i 's/echo b /echo new /' p.yaml
    [ "$(again --as-it-was)" = "" ]
    mv p.yaml q.yaml
    run -2 troupe run --resume r
    [[ "$output" == "troupe: p.yaml: the pipeline of troupe-runs/r is not there any more"*"--as-it-was"* ]]
    [ "$(again --as-it-was)" = "" ]
    [ "$(again q.yaml)" = "new " ]
    printf 'troupe: 1\nname: other\nstages:\n  - {name: z, run: x}\n' >o.yaml
    run -2 troupe run --resume r o.yaml
    [[ "$output" == "troupe: o.yaml: other is another pipeline than that of troupe-runs/r"* ]]
    run -2 troupe plan --resume r o.yaml
    run -2 troupe run --as-it-was o.yaml
    run -2 troupe run --resume r --as-it-was o.yaml
    # One of another name with a stage of it is the same, renamed.
    sed -i 's/name: mk/name: renamed/' q.yaml
    [ "$(again q.yaml)" = "" ]
}

@test "a run whose folder was moved says what to do, and goes on with --here" {
    mkdir old
    cd old
    pipeline
    printf 'site: 1\n' >site.yaml
    run -0 troupe run --site "$PWD/site.yaml" --local=2 --run-name r "$PWD/p.yaml"
    cd ..
    mv old new
    cd new
    run -2 troupe run --resume r
    [ "$output" = "troupe: troupe-runs/r was called in ${PWD%/new}/old, which cannot be entered (No such file or directory); --here goes on in the present folder instead, as after moving it" ]
    run -2 troupe run --here p.yaml
    run -0 troupe plan --resume r --here
    [[ "$output" == *"a: does not run"*"b: does not run"* ]]
    [ "$(again --here)" = "" ]
    sed -i 's/echo b /echo new /' p.yaml
    [ "$(again)" = "new " ] # from now on here
}

@test "after a failure: mend the command, and --resume last does what is not done" {
    pipeline
    sed -i "s/echo b >>ran/false \&\& echo b >>ran/; s/name: b,/name: b, after: [a], retries: {max_failures: 1},/" p.yaml
    sed -i "s/name: c, after: .a./name: c, after: [b]/" p.yaml
    run -1 troupe run --local=2 p.yaml
    [ "$(sort ran | tr '\n' ' ')" = "a0 a1 a2 " ]
    sed -i 's/false && //' p.yaml
    rm ran
    run -0 troupe run --local=2 --resume last
    [ "$(sort ran | tr '\n' ' ')" = "b c 1 " ]
    [ "$(ls troupe-runs | wc -l)" = 2 ] # the run and `last`
    run -0 troupe run --local=2 --resume last
    [[ "$output" == *"nothing is left to do: every stage is done"* ]]
    run -0 troupe run --local=2 --resume last --until a
    [[ "$output" == *"nothing is left to do: every stage up to a is done"* ]]
    printf 'troupe: 1\nparams: {q: no}\nstages: [{name: a, when: "${q}", run: x}]\n' >p.yaml
    run -0 troupe run --local=2 p.yaml
    [[ "$output" == *"nothing is to do: every stage is left out by its when"* ]]
}

@test "always: the stage runs at every resume, and what comes after it" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, run: 'echo a >>ran'}
  - {name: b, always: true, run: 'echo b >>ran'}
  - {name: c, after: [a, b], run: 'echo c >>ran'}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(again)" = "b c " ]
    [ "$(again)" = "b c " ]
    grep -q 'stage b is to run again: always: true' err.txt
    [ "$(planned | tr '\n' ';')" = "a: does not run;b: 1 of 1 runs: always: true;c: 1 of 1 runs: stage b runs again;" ]
}

@test "an output of a task that was not made fails its attempt, where it ran" {
    cat >p.yaml <<'Y'
troupe: 1
options: {events.engine: true}
stages:
  - name: a
    foreach: {items: [x, "y[1]", z]}
    outputs: ["o/${item}.*", {file: "log/${item}", optional: true}]
    retries: {max_failures: 2}
    run: 'mkdir -p o; case $TROUPE_ITEM.$TROUPE_ATTEMPT in x.0|z.*) ;; *) touch "o/$TROUPE_ITEM.t" ;; esac; echo $TROUPE_ITEM >>ran'
  - {name: b, after: [{stage: a, each: true}], foreach: {items: [x, y, z]}, run: 'echo b$TROUPE_ITEM >>ran'}
Y
    run -1 troupe run --local=2 --keep-going --run-name r p.yaml
    [ "$(sort ran | tr '\n' ' ')" = "bx by x x y[1] z z " ]
    [[ "$output" == *"stage a: task 0, attempt 0: output o/x.* was not made; it is run again"* ]]
    [[ "$output" == *"task 2 failed 2 times, last: output o/z.* was not made; item z"* ]]
    grep -q '"Class Name":"troupe.OutputNotMade"' troupe-runs/r/events.jsonl
    run -0 troupe sim --replay troupe-runs/r/state/engine.trace
    # A task that succeeded then, and another pattern now: it is run again.
    again || [ "$(sort ran | tr '\n' ' ')" = "z z " ]
    sed -i 's/|z\.\*//; s/, optional: true//' p.yaml
    sed -i 's/mkdir -p o;/mkdir -p o log; touch "log\/$TROUPE_ITEM";/' p.yaml
    [ "$(again)" = "bx by bz x x y[1] z " ]
    [ "$(again)" = "" ]
    sed -i 's/file: "log/file: "lag/' p.yaml
    planned | grep -q "^a: 3 of 3 run: its command changed" || { planned; return 1; }
    # What names no file of a task is told before it runs.
    printf 'troupe: 1\nstages:\n  - {name: a, retries: {max_failures: 1}, foreach: {items: [""]}, outputs: ["o/${item}"], run: "touch began"}\n' >q.yaml
    run -1 troupe run --local=1 q.yaml
    [[ "$output" == *'could not be started: its output o/${item} names no file of this task'* ]]
    [ ! -e began ]
}

# looks_for: the run r says that the outputs of a stage are not there yet.
looks_for() {
    troupe status --json r | grep -q '"its tasks are over; its outputs are looked for; output late/\* was not made yet; it may be 3600 s late (outputs.wait)"'
}

@test "an output of a stage may be late for outputs.wait; what is not made then fails the stage" {
    cat >p.yaml <<'Y'
troupe: 1
options: {outputs.wait: 1h}
stages:
  - {name: none, foreach: {items: []}, outputs: [never]}
  - {name: a, tasks: 2, outputs: ["late/*", {file: "no/*", optional: true}], run: 'echo a >>ran'}
  - {name: b, after: [a], run: 'ls late/x && echo b >>ran'}
Y
    sed -i 's/outputs: \[never\]/&, run: x/' p.yaml
    troupe run --local=2 --run-name r p.yaml >out.txt 2>err.txt 3>&- &
    local pid=$!
    wait_until looks_for
    [ "$(sort ran | tr '\n' ' ')" = "a a " ]
    mkdir late && touch late/x
    wait $pid
    [ "$(sort ran | tr '\n' ' ')" = "a a b " ]
    [ "$(again)" = "" ]
    # Gone, and not made again.
    rm -r late
    run -1 troupe run --local=2 --resume r --set outputs.wait=100ms
    [[ "$output" == *"troupe: p.yaml:5:12: stage a: output late/* was not made"* ]]
    run -1 troupe run --local=2 --resume r --set outputs.wait=0
    [[ "$output" == *"stage a: 2 tasks that were done are to run again: output late/* is not there"* ]]
    # A run that is stopped while it waits ends.
    troupe run --local=2 --resume r --set outputs.wait=1h >out.txt 2>err.txt 3>&- &
    pid=$!
    wait_until looks_for
    kill -INT $pid
    local status=0
    wait $pid || status=$?
    [ $status = 130 ]
}

@test "an output that is as it was before was not made: a file, a folder, a link to nothing, a stage's" {
    cat >p.yaml <<'Y'
troupe: 1
options: {outputs.wait: 50ms, task.maxFailures: 1}
stages:
  - {name: file, foreach: {items: [a, b]}, outputs: ["${item}.o"], run: '[ $TROUPE_ITEM = a ] || echo new >b.o'}
  - {name: folder, foreach: {items: [c, d]}, outputs: ["${item}"], run: '[ $TROUPE_ITEM = c ] || touch d/deep/x'}
  - {name: link, tasks: 1, outputs: ["l${task}"], run: 'ln -sf nowhere l0'}
  - {name: may, tasks: 1, outputs: [{file: "m.o", optional: true}], run: 'true'}
  - {name: whole, tasks: 2, outputs: ["w/*"], run: 'true'}
Y
    mkdir -p c/deep d/deep w
    touch -d '1 hour ago' a.o b.o m.o c/deep/x d/deep/x w/x
    run -1 troupe run --local=2 --keep-going --run-name r p.yaml
    [[ "$output" == *"stage file: task 0 failed once: output a.o is as it was before; write {file: a.o, optional: true} where a command may leave it so"* ]]
    [[ "$output" == *"stage folder: task 0 failed once: output c is as it was before"* ]]
    [[ "$output" == *"stage link: task 0 failed once: output l0 was not made"* ]]
    [[ "$output" == *"stage whole: output w/* is as it was before"* ]]
    [ "$(planned | tail -1)" = "whole: 2 of 2 run" ] # although its tasks have succeeded
}

@test "tasks that name one folder are done, although each saw there what another still wrote" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: a
    foreach: {items: [d/x, d/y]}
    outputs: ["${dir}"]
    run: |
      mkdir -p d; echo $TROUPE_TASK >>ran; echo part >$TROUPE_ITEM
      [ $TROUPE_TASK = 1 ] || { until [ -e d/y ]; do sleep 0.01; done; exit 0; }
      until grep -q '"task":0' troupe-runs/r/state/done.jsonl; do sleep 0.01; done; echo longer >d/y
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(again)" = "" ]
    rm d/y
    [ "$(again)" = "1 " ]
    [ "$(again)" = "" ]
}

@test "of two that make one file the later fails, where that is not known before; a folder is no file" {
    cat >p.yaml <<'Y'
troupe: 1
options: {outputs.wait: 50ms, task.maxFailures: 1}
stages:
  - {name: list, run: 'printf "a\nb\na\n" >l'}
  - {name: a, after: [list], foreach: {lines: l}, max_running: 1, outputs: ["o/${item}.x"], run: 'mkdir -p o; echo $TROUPE_TASK >o/$TROUPE_ITEM.x'}
  - {name: b, outputs: [out], run: 'echo >out'}
  - {name: c, after: [b], outputs: [out], run: 'echo >out'}
  - {name: d, tasks: 2, outputs: [dir], run: 'mkdir -p dir; echo >dir/$TROUPE_TASK'}
  - {name: e, after: [d], outputs: [dir], run: 'echo >dir/e'}
  - {name: f, outputs: [real/y.x], run: 'mkdir real; ln -s real link; echo >real/y.x'}
  - {name: g, after: [f], foreach: {items: [y, z]}, outputs: ["link/${item}.x"], run: 'echo >link/$TROUPE_ITEM.x'}
Y
    run -1 troupe run --local=2 --keep-going --run-name r p.yaml
    [[ "$output" == *"stage a: task 2 failed once: output o/a.x is that of task 0 of stage a too; give each its own"* ]]
    [[ "$output" == *"stage c: output out is that of stage b too; give each its own"* ]]
    [[ "$output" == *"stage e succeeded"* ]]
    [[ "$output" == *"stage g: task 0 failed once: output link/y.x (real/y.x) is that of stage f too; give each its own"* ]]
}

@test "outputs of a gang may be late on the node that starts it" {
    cat >p.yaml <<'Y'
troupe: 1
options: {outputs.wait: 1h}
stages:
  - {name: g, mpi: {ranks: 2}, outputs: ["g/${task}"], retries: {max_failures: 1}, run: 'echo $$ >ran.$TROUPE_RANK'}
Y
    troupe run --local=2 --run-name r p.yaml >out.txt 2>err.txt 3>&- &
    local pid=$!
    wait_until [ -s ran.0 -a -s ran.1 ]
    wait_until is_gone "$(<ran.0)"
    wait_until is_gone "$(<ran.1)"
    mkdir g && touch g/0
    wait $pid
    rm -r g
    run -1 troupe run --local=2 --resume r --set outputs.wait=50ms
    [[ "$output" == *"failed once: output g/0 was not made"* ]]
}

@test "resume.check=contents: other bytes under the same time count, another time does not" {
    cat >p.yaml <<'Y'
troupe: 1
name: mk
options: {resume.check: contents}
stages:
  - {name: a, foreach: {files: "in/*.txt"}, outputs: ["out/${stem}"], run: 'mkdir -p out; cp "$TROUPE_ITEM" out/$TROUPE_ITEM_STEM; echo a$TROUPE_TASK >>ran'}
  - {name: b, after: [a], outputs: ["all/*"], run: 'mkdir -p all; cat out/* >all/text; echo b >>ran'}
Y
    mkdir in
    echo 0 >in/0.txt
    echo 1 >in/1.txt
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(grep -c '"sums":' troupe-runs/r/state/done.jsonl)" = 2 ]
    [ "$(again)" = "" ]
    # As rsync and tar leave a file: other bytes, the time of before.
    touch -r out/1 stamp
    echo X >out/1
    touch -r stamp out/1
    [ "$(planned --set resume.check=time | tr "\n" ";")" = "a: does not run;b: does not run;" ]
    [ "$(planned | tr '\n' ';')" = "a: 1 task is done, 1 of 2 runs: output out/1 changed;b: 1 of 1 runs: stage a runs again;" ]
    [ "$(again)" = "a1 b " ]
    grep -qx 'troupe: stage a: 1 task that was done is to run again: output out/1 changed' err.txt
    touch -r in/0.txt stamp
    echo Y >in/0.txt
    touch -r stamp in/0.txt
    [ "$(again)" = "a0 b " ]
    grep -q 'stage a: 1 task that was done is to run again: inputs of task 0 changed' err.txt
    [ "$(cat all/text)" = "Y
1" ]
    touch in/*.txt out/* all/text # nothing else
    [ "$(planned | tr '\n' ';')" = "a: does not run;b: does not run;" ]
    [ "$(again)" = "" ]
    run -2 troupe run --local=2 --set resume.check=size p.yaml
    [[ "$output" == *"resume.check"*"contents|time"* ]]
}

@test "inputs that nothing matches are told, once a stage" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, tasks: 3, inputs: [ref.fa, "prats/*", "also/not"], run: 'true'}
  - {name: b, inputs: [ref.fa], run: 'true'}
Y
    touch ref.fa
    run -0 troupe run --local=1 p.yaml
    [ "$(grep -c 'when task' <<<"$output")" = 1 ]
    [[ "$output" == *"p.yaml:3:12: warning: stage a: inputs: no file matches prats/* when task 0 has ended, so --resume does not see a change of what it reads"* ]]
}

is_told() { advance 61s && grep -qx "$1" out; }
guards_are() { [ "$(grep -c ' guard$' troupe-runs/r/state/pids)" = "$1" ]; }

@test "a driver that looks at what was done for more than a minute is waited for" {
    local done=troupe-runs/r/state/done.jsonl pid
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, tasks: 3, run: "echo >>ran; [ $TROUPE_TASK != 2 -o -e good ]", retries: {max_failures: 1}}
Y
    run -1 troupe run --keep-going --run-name r p.yaml
    touch good
    mv "$done" was
    mkfifo "$done" # what is read from it comes late
    moving_clock
    troupe run --keep-going --resume r >out 2>&1 &
    pid=$!
    wait_until guards_are 2
    wait_until is_told 'troupe: the driver still looks at what earlier starts of the run have done; Ctrl-C twice, or `troupe cancel --now`, ends it'
    exec 9>"$done"
    cp was now
    mv now "$done"
    cat was >&9
    exec 9>&-
    wait $pid || { cat out; return 1; }
    [ "$(wc -l <ran)" = 4 ]
}
