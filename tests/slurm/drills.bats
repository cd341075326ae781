#!/usr/bin/env bats
# What goes wrong below a run in its own Slurm job, and what must follow: the right result,
# and nothing left of it.
load slurm.bash
load run.bash

setup_file() {
    # A busy machine needs its time to tidy up before Slurm kills what is left.
    cluster_up -n 4 --gpus 2 --racks 2 --fast --conf KillWait=30 --conf SlurmdTimeout=30
}

teardown() {
    on head scancel -u alice
    cluster heal head
    for node in node1 node2 node3 node4; do
        cluster heal $node
        on head scontrol update nodename=$node state=resume 2>/dev/null || true
    done
}

@test "a node dies with all that is on it: its tasks run on another, the run succeeds" {
    pipeline 8 'while [ ! -e go ]; do sleep 0.1; done'
    run_on -N3 -n3 -c2 --mem=2000 -w node1,node2,node3 -- "${quick[@]}" --set alloc.max_executors=4
    wait_until have_run 4
    run ! has_run_on node3
    cluster kill node2
    wait_until has_run_on node3
    touch go
    wait_until grep -q "stage s succeeded" out
    misses node2
    well
    [[ "$output" == *"lost its executor"* ]]
    nothing_left node1 node3
    cluster heal node2
    # What lay on the node goes with the next executor of the same user there.
    leftovers node2 | grep -q /tmp/troupe-
    rm -rf troupe-runs
    run_on -N1 -n1 -c2 --mem=2000 -w node2 --
    well
    nothing_left node2
}

# Each task's first attempt leaves three children behind, of its own session and not; the
# next attempt counts those that are there yet.
breeding() {
    # shellcheck disable=SC2016 # the tasks' words
    pipeline 2 '[ $TROUPE_ATTEMPT = 0 ] || {
          ps -eo args | grep -c "^sleep 98.$TROUPE_TASK" >beside.$TROUPE_TASK || true; exit 0; }
      sh -c "sleep 98.${TROUPE_TASK}1" & setsid sh -c "sleep 98.${TROUPE_TASK}2; :" &
      env -i PATH="$PATH" setsid sh -c "(sleep 98.${TROUPE_TASK}3; :) &"
      wait'
}

bred() {
    [ "$(on node1 pgrep -u alice -c -f "^sleep 98.[01][123]")" = 6 ]
}

@test "a spawner is killed, another stopped: what they had started ends before the retry" {
    breeding
    run_on -N1 -n1 -c3 --mem=2000 -w node1 --
    wait_until bred
    on node1 pkill -KILL -u alice -f '^troupe: spawner 0( |$)'
    on node1 pkill -STOP -u alice -f '^troupe: spawner 1( |$)'
    well
    [ "$(cat beside.0)" = 0 ]
    [ "$(cat beside.1)" = 0 ]
    [[ "$output" == *"lost its executor: its spawner died; it is run again"* ]]
    [[ "$output" == *"lost its executor: its spawner hung; it is run again"* ]]
    nothing_left node1
}

one_step_is_left() {
    [ "$(on node2 pgrep -c -u alice -f '/troupe-rank step ')" = 1 ]
}

@test "an srun is killed, and a step: nothing is left where no executor comes any more" {
    pipeline 4 'while [ ! -e go ]; do sleep 0.1; done'
    run_on -N2 -n2 -c2 --mem=2000 -w node1,node2 -- --set slurm.poll=500ms
    wait_until have_run 4
    on head scontrol update nodename=node2 state=drain reason=drill
    wait_until grep -q 'is to go: node2 is being drained' troupe-runs/r/events.jsonl
    on node1 pkill -KILL -o -u alice -f '^srun .*--nodelist=node2 '
    wait_until one_step_is_left
    on node2 pkill -KILL -u alice -f '/troupe-rank step '
    touch go
    well
    [ "$(cat ran.* | wc -l)" = 6 ]
    nothing_left node1 node2
}

@test "a node dies below a gang: it runs again on others" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 2, memory: 300m, memoryOverhead: 100m}, task: {cpus: 1}}
stages:
  - name: s
    profile: g
    mpi: {ranks: 4}
    run: |
      hostname >ran.$TROUPE_RANK.$TROUPE_ATTEMPT
      while [ ! -e go ]; do sleep 0.1; done
END
    run_on -N3 -n3 -c2 --mem=2000 -w node1,node2,node3 -- --set slurm.poll=500ms
    wait_until have_run 4
    cluster kill node2
    misses node2
    wait_until have_run 8
    [ "$(cat ran.*.1 | sort -u | xargs)" = "node1 node3" ]
    touch go
    well
    nothing_left node1 node3
}

# bats test_tags=plain
@test "a rank over its memory: limit and peak are told" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 1, memory: 100m, memoryOverhead: 28m}, task: {cpus: 1}}
stages:
  - name: s
    profile: g
    mpi: {ranks: 2}
    retries: {max_failures: 1}
    run: |
      [ $TROUPE_RANK = 1 ] || exec sleep 60
      exec perl -e '$x = "a" x 600_000_000; sleep 60'
END
    run_on -N2 -n2 -c1 --mem=1500 -w node1,node2 -- --set driver.memory=600m
    run -1 finished
    [[ "$output" =~ "killed for memory (limit "[0-9]+" MiB, peak "[0-9]+" MiB)" ]]
    nothing_left node1 node2
}

@test "time is up for a gang: its ranks get SIGTERM, and 5 s until SIGKILL" {
    cat >p.yaml <<'END'
troupe: 1
stages:
  - name: s
    mpi: {ranks: 2}
    run: |
      trap 'sleep 2; touch saved.$TROUPE_RANK; exit 0' TERM
      touch ran.$TROUPE_RANK
      while :; do sleep 0.1; done
END
    run_on -N2 -n2 -c1 --mem=2500 -w node1,node2 -- --set run.grace=1s
    wait_until test -e ran.0 -a -e ran.1
    on head scancel --batch --signal=USR1 "$job"
    run -75 finished
    [ -e saved.0 ]
    [ -e saved.1 ]
    nothing_left node1 node2
}

additional_gang() {
    [ "$(on head squeue -h -u alice -o '%j %D' | awk '$1 == "troupe" { print $NF }')" = 2 ]
}

@test "a node of an additional job dies below a gang: it runs again" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 4, memory: 300m, memoryOverhead: 100m}, task: {cpus: 4}}
stages:
  - name: s
    profile: g
    mpi: {ranks: 2}
    run: |
      hostname >ran.$TROUPE_RANK.$TROUPE_ATTEMPT
      while [ ! -e go ]; do sleep 0.1; done
END
    submit alice --no-kill -N1 -n1 -c1 --mem=1000 -w node1 -- \
        "$TROUPE" run --run-name r --set slurm.poll=500ms --set task.maxFailures=1 p.yaml
    wait_until have_run 2
    additional_gang
    local node
    node=$(cat ran.1.0)
    [ "$node" != node1 ]
    cluster kill "$node"
    misses "$node"
    wait_until have_run 4
    run ! grep -qx "$node" ran.*.1
    touch go
    well
    nothing_left node1
}

# more_resent N: node2 has sent something again more than so often, since nobody said that it came.
more_resent() {
    [ "$(tcp_count node2 RetransSegs)" -gt "$1" ]
}

@test "a node is away for a while: nothing is lost" {
    pipeline 4 'while [ ! -e go ]; do sleep 0.1; done'
    run_on -N2 -n2 -c2 --mem=2000 -w node1,node2 -- --set network.timeout=1h \
        --set executor.heartbeatInterval=1s
    wait_until have_run 4
    local before
    before=$(tcp_count node2 RetransSegs)
    cluster cut node2
    wait_until more_resent $((before + 2))
    cluster heal node2
    touch go
    well
    [[ "$output" != *"lost its executor"* ]]
    [ "$(cat ran.* | wc -l)" = 4 ]
    nothing_left node1 node2
}

@test "a node is away for ever: its executors are given up and stop by themselves" {
    pipeline 8 'while [ ! -e go ]; do sleep 0.1; done'
    run_on -N3 -n3 -c2 --mem=2000 -w node1,node2,node3 -- "${quick[@]}" --set alloc.max_executors=4
    wait_until have_run 4
    run ! has_run_on node3
    cluster cut node2
    wait_until has_run_on node3
    touch go
    wait_until grep -q "stage s succeeded" out
    misses node2
    well
    [[ "$output" == *"lost its executor"* ]]
    wait_until bash -c '! cluster exec node2 pgrep -u alice .'
    nothing_left node1 node2 node3
}

# bats test_tags=plain
@test "a task over its memory: its neighbour goes on, it has a larger step then" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  two: {executor: {cores: 2, memory: 150m, memoryOverhead: 50m}, task: {cpus: 1}}
stages:
  - name: s
    tasks: 2
    profile: two
    retries: {memory_factor: 2}
    run: |
      touch ran.$TROUPE_TASK.$TROUPE_ATTEMPT
      [ $TROUPE_TASK = 0 ] || { while [ ! -e go ]; do sleep 0.1; done; echo fine; exit; }
      exec perl -e '$x .= "a" x 1_000_000 for 1 .. 230; touch("grown"); sub touch { open F, ">", shift } sleep 1 until -e "go"'
END
    run_on -N1 -n1 -c4 --mem=3000 --
    wait_until test -e grown
    run -0 on head scontrol show step "$job"
    echo "$output"
    [[ "$output" == *mem=200M* ]]
    [[ "$output" == *mem=400M* ]]
    touch go
    well
    [[ "$output" == *"task 0, attempt 0: killed for memory (limit 200 MiB, peak "*"; it is run again"* ]]
    [ "$(<troupe-runs/r/logs/s/1.0.out)" = fine ]
    [ ! -e ran.1.1 ]
    nothing_left node1
}

@test "slurmctld is away while a stage runs and while the next one's executors start" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  large: {executor: {cores: 2, memory: 300m, memoryOverhead: 56m}, task: {cpus: 2}}
stages:
  - {name: first, profile: small, tasks: 8, run: "touch ran.$TROUPE_TASK.$TROUPE_ATTEMPT; until [ -e go ]; do sleep 0.1; done"}
  - {name: second, profile: large, after: [first], tasks: 2, run: "touch second.$TROUPE_TASK"}
END
    run_on -N2 -n2 -c2 --mem=2000 -w node1,node2 --
    wait_until test -e ran.0.0
    slurmctld_goes
    local before
    before=$(refusals_on node1)
    touch go
    wait_until grep -q '"TroupeStageEnded\|StageCompleted' troupe-runs/r/events.jsonl
    wait_until more_refusals node1 "$before"
    [ ! -e second.0 ]
    cluster heal head
    well
    [ "$(echo second.* | wc -w)" = 2 ]
    [ "$(echo ran.* | wc -w)" = 8 ]
    nothing_left node1 node2
}

@test "on a slow node copies of its tasks win elsewhere, and the slow ones are killed" {
    pipeline 12 '[ $TROUPE_ATTEMPT = 0 ] && [ $(hostname) = node2 ] && exec sleep 300; sleep 0.2'
    run_on -N2 -n2 -c2 --mem=2000 -w node1,node2 -- --set speculation=true \
        --set speculation.quantile=0.5 --set speculation.minTaskRuntime=500ms
    well
    has_run_on node2
    grep -q '"Killed":true' troupe-runs/r/events.jsonl
    nothing_left node1 node2
}

@test "where all executors are on the slow node, a copy has one on another" {
    pipeline 3 '[ $TROUPE_TASK = 0 ] && [ $(hostname) = node1 ] && exec sleep 300; sleep 0.2'
    # There is room for all of them on node1, where the driver is, and for one more.
    run_on -N2 -n2 -c4 --mem=2000 -w node1,node2 -- --set speculation=true \
        --set speculation.quantile=0.5 --set speculation.minTaskRuntime=500ms
    well
    [ "$(grep -lx node2 ran.*)" = ran.0.1 ]
    grep -q '"Killed":true' troupe-runs/r/events.jsonl
    nothing_left node1 node2
}

@test "a node that its admin drains: what runs there ends, what is new goes elsewhere" {
    pipeline 16 'while [ ! -e go ] && [ ! -e go.$(hostname) ]; do sleep 0.1; done'
    run_on -N3 -n3 -c2 --mem=2000 -w node1,node2,node3 -- --set slurm.poll=500ms \
        --set alloc.max_executors=4
    wait_until have_run 4
    on head scontrol update nodename=node2 state=drain reason=drill
    wait_until grep -q 'is to go: node2 is being drained' troupe-runs/r/events.jsonl
    touch go.node2
    wait_until has_run_on node3
    touch go
    well
    [[ "$output" != *"run again"* ]]
    [ "$(grep -lx node2 ran.* | wc -l)" = 2 ]
    nothing_left node1 node2 node3
}

@test "runs of one user and of two, at once on the same nodes, do not notice each other" {
    local jobs=() i
    for i in 1 2 3; do
        mkdir -m 777 $i
        cd $i
        pipeline 6 'while [ ! -e go ]; do sleep 0.1; done; echo $TROUPE_TASK'
        submit "$([ $i = 3 ] && echo bob || echo alice)" -N2 -n2 -c1 --mem=1000 -w node1,node2 \
            -- "$TROUPE" run --run-name r p.yaml
        jobs+=("$job")
        cd ..
    done
    for i in 1 2 3; do
        wait_until test -e $i/ran.0.0 -a -e $i/ran.1.0
    done
    on head scancel "${jobs[0]}" # one of alice's ends by force
    wait_until job_is_over "${jobs[0]}"
    touch 2/go 3/go
    for i in 2 3; do
        cd $i
        job=${jobs[i - 1]}
        well
        [[ "$output" != *"run again"* ]]
        [ "$(cat troupe-runs/r/logs/s/*.out | sort | xargs)" = "0 1 2 3 4 5" ]
        cd ..
    done
    nothing_left node1 node2
}
