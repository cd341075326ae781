#!/usr/bin/env bats
# A run inside a Slurm job: executors are steps, cut out of the job's nodes by profile.
load slurm.bash

setup_file() {
    cluster_up -n 4 --gpus 2 --racks 2 --fast --conf KillWait=10
}

teardown() {
    on head scancel -u alice
}

write_pipeline() {
    cat >p.yaml
}

# two_profiles EXECUTORS: the tasks of the first stage go on until it has so many, those of the
# second until all run.
two_profiles() {
    write_pipeline <<END
troupe: 1
name: weather
profiles:
  prep:  {executor: {cores: 1, memory: 200m, memoryOverhead: 56m}, task: {cpus: 1}}
  train: {executor: {cores: 3, memory: 900m, memoryOverhead: 100m, gpu: 2}, task: {cpus: 1, gpu: 1}}
stages:
  - name: split
    tasks: 12
    profile: prep
    run: |
      echo "\$TROUPE_TASK \$(hostname) \$TROUPE_EXECUTOR" >part.\$TROUPE_TASK
      until [ \$(cut -d' ' -f3 part.* | sort -u | wc -l) -ge $1 ]; do sleep 0.1; done
  - name: train
    after: [split]
    profile: train
    tasks: 4
    run: |
      echo "\$TROUPE_TASK \$(hostname) \$TROUPE_RESOURCE_gpu \$CUDA_VISIBLE_DEVICES \$(cat part.\$TROUPE_TASK)"
      touch train.\$TROUPE_TASK
      until [ \$(ls train.* | wc -l) = 4 ] || [ -e alone ]; do sleep 0.1; done
END
}

@test "a pipeline runs over the job's nodes in executors of each stage's shape" {
    two_profiles 6
    submit alice -N2 -n2 -c3 --mem=3000 --gres=gpu:2 -- \
        "$TROUPE" run --set alloc.placement=inside \
        --set executor.resource.gpu.discoveryScript=/is/not/run p.yaml
    run -0 finished
    [[ "$output" == *"split"*"12"*"train"*"4"* ]]
    # Both nodes had small executors; then there was one large one on each.
    [ "$(cut -d' ' -f2 part.* | sort -u | wc -l)" = 2 ]
    [ "$(cut -d' ' -f3 part.* | sort -u | wc -l)" = 6 ]
    cd troupe-runs/last/logs/train
    [ "$(cut -d' ' -f2 ./*.out | sort | uniq -c | awk '{ print $1 }' | xargs)" = "2 2" ]
    [ "$(cut -d' ' -f3 ./*.out | sort | xargs)" = "0 0 1 1" ]
    [ "$(cut -d' ' -f3 ./*.out)" = "$(cut -d' ' -f4 ./*.out)" ]
    [ "$(cut -d' ' -f5 ./*.out | xargs)" = "0 1 2 3" ]
    nothing_left node1 node2 node3 node4
}

@test "a job that was asked for without types of devices, and steps that read well" {
    two_profiles 99
    submit alice -N1 -n1 -c4 --mem=0 --gres=gpu:a100:2 -- "$TROUPE" run --run-name r p.yaml
    wait_until bash -c "cluster exec head squeue -s -h -o %j | grep -q '^r:prep\\.[0-9]'"
    touch alone
    for i in {1..99}; do echo "x x $i"; done >part.x
    run -0 finished
}

@test "each executor can open its own devices and no other" {
    write_pipeline <<'END'
troupe: 1
profiles:
  one: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m, gpu: 1}, task: {gpu: 1}}
stages:
  - name: s
    tasks: 2
    profile: one
    run: |
      for i in 0 1; do (: </dev/nvidia$i) || :; done 2>&1 | sed 's/.*: //'
      touch on.$TROUPE_TASK
      until [ -e on.0 ] && [ -e on.1 ]; do sleep 0.1; done
END
    submit alice -N1 -n1 -c2 --mem=2000 --gres=gpu:2 -- "$TROUPE" run p.yaml
    run -0 finished
    cd troupe-runs/last/logs/s
    [ "$(cat 0.0.out 1.0.out | grep -c 'No such device')" = 2 ]
    [ "$(cat 0.0.out 1.0.out | grep -c 'not permitted')" = 2 ]
    run ! cmp 0.0.out 1.0.out
}

# bats test_tags=plain
@test "a task over its memory is named as killed for memory, and neighbours go on" {
    write_pipeline <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 150m, memoryOverhead: 50m}, task: {cpus: 1}}
stages:
  - name: hog
    tasks: 2
    profile: small
    tolerate: 1
    retries: {max_failures: 1}
    run: |
      [ $TROUPE_TASK = 0 ] || { until [ -e go ]; do sleep 0.1; done; echo fine; exit; }
      exec perl -e '$x = "a" x 300_000_000; sleep'
END
    submit alice -N1 -n1 -c2 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until grep -q "killed for memory" troupe-runs/last/events.jsonl
    touch go
    run -0 finished
    [[ "$output" == *"stage hog: task 0"*"killed for memory (limit 200 MiB, peak "* ]]
    [ "$(cat troupe-runs/last/logs/hog/1.0.out)" = fine ]
}

# bats test_tags=plain
@test "with memory_factor it is retried in a larger executor" {
    write_pipeline <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 150m, memoryOverhead: 50m}, task: {cpus: 1}}
stages:
  - name: hog
    profile: small
    retries: {max_failures: 4, memory_factor: 2}
    run: exec perl -e '$x = "a" x 220_000_000; print length $x'
END
    submit alice -N1 -n1 -c2 --mem=3000 -- "$TROUPE" run p.yaml
    run -0 finished
    grep -q 220000000 troupe-runs/last/logs/hog/*.out
}

@test "a gang runs over two nodes as one step" {
    write_pipeline <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 2, memory: 300m, memoryOverhead: 100m, gpu: 2}, task: {cpus: 1, gpu: 1}}
stages:
  - name: solve
    profile: g
    mpi: {ranks: 4}
    run: echo "$TROUPE_RANK/$TROUPE_RANKS $(hostname) $TROUPE_RESOURCE_gpu $CUDA_VISIBLE_DEVICES ${PMIX_RANK:-$PMI_RANK}"
  - name: fail
    profile: g
    after: [solve]
    mpi: {ranks: 4}
    retries: {max_failures: 2}
    run: '[ $TROUPE_RANK = 3 ] && [ $TROUPE_ATTEMPT = 0 ] && exit 5; sleep 1'
END
    submit alice -N2 -n2 -c2 --mem=2000 --gres=gpu:2 -- "$TROUPE" run p.yaml
    run -0 finished
    [[ "$output" == *"stage fail: task 0, attempt 0: exit status 5"* ]]
    cd troupe-runs/last/logs/solve
    [ "$(cat 0.0.{0,1,2,3}.out)" = "0/4 node1 0 0 0
1/4 node1 1 1 1
2/4 node2 0 0 2
3/4 node2 1 1 3" ]
    nothing_left node1 node2
}

@test "a gang of an MPI program that is larger than the job never fits" {
    write_pipeline <<'END'
troupe: 1
stages:
  - name: solve
    mpi: {ranks: 17}
    run: "true"
END
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run p.yaml
    run -3 finished
    [[ "$output" == *"p.yaml:3:"*"17 ranks"* ]]
    [ ! -e troupe-runs ]
}

long_tasks() {
    write_pipeline <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: s
    tasks: 4
    profile: small
    run: echo $$ $(hostname) >run.$TROUPE_TASK; [ -e go ] || sleep 300
END
}

started() {
    [ "$(cat run.* 2>/dev/null | wc -l)" = 4 ]
}

@test "scancel leaves no process, no step and no file" {
    long_tasks
    submit alice -N2 -n2 -c2 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started
    on head scancel "$job"
    wait_until job_is_over "$job"
    nothing_left node1 node2
    grep -q '"status":"cancelled","exit":130' troupe-runs/last/state/run.json
}

@test "executors that are killed: their tasks run again in others" {
    long_tasks
    # shellcheck disable=SC2016 # the task's words
    sed -i 's/ run: .*/ run: echo $TROUPE_EXECUTOR >>run.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done/' p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started
    on node2 pkill -KILL -f '^troupe: executor'
    wait_until has_lines 6
    [ "$(sort -u run.* | wc -l)" = 6 ]
    touch go
    run -0 finished
    [ "$(grep -c "lost its executor" <<<"$output")" = 2 ]
    nothing_left node1 node2
}

# has_lines N: the tasks have written so many.
has_lines() {
    [ "$(cat run.* | wc -l)" = "$1" ]
}

@test "executor and spawner killed at one blow: what they had in a folder that stays goes, too" {
    long_tasks
    # shellcheck disable=SC2016 # the task's words
    sed -i 's/ run: .*/ run: echo >$TROUPE_SCRATCH\/mine; echo >>run.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done/' p.yaml
    for node in node1 node2; do
        as alice "$node" mkdir -m 700 /tmp/own
    done
    submit alice -N2 -n2 -c2 --mem=2000 -- env TROUPE_SCRATCH=/tmp/own "$TROUPE" run p.yaml
    wait_until started
    [ "$(on node2 find /tmp/own -name mine | wc -l)" = 2 ]
    on node2 pkill -KILL -f '^troupe: (executor|spawner) '
    wait_until has_lines 6
    touch go
    run -0 finished
    nothing_left node1 node2
    for node in node1 node2; do
        wait_until on "$node" rmdir /tmp/own # it is empty
    done
}

@test "a driver that is killed leaves nothing" {
    long_tasks
    submit alice -N2 -n2 -c2 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started
    on node1 pkill -KILL -f '^troupe: driver'
    run -4 finished
    nothing_left node1 node2
}

@test "all components of a heterogeneous job are used" {
    long_tasks
    touch go
    sed -i 's/\[ -e go \] || sleep 300/until [ $(ls run.* | wc -l) = 4 ]; do sleep 0.1; done/' p.yaml
    submit alice -N1 -n1 -c1 --mem=1000 : -N2 -n2 -c2 --mem=500 -- "$TROUPE" run p.yaml
    run -0 finished
    [ "$(cut -d' ' -f2 run.* | sort -u | wc -l)" -ge 2 ]
    nothing_left node1 node2 node3 node4
}

@test "the last job of an array, whose number is the array's, is one job" {
    submit alice -N1 -n1 -c2 --mem=1000 --array=0-1%1 -- "$TROUPE" topo
    run -0 finished
    [[ "$output" == *"host node"*": 2 cores, 488 MiB"* ]]
    [ "$(grep -c host out)" = 1 ]
}

@test "a job whose name and comment read like shares of nodes has its own alone" {
    submit alice -N1 -n1 -c2 --mem=1000 -J 'x CPU_IDs=0-63 Nodes=node4 Mem=9999' \
        --comment $'x\n     Nodes=node3 CPU_IDs=0-63 Mem=9999' -- "$TROUPE" topo
    run -0 finished
    [[ "$output" == *"host node"*": 2 cores, 488 MiB"* ]]
    [ "$(grep -c host out)" = 1 ]
}

@test "a run folder that the other nodes do not see is an error that says so" {
    long_tasks
    cp p.yaml "$shared/p.yaml"
    submit alice -N2 -n2 -c2 --mem=1000 -w node1,node2 -- \
        "bash -c 'cd /tmp && mkdir w && cd w && cp $shared/p.yaml . && $TROUPE run --set driver.memory=900m p.yaml; s=\$?; cd; rm -rf /tmp/w; exit \$s'"
    run finished
    [ "$status" != 0 ]
    [[ "$output" == *"a run's folder must be on a file system that all nodes share"* ]]
}

@test "troupe topo shows the job's nodes in Slurm's racks" {
    submit alice -w node2,node3 -N2 -n2 -c2 --mem=2000 --gres=gpu:1 -- "$TROUPE" topo --json
    run -0 finished
    [[ "$output" == *'"rack1"'*'"node2"'*'"rack2"'*'"node3"'* ]]
    [[ "$output" == *'"cores": 2'* || "$output" == *'"cores":2'* ]]
}

@test "troupe plan tells what the job never holds; --local does not ask Slurm" {
    two_profiles 1
    submit alice -N1 -n1 -c2 --mem=2000 -- \
        "$TROUPE" plan --set alloc.placement=inside p.yaml
    run -3 finished
    [[ "$output" == *"profile train never fits here: "*" wanted "*"on a node"* ]]
    submit alice -N1 -n1 -c2 --mem=2000 -- "$TROUPE" topo --local=7
    run -0 finished
    [[ "$output" == *"7 cores"* ]]
}

@test "a job that is over, or another user's, is none" {
    submit alice -N1 -- true
    run -0 finished
    run -0 as alice node1 env SLURM_JOB_ID="$job" "$TROUPE" topo --json
    submit alice -N1 -- sleep 30
    run -0 as bob node1 env SLURM_JOB_ID="$job" "$TROUPE" topo --json
    on head scancel "$job"
}

@test "under srun a run says what its step keeps, and several are refused" {
    echo '{troupe: 1, stages: [{name: s, run: "hostname >where"}]}' >p.yaml
    run -0 as alice head srun --overlap -n1 -c2 --mem=3000 "$TROUPE" run p.yaml
    [[ "$output" == *"without srun"* ]] && test -s where
    run as alice head srun -n2 -c1 --mem=1000 "$TROUPE" run p.yaml
    [ "$status" = 2 ]
    [[ "$output" == *"srun has started 2 of these"* ]]
    [ "$(ls troupe-runs | wc -l)" = 2 ] # the first run, and last
}

@test "without troupe-slurm a run in a job says what is missing" {
    mkdir bin lib
    cp "$TROUPE" "$TROUPE_BUILD"/bin/troupe-rank bin/
    cp -a "$TROUPE_BUILD/lib/troupe" lib/
    two_profiles 1
    submit alice -N1 -n1 -c2 --mem=2000 -- ./bin/troupe run p.yaml
    run -4 finished
    [[ "$output" == *"this is Slurm job $job"*"troupe-slurm"*"libslurm-dev"*"--local"* ]]
}

@test "outputs are looked for where tasks ran; those of a stage and a gang may be late" {
    write_pipeline <<'END'
troupe: 1
options: {outputs.wait: 1h, alloc.placement: inside}
stages:
  - name: a
    tasks: 4
    outputs: ["o/${task}.*"]
    retries: {max_failures: 2}
    run: 'mkdir -p o; [ $TROUPE_TASK.$TROUPE_ATTEMPT = 2.0 ] || touch o/$TROUPE_TASK.x'
  - {name: g, after: [a], mpi: {ranks: 2}, outputs: ["g/${task}"], run: 'touch ran.$TROUPE_RANK'}
  - {name: s, after: [g], outputs: [late], run: 'touch stage'}
  - {name: e, after: [s], retries: {max_failures: 1}, run: 'ls late'}
END
    submit alice -N2 -n2 -c2 --mem=3000 -- "$TROUPE" run --run-name r p.yaml
    wait_until ls ran.1
    mkdir g && touch g/0
    wait_until ls stage
    [ ! -e troupe-runs/r/logs/e ]
    touch late
    run -0 finished
    [[ "$output" == *"task 2, attempt 0: output o/2.* was not made; it is run again"* ]] ||
        grep -q 'output o/2.* was not made' troupe-runs/r/events.jsonl
}
