# troupe sim: whole runs in virtual time, comparisons, replay of a trace.
load common

E() { echo "$TROUPE_SOURCE/examples/sim"; }
play() {
    troupe sim --cluster "$(E)/cluster.yaml" --durations "$(E)/durations.yaml" "$@" \
        "$(E)/pipeline.yaml"
}

@test "a whole run is played and reported" {
    check 0 "^succeeded after [0-9:]+, of which .* before the driver began" play
    check 0 "^prepare +small +4000 " play
    check 0 "^solve +rank +256 ranks " play
    check 0 "^in all " play
    [ -z "$(ls)" ]
}

@test "the same seed gives the same bytes, another one others" {
    play --seed 7 --json >a
    play --seed 7 --json >b
    play --seed 8 --json >c
    cmp a b
    run ! cmp -s a c
    play --set scheduler.seed=7 --json >d
    cmp a d
}

@test "JSON has times, waits and hours, in all and of each stage" {
    play --json >out
    [ "$(json '$$d{outcome}' <out)" = succeeded ]
    [ "$(json '$$d{tasks}' <out)" = 4050 ]
    [ "$(json '@{$$d{stages}} + 0' <out)" = 4 ]
    [ "$(json '$$d{stages}[1]{held}{devices}{gpu} > $$d{stages}[1]{used}{devices}{gpu} ? 1 : 0' <out)" = 1 ]
    [ "$(json '$$d{stages}[1]{queue_wait} < 1 ? 1 : 0' <out)" = 1 ] # it was looked ahead to
    [ "$(json '$$d{held}{cores} >= $$d{used}{cores} ? 1 : 0' <out)" = 1 ]
    play --json --set alloc.look_ahead=off >out
    [ "$(json '$$d{stages}[1]{queue_wait} > 60 ? 1 : 0' <out)" = 1 ]
}

@test "policies stand side by side on the same tasks" {
    play --compare >out
    for policy in monolithic job-per-stage inside-first look-ahead idle-timeout; do
        grep -qE "^$policy +succeeded " out
    done
    play --compare --json >out
    [ "$(json 'my %u; $u{sprintf "%.0f", $_->{used}{cores}}++ for @{$$d{runs}}; keys(%u) + 0' <out)" -le 2 ]
    [ "$(json '$$d{runs}[0]{jobs}' <out)" = 1 ]
    [ "$(json '$$d{runs}[0]{held}{cores} > $$d{runs}[2]{held}{cores} ? 1 : 0' <out)" = 1 ]
    check 0 "policy look-ahead" play --policy look-ahead
    check 2 "did you mean .look-ahead" play --policy look-ahaed
}

@test "durations may come from an event log of Spark's" {
    cat >spark.jsonl <<'EOF'
{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}
{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":0,"Stage Name":"map at x.scala:4","Number of Tasks":6}}
{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task End Reason":{"Reason":"Success"},"Task Info":{"Launch Time":1000,"Finish Time":21000}}
EOF
    pipeline <<'EOF'
troupe: 1
stages: [{name: a, foreach: {files: "not/here/*"}, run: x}]
EOF
    cat >d.yaml <<'EOF'
durations: 1
stages: {a: {events: spark.jsonl, stage: "map at x.scala:4", scale: 2}}
EOF
    cat >c.yaml <<'EOF'
{cluster: 1, start_up: 1s, nodes: [{name: n, cores: 8, memory: 16g}]}
EOF
    troupe sim --cluster c.yaml --durations d.yaml --json p.yaml >out
    [ "$(json '$$d{stages}[0]{tasks}' <out)" = 6 ]
    [ "$(json '$$d{makespan}' <out)" = 41 ]
    echo '{"Event":"SparkListenerTaskEnd",' >>spark.jsonl
    echo '{}' >>spark.jsonl
    check 2 "d.yaml:2:22: .*spark.jsonl:4: not JSON" \
        troupe sim --cluster c.yaml --durations d.yaml p.yaml
}

@test "what is wrong has its place" {
    echo '{cluster: 1, nodes: [{name: n, cores: -8, memory: 16g}]}' >c.yaml
    echo '{durations: 1, default: 1e30}' >d.yaml
    check 2 "^troupe: c.yaml:1:39: " troupe sim --cluster c.yaml \
        --durations "$(E)/durations.yaml" "$(E)/pipeline.yaml"
    check 2 "^troupe: d.yaml:1:25: " troupe sim --cluster "$(E)/cluster.yaml" \
        --durations d.yaml "$(E)/pipeline.yaml"
    echo '{cluster: 1, nodes: [{name: n, cores: 2, memory: 16g}]}' >c.yaml
    check 3 "pipeline.yaml:[0-9]+:[0-9]+: stage prepare never fits c.yaml: cores wanted 16, available 2" \
        troupe sim --cluster c.yaml --durations "$(E)/durations.yaml" "$(E)/pipeline.yaml"
    check 2 "cluster without --durations" troupe sim --cluster c.yaml x.yaml
    check 2 "no pipeline file" troupe sim --cluster c.yaml --durations d.yaml
    check 2 "\-\-seed -1" play --seed -1
    check 2 "stands alone" troupe sim --replay x --json
}

# bats test_tags=plain
@test "1,000 nodes and 100,000 tasks stay within a tenth of a minute's and 2 GiB's worth" {
    "$TROUPE_SOURCE/bench/simulator" --files . 10
    (
        ulimit -v 204800
        # of processor time: the machine may be busy
        ulimit -t 6
        check 0 "^100000 tasks" troupe sim --cluster c.yaml --durations d.yaml --record t p.yaml
        check 0 "the same again" troupe sim --replay t
    )
}

@test "a run that fails is reported and exit 1" {
    pipeline <<'EOF'
troupe: 1
stages: [{name: a, tasks: 3, run: x}]
EOF
    echo '{durations: 1, default: {constant: 1s, fail: 1}}' >d.yaml
    check 1 "^failed after" troupe sim --cluster "$(E)/cluster.yaml" --durations d.yaml p.yaml
    check 1 "^stage a failed: " troupe sim --cluster "$(E)/cluster.yaml" --durations d.yaml p.yaml
}

@test "a barrier stage that never has its slots is exit 3 and says why" {
    pipeline <<'EOF'
troupe: 1
stages: [{name: a, tasks: 3, barrier: true, executors: {max: 2}, run: x}]
EOF
    echo '{durations: 1, default: 1s}' >d.yaml
    check 3 "^stage a failed: a barrier stage of 3 tasks needs as many slots at once; at most 2" \
        troupe sim --cluster "$(E)/cluster.yaml" --durations d.yaml p.yaml
}

@test "a recorded run is decided again; a broken trace has its place" {
    play --record t.trace >/dev/null
    check 0 "^t.trace: [0-9]+ events, [0-9]+ decisions: the same again" \
        troupe sim --replay t.trace
    head -c 3000 t.trace >cut.trace
    check 2 "^troupe: cut.trace: event [0-9]+, byte [0-9]+: the file is cut off" \
        troupe sim --replay cut.trace
    echo nonsense >no.trace
    check 2 "no.trace: not the trace of an engine" troupe sim --replay no.trace
    check 2 "none.trace: cannot be read" troupe sim --replay none.trace
}

@test "pools share the slots of a played run as they do those of a real one" {
    pipeline <<'EOF'
troupe: 1
options: {scheduler.mode: FAIR}
pools: {one: {weight: 3}, two: {weight: 1}}
stages:
  - {name: a, tasks: 40, pool: one, run: x}
  - {name: b, tasks: 40, pool: two, run: x}
EOF
    echo '{cluster: 1, start_up: 0s, nodes: [{name: n, cores: 4, memory: 16g, inside: 1}]}' >c.yaml
    echo '{durations: 1, default: 1s}' >d.yaml
    ends() {
        troupe sim --cluster c.yaml --durations d.yaml --json "$@" p.yaml |
            json 'join " ", map { $_->{end} } @{$$d{stages}}'
    }
    [ "$(ends)" = "14 20" ] # 40 tasks in 3 of 4 slots
    [ "$(ends --record t)" = "14 20" ]
    check 0 "the same again" troupe sim --replay t
    sed -i 's/^pools:.*/pools: {one: {weight: 1000}, two: {min_share: 2}}/' p.yaml
    [ "$(ends)" = "20 20" ]
    sed -i '/^pools:/d; s/pool: [a-z]*, //' p.yaml
    [ "$(ends --set scheduler.mode=FIFO)" = "10 20" ]
    sed -i 's/tasks: 40,/& pool: no,/' p.yaml
    check 2 "p.yaml:4:32: unknown pool" \
        troupe sim --cluster c.yaml --durations d.yaml p.yaml
}

@test "with run.keep_going, tasks behind those that fail are skipped, and the others run" {
    cat >c.yaml <<'Y'
cluster: 1
nodes: [{name: n, cores: 4, memory: 8g}]
Y
    cat >d.yaml <<'Y'
durations: 1
default: 5s
stages: {a: {constant: 10s, fail: 0.2}}
Y
    cat >p.yaml <<'Y'
troupe: 1
options: {run.keep_going: true}
stages:
  - {name: a, tasks: 40, retries: {max_failures: 1}, run: x}
  - {name: b, tasks: 40, after: [{stage: a, each: true}], run: x}
  - {name: c, after: [b], run: x}
Y
    check 1 "^stage b failed" troupe sim --seed 1 --cluster c.yaml --durations d.yaml p.yaml
    lost=$(grep -o 'stage a failed: [0-9]* of its 40 tasks were given up' <<<"$output" | grep -o '[0-9]*' | head -n 1)
    [ "$lost" -gt 1 ]
    [[ "$output" == *"stage b failed: $lost of its 40 tasks were skipped"* ]]
    grep -qE '^c +default +1 +- ' <<<"$output"
    sed -i 's/tasks: 40,/& tolerate: 50%,/' p.yaml
    check 0 ", 1 job submitted$" troupe sim --seed 1 --cluster c.yaml --durations d.yaml p.yaml
    [[ "$output" == *"stage a succeeded: $lost of 40 tasks given up"* ]]
    [[ "$output" == *"stage b succeeded: $lost of 40 tasks skipped"* ]]
}

@test "tables, params, when, include and tolerate count in a played run as in a real one" {
    mkdir inc
    cat >inc/more.yaml <<'Y'
troupe: 1
params: {n: 3, qc: no}
stages:
  - {name: counted, tasks: "${n}", run: x}
Y
    cat >p.yaml <<'Y'
troupe: 1
include: [inc/more.yaml]
stages:
  - {name: rows, foreach: {table: s.tsv}, argv: [x, "${col.fq}"]}
  - {name: qc, when: "${qc}", after: [rows], run: x}
  - {name: all, foreach: {product: {a: [1, 2], b: {table: s.tsv}}}, after: [qc], run: x}
  - {name: frail, tasks: 40, tolerate: 39, retries: {max_failures: 1}, run: x}
  - {name: end, after: [frail], run: x}
Y
    printf 's\tfq\na\t1\nb\t2\n' >s.tsv
    echo '{cluster: 1, nodes: [{name: n, cores: 4, memory: 8g}]}' >c.yaml
    printf 'durations: 1\ndefault: 5s\nstages: {frail: {constant: 10s, fail: 0.2}}\n' >d.yaml
    played() { troupe sim --seed 1 --cluster c.yaml --durations d.yaml --json "$@" p.yaml >out; }
    tasks() { json 'join " ", map { "$_->{name}:$_->{tasks}" } @{$$d{stages}}' <out; }
    played
    [ "$(tasks | tr ' ' '\n' | sort | xargs)" = "all:4 counted:3 end:1 frail:40 rows:2" ] || { tasks; return 1; }
    [ "$(json '$$d{outcome}' <out)" = succeeded ]
    played --param n=7 --param qc=yes
    [ "$(tasks | tr ' ' '\n' | sort | xargs)" = "all:4 counted:7 end:1 frail:40 qc:1 rows:2" ]
    # It is by what is tolerated that this run succeeds.
    lost=$(json 'my ($s) = grep { $_->{name} eq "frail" } @{$$d{stages}}; $s->{given_up}' <out)
    [ "$lost" -gt 1 ]
    check 0 "^stage frail succeeded: $lost of 40 tasks given up$" \
        troupe sim --seed 1 --cluster c.yaml --durations d.yaml --param n=7 --param qc=yes p.yaml
    sed -i 's/tolerate: 39, //' p.yaml
    check 1 '^stage frail failed' troupe sim --seed 1 --cluster c.yaml --durations d.yaml p.yaml
    # And what is wrong with them is wrong here, too.
    printf 's\tfq\na\n' >s.tsv
    check 2 '^troupe: p.yaml:4:.*: stage rows: the table s.tsv: line 2 has 1 value' \
        troupe sim --cluster c.yaml --durations d.yaml p.yaml
}
