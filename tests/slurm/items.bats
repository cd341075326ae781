#!/usr/bin/env bats
# Items that fail, values from outside, logs and reasons of --resume, on two nodes of a Slurm
# job: what tests/mpi/items.bats and make.bats have of one machine.
# bats file_tags=both
load slurm.bash

setup_file() {
    cluster_up -n 2 --fast
}

@test "chains over a table: what is given up, skipped and left out, and what --resume does again" {
    printf 's\tfq\na\t1\nb\t2\nc\t3\nd\t4\n' >s.tsv
    cat >p.yaml <<'END'
troupe: 1
name: chains
params: {qc: no}
profiles: {p: {executor: {cores: 2, memory: 100m, memoryOverhead: 56m}, task: {cpus: 2}}}
notify: 'cat >summary; echo "$TROUPE_STATUS" >told'
stages:
  - name: align
    foreach: {table: s.tsv}
    profile: p
    outputs: ["aligned/${col.s}"]
    task_logs: stage
    retries: {max_failures: 2}
    run: |
      mkdir -p here aligned
      touch "here/$(hostname)"
      until [ "$(ls here | wc -l)" = 2 ]; do sleep 0.1; done
      echo "aligned $TROUPE_COL_s $TROUPE_COL_fq"
      [ "$TROUPE_COL_s" != c ] || [ -e good ] || exit 3
      echo "$TROUPE_COL_fq" >"aligned/$TROUPE_COL_s"
  - name: sort
    after: [{stage: align, each: true}]
    foreach: {table: s.tsv}
    profile: p
    argv: [sh, -c, 'mkdir -p sorted; cp "aligned/$1" sorted', x, "${col.s}"]
  - {name: qc, when: "${qc}", run: touch qc}
  - {name: sweep, after: [qc], profile: p, foreach: {product: {k: [1, 2], t: {table: s.tsv}}}, run: 'mkdir -p swept; touch "swept/$TROUPE_COL_k$TROUPE_COL_s"'}
  - {name: merge, after: [sort, sweep], profile: p, run: touch merged}
END
    submit alice -N2 -n2 -c4 --mem=2000 -- "$TROUPE" run --quiet --keep-going --run-name r p.yaml
    run finished
    echo "$output"
    [ "$status" = 1 ]
    [ "$(ls here | wc -l)" = 2 ]
    [ "$(ls sorted | xargs)" = "a b d" ]
    [ "$(ls swept | xargs)" = "1a 1b 1c 1d 2a 2b 2c 2d" ]
    [ ! -e merged ]
    [ ! -e qc ]
    [[ "$output" == *"stage align: task c failed 2 times, last with exit status 3; see: troupe logs r align 2.1"* ]]
    [[ "$output" == *"stage sort: task c was skipped: task c of stage align was given up"* ]]
    [[ "$output" == *"stage merge was skipped: stage "* ]]
    [ "$(cat told)" = 1 ] && grep -q '^align ' summary
    # A stream of each executor, on either node, and what the tasks are called; nothing beside.
    [ "$(ls troupe-runs/r/logs)" = align ]
    [ "$(ls troupe-runs/r/logs/align | grep -cE '^stream\.[0-9]+\.zst$')" -ge 2 ]
    [ "$(ls troupe-runs/r/logs/align | grep -vE '^stream\.[0-9]+\.(zst|index)$')" = names.tsv ]
    [ "$(as alice head "$TROUPE" logs r align | grep -c '^aligned ')" = 5 ]
    [ "$(as alice head "$TROUPE" logs --failed r | grep -c '^aligned c 3$')" = 2 ]

    # The sample is mended; an output is lost, a command changed.
    touch good
    rm aligned/a
    sed -i 's/name: sweep,/& env: {A: b},/' p.yaml
    submit alice -N2 -n2 -c4 --mem=2000 -- "$TROUPE" run --quiet --resume r
    run -0 finished
    echo "$output"
    [[ "$output" == *"stage align: 1 task that was done is to run again: output aligned/a "* ]]
    [[ "$output" == *"stage sort: 1 task that was done is to run again: the tasks before them run again"* ]]
    [[ "$output" == *"stage sweep: 8 tasks that were done are to run again: its env changed"* ]]
    [ "$(ls sorted | xargs)" = "a b c d" ]
    [ -e merged ]
    [ "$(cat told)" = 0 ]
    [ "$(as alice head "$TROUPE" logs r align | grep -c '^aligned ')" = 7 ]
    submit alice -N2 -n2 -c4 --mem=2000 -- "$TROUPE" run --quiet --resume r
    run -0 finished
    [[ "$output" == *"nothing is left to do: every stage is done"* ]]
    run -0 nothing_left node1 node2
}
