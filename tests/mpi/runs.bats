#!/usr/bin/env bats
# Whole runs of pipelines on this machine: what a user sees when things go well.
load drill.bash

@test "stages of different shapes run one after the other and their tasks see their shape" {
    cat >p.yaml <<'Y'
troupe: 1
name: shapes
profiles:
  small: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
  wide: {executor: {cores: 2, memory: 64m}, task: {cpus: 2}}
stages:
  - {name: one, profile: small, tasks: 3, run: "echo $TROUPE_STAGE $TROUPE_PROFILE $TROUPE_CPUS $TROUPE_TASK/$TROUPE_TASKS $TROUPE_ATTEMPT"}
  - {name: two, after: [one], profile: wide, run: "echo $TROUPE_STAGE $TROUPE_PROFILE $TROUPE_CPUS"}
Y
    run -0 troupe run --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/one/2.0.out)" = "one small 1 2/3 0" ]
    [ "$(cat troupe-runs/r/logs/two/0.0.out)" = "two wide 2" ]
    [[ "$output" == *"one"*"small"*"3"* ]]
    [ "$(readlink troupe-runs/last)" = r ]
    [ "$(stat -c %a troupe-runs/r)" = 700 ]
}

@test "a local run lets nobody in from other machines" {
    echo '{troupe: 1, stages: [{name: s, run: "touch began; until [ -e go ]; do sleep 0.1; done"}]}' >p.yaml
    troupe run --run-name local-only --quiet p.yaml &
    wait_until [ -e began ]
    # The admission socket of the driver, and MPI's own where it is used.
    ss -Hltnp | grep "pid=$(pid_of driver local-only)," | awk '{print $4}' >listens
    touch go
    wait $!
    grep -q '^127\.0\.0\.1:' listens
    if ! grep -q 'messages travel over MPI' <(events local-only); then
        run -1 grep -v '^127\.0\.0\.1:' listens
    fi
    [ "$(stat -c %a troupe-runs/local-only/state/secret)" = 600 ]
}

@test "items with spaces, quotes, newlines and UTF-8 arrive byte for byte" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    foreach: {items: ["a b", "it's", "\"q\"", "two\nlines", "grüße ☃", "$HOME `id`", ""]}
    run: printf %s "$TROUPE_ITEM"
Y
    run -0 troupe run --run-name r p.yaml
    cd troupe-runs/r/logs/s
    [ "$(cat 0.0.out)" = "a b" ]
    [ "$(cat 1.0.out)" = "it's" ]
    [ "$(cat 2.0.out)" = '"q"' ]
    [ "$(cat 3.0.out)" = $'two\nlines' ]
    [ "$(cat 4.0.out)" = "grüße ☃" ]
    [ "$(cat 5.0.out)" = '$HOME `id`' ]
    [ ! -s 6.0.out ]
}

@test "foreach over files and lines, an empty list, and a pattern without a match" {
    mkdir data && touch data/b.txt "data/a c.txt" data/.hidden.txt
    printf 'x\n\n# y\nlast' >list
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: files, foreach: {files: "data/*.txt"}, run: 'printf %s "$TROUPE_ITEM"'}
  - {name: lines, foreach: {lines: list}, run: 'printf %s "$TROUPE_ITEM"'}
  - {name: none, foreach: {items: []}, run: "false"}
  - {name: zero, tasks: 0, run: "false"}
  - {name: nomatch, foreach: {files: "nope/*"}, allow_empty: true, run: "false"}
Y
    run -0 troupe run --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/files/0.0.out)" = "data/a c.txt" ]
    [ "$(cat troupe-runs/r/logs/files/1.0.out)" = "data/b.txt" ]
    [ ! -e troupe-runs/r/logs/files/2.0.out ]
    [ "$(cat troupe-runs/r/logs/lines/1.0.out)" = "# y" ]
    [ "$(cat troupe-runs/r/logs/lines/2.0.out)" = last ]
    sed -i 's/, allow_empty: true//' p.yaml
    run -1 troupe run --run-name r2 p.yaml
    [[ "$output" == *"p.yaml:7:"*"nomatch"*"nope/"* ]]
}

@test "addresses of a device are given to one task at a time and fractions share one" {
    echo '{site: 1, local: {gpu: ["0", "1"]}}' >site.yaml
    cat >p.yaml <<'Y'
troupe: 1
profiles:
  whole: {executor: {cores: 2, gpu: 2}, task: {cpus: 1, gpu: 1}}
  half: {executor: {cores: 2, gpu: 1}, task: {cpus: 1, gpu: 0.5}}
stages:
  - name: whole
    profile: whole
    tasks: 6
    retries: {max_failures: 1}
    run: |
      set -e
      mkdir lock.$TROUPE_RESOURCE_gpu; sleep 0.1; rmdir lock.$TROUPE_RESOURCE_gpu
      echo $TROUPE_RESOURCE_gpu $CUDA_VISIBLE_DEVICES
  - {name: half, after: [whole], profile: half, tasks: 2, run: "touch half.$TROUPE_TASK; until [ -e half.$((1 - TROUPE_TASK)) ]; do sleep 0.02; done; echo $TROUPE_RESOURCE_gpu"}
  - {name: none, after: [half], run: 'echo "[$CUDA_VISIBLE_DEVICES]${TROUPE_RESOURCE_gpu-unset}"'}
Y
    run -0 troupe run --site site.yaml --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/whole/*.out | sort -u | tr '\n' ' ')" = "0 0 1 1 " ]
    [ "$(cat troupe-runs/r/logs/half/*.out | sort -u | wc -l)" = 1 ] # both at once on one
    [ "$(cat troupe-runs/r/logs/none/0.0.out)" = "[]unset" ]
    [[ "$output" == *gpu-seconds* ]]
    [[ "$(events r | grep ExecutorAdded)" == *'"gpu":{"name":"gpu","addresses":["0","1"]}'* ]]
    # The default profile is announced as well, though no stage is in it.
    sed -i '/name: none/d' p.yaml
    run -0 troupe run --site site.yaml --run-name q p.yaml
    [ "$(events q | grep -o 'ResourceProfileAdded","Resource Profile Id":[0-9]*' | grep -o '[0-9]*$' | xargs)" = "0 1 2" ]
}

@test "a resumed run keeps its site file" {
    echo '{site: 1, local: {gpu: ["0"]}}' >site.yaml
    cat >p.yaml <<'Y'
troupe: 1
profiles: {g: {executor: {cores: 1, gpu: 1}, task: {gpu: 1}}}
stages: [{name: s, profile: g, run: "[ -e fixed ]", retries: {max_failures: 1}}]
Y
    run -1 troupe run --site site.yaml --run-name r p.yaml
    touch fixed
    run -0 troupe run --resume r
}

@test "a gang has all its ranks at once, each with a log of its own" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {g: {executor: {cores: 2}, task: {cpus: 1}}}
stages:
  - name: gang
    profile: g
    mpi: {ranks: 2}
    run: echo "$TROUPE_RANK of $TROUPE_RANKS"
Y
    run -0 troupe run --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/gang/0.0.1.out)" = "1 of 2" ]
    sed -i 's/ranks: 2/ranks: 200000/' p.yaml
    run -2 troupe run p.yaml
    sed -i 's/ranks: 200000/ranks: 2000/' p.yaml
    run -3 troupe run p.yaml
    [[ "$output" == *"p.yaml:"*"ranks"* ]]
}

@test "a gang holds nothing while it waits for its room" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: long, run: sleep 2}
  - {name: short, run: "true"}
  - {name: gang, after: [short], mpi: {ranks: 2}, run: "true"}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    run -0 troupe report r
    awk '$1 == "gang" { held = $(NF - 1) } END { exit !(held > 0 && held < 2) }' <<<"$output"
}

@test "after each, max_running, env, cwd, wrap, prelude, argv and params do what they say" {
    mkdir sub
    cat >p.yaml <<'Y'
troupe: 1
params: {word: hello}
stages:
  - {name: a, tasks: 3, run: "echo $TROUPE_TASK > a.$TROUPE_TASK"}
  - {name: b, after: [{stage: a, each: true}], tasks: 3, run: "cat a.$TROUPE_TASK"}
  - {name: c, after: [b], tasks: 4, max_running: 1, retries: {max_failures: 1}, run: "mkdir l && sleep 0.05 && rmdir l"}
  - {name: d, after: [c], cwd: sub, env: {X: "007"}, prelude: "Y=pre", run: "echo $X $Y $(basename $PWD) $TROUPE_PARAM_word"}
  - {name: e, after: [d], argv: [printf, "%s|", a b, "c d"]}
  - {name: f, after: [e], wrap: [env, W=wrapped], run: "echo $W"}
Y
    run -0 troupe run --run-name r --param word=bye p.yaml
    [ "$(cat troupe-runs/r/logs/b/2.0.out)" = 2 ]
    [ "$(cat troupe-runs/r/logs/d/0.0.out)" = "007 pre sub bye" ]
    [ "$(cat troupe-runs/r/logs/e/0.0.out)" = "a b|c d|" ]
    [ "$(cat troupe-runs/r/logs/f/0.0.out)" = wrapped ]
}

@test "params and what a task has stand in values; a resumed run sees other params" {
    mkdir fq && touch fq/a.fq.gz "fq/b c.fq"
    cat >p.yaml <<'Y'
troupe: 1
params: {n: 2, in: fq, glob: "${in}/*[qz]", html: x, css: x}
stages:
  - {name: a, tasks: "${n}", run: "echo $TROUPE_PARAM_n; d=x; echo ${d}"}
  - name: b
    foreach: {files: "${glob}"}
    argv: [sh, -c, 'echo "$1 $2 $X $(basename "$PWD") $TROUPE_ITEM_DIR,$TROUPE_ITEM_NAME,$TROUPE_ITEM_STEM,$TROUPE_ITEM_EXT"; : >"$3"',
           x, "${item}", "$${n}.${task}", "${stem}.out"]
    env: {X: "${ext}-${n}"}
    cwd: "${dir}"
    outputs: ["${dir}/${stem}.out"]
  - {name: c, foreach: {items: ["x\ny"]}, argv: [printf, "[%s]", "${item}"]}
  - {name: d, mpi: {ranks: 2}, argv: [echo, "${task}", "${n}"]}
Y
    run -0 troupe plan --param n=3 p.yaml
    [[ "$output" == *"a      default  3 "* ]]
    run -2 troupe run --param n=-3 p.yaml
    [[ "$output" == *"p.yaml:4:22: tasks is -3"* ]]
    run -2 troupe plan --param m=3 p.yaml
    run -0 troupe run --local=2 --run-name r --param n=3 p.yaml
    [ "$(cat troupe-runs/r/logs/a/2.0.out)" = $'3\nx' ]
    [ "$(cat troupe-runs/r/logs/b/0.0.out)" = "fq/a.fq.gz \${n}.0 gz-3 fq fq,a.fq.gz,a.fq,gz" ]
    [ "$(cat troupe-runs/r/logs/b/1.0.out)" = "fq/b c.fq \${n}.1 fq-3 fq fq,b c.fq,b c,fq" ]
    [ "$(cat troupe-runs/r/logs/c/0.0.out)" = $'[x\ny]' ]
    [ "$(cat troupe-runs/r/logs/d/0.0.1.out)" = "0 3" ]
    run -0 troupe run --dry-run --resume r
    [[ "$output" == *"a: does not run"*"b: does not run"* ]]
    rm "fq/b c.out"
    run -0 troupe run --dry-run --resume r
    [[ "$output" == *"b: 1 task is done"* ]]
    run -0 troupe run --dry-run --resume r --param n=4
    [[ "$output" == *"a: 4 tasks"* && "$output" != *"no stage names"* ]]
    touch "fq/b c.out"
    local words="no stage names these params, which have changed: html, css (a script that reads TROUPE_PARAM_html"
    run -0 troupe plan --local=2 --resume r --param html=y --param css=y --param n=3
    [[ "$output" == *$'\n'"$words by itself: list it in params)" ]]
    run -0 troupe run --local=2 --resume r --param html=y --param css=y
    [[ "$output" == *"troupe: $words"* ]]
    run -0 troupe plan --local=2 --resume r
    [[ "$output" == *"a: does not run"* && "$output" != *"no stage names"* ]]
}

@test "rows of a table, products, aliases and when; a changed row runs again" {
    mkdir in && printf 'sample\tfq\r\nA\tin/a.fq\r\nB\tin/b c.fq\r\n' >s.tsv
    printf 'k,v\n"x,""1""",y\n' >s.csv
    cat >p.yaml <<'Y'
troupe: 1
params: {qc: no}
profiles:
  small: &small {executor: {cores: 1, memory: 200m}}
  big: {<<: *small, task: {cpus: 1}}
stages:
  - name: align
    profile: big
    foreach: {table: s.tsv}
    argv: [sh, -c, 'echo "$1 $2 $TROUPE_COL_sample $TROUPE_COL_fq|$TROUPE_ITEM"; : >out.$1', x,
           "${col.sample}", "${col.fq}"]
    outputs: ["out.${col.sample}"]
  - {name: qc, after: [align], when: "${qc}", run: exit 7}
  - name: sweep
    after: [{stage: qc, each: true}, align]
    foreach: {product: {lr: [0.1, 0.2], seed: {items: [1, 2]}}}
    run: echo "$TROUPE_COL_lr $TROUPE_COL_seed"
  - {name: csv, foreach: {table: s.csv}, run: 'echo "$TROUPE_COL_k-$TROUPE_COL_v"'}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/align/1.0.out)" = $'B in/b c.fq B in/b c.fq|B\tin/b c.fq' ]
    [ "$(cat troupe-runs/r/logs/sweep/2.0.out)" = "0.2 1" ]
    [ "$(cat troupe-runs/r/logs/csv/0.0.out)" = 'x,"1"-y' ]
    [ ! -e troupe-runs/r/logs/qc ]
    sed -i 's/in.b c/in\/b/' s.tsv
    run -0 troupe run --dry-run --resume r
    [[ "$output" == *"align: 1 task is done"* ]]
    run -2 troupe run --param qc=yes p.yaml
    [[ "$output" == *"each: stage qc has 1 task, sweep has 4"* ]]
}

@test "included files run, are stored with the run, and their lines are told" {
    mkdir common
    cat >p.yaml <<'Y'
troupe: 1
include: [common/a.yaml]
params: {n: 2}
stages:
  - {name: last, after: [first], run: 'echo $TROUPE_PARAM_word $TROUPE_PARAM_wrd'}
Y
    cat >common/a.yaml <<'Y'
troupe: 1
params: {word: hello}
stages:
  - name: first
    tasks: ${n}
    run: '[ -e go ]'
    retries: {max_failures: 1}
Y
    run -1 troupe run --local=2 --run-name r p.yaml
    [[ "$output" == *'p.yaml:5:39: warning: stage last: no run sets TROUPE_PARAM_wrd; did you mean "TROUPE_PARAM_word"?'* ]]
    [[ "$output" == *"common/a.yaml:4:11: stage first: task "* ]]
    rm -r common && touch go
    run -2 troupe run --local=2 --resume r
    [[ "$output" == *"p.yaml:2:11: included: "*"common/a.yaml: cannot be read: No such file"* ]]
    run -0 troupe run --local=2 --as-it-was --resume r
    [ "$(cat troupe-runs/r/logs/last/0.*.out)" = hello ]
    run -2 troupe plan p.yaml
    [[ "$output" == *"p.yaml:2:11: included: "*"common/a.yaml: cannot be read: No such file"* ]]
}

@test "lists, tables and files are stored with the run, and taken as they were" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: t, foreach: {table: t.tsv}, run: 'echo "t $TROUPE_COL_s" >>ran; [ -e go ]', retries: {max_failures: 1}}
  - {name: f, foreach: {files: "in/*"}, run: 'echo "f $TROUPE_ITEM" >>ran; [ -e go ]', retries: {max_failures: 1}}
  - {name: p, foreach: {product: {l: {lines: l}, n: [1, 2]}}, run: 'echo "p $TROUPE_COL_l$TROUPE_COL_n" >>ran; [ -e go ]', retries: {max_failures: 1}}
  - {name: make, run: 'echo new >made; mkdir -p out; touch out/new; [ -e go ]', retries: {max_failures: 1}}
  - {name: use, after: [make], foreach: {lines: made}, run: 'echo "use $TROUPE_ITEM" >>ran'}
  - {name: take, after: [make], foreach: {files: "out/*"}, run: 'echo "take $TROUPE_ITEM" >>ran'}
Y
    mkdir in out
    touch in/a in/b out/old
    printf 's\tv\nx\t1\ny\t2\n' >t.tsv
    printf 'k\n' >l
    printf 'first\n' >made
    run -1 troupe run --local=2 --keep-going --run-name r p.yaml
    [ "$(ls troupe-runs/r/state/lists | tr '\n' ' ')" = "f p:0 t " ] # not of stages that did not begin
    was=$(sort ran)
    [ "$(tr '\n' ' ' <<<"$was")" = "f in/a f in/b p k1 p k2 t x t y " ]
    # All of it is changed, and gone in part.
    touch in/c go
    rm in/a l
    printf 's\tv\nz\t1\n' >t.tsv
    rm ran
    run -0 troupe run --resume r --as-it-was --local=2 --dry-run
    [[ "$output" == *"t: 2 of 2 run"* && "$output" == *"f: 2 of 2 run"* ]] || { echo "$output"; return 1; }
    run -0 troupe run --resume r --as-it-was --local=2
    # What a stage has made again is taken as it is.
    [ "$(sort ran | tr '\n' ' ')" = "$(tr '\n' ' ' <<<"$was")take out/new take out/old use new " ]
    run -0 troupe run --resume r --as-it-was --local=2
    [[ "$output" == *"nothing is left to do"* ]]
    # What comes in between is left out: a stage that runs again has what it had.
    sleep 0.05
    printf 'later\n' >made
    touch out/later
    rm ran
    run -0 troupe run --resume r --as-it-was --local=2 --force use --force take
    [ "$(sort ran | tr '\n' ' ')" = "take out/new take out/old use new " ]
    rm ran
    run -0 troupe run --resume r --as-it-was --local=2 --force make
    [ "$(sort ran | tr '\n' ' ')" = "take out/new take out/old use new " ]
    # A later resume takes what there is, and keeps that.
    printf 'k\n' >l
    rm ran
    run -0 troupe run --resume r --local=2
    [ "$(sort ran | tr '\n' ' ')" = "f in/c t z take out/later " ]
    [ "$(cat troupe-runs/r/state/lists/t)" = "$(cat t.tsv)" ]
    [ "$(tr '\0' ' ' <troupe-runs/r/state/lists/f)" = "in/b in/c " ]
}

@test "logs --follow prints what comes, of files and streams, once, until the run has ended" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: f, tasks: 2, run: 'echo "f$TROUPE_TASK one"; until [ -e go ]; do sleep 0.1; done; echo "f$TROUPE_TASK two"; echo err >&2'}
  - {name: s, tasks: 2, task_logs: stage, run: 'echo "s$TROUPE_TASK one"; until [ -e go ]; do sleep 0.1; done; echo "s$TROUPE_TASK two"'}
  - {name: late, after: [f], task_logs: stage, run: 'echo late'}
Y
    troupe run --quiet --run-name r --local=4 p.yaml >sum 2>&1 3>&- &
    local pid=$!
    wait_until [ -e troupe-runs/r/logs/s/1.0.out ]
    troupe logs --follow r >all 3>&- &
    local all=$!
    troupe logs --follow r s 1 >one 3>&- &
    local one=$!
    troupe logs --follow r late >late 3>&- & # which has not begun
    local late=$!
    wait_until eval '[ "$(grep -c " one$" all)" = 4 ] && grep -q "s1 one" one'
    [ "$(grep -c two all one | tr '\n' ' ')" = "all:0 one:0 " ]
    touch go
    wait $pid $all $one $late
    [ "$(grep -vE '^(==>.*)?$' all | sort | tr '\n' ';')" = "err;err;f0 one;f0 two;f1 one;f1 two;late;s0 one;s0 two;s1 one;s1 two;" ]
    [ "$(grep -c '^==> f/0.0.err <==$' all)" = 1 ]
    [ "$(grep -vE '^(==>.*)?$' one)" = $'s1 one\ns1 two' ]
    [ "$(grep '^==>' one | sort -u)" = "==> s/1.0.out <==" ]
    [ "$(grep -vE '^(==>.*)?$' late)" = late ]
}

@test "logs of either form are shown by their addresses; a crash leaves what was written" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: one, tasks: 300, task_logs: stage, run: 'echo "out $TROUPE_TASK"; [ $TROUPE_TASK != 7 ] || echo err >&2'}
  - {name: big, task_logs: stage, run: 'head -c 9000000 /dev/zero'}
  - {name: files, tasks: 2, run: 'echo f$TROUPE_TASK'}
  - {name: gang, mpi: {ranks: 2}, task_logs: stage, run: 'echo rank $TROUPE_RANK'}
  - {name: quiet, tasks: 2, run: ':'}
  - {name: bad, task_logs: stage, after: [one, big, files, gang], retries: {max_failures: 2}, run: 'echo try $TROUPE_ATTEMPT; exit 3'}
Y
    run -1 troupe run --local=2 --run-name r p.yaml
    [[ "$output" == *"failed 2 times, last with exit status 3; see: troupe logs r bad 0.1"* ]]
    [ "$(ls troupe-runs/r/logs/one | wc -l)" -le 4 ]
    [ ! -e troupe-runs/r/logs/quiet ] # nor a folder
    [ "$(troupe logs r quiet)" = "" ]
    run -0 troupe logs r quiet 1.0
    [ "$(troupe logs r one 299.0)" = "out 299" ]
    [ "$(troupe logs r one 7)" = $'==> one/7.0.out <==\nout 7\n\n==> one/7.0.err <==\nerr' ]
    [ "$(troupe logs r files)" = $'==> files/0.0.out <==\nf0\n\n==> files/1.0.out <==\nf1' ]
    [ "$(troupe logs r gang 0.0.1)" = "rank 1" ]
    [ "$(troupe logs r bad 0.1)" = "try 1" ]
    [ "$(troupe logs --failed r)" = $'==> bad/0.0.out <==\ntry 0\n\n==> bad/0.1.out <==\ntry 1' ]
    run -0 troupe explain r bad
    [[ "$output" == *"task 0 was given up after 2 failures; see: troupe logs r bad 0"* ]]
    run -0 troupe report --json r
    [[ "$output" == *'"log":null,"see":"troupe logs r bad 0"}'* ]]
    mv troupe-runs/r .
    run -0 troupe explain --json ./r bad
    [[ "$output" == *"\"see\":\"troupe logs $PWD/r bad 0\"}"* ]]
    mv r troupe-runs/
    run -0 troupe explain --json r bad
    [[ "$output" == *'"log":"","see":"troupe logs r bad 0"}'* ]]
    [ "$(troupe logs r one | grep -c '^==>')" = 301 ]
    [ "$(troupe logs r big | wc -c)" = 9000000 ]
    run -2 troupe logs r one x
    run -1 troupe run --local=2 --resume r
    [ "$(troupe logs r bad 0.s1.0)" = "try 0" ]
    printf '1.0.out 99' >>troupe-runs/r/logs/one/stream.0.index
    [ "$(troupe logs r one | grep -c '^==>')" = 301 ]

    cat >c.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 2
    task_logs: stage
    run: 'echo $TROUPE_TASK; [ $TROUPE_TASK = 0 ] || { touch here; sleep 60; }'
Y
    run -137 bash -c 'troupe run --local=1 --run-name c c.yaml & pid=$!; for _ in {1..200}; do
        [ -e here ] && break; sleep 0.05; done; kill -9 $pid; wait $pid'
    nothing_left
    [ "$(troupe logs c s)" = $'==> s/0.0.out <==\n0\n\n==> s/1.0.out <==\n1' ]
}

@test "a run that is resumed from elsewhere is named so that it can be pasted there" {
    mkdir there here
    echo '{troupe: 1, stages: [{name: s, retries: {max_failures: 1}, run: "echo no >&2; false"}]}' >there/p.yaml
    cd there
    run -1 troupe run --local=1 --run-name r p.yaml
    [[ "$output" == *"; see troupe-runs/r/logs/s/0.0.err: no"* ]]
    cd ../here
    run -1 troupe run --local=1 --resume ../there/troupe-runs/r
    [[ "$output" == *"; see $(dirname "$PWD")/there/troupe-runs/r/logs/s/0.s1.0.err: no"* ]]
    [[ "$output" == *"logs: $(dirname "$PWD")/there/troupe-runs/r/logs"* ]]
    [[ "$output" != *" troupe-runs/r"* ]]
    cd ../there # and as before from where it was called first
    run -1 troupe run --local=1 --resume r
    [[ "$output" == *"; see troupe-runs/r/logs/s/0."*": no"* ]]
}

@test "resume runs only what is not done; force and until say otherwise" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, tasks: 2, outputs: ["out.$TROUPE_TASK"], run: "date +%N > out.$TROUPE_TASK"}
  - {name: b, after: [a], run: "[ -e fixed ]", retries: {max_failures: 1}}
  - {name: c, after: [b], run: "echo c"}
Y
    run -1 troupe run --run-name r p.yaml
    cp out.0 before
    run -0 troupe run --dry-run --resume r
    [[ "$output" == *"a: does not run"* && "$output" != *"b: "*"done"* ]]
    touch fixed
    run -0 troupe run --resume r
    cmp out.0 before
    [ -e troupe-runs/r/logs/c/0.s1.0.out ]
    run -0 troupe run --resume r --force a
    run ! cmp out.0 before
    cp out.1 before
    echo changed >out.1
    run -0 troupe run --resume troupe-runs/r
    [ "$(cat out.1)" != changed ]
    run -0 troupe run --until a --run-name u p.yaml
    [ ! -e troupe-runs/u/logs/b ]
}

@test "logs says which stages, tasks, attempts and ranks there are when there is no such" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, tasks: 3, run: 'echo $TROUPE_TASK'}
  - {name: quiet, after: [s], run: ':'}
  - {name: gang, after: [s], mpi: {ranks: 2}, run: 'echo $TROUPE_RANK'}
  - {name: none, after: [s], tasks: 0, run: ':'}
  - {name: bad, after: [quiet, gang, none], retries: {max_failures: 2}, run: 'exit 3'}
  - {name: later, after: [bad], run: ':'}
Y
    run -1 troupe run --local=2 --run-name r p.yaml
    says() {
        run -2 --separate-stderr troupe logs "${@:2}"
        [ "$stderr" = "troupe: logs: $1" ]
        [ "$output" = "" ]
    }
    says "there is no stage nope in run r" r nope
    says "there is no stage nope in run r" r nope 0
    says "there is no stage s/../s in run r" r s/../s
    says "stage s of run r has no task 9; they are 0 to 2" r s 9
    says "stage quiet of run r has no task 1; its only one is 0" r quiet 1
    says "stage none of run r has no tasks" r none 0
    says "no task of stage later has run in run r; troupe explain r later says why" r later
    says "no task of stage later has run in run r; troupe explain r later says why" r later 0
    says "task 0 of stage bad has had no such attempt in run r; what it has had is 0.0, 0.1" r bad 0.2
    says "task 0 of stage bad has had no such attempt in run r; what it has had is 0.0, 0.1" r bad 0.s1
    says "task 0 of stage gang has no rank 2; they are 0 to 1" r gang 0.0.2
    says "task 0 of stage s is no gang: it has no rank 1" r s 0.0.1
    run -0 troupe explain r later
    [[ "$output" == "later: not run, 1 task"$'\n'"  because: the run ended before it began"* ]]
    for silent in quiet "quiet 0" "quiet 0.0" none "bad 0.1"; do
        # shellcheck disable=SC2086
        run -0 troupe logs r $silent
        [ "$output" = "" ]
    done
}

@test "a resumed run keeps the earlier logs and is a later stage attempt" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 4
    run: echo $TROUPE_STAGE_ATTEMPT; while [ -e hold ] && [ $TROUPE_TASK = 3 ]; do sleep 0.05; done;
      [ $TROUPE_TASK -lt 2 ] || [ $(ls runs | wc -l) -ge $TROUPE_TASK ]
    retries: {max_failures: 1}
    max_running: 1
Y
    mkdir runs
    run -1 troupe run --run-name r p.yaml
    [[ "$output" == *"see troupe-runs/r/logs/s/2.0.out"* ]]
    run -0 troupe run --dry-run --resume r
    [[ "$output" == *"s: 2 tasks are done"* ]]
    touch runs/1 runs/2
    run -1 troupe run --resume r
    [[ "$output" == *"see troupe-runs/r/logs/s/3.s1.0.out"* ]]
    touch runs/3
    run -0 troupe run --resume r
    cd troupe-runs/r/logs/s
    [ "$(ls *.out | tr '\n' ' ')" = "0.0.out 1.0.out 2.0.out 2.s1.0.out 3.s1.0.out 3.s2.0.out " ]
    [ "$(cat 2.0.out 2.s1.0.out 3.s2.0.out | tr '\n' ' ')" = "0 1 2 " ]
    cd - >/dev/null
    [ "$(grep '"SparkListenerTaskEnd"' troupe-runs/r/events.jsonl | grep -c '"Stage Attempt ID":2')" = 1 ]
    # One application for the History Server: nothing is there twice.
    for id in 'JobStart.*"Job ID"' 'ExecutorAdded.*"Executor ID"' 'TaskStart.*"Task ID"'; do
        [ "$(events r | grep -o "$id:[^,]*" | grep -o '[^:]*$' | sort | uniq -d)" = "" ]
        [ "$(events r | grep -o "$id:[^,]*" | wc -l)" -ge 3 ]
    done
    [ "$(events r | grep -o '"App ID":"[^"]*"' | sort -u | cut -d'"' -f4)" = "$(ls troupe-runs/.history)" ]
    cmp troupe-runs/.history/app-* troupe-runs/r/events.jsonl
    # Of a start that was killed the stage and the job are over as well.
    touch hold
    run -137 bash -c 'troupe run --resume r --force s & pid=$!; for _ in {1..100}; do
        [ "$(grep -c TaskStart troupe-runs/r/events.jsonl)" -gt 7 ] && break; sleep 0.05; done
        kill -9 $pid; wait $pid'
    nothing_left
    rm hold
    run -0 troupe run --resume r
    log=$(events r)
    for e in Job Task; do
        [ "$(count "SparkListener${e}Start" "$log")" = "$(count "SparkListener${e}End" "$log")" ]
    done
    [ "$(count SparkListenerStageSubmitted "$log")" = "$(count SparkListenerStageCompleted "$log")" ]
}

@test "tasks that run again are in the progress once" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    tasks: 2
    barrier: true
    run: "[ $TROUPE_TASK = 0 ] || { sleep 0.5; [ $TROUPE_ATTEMPT = 2 ]; }"
Y
    run -0 script -qec "'$TROUPE_BUILD/bin/troupe' run --local=2 --run-name r p.yaml" /dev/null
    grep -oE '[0-9]+/[0-9]+ tasks' <<<"$output" | sort -u >shown
    grep -q . shown
    run ! grep -v '^[012]/2 tasks$' shown
    # What an earlier run has done is done.
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, tasks: 3, retries: {max_failures: 1}, run: "[ $TROUPE_TASK != 2 ] || { [ -e good ] && sleep 1; }"}
Y
    run -1 troupe run --local=1 --keep-going --run-name t p.yaml
    touch good
    run -0 script -qec "'$TROUPE_BUILD/bin/troupe' run --local=1 --resume t" /dev/null
    [[ "$output" == *" 2/3 tasks"* ]]
}

@test "attempts of a barrier stage are told apart, over retries and resumes alike" {
    cat >p.yaml <<'Y'
troupe: 1
options: {stage.maxConsecutiveAttempts: 2}
stages:
  - name: s
    tasks: 2
    barrier: true
    run: echo $TROUPE_STAGE_ATTEMPT $TROUPE_ATTEMPT; [ $TROUPE_TASK = 0 ] || [ -e good ]
Y
    run -1 troupe run --run-name r p.yaml
    touch good
    run -0 troupe run --resume r
    run -0 troupe run --resume r --force s
    cd troupe-runs/r/logs/s
    [ "$(ls 1.*.out | tr '\n' ' ')" = "1.0.out 1.s1.1.out 1.s2.0.out 1.s3.0.out " ]
    [ "$(cat 1.*.out | tr '\n' ';')" = "0 0;1 1;2 0;3 0;" ]
    cd ../..
    # Each attempt is submitted and completed once, and its tasks are its own.
    events() { grep "\"SparkListener$1\"" events.jsonl; }
    [ "$(events StageSubmitted | grep -o '"Stage Attempt ID":[0-9]*' | grep -o '[0-9]*$' | tr '\n' ' ')" = "0 1 2 3 " ]
    [ "$(events StageCompleted | grep -o '"Stage Attempt ID":[0-9]*' | grep -o '[0-9]*$' | tr '\n' ' ')" = "0 1 2 3 " ]
    [ "$(events StageCompleted | grep -c '"Failure Reason"')" = 2 ]
    for n in 0 1 2 3; do
        [ "$(events TaskStart | grep -c "\"Stage Attempt ID\":$n,")" = 2 ]
        [ "$(events TaskEnd | grep -c "\"Stage Attempt ID\":$n,")" = 2 ]
    done
}

# bats test_tags=plain
@test "100,000 tasks in a stage" {
    echo '{troupe: 1, stages: [{name: s, tasks: 100000, argv: ["true"]}]}' >p.yaml
    run -0 troupe run --run-name r --set events.tasks=auto p.yaml
    [[ "$output" == *100000* ]]
}

# bats test_tags=plain
@test "10,000 stages in a chain" {
    { echo 'troupe: 1'; echo 'stages:'
      for i in $(seq 10000); do
          [ "$i" = 1 ] && a= || a=", after: [s$((i - 1))]"
          echo "  - {name: s$i, tasks: 0, run: 'true'$a}"
      done
      echo '  - {name: end, after: [s10000], run: "echo done"}'; } >p.yaml
    run -0 troupe run --quiet --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/end/0.0.out)" = "done" ]
}

@test "what our own MPI is told of hwloc is nothing that tasks and gangs see" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, run: 'env | grep "HWLOC_[CP]\|TROUPE_QUICK" || true'}
  - {name: g, mpi: {ranks: 1}, run: 'env | grep "HWLOC_[CP]\|TROUPE_QUICK" || true'}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(troupe logs r)" = "" ]
    export HWLOC_COMPONENTS=-gl # the user's own stays
    run -0 troupe run --local=2 --run-name s p.yaml
    [ "$(troupe logs s a)" = HWLOC_COMPONENTS=-gl ]
    [ "$(troupe logs s g)" = HWLOC_COMPONENTS=-gl ]
}

@test "1 MiB of environment reaches the task" {
    for i in $(seq 16); do export "BIG_$i=$(head -c 65000 /dev/zero | tr '\0' x)"; done
    echo '{troupe: 1, stages: [{name: s, run: "env | wc -c"}]}' >p.yaml
    run -0 troupe run --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/s/0.0.out)" -gt 1000000 ]
}

@test "rubbish in OMPI_, PMIX_ and SLURM_ variables harms neither run nor task" {
    export OMPI_MCA_btl=nonsense OMPI_COMM_WORLD_SIZE=7 PMIX_RANK=3 PMI_FD=99 SLURM_NTASKS=12
    export SLURM_PROCID=5
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, run: "env | grep -E '^(OMPI_|PMI|SLURM_)' || true"}
Y
    run -0 troupe run --run-name r p.yaml
    # What prints nothing has no log.
    run ! grep -vE '^OMPI_ALLOW_RUN_AS_ROOT' troupe-runs/r/logs/s/0.0.out
}

@test "TMPDIR unset and very long" {
    echo '{troupe: 1, stages: [{name: s, run: "echo ok"}]}' >p.yaml
    run -0 env -u TMPDIR troupe run p.yaml
    long=$PWD/$(printf 'x%.0s' $(seq 120))/$(printf 'y%.0s' $(seq 120))
    mkdir -p "$long"
    run -0 env "TMPDIR=$long" troupe run p.yaml
}

@test "an ordinary user can do all that" {
    [ "$(id -u)" = 0 ] || skip "the tests run as an ordinary user already"
    chmod 755 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR" 2>/dev/null || true
    others_folder
    chown nobody "$d"
    cat >"$d/p.yaml" <<'Y'
troupe: 1
profiles: {g: {executor: {cores: 2}, task: {cpus: 1}}}
stages:
  - {name: s, tasks: 4, run: id -u}
  - {name: g, after: [s], profile: g, mpi: {ranks: 2}, run: id -u}
Y
    run -0 setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$d" sh -c "cd $d && troupe run --run-name r p.yaml"
    [ "$(cat "$d/troupe-runs/r/logs/g/0.0.1.out")" = "$(id -u nobody)" ]
}

@test "two runs in one folder at the same time" {
    echo '{troupe: 1, stages: [{name: s, tasks: 4, run: "sleep 0.3; echo ok"}]}' >p.yaml
    troupe run --run-name one p.yaml >one.out 2>&1 &
    run -0 troupe run --run-name two p.yaml
    wait $!
    [ "$(cat troupe-runs/one/logs/s/*.out | grep -c ok)" = 4 ]
    [ "$(cat troupe-runs/two/logs/s/*.out | grep -c ok)" = 4 ]
    run -2 troupe run --run-name one p.yaml
    [[ "$output" == *one* ]]
    run -0 troupe ls
    [[ "$output" == *one* && "$output" == *two* ]]
}

@test "a barrier stage that a limit never allows ends the run as troupe plan said" {
    echo '{troupe: 1, options: {alloc.max_cores: 2}, stages: [{name: s, tasks: 3, barrier: true, run: ":"}]}' >p.yaml
    run -3 troupe plan --local=4 p.yaml
    said=${lines[-1]}
    [[ "$said" == "troupe: p.yaml:1:"*"at most 2 of profile default can be had" ]]
    run -3 troupe run --local=4 --run-name r p.yaml
    [[ "$output" == *"$said"* ]]
}

@test "a run sleeps while nothing happens; a stage that waits is told of" {
    moving_clock
    echo '{troupe: 1, stages: [{name: s, tasks: 2, run: "touch begun.$TROUPE_TASK; until [ -e go ]; do sleep 0.2; done"}, {name: t, tasks: 1, run: ":"}]}' >p.yaml
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until [ -e begun.0 -a -e begun.1 ]
    hold_clock
    advance 1500ms
    read -r woken _ <<<"$(advance 10s)"
    echo "threads woke $woken times"
    [ "$woken" -lt 150 ]
    advance 6s
    touch go
    release_clock
    wait $!
    grep 'stage t has run nothing for 15 s: short of cores: a task takes 1' out
    events r | grep 'TroupeMessage.*stage t has run nothing'
}

@test "the event log has Spark's events, Event first, and a link for the History Server" {
    echo '{troupe: 1, stages: [{name: s, tasks: 3, run: "true"}]}' >p.yaml
    run -0 troupe run --run-name r p.yaml
    log=$(events r)
    for e in LogStart ApplicationStart EnvironmentUpdate ResourceProfileAdded ExecutorAdded \
        JobStart StageSubmitted TaskStart TaskEnd StageCompleted JobEnd ExecutorRemoved \
        ApplicationEnd; do
        grep -q "^{\"Event\":\"SparkListener$e\"" <<<"$log"
    done
    [ "$(count '"Event":"SparkListenerTaskEnd"' "$log")" = 3 ]
    cmp troupe-runs/.history/app-* troupe-runs/r/events.jsonl
    perl -MJSON::PP -ne 'decode_json($_)' troupe-runs/r/events.jsonl
}

@test "what succeeded while its stage failed is done, also when that is told later" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 24}}}
stages:
  - name: s
    profile: p
    tasks: 24
    retries: {max_failures: 1}
    run: |
      [ -e mended ] && echo $TROUPE_TASK >>again && exit
      echo $$ >up.$TROUPE_TASK
      [ $TROUPE_TASK = 4 ] || { until [ -e go ]; do sleep 0.1; done; exit 0; }
      until [ -e fail ]; do sleep 0.1; done; exit 1
Y
    troupe run --local=24 --run-name r p.yaml >out 2>&1 &
    wait_until eval '[ "$(cat up.* | wc -l)" = 24 ]'
    # The failure is told first, and the rest as soon as that is heard.
    kill -STOP "$(pid_of driver r)"
    touch fail
    wait_until is_gone "$(<up.4)"
    touch go
    for task in up.*; do wait_until is_gone "$(<$task)"; done
    kill -CONT "$(pid_of driver r)"
    local status=0
    await $! || status=$?
    [ $status = 1 ]
    touch mended
    run -0 troupe run --local=24 --resume r
    [ "$(cat again)" = 4 ]
    [ "$(grep TaskEnd troupe-runs/r/events.jsonl | grep -c '"Reason":"Success"')" = 24 ]
}

@test "ls and report agree on a run that is under way, one whose troupe died, and one that died whole" {
    cat >p.yaml <<'Y'
{troupe: 1, name: n, stages: [{name: s, tasks: 2, run: "echo $$ >began.$TROUPE_TASK; exec sleep 60"}]}
Y
    begin() {
        rm -f began.*
        troupe run --local=2 --run-name "$1" p.yaml >out 2>&1 &
        wait_until ls began.0 began.1
    }
    begin a
    wait_until eval 'troupe report a | grep -q "^s  *default  *2  *2  *0 .*running"'
    run -0 troupe report a
    [[ "$output" == *", running"* ]]
    kill -9 $!
    wait_until eval 'troupe ls | grep -q "^a  *cancelled  *130"'
    run -0 troupe report a
    [[ "$output" == *", exit status 130"*cancelled* ]]
    begin b
    wait_until eval 'troupe report b | grep -q "^s .*running"' # its log is written once a second
    # shellcheck disable=SC2046
    kill -9 $! $(awk '{print $1}' troupe-runs/b/state/pids)
    wait_until eval 'troupe ls | grep -q "^b  *died"'
    run -0 troupe report b
    [[ "$output" == *", died"*unfinished* ]]
    # shellcheck disable=SC2046
    kill -9 $(cat began.*) 2>/dev/null || true # they may have ended with the rest
}

@test "the bar names a stage that runs, not one that waits" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: works, run: "until grep -q '1 running' screen; do sleep 0.1; done"}
  - {name: waits, run: "true"}
Y
    run -0 script -qefc "'$TROUPE_BUILD/bin/troupe' run --local=1 p.yaml" screen
    [[ "$output" == *"1 running, 1 executor; stage 0/2; works"* ]]
    [[ "$output" != *"1 running, 1 executor; stage 0/2; waits"* ]]
}

@test "tables fit 80 columns, however long the names and large the numbers" {
    local long=the-files-of-all-stations-into-parts-that-fit-into-the-memory
    devices=$(seq -f '"%g"' -s, 0 63)
    cat >p.yaml <<Y
troupe: 1
name: a pipeline whose name somebody chose for reasons of their own, and at length
profiles:
  p-$long: {executor: {cores: 2, memory: 256m, gpu: 1, fpga: 2}, task: {gpu: 1/2, fpga: 1}}
stages:
  - {name: a-$long, profile: p-$long, tasks: 10000, max_running: 1, after: [], run: "exit 3", retries: {max_failures: 1}}
  - {name: b-$long, after: [a-$long], run: "true"}
  - {name: c-$long, after: [a-$long, b-$long], run: "true"}
Y
    echo "{site: 1, local: {gpu: [$devices], fpga: [$devices]}}" >site.yaml
    export TROUPE_SITE=site.yaml
    run -1 --separate-stderr troupe run --local=2 --run-name "r-$long" p.yaml
    echo "$stderr" | tail -n 1
    printf '%s\n' "$output" | grep -Ev '^(logs|events): ' >all
    [ "$(grep -c "^[abc]-$long" all)" -ge 3 ]
    troupe plan --local=2 p.yaml | tail -n +2 | grep -v '^messages travel ' >>all
    troupe report | tail -n +2 | grep -Ev '^(logs|events): ' >>all
    troupe ls >>all
    troupe topo --local=2 >>all
    [ "$(grep -c "^r-$long" all)" = 1 ]
    [ "$(wc -l <all)" -gt 60 ]
    run ! grep -E '^.{81}' all
}

@test "a run names another of its pipeline that goes on in the same folder" {
    cat >p.yaml <<'Y'
troupe: 1
stages: [{name: a, run: '[ $TROUPE_RUN != one ] || until [ -e go ]; do sleep 0.1; done'}]
Y
    troupe run --local=1 --run-name one p.yaml 2>first &
    wait_until grep -qs TaskStart troupe-runs/one/events.jsonl
    run -0 --separate-stderr troupe run --local=1 --run-name two p.yaml
    grep -q '^troupe: warning: run one of this pipeline goes on in this folder, too; ' <<<"$stderr"
    run -0 --separate-stderr troupe run --quiet --local=1 p.yaml
    [ -z "$stderr" ]
    sed 's/^troupe: 1/&\nname: other/' p.yaml >o.yaml
    run -0 --separate-stderr troupe run --local=1 o.yaml
    [[ "$stderr" != *warning* ]]
    touch go
    wait $!
    run -0 --separate-stderr troupe run --local=1 p.yaml
    [[ "$stderr" != *warning* ]]
    run ! grep warning first
}

@test "notify has the summary on its stdin, however the run ended; what it does changes nothing" {
    cat >p.yaml <<'Y'
troupe: 1
params: {to: told}
notify: 'cat >${to}.summary; echo "$TROUPE_STATUS $TROUPE_RUN_DIR" >told; echo heard; exit 3'
stages: [{name: a, run: '${FAIL:-true}'}]
Y
    run -0 --separate-stderr troupe run --local=1 --run-name good p.yaml
    [ "$(cat told)" = "0 $PWD/troupe-runs/good" ]
    masked() { sed -E 's/[0-9.]+(us|ms|s)?/N/g; s/ +/ /g'; }
    diff <(masked <told.summary) <(masked <<<"$output")
    grep -qx heard <<<"$stderr"
    grep -qx 'troupe: notify: exit status 3' <<<"$stderr"
    # Also of a start that has nothing left to do.
    rm told
    run -0 troupe run --local=1 --resume good
    [[ "$output" == *'nothing is left to do'* ]]
    [ "$(cat told)" = "0 $PWD/troupe-runs/good" ]
    grep -q '^total ' told.summary
    # What is in the background ends before the run does, also in a session of its own.
    sed "s|^notify: .*|notify: 'setsid sh -c \"sleep 1; touch late\" >/dev/null 2>\&1 \& exit 0'|" p.yaml >b.yaml
    run -0 troupe run --local=1 --param to=x b.yaml
    [ -e late ]
    FAIL=false run -1 troupe run --local=1 --run-name bad p.yaml
    [ "$(cat told)" = "1 $PWD/troupe-runs/bad" ]
    # Its driver killed: what the log has.
    sed -i 's/run: .*/run: sleep 60}]/' p.yaml
    troupe run --local=1 --run-name dead p.yaml 2>/dev/null &
    wait_until grep -q TaskStart troupe-runs/dead/events.jsonl
    kill -9 $(ours_like '^troupe: driver dead')
    status=0
    wait $! || status=$?
    [ $status = 4 ]
    [ "$(cat told)" = "4 $PWD/troupe-runs/dead" ]
    grep -q '^a  ' told.summary
}
