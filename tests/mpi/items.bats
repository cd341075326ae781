#!/usr/bin/env bats
# Items that fail one by one: keep-going, tolerate, after … each.
load drill

# chains [KEY…]: three stages of four items each in a row, what waits for all of them, and
# one beside. Item c fails as long as there is no file `good`. KEYs go to the chains.
chains() {
    cat >p.yaml <<Y
troupe: 1
name: chains
stages:
  - name: align
    foreach: {items: [a, b, c, d]}
    retries: {max_failures: 2}
    ${1:-}
    run: '[ \$TROUPE_ITEM != c ] || [ -e good ] || { echo bad read >&2; exit 3; }; echo \$TROUPE_ITEM >>aligned'
  - {name: sort, after: [{stage: align, each: true}], foreach: {items: [a, b, c, d]}, ${1:+$1,} run: 'echo \$TROUPE_ITEM >>sorted'}
  - {name: call, after: [{stage: sort, each: true}], foreach: {items: [a, b, c, d]}, ${1:+$1,} run: 'echo \$TROUPE_ITEM >>called'}
  - {name: merge, after: [call], run: 'touch merged'}
  - {name: beside, run: 'sleep 0.3; touch beside'}
${2:-}
Y
}

listed() {
    sort "$1" | tr -d '\n'
}

@test "keep-going: one bad item costs its own chain, and is listed with it" {
    chains
    run -1 --separate-stderr troupe run --local=2 --keep-going --run-name r p.yaml
    [ "$(listed called)" = abd ]
    [ -e beside ]
    [ ! -e merged ]
    [ "$(grep -c 'was skipped' <<<"$stderr")" = 3 ]
    [[ "$stderr" == *"troupe: p.yaml:4:11: stage align: task 2 failed 2 times, last with exit status 3; see troupe-runs/r/logs/align/2.1.err: bad read; item c"* ]]
    [[ "$stderr" == *"troupe: stage sort: task 2 was skipped: task 2 of stage align was given up; item c"* ]]
    [[ "$stderr" == *"troupe: stage call: task 2 was skipped: task 2 of stage sort was given up; item c"* ]]
    [[ "$stderr" == *"troupe: stage merge was skipped: stage call did not succeed"* ]]
    [[ "$stderr" == *"stage align failed: 4 tasks, 2 failed attempts, "*"; 1 given up"$'\n'* ]]
    # Once at that moment, and once at the end: by its task.
    [[ "$stderr" != *"troupe: stage align failed:"*"troupe: stage align failed:"* ]]
    [[ "$stderr" == *"stage sort failed: 4 tasks, "*"; 1 skipped"* ]]
    [[ "$output" == *"given up  skipped"* ]]
    [ "$(grep -c '"TroupeTaskSkipped"' troupe-runs/r/events.jsonl)" = 2 ]
    run -0 troupe report --json r
    [[ "$output" == *'"given_up":[{"stage":"align","task":2,"name":null,"item":"c","failures":2,"reason":"exit status 3","log":"logs/align/2.1.err","see":"troupe logs r align 2"}]'* ]]
    [[ "$output" == *'"skipped":[{"stage":"sort","task":2,"name":null,"item":"c","after":"align","after_task":2},{"stage":"call","task":2,"name":null,"item":"c","after":"sort","after_task":2}]'* ]]
    [[ "$output" == *'"total":{"tasks":14,"attempts":12,"failed":2,"given_up":1,"skipped":2,'* ]]
    run -0 troupe report r
    [[ "$output" == *"given up  skipped"* ]]
    # Just those run again.
    touch good
    run -0 --separate-stderr troupe run --local=2 --resume r --keep-going
    [ "$(listed aligned) $(listed sorted) $(listed called)" = "abcd abcd abcd" ]
    [ -e merged ]
    [[ "$stderr" != *skipped* ]]
    [[ "$output" != *"given up"* ]]
}

@test "a stage that fails by one silent task is told once at the end, and leads to no empty folder" {
    printf 'troupe: 1\nstages: [{name: s, retries: {max_failures: 2}, run: "exit 3"}, {name: t, tasks: 3, run: "exit $TROUPE_TASK", retries: {max_failures: 1}}]\n' >p.yaml
    run -1 --separate-stderr troupe run --local=2 --keep-going p.yaml
    stderr+=$'\n'
    [ "$(grep -c '^troupe: .*stage s' <<<"$stderr")" = 1 ]
    [[ "$stderr" == *$'\n'"troupe: p.yaml:2:17: stage s: task 0 failed 2 times, last with exit status 3; run stops at the first command that fails"$'\n'* ]]
    [[ "$stderr" == *$'\n'"troupe: stage t failed: 2 of 3 tasks given up"$'\n'* ]]
    [[ "$stderr$output" != *"see "* && "$output" != *"logs: "* ]]
}

@test "keep-going may stand in the pipeline, and without it the first such item ends the run" {
    chains "" "options: {run.keep_going: true}"
    run -1 --separate-stderr troupe run --local=2 p.yaml
    [ "$(listed called)" = abd ]
    run -0 troupe config run.keep_going --json --pipeline p.yaml
    [[ "$output" == *'"value":"true","origin":"pipeline"'* ]]
    chains
    run -1 --separate-stderr troupe run --local=1 --run-name s p.yaml
    [ "$(tail -n 1 <<<"$stderr")" = "troupe: p.yaml:4:11: stage align: task 2 failed 2 times, last with exit status 3; see troupe-runs/s/logs/align/2.1.err: bad read" ]
    [[ "$output" == *"given up"* ]]
}

@test "when a stage gives up what runs goes on to its end, and is done; nothing new is started" {
    moving_clock
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, max_running: 2, foreach: {items: [x, bad, y, z]}, retries: {max_failures: 1}, run: 'echo >>began.$TROUPE_ITEM; if [ $TROUPE_ITEM = bad ]; then until [ -e began.other ]; do sleep 0.05; done; exit 3; fi; until [ -e go ]; do sleep 0.05; done'}
  - {name: other, run: 'echo >>began.other; until [ -e go ]; do sleep 0.05; done; exit 5', retries: {max_failures: 3}}
  - {name: after, after: [a], run: 'touch after'}
  - {name: late, run: 'touch late'}
Y
    troupe run --local=3 --run-name r p.yaml >out 2>err &
    wait_until grep -qs "stage a gave up: nothing new is started, and 2 tasks still run; Ctrl-C kills them" err
    advance 50s
    run ! grep "has run nothing" err # which has just been said
    [ "$(grep -c "nothing new is started" err)" = 1 ]
    touch go
    status=0
    wait $! || status=$?
    [ $status = 1 ]
    [ "$(tail -n 1 err)" = "troupe: p.yaml:3:12: stage a: task 1 failed once, with exit status 3; run stops at the first command that fails" ]
    [ ! -e began.y ]
    [ ! -e after ]
    [ ! -e late ]
    [ "$(wc -l <began.other)" = 1 ]
    run ! grep "run again" err
    run -1 --separate-stderr troupe run --local=2 --resume r
    [[ "$stderr" == *"troupe: stage a: 1 task is done, the others run"* ]]
    [ "$(wc -l <began.x)" = 1 ]
    # With --fail-fast they are killed; so they are by one Ctrl-C.
    rm -f began.* go
    run -1 troupe run --local=3 --fail-fast p.yaml
    rm -f began.*
    troupe run --local=3 --run-name s p.yaml >out 2>err &
    wait_until grep -qs "2 tasks still run" err
    kill -INT $!
    status=0
    wait $! || status=$?
    [ $status = 1 ]
    run -2 troupe run --local=2 --keep-going --fail-fast p.yaml
}

@test "tolerate: what is given up and skipped is told, and what waits for the whole stage runs" {
    chains
    sed -i 's/^    retries:/    tolerate: 1\n&/' p.yaml # once in the chain
    run -0 --separate-stderr troupe run --local=2 --run-name r p.yaml
    [ "$(listed called)" = abd ]
    [ -e merged ]
    [[ "$stderr" == *"troupe: stage align succeeded: 1 of 4 tasks given up; see troupe-runs/r/logs/align"* ]]
    [[ "$stderr" == *"troupe: stage sort succeeded: 1 of 4 tasks skipped"* ]]
    [[ "$stderr" == *"stage align: task 2 failed 2 times, last with exit status 3; see troupe-runs/r/logs/align/2.1.err: bad read; item c"* ]]
    [[ "$output" == *"given up  skipped"* ]]
    touch good
    run -0 troupe run --local=2 --resume r
    [ "$(listed called)" = abcd ]
    rm -rf aligned sorted called merged good
    # With one more than is tolerated the run ends, and says how many there were: also one that
    # ran when that was known.
    chains "tolerate: 1"
    sed -i 's/!= c/= a/' p.yaml
    run -1 --separate-stderr troupe run --local=1 --run-name u p.yaml
    [[ "$stderr" == *"troupe: stage align failed: "[23]" of 4 tasks given up"* ]]
    [[ "$(tail -n 1 <<<"$stderr")" == "troupe: p.yaml:4:11: stage align: task "?" failed 2 times, last with exit status 3; see "*": bad read" ]]
}

@test "a resumed run repeats what was given up alone; what succeeds of it is made again below" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, foreach: {items: [x, bad, y]}, tolerate: 1, run: 'echo a$TROUPE_ITEM >>ran; [ $TROUPE_ITEM != bad ] || [ -e good ]'}
  - {name: each, after: [{stage: a, each: true}], foreach: {items: [x, bad, y]}, run: 'echo e$TROUPE_ITEM >>ran'}
  - {name: merge, after: [each], run: 'echo merge >>ran'}
  - {name: gang, after: [merge], mpi: {ranks: 1}, run: 'echo gang >>ran'}
  - {name: late, after: [{stage: merge, each: true}], run: 'echo late >>ran'}
Y
    again() {
        rm -f ran
        troupe run --local=2 --resume r >/dev/null 2>err || return 1
        sort ran 2>/dev/null | tr '\n' ' '
    }
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(sort ran | tr '\n' ' ')" = "abad ax ay ex ey gang late merge " ]
    run -0 troupe plan --resume r --local=2
    [[ "$output" == *"merge: runs: only if a task that it waits for succeeds now"* ]]
    [ "$(again)" = "abad " ]
    [ "$(again)" = "abad " ]
    touch good
    [ "$(again)" = "abad ebad gang late merge " ]
    [ "$(again)" = "" ]
    # The success, and the end of what was made without it, are one line: the last that a
    # run wrote that was killed.
    sed '/drop_stages/q' troupe-runs/r/state/done.jsonl >before
    cp before troupe-runs/r/state/done.jsonl
    [ "$(again)" = "gang late merge " ]
}

@test "of many the first twenty are listed, and where the rest stands" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, tasks: 50, retries: {max_failures: 1}, run: "exit 1"}
  - {name: t, tasks: 50, after: [{stage: s, each: true}], run: "true"}
Y
    run -1 --separate-stderr troupe run --local=2 --keep-going --run-name r p.yaml
    [ "$(grep -c 'failed once, with exit status 1; run stops at the first command that fails$' <<<"$stderr")" = 20 ]
    [ "$(grep -c 'was skipped: task' <<<"$stderr")" = 20 ]
    [[ "$stderr" == *"troupe: and 30 more tasks failed, 30 more tasks skipped: troupe report --json troupe-runs/r has all of them, troupe-runs/r/logs their logs"* ]]
    run -0 troupe report --json troupe-runs/r
    [ "$(grep -o '"after":"s"' <<<"$output" | wc -l)" = 50 ]
    [ "$(grep -o '"reason":"exit status 1","log":null,"see":null' <<<"$output" | wc -l)" = 50 ]
}

@test "items with newlines reach argv byte for byte; a table with CRLF and a BOM has neither" {
    printf '\357\273\277s\tfq\r\na\t1\r\nb\t2\r\n' >s.tsv
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: n, foreach: {items: ["x\ny", "p\n"]}, argv: [sh, -c, 'printf "<%s>" "$1" >n.$TROUPE_TASK', x, "${item}"]}
  - {name: t, foreach: {table: s.tsv}, argv: [sh, -c, 'printf "<%s:%s>" "$1" "$2" >t.$TROUPE_TASK', x, "${col.s}", "${col.fq}"]}
  - {name: m, run: 'printf "a\r\n" >late', outputs: [late]}
  - {name: l, after: [m], foreach: {lines: late}, run: 'printf "<%s>" "$TROUPE_ITEM" >l.$TROUPE_TASK'}
Y
    run -0 --separate-stderr troupe run --local=2 p.yaml
    [ "$(cat n.0 n.1 t.0 t.1 l.0)" = $'<x\ny><p\n><a:1><b:2><a\r>' ]
    [ "$(grep -c 'p.yaml:6:44: warning: stage l: 1 line of the list file late ends in a carriage return' <<<"$stderr")" = 1 ]
}

@test "inputs that vanish between plan and run" {
    touch 1.in 2.in ref
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, foreach: {files: "*.in"}, inputs: [ref, "${item}"], run: 'cat "$TROUPE_ITEM" ref >>all && echo "$TROUPE_ITEM" >>ran'}
  - {name: b, after: [a], foreach: {table: t.tsv}, run: 'echo "$TROUPE_COL_s" >>ran'}
Y
    printf 's\tv\nx\t1\n' >t.tsv
    run -0 troupe plan --local=1 p.yaml
    rm 2.in t.tsv
    run -1 troupe run --local=1 --run-name r p.yaml
    [[ "$output" == *"p.yaml:4:44: stage b: the table t.tsv cannot be read: No such file or directory"* ]]
    [ "$(cat ran)" = 1.in ]
    printf 's\tv\nx\t1\n' >t.tsv
    rm ref
    run -1 troupe run --local=1 --resume r
    [[ "$output" == *"stage a: 1 task that was done is to run again: inputs of task 0 changed"* ]]
    [[ "$output" == *"cat: ref: No such file or directory"* ]]
    rm 1.in
    run -1 troupe run --local=1 --resume r
    [[ "$output" == *"no file matches *.in"* ]]
    touch 1.in ref
    run -0 troupe run --local=1 --resume r
    [ "$(tail -1 ran)" = x ]
}

@test "a stage of which nothing ran for what failed before it is shown as skipped" {
    printf 'troupe: 1\nstages:\n  - {name: a, retries: {max_failures: 1}, run: "false"}\n  - {name: b, after: [a], tasks: 3, run: x}\n' >p.yaml
    run -1 troupe run --local=1 --keep-going --run-name r p.yaml
    [[ "$output" =~ b\ +default\ +3\ +0\ +0\ +0\ +skipped ]]
    run -0 troupe report r --json
    [[ "$output" == *'"name":"b","profile":"default","outcome":"skipped"'* ]]
    run -0 troupe explain r b
    [[ "$output" == *"because: stage a did not succeed"* ]]
}

@test "a stage that fails before its first task is shown as failed, with why" {
    printf 'troupe: 1\nstages:\n  - {name: a, foreach: {files: "none/*"}, run: x}\n' >p.yaml
    printf '  - {name: b, run: "true"}\n' >>p.yaml
    run -1 troupe run --local=1 --keep-going --run-name r p.yaml
    [[ "$output" =~ a\ +default\ +0\ +0\ .*\ failed ]]
    run -0 troupe status r
    [[ "$output" =~ a\ +failed ]]
    run -0 troupe explain r a
    [[ "$output" == *"because: p.yaml:3:32: stage a: no file matches none/"* ]]
    run -0 troupe report r --json
    [[ "$output" == *'"name":"a","profile":"default","outcome":"failed"'* ]]
    [[ "$output" == *'"reason":"p.yaml:3:32: stage a: no file matches none/*'* ]]
}

@test "a task of a table is called by the key of its row" {
    printf 'lane\tsample\nx\ts01\ny\ts02\nz\t7\nz\ts02.1\n' >t.tsv
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: align, foreach: {table: t.tsv, key: sample}, run: 'echo "$TROUPE_COL_sample"; [ $TROUPE_COL_lane = x ] || [ $TROUPE_COL_sample = s02.1 ]'}
  - {name: merge, after: [{stage: align, each: true}], foreach: {table: t.tsv, key: sample}, run: 'echo "m $TROUPE_COL_sample"'}
  - {name: quiet, foreach: {table: t.tsv, key: sample}, run: 'true'}
Y
    run -1 --separate-stderr troupe run --local=2 --keep-going --run-name r p.yaml
    [[ "$stderr" == *"stage align: task s02, attempt 0: exit status 1"* ]]
    [[ "$stderr" == *"troupe: p.yaml:3:12: stage align: task s02 failed once, with exit status 1; see troupe-runs/r/logs/align/1.0.out: s02"$'\n'* ]]
    [[ "$stderr" == *"stage align: task key=7 failed once"* ]]
    [[ "$stderr" == *"troupe: stage merge: task key=7 was skipped: task key=7 of stage align was given up"* ]]
    # What is printed can be typed.
    shows() { run -"$1" troupe logs r "${@:3}" && [ "$output" = "$2" ]; }
    shows 0 s01 align s01
    shows 0 s01 align s01.0
    shows 0 s02.1 align s02.1
    shows 0 s02.1 align key=s02.1.0
    shows 0 s02 align s02.0
    shows 0 7 align key=7
    shows 0 7 align 2
    shows 0 'm s01' merge s01
    shows 2 'troupe: logs: stage align has no task s03; did you mean "s01"?; they are s01, s02, 7, s02.1' align s03
    shows 2 'troupe: logs: task 1 of stage align has had no such attempt in run r; what it has had is 1.0' align s02.7
    run -0 troupe logs r align
    [[ "$output" == *"==> align/1.0.out (s02) <=="$'\n's02$'\n'* ]]
    [ ! -e troupe-runs/r/logs/quiet ]
    [ "$(cat troupe-runs/r/logs/align/names.tsv)" = $'0\ts01\n1\ts02\n2\tkey=7\n3\ts02.1' ]
    run -0 troupe explain r
    [[ "$output" == *"task s02, attempt 0: exit status 1, after "* ]]
    [[ "$output" == *"task key=7 was given up after 1 failure"* ]]
    [[ "$output" == *"task s02 was skipped: task s02 of stage align was given up"* ]]
    run -1 troupe run --local=1 --run-name q p.yaml
    run -0 troupe explain q align
    [[ "$output" == *"because: task s02 failed once"* ]]
    run -0 troupe report --json r
    [[ "$output" == *'{"stage":"align","task":1,"name":"s02","item":"y\ts02",'* ]]
    [[ "$output" == *'{"stage":"merge","task":2,"name":"7","item":"z\t7","after":"align","after_task":2}'* ]]
}

@test "a product of a list and a table has the columns of both" {
    printf 'sample,fq\nA,"1,2"\nB,3\n' >s.csv
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, foreach: {product: {lr: [1, 2], row: {table: s.csv}}}, argv: [sh, -c, 'echo "$1 $2 $3 $TROUPE_COL_sample"', x, "${col.lr}", "${col.sample}", "${col.fq}"]}
Y
    run -0 troupe plan p.yaml
    troupe run --local=2 --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/a/*.out)" = $'1 A 1,2 A\n1 B 3 B\n2 A 1,2 A\n2 B 3 B' ]
}

# lanes: the example of the cookbook, with its tables and commands. Each command writes down what
# it is given; a lane whose reads are `bad` cannot be aligned.
lanes() {
    awk '/^## / { on = /^## Lanes to samples/ } on && /^```/ { block = !block; next } on && block' \
        "$TROUPE_SOURCE/docs/cookbook.md" >p.yaml
    printf '%s\t%s\t%s\t%s\t%s\n' lane sample cohort reads bam \
        l1 s2 old r1 l1.bam l2 s1 old r2 l2.bam l3 s2 old r3 l3.bam l4 s3 new r4 l4.bam l5 s9 no r5 l5.bam >lanes.tsv
    printf '%s\t%s\t%s\n' sample cohort merged s1 old s1.merged s2 old s2.merged s3 new s3.merged >samples.tsv
    for i in align merge call; do
        printf '#!/bin/sh\n[ "$1" != bad ] || exit 3\necho %s "$TROUPE_ITEM" "$TROUPE_COL_cohort": "$@" >>ran\n' $i >$i
        chmod +x $i
    done
}

@test "the cookbook's lanes become samples, and samples cohorts" {
    lanes
    run -0 troupe plan --local=2 p.yaml
    [[ "$output" =~ merge\ +default\ +4\ +align\ \(by\ sample\) ]]
    [[ "$output" =~ call\ +default\ +2\ +merge\ \(by\ cohort\) ]]
    troupe run --local=2 --run-name r p.yaml
    [ "$(grep -v ^align ran | sort)" = "call new new: new.vcf s3.merged
call old old: old.vcf s1.merged s2.merged
merge s1 old: s1.merged l2.bam
merge s2 old: s2.merged l1.bam l3.bam
merge s3 new: s3.merged l4.bam
merge s9 no: s9.merged l5.bam" ]
    [ "$(cat troupe-runs/r/state/rows/merge/0.tsv)" = "$(sed -n '1p;2p;4p' lanes.tsv)" ]
    # Nothing has changed but where samples stand in the table.
    rm ran
    sed -n '1p;5p;6p;3p;2p;4p' lanes.tsv >t && mv t lanes.tsv
    run -0 troupe run --local=2 --resume r
    [ ! -e ran ]
    # A lane more: its sample is merged again, and its cohort called; a changed one likewise.
    printf 'l6\ts3\tnew\tr6\tl6.bam\n' >>lanes.tsv
    sed -i 's/r2/r2b/' lanes.tsv
    run -0 --separate-stderr troupe run --local=2 --resume r
    [ "$(sort ran)" = "align l2	s1	old	r2b	l2.bam old: r2b l2.bam
align l6	s3	new	r6	l6.bam new: r6 l6.bam
call new new: new.vcf s3.merged
call old old: old.vcf s1.merged s2.merged
merge s1 old: s1.merged l2.bam
merge s3 new: s3.merged l4.bam l6.bam" ]
    [[ "$stderr" == *"stage merge: 2 tasks that were done are to run again: "* ]]
    run -0 troupe sim --cluster "$TROUPE_SOURCE/examples/sim/cluster.yaml" --durations <(printf 'durations: 1\nstages: {align: 10s, merge: 1s, call: 1s}\n') p.yaml
}

@test "a lane that is given up skips its sample and cohort, and is tolerated there" {
    lanes
    sed -i 's/r3/bad/; ' lanes.tsv
    sed -i '/name: align/a\    tolerate: 1' p.yaml
    run -0 --separate-stderr troupe run --local=2 --run-name r p.yaml
    [ "$(grep -v ^align ran | sort | cut -d: -f1)" = "call new new
merge s1 old
merge s3 new
merge s9 no" ]
    [[ "$stderr" == *"stage merge: task s2 was skipped: task l3 of stage align was given up"* ]]
    [[ "$stderr" == *"stage call: task old was skipped: task s2 of stage merge was given up"* ]]
    run -0 troupe report --json r
    [[ "$output" == *'"skipped":[{"stage":"merge","task":0,"name":"s2","item":"s2","after":"align","after_task":2},{"stage":"call","task":0,"name":"old","item":"old","after":"merge","after_task":0}]'* ]]
    run -0 troupe explain r merge
    [[ "$output" == *"task s2 was skipped: task l3 of stage align was given up"* ]]
    # What was given up runs now, and only what comes after it.
    sed -i 's/bad/r3/' lanes.tsv
    rm ran
    run -0 troupe run --local=2 --resume r
    [ "$(cut -d' ' -f1,2 ran | cut -f1)" = "align l3
merge s2
call old" ]
}

@test "who waits by a column for a task of a stage that is over is told what that is called" {
    printf '%s\t%s\n' lane sample l1 s1 l2 s2 l3 s2 >lanes.tsv
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: align
    tolerate: 1
    foreach: {table: lanes.tsv}
    run: |
      if [ $TROUPE_COL_lane = l3 ]; then
        until [ -e l1 -a -e l2 ]; do sleep 0.05; done
        exit 3
      fi
      touch $TROUPE_COL_lane
  - {name: merge, foreach: {table: lanes.tsv, group: sample}, after: [{stage: align, by: sample}], run: "true"}
Y
    run -0 --separate-stderr troupe run --local=2 p.yaml
    [[ "$stderr" == *"stage merge: task s2 was skipped: task l3 of stage align was given up"* ]]
}

@test "what group and by name is looked for in the tables before anything starts" {
    lanes
    printf 's1\tlost\tx\n' >>samples.tsv
    for how in plan "run --local=2"; do
        run -2 troupe $how p.yaml
        [[ "$output" == *"p.yaml:11:32: stage call: by: no row of stage merge (lanes.tsv) has cohort lost, which task 2 waits for; add one, or take it out of samples.tsv"* ]]
    done
    lanes
    sed -i 's/by: sample/by: sampel/' p.yaml
    run -2 troupe plan p.yaml
    [[ "$output" == *'p.yaml:7:32: stage merge: by: the table lanes.tsv of stage merge has no column sampel; did you mean "sample"?'* ]]
    lanes
    sed -i 's/rows.bam/col.bam/' p.yaml
    for how in plan "run --local=2"; do
        run -2 troupe $how p.yaml
        [[ "$output" == *'p.yaml:9:'*': stage merge: ${col.bam}: the rows of sample s2 differ in it; write ${rows.bam}, a word of argv that becomes one a row, or read the file $TROUPE_ROWS'* ]]
    done
    lanes
    sed -i 's/group: sample/group: sampel/' p.yaml
    run -2 troupe plan p.yaml
    [[ "$output" == *'stage merge: group: the table lanes.tsv has no column sampel; did you mean "sample"?'* ]]
    sed -i 's/by: sample/by: lane/; s/group: sampel/group: sample/' p.yaml
    run -2 troupe plan p.yaml
    [[ "$output" == *"stage merge: by: the rows of sample s2 differ in the column lane"* ]]
    [ ! -e ran ]
}
