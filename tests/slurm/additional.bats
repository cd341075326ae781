#!/usr/bin/env bats
# Additional Slurm jobs: taken when a stage is larger than the driver's job, given back, and
# gone whoever dies.
load slurm.bash

setup_file() {
    cluster_up -n 6 --racks 2 --fast --conf KillWait=10 --conf SlurmdTimeout=300 --conf EnforcePartLimits=ALL \
        --conf 'PartitionName=down Nodes=ALL State=DOWN' \
        --conf 'PartitionName=closed Nodes=ALL AllowGroups=root'
}

teardown() {
    on head pkill -CONT -x slurmctld || cluster heal head
    on head scancel -u alice
    on head scancel -u bob
}

nodes_are_known() {
    ! on head sinfo -h -N -o %T | grep unknown
}

# jobs_of USER: number, state and name of each.
jobs_of() {
    on head squeue -h -u "$1" -o '%i %T %j'
}

no_job_of() {
    [ -z "$(jobs_of "$1")" ]
}

# additional STATE: how many additional jobs are in a state.
additional() {
    jobs_of alice | grep -c " $1 troupe "
}

# small_tasks N COMMAND: a stage of N tasks, each with an executor of its own core.
small_tasks() {
    cat >p.yaml <<END
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: s
    tasks: $1
    profile: small
    run: |
      echo \$\$ \$(hostname) >run.\$TROUPE_TASK
      $2
END
}

said() {
    grep -q "$1" out
}

started() {
    [ "$(cat run.* 2>/dev/null | wc -l)" -ge "$1" ]
}

@test "a stage larger than the driver's job runs on additional jobs, which are given back" {
    small_tasks 12 'until [ -e go ]; do sleep 0.2; done'
    submit alice -N1 -n1 -c2 --mem=2000 -- "$TROUPE" run p.yaml
    wait_until started 12
    [ "$(cut -d' ' -f2 run.* | sort -u | wc -l)" -ge 3 ]
    [ "$(additional RUNNING)" = 1 ]
    touch go
    run -0 finished
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

# hog NODES CPUS [OPTION…]: another user's job that takes so many of each node; sets $hog.
hog() {
    # After a start slurmctld asks each node once; one whose answer is lost gets no job until it
    # is asked again, a third of SlurmdTimeout later.
    wait_until nodes_are_known
    local nodes=$1 cpus=$2
    shift 2
    printf '#!/bin/bash\nsleep 300\n' >hog.sh
    hog=$(as bob head sbatch --parsable -o /dev/null -N "$nodes" -n "$nodes" -c "$cpus" --mem=100 "$@" hog.sh)
    wait_until job_runs "$hog"
}

job_runs() {
    [ "$(on head squeue -h -j "$1" -o %T)" = RUNNING ]
}

additional_are() {
    [ "$(additional "$1")" = "$2" ]
}

# One of the tasks that run to their end when their file is there.
until_told() {
    # shellcheck disable=SC2016 # the task's words
    small_tasks "$1" 'until [ -e go ] || [ -e go.$TROUPE_TASK ]; do sleep 0.2; done'
}

# A run in a job that has a node, of which one core is for executors.
whole_node() {
    submit alice -N1 -n1 -c4 --mem=2000 -- "$TROUPE" run --set driver.cores=3 "$@" p.yaml
}

@test "what cannot be had now is queued, and its guard says when it has started" {
    until_told 3
    hog 5 4
    whole_node --set slurm.poll=60s
    wait_until started 1
    wait_until additional_are PENDING 1
    wait_until said "Slurm job .* is pending: .*2 executors of profile small, partition main"
    on head scancel "$hog"
    wait_until started 3
    touch go
    run -0 finished
    wait_until no_job_of alice
    # What was asked for at once before that has not failed in Slurm's books.
    run -0 on head squeue -h -t all -u alice -O 'State:20,Comment:200'
    [ "$(grep -c "of job $job *$" <<<"$output")" -ge 2 ]
    run ! grep "^FAILED.* of job $job *$" <<<"$output"
    nothing_left node1 node2 node3 node4 node5 node6
}

# slurm_has JOB FIELD: a time of a job that Slurm still knows, in whole seconds since 1970.
slurm_has() {
    date -d "$(on head scontrol show job "$1" | grep -oP "(?<= $2=)\\S+")" +%s
}

# in_order TIME…: none is before the one before it.
in_order() {
    printf '%s\n' "$@" | sort -nc
}

@test "a queued job's times in the log are Slurm's, also when it ends before the run does" {
    until_told 3
    hog 5 4
    whole_node --set slurm.poll=60s --set alloc.release=idle --set dynamicAllocation.executorIdleTimeout=1s --run-name r
    wait_until started 1
    wait_until additional_are PENDING 1
    sleep 2 # so that Slurm's times differ, which are whole seconds
    on head scancel "$hog"
    wait_until started 3
    touch go.1 go.2 # the first task has the driver's own core
    wait_until logged '"TroupeSlurmJobEnded"'
    local told
    told=$(date +%s)
    touch go
    run -0 finished
    grep '"TroupeSlurmJob' troupe-runs/r/events.jsonl
    as alice head "$TROUPE" report --json r >r.json
    read -r id submitted started ended < <(perl -MJSON::PP -0777 -ne '
        my ($j) = grep { $_->{further} } @{decode_json($_)->{starts}[0]{jobs}};
        print join(" ", $j->{job}, map { int($j->{$_} / 1000) } qw(submitted started ended)), "\n"' r.json)
    # Asked for, submitted; started when Slurm says; ended, told to us.
    in_order "$(slurm_has "$job" StartTime)" "$submitted" "$(slurm_has "$id" SubmitTime)"
    [ "$started" = "$(slurm_has "$id" StartTime)" ]
    in_order "$(slurm_has "$id" EndTime)" "$ended" "$told"
    [ $((started - submitted)) -ge 2 ]
    # The page has it, and its tasks waited in Slurm's queue so long.
    as alice head "$TROUPE" report -o r.html r
    perl -MJSON::PP -0777 -ne '
        my $d = decode_json(m{<script type="application/json" id="data">(.*?)</script>}s);
        my ($j) = grep { $_->{further} } @{$d->{page}{jobs}};
        my $queued = $d->{report}{starts}[0]{stages}[0]{waits}{queued};
        my $wait = ($j->{at} - $j->{asked}) / 1000;
        die "job: ", encode_json($j) unless $j->{told} && $wait >= 1 && $j->{end} > $j->{at};
        die "queued: $queued of 2 * $wait" unless $queued > $wait && $queued < 2 * $wait + 1' r.html
}

@test "more is wanted than the nodes that are up have: what they have is had at once" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  whole: {executor: {cores: 4, memory: 100m, memoryOverhead: 56m}, task: {cpus: 4}}
stages:
  - {name: first, profile: small, run: "touch first; until [ -e second ]; do sleep 0.1; done"}
  - {name: second, after: [first], profile: whole, tasks: 6, run: "hostname >run.$TROUPE_TASK"}
END
    whole_node
    wait_until test -e first
    on head scontrol update nodename=node6 state=down reason=drill
    touch second
    run finished
    on head scontrol update nodename=node6 state=resume
    echo "$output"
    [ "$status" = 0 ]
    run ! grep node6 run.*
}

@test "queued jobs are cancelled when nobody waits for them any more" {
    until_told 3
    cat >>p.yaml <<'END'
  - name: other
    run: until [ -e end ]; do sleep 0.2; done
END
    hog 5 4
    submit alice -N1 -n1 -c4 --mem=4000 -- "$TROUPE" run --set driver.cores=2 \
        --set executor.memory=200m p.yaml
    wait_until started 1
    wait_until additional_are PENDING 1
    touch go
    wait_until additional_are PENDING 0
    touch end
    run -0 finished
    [ "$(grep -c '"TroupeSlurmJobQueued"' troupe-runs/last/events.jsonl)" = 1 ]
    [ "$(grep -c '"TroupeSlurmJobEnded"' troupe-runs/last/events.jsonl)" = 1 ]
    [ "$(grep -c '"TroupeSlurmJob"' troupe-runs/last/events.jsonl)" = 1 ] # the driver's
    wait_until no_job_of alice
}

@test "a run that is told to drain withdraws its pending jobs" {
    until_told 3
    hog 5 4
    whole_node --set slurm.poll=60s
    wait_until started 1
    wait_until additional_are PENDING 1
    on head scancel --batch --signal=USR1 "$job"
    wait_until additional_are PENDING 0
    job_runs "$job" # its task goes on
    on head scancel "$hog"
    touch go
    run -75 finished
    [ "$(cat run.* | wc -l)" = 1 ]
    wait_until no_job_of alice
}

@test "the driver's job is cancelled: its additional jobs, granted and pending, go too" {
    until_told 12
    hog 3 4
    whole_node
    wait_until started 9
    wait_until additional_are PENDING 1
    [ "$(additional RUNNING)" -ge 1 ]
    on head scancel "$job"
    wait_until no_job_of alice
    on head scancel "$hog"
    wait_until no_job_of bob
    nothing_left node1 node2 node3 node4 node5 node6
}

# two_stages KEY: stage a takes one executor, which whole_node has room for, stage b three;
# a's last task waits for its file. Another user has all other nodes.
two_stages() {
    cat >p.yaml <<END
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: a
    tasks: 4
    profile: small
    executors: {max: 1}
    retries: {max_failures: 1}
    run: |
      [ \$TROUPE_TASK = 3 ] || exit 0
      until [ -e go ]; do [ ! -e fail ] || exit 1; sleep 0.1; done
  - {name: b, after: [a], tasks: 3, profile: small, executors: {$1},
     run: 'echo \$\$ >run.\$TROUPE_TASK; until [ -e end ]; do sleep 0.1; done'}
END
    hog 5 4
}

# have_come N: so many executors have come in the last run.
have_come() {
    [ "$(grep -c SparkListenerExecutorAdded troupe-runs/last/events.jsonl)" = "$1" ]
}

@test "the next stage's executors are asked for, and there, before this one has ended" {
    two_stages "min: 1"
    whole_node --set slurm.poll=60s
    wait_until additional_are PENDING 1
    on head scancel "$hog"
    wait_until have_come 3
    [ ! -e run.0 ]
    touch go
    wait_until started 3
    touch end
    run -0 finished
    have_come 3
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

@test "what was asked for ahead is cancelled when its stage will not come, or never asked for" {
    two_stages "min: 1"
    cat >>p.yaml <<'END'
  - {name: other, run: 'until [ -e end ]; do sleep 0.1; done'}
END
    submit alice -N1 -n1 -c4 --mem=4000 -- "$TROUPE" run --keep-going --set driver.cores=2 \
        --set executor.memory=200m p.yaml
    wait_until additional_are PENDING 1
    touch fail
    wait_until additional_are PENDING 0
    touch end
    run -1 finished
    rm fail end
    sed -i '/name: other/d; s/min: 1/look_ahead: off/' p.yaml
    whole_node
    wait_until have_come 1
    touch go
    wait_until additional_are PENDING 1
    wait_until logged '"TroupeSlurmJobQueued"'
    [ "$(line_of StageCompleted)" -lt "$(line_of TroupeSlurmJobQueued)" ]
}

# line_of EVENT: where the first one is in the log.
line_of() {
    grep -n -m 1 "\"[A-Za-z]*$1\"" troupe-runs/last/events.jsonl | cut -d: -f1
}

@test "a driver that is killed leaves no job, granted or pending" {
    until_told 8
    hog 4 4
    whole_node
    wait_until started 5
    wait_until additional_are PENDING 1
    [ "$(additional RUNNING)" -ge 1 ]
    on "$(host_of "$job")" pkill -KILL -f '^troupe: driver'
    wait_until no_job_of alice
    on head scancel "$hog"
    wait_until nothing_left node1 node2 node3 node4 node5 node6
}

host_of() {
    on head squeue -h -j "$1" -o %N
}

# kill_executor NODE: one of those there; prints the process of its step, which outlives it.
kill_executor() {
    # shellcheck disable=SC2016 # the host's words
    on "$1" bash -c '
        pid=$(pgrep -o -f "^troupe: executor")
        step=$pid
        until tr "\0" " " <"/proc/$step/cmdline" | grep -q "troupe-rank step"; do
            step=$(ps -o ppid= -p "$step" | tr -d " ")
        done
        kill -KILL "$pid"
        echo "$step"'
}

# Such a step has asked whether the driver is there, and nobody has answered.
asked_in_vain() {
    grep -q "does not answer; it is asked again" troupe-runs/last/state/executors/*.log
}

# has_ended NODE PID
has_ended() {
    ! on "$1" test -d "/proc/$2"
}

@test "a resolver that fails for a while is no reason to end an additional job" {
    until_told 5
    whole_node --set driver.cores=4 --set alloc.max_executors=4
    wait_until started 4
    local first node
    first=$(first_additional)
    node=$(cut -d' ' -f2 run.* | sort -u | head -n 1)
    on "$node" mount --bind /dev/null /etc/hosts
    run ! on "$node" getent hosts "$(host_of "$job")"
    # A driver that does not say itself that the executor is over.
    on "$(host_of "$job")" pkill -STOP -f '^troupe: driver'
    local step
    step=$(kill_executor "$node")
    wait_until asked_in_vain
    on "$node" umount /etc/hosts
    on "$(host_of "$job")" pkill -CONT -f '^troupe: driver'
    wait_until has_ended "$node" "$step"
    additional_are RUNNING 1
    [ "$(first_additional)" = "$first" ]
    touch go
    run -0 finished
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

@test "a node that is cut off for a while is no reason to end an additional job" {
    until_told 5
    whole_node --set driver.cores=4 --set alloc.max_executors=4
    wait_until started 4
    local first node
    first=$(first_additional)
    node=$(cut -d' ' -f2 run.* | sort -u | head -n 1)
    cluster cut "$node"
    local step
    step=$(kill_executor "$node")
    wait_until asked_in_vain
    cluster heal "$node"
    wait_until has_ended "$node" "$step"
    wait_until additional_are RUNNING 1
    [ "$(first_additional)" = "$first" ]
    touch go
    run -0 finished
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

# The number of the additional job that came first.
first_additional() {
    jobs_of alice | awk '/ troupe / { print $1; exit }'
}

@test "an additional job that is cancelled: no failure is counted, its tasks run again" {
    until_told 5
    whole_node --set task.maxFailures=1
    wait_until started 5
    rm -f run.*
    id=$(first_additional)
    on head scancel "$id"
    wait_until started 4
    touch go
    run -0 finished
    grep -q "its Slurm job [0-9]* was cancelled" troupe-runs/last/events.jsonl
    # Its end is Slurm's, once; those that were given back at the end have theirs.
    ended=$(grep -oP "\"TroupeSlurmJobEnded\",\"Job ID\":$id,\"End Time\":\K[0-9]+(?=[0-9]{3},)" troupe-runs/last/events.jsonl)
    [ "$ended" = "$(slurm_has "$id" EndTime)" ]
    [ "$(grep -c '"Further":true' troupe-runs/last/events.jsonl)" = "$(grep -c '"TroupeSlurmJobEnded"' troupe-runs/last/events.jsonl)" ]
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

# ends_in SECONDS JOB: Slurm ends a job then.
ends_in() {
    on head scontrol update jobid="$2" EndTime="now+$1seconds"
}

# on_one_node RUN-OPTION…: a run with a clock that moves, on node1, and its additional job too.
on_one_node() {
    moving_clock node1
    hog 5 4 -w node2,node3,node4,node5,node6
    submit alice -w node1 -N1 -n1 -c1 --mem=1000 -- "$TROUPE" run --set driver.cores=1 \
        --set alloc.placement=jobs --set slurm.poll=1s "$@" p.yaml
}

logged() {
    grep -q "$1" troupe-runs/last/events.jsonl
}

@test "the end of an additional job is near: tasks that could not end there run in another one" {
    # shellcheck disable=SC2016 # the task's words
    small_tasks 6 'hostname >>in.$TROUPE_TASK; until [ -e go ]; do sleep 0.2; done'
    on_one_node --set alloc.max_executors=3 --set task.maxFailures=1
    wait_until started 3
    local first
    first=$(first_additional)
    advance_on node1 120s
    ends_in 220 "$first" # for the run it is 120 s later than for Slurm
    looks_again
    touch go
    wait_until logged "is replaced: its Slurm job ends before tasks"
    wait_until started 6
    wait_until job_is_over "$first"
    run -0 finished
    [ "$(cat in.* | wc -l)" = 6 ]
    wait_until no_job_of alice
    nothing_left node1
}

@test "an additional job reaches its time limit: that is told, and no failure the first time" {
    until_told 3
    whole_node --set driver.cores=4 --set task.maxFailures=1
    wait_until started 3
    rm run.*
    ends_in 1 "$(first_additional)"
    wait_until started 3 # slurmctld looks every 30 s
    touch go
    run -0 finished
    logged "lost its executor: its Slurm job reached its time limit"
    logged "its Slurm job [0-9]* reached its time limit"
}

@test "tasks that take longer than any additional job end the run with 3, and the reason" {
    until_told 4
    on_one_node --set alloc.max_executors=2
    wait_until started 2
    ends_in 100 "$(first_additional)"
    looks_again
    advance_on node1 120s
    touch go.0 go.1
    run -3 finished
    [[ "$output" == *"tasks of profile small take "*" s (median), and an additional Slurm job ends after "*" s"* ]]
    [ "$(cat run.* | wc -l)" = 2 ]
    wait_until no_job_of alice
}

@test "a node of an additional job is drained: what runs there ends, what is new goes elsewhere" {
    # shellcheck disable=SC2016 # the task's words
    small_tasks 12 'until [ -e go ] || [ -e go.$(hostname) ]; do sleep 0.2; done'
    whole_node --set driver.cores=4 --set slurm.poll=500ms --set alloc.max_executors=6
    wait_until started 6
    local node
    node=$(cut -d' ' -f2 run.* | sort | uniq -c | sort -n | awk '{ print $2; exit }')
    cut -d' ' -f2 run.* | grep -c "^$node\$" >there
    on head scontrol update nodename="$node" state=drain reason=drill
    wait_until logged "is to go: $node is being drained"
    touch "go.$node"
    wait_until started 7
    touch go
    run finished
    on head scontrol update nodename="$node" state=resume
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" != *"run again"* ]]
    [ "$(cut -d' ' -f2 run.* | grep -c "^$node\$")" = "$(<there)" ]
    wait_until no_job_of alice
}

@test "the additional job of a gang is suspended, then cancelled: no failure is counted" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  g: {executor: {cores: 2, memory: 300m, memoryOverhead: 100m}, task: {cpus: 2}}
stages:
  - name: s
    profile: g
    mpi: {ranks: 2}
    retries: {max_failures: 1}
    run: |
      touch run.$TROUPE_RANK.$TROUPE_ATTEMPT
      echo >>run.$TROUPE_RANK.$TROUPE_ATTEMPT
      until [ -e go ]; do sleep 0.2; done
END
    whole_node --set slurm.poll=200ms
    wait_until started 2
    on head scontrol suspend "$(first_additional)"
    looks_again
    on head scontrol resume "$(first_additional)"
    looks_again
    [ "$(additional RUNNING)" = 1 ]
    [ "$(cat run.* | wc -l)" = 2 ]
    on head scancel "$(first_additional)"
    wait_until started 4
    touch go
    run -0 finished
    logged "lost its executor: its Slurm job [0-9]* was cancelled"
    wait_until no_job_of alice
}

# Executors of the profile large go where the site says, and do not fit inside.
routed_to() {
    cat >site.yaml <<END
site: 1
route:
  - {when: {cores: ">= 2"}, partition: $1}
  - {}
END
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  large: {executor: {cores: 2, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - {name: easy, profile: small, run: "touch easy.ran"}
  - {name: hard, profile: large, run: "hostname"}
END
}

@test "what Slurm refuses for good ends the run with 3 and Slurm's words" {
    routed_to closed
    whole_node --site site.yaml
    run -3 finished
    [[ "$output" == *"Slurm: "*"(an additional job was asked for: 1 executor of profile large, partition closed, by "*"/site.yaml:3:5)"* ]]
    routed_to nowhere
    whole_node --site site.yaml
    run -3 finished
    [[ "$output" == *"Slurm has no partition nowhere"* ]]
    routed_to main
    sed -i 's/cores: 2/cores: 64/' p.yaml
    whole_node --site site.yaml
    run -3 finished
    [[ "$output" == *"no node of partition main is so large"* ]]
}

@test "a gang that Slurm refuses for good ends the run with 3 and Slurm's words" {
    routed_to closed
    sed -i '/large:/s/cpus: 1/cpus: 2/; s/profile: large, run/profile: large, mpi: {ranks: 4}, run/' p.yaml
    whole_node --site site.yaml
    run -3 finished
    [[ "$output" == *"Slurm: "*"(an additional job was asked for: 4 ranks of profile large, partition closed, by "*"/site.yaml:3:5)"* ]]
    [[ "$output" == *"p.yaml:"*"stage hard: Slurm: "* ]]
    wait_until no_job_of alice
}

@test "a partition that is down: the reason is told, others go on" {
    routed_to down
    whole_node --site site.yaml --set slurm.poll=1s
    wait_until test -e easy.ran
    wait_until said "is pending: .* (for 1 executor of profile large, partition down)"
    on head scontrol update partitionname=down state=up
    run -0 finished
    on head scontrol update partitionname=down state=down
    wait_until no_job_of alice
}

@test "slurmctld is away while a job is asked for: it is asked for again, once" {
    until_told 3
    # Of a size that is never inside, whose steps slurmctld may not know any more.
    sed -i 's/cores: 1, memory: 100m/cores: 2, memory: 100m/; s/cpus: 1/cpus: 2/' p.yaml
    sed -i 's/  - name: s$/  - name: s\n    after: [first]/' p.yaml
    cat >>p.yaml <<'END'
  - {name: first, run: "touch first.ran; until [ -e begin ]; do sleep 0.2; done"}
END
    submit alice -N1 -n1 -c4 --mem=4000 -- "$TROUPE" run --set driver.cores=3 \
        --set executor.memory=200m p.yaml
    wait_until test -e first.ran
    local host before
    host=$(host_of "$job")
    slurmctld_goes
    before=$(refusals_on "$host")
    touch begin
    wait_until more_refusals "$host" "$before"
    cluster heal head
    wait_until started 3
    [ "$(on head squeue -h -u alice -n "troupe $(readlink troupe-runs/last)" -o %C |
        awk '{ n += $1 } END { print n }')" = 6 ]
    touch go
    run -0 finished
    wait_until no_job_of alice
}

# How many nodes all additional jobs have together.
nodes_of_additional() {
    on head squeue -h -u alice -o '%j %D' | awk '$1 == "troupe" { n += $NF } END { print n + 0 }'
}

nodes_of_additional_are() {
    [ "$(nodes_of_additional)" = "$1" ]
}

# The additional job has the node on which `narrow` runs, and where it was queued its first
# one, on which its batch step is.
has_what_narrow_needs() {
    local about want=1
    about=$(on head scontrol show job "$(first_additional)") || return
    [[ $about != *BatchFlag=1* || $about == *"BatchHost=$(<run.narrow)"[[:space:]]* ]] || want=2
    nodes_of_additional_are "$want"
}

@test "a later stage uses what an earlier one took; nodes it does not need are given back" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
  large: {executor: {cores: 2, memory: 300m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: wide
    tasks: 8
    profile: small
    run: echo $$ >run.$TROUPE_TASK; until [ -e go ]; do sleep 0.2; done
  - name: narrow
    after: [wide]
    profile: large
    run: hostname >run.narrow; until [ -e end ]; do sleep 0.2; done
END
    whole_node --set driver.cores=4
    wait_until started 8
    [ "$(additional RUNNING)" = 1 ]
    [ "$(nodes_of_additional)" -ge 2 ]
    local before
    before=$(jobs_of alice | awk '/ troupe / { print $1 }')
    touch go
    wait_until test -s run.narrow
    wait_until has_what_narrow_needs
    [ "$(jobs_of alice | awk '/ troupe / { print $1 }')" = "$before" ]
    touch end
    run -0 finished
    wait_until no_job_of alice
}

@test "alloc.placement=inside, or limits: jobs: 0, keep a run in its job" {
    until_told 4
    touch go
    printf 'site: 1\nlimits: {jobs: 0}\n' >site.yaml
    whole_node --set alloc.placement=inside
    run -0 finished
    [ "$(cut -d' ' -f2 run.* | sort -u | wc -l)" = 1 ]
    whole_node --site site.yaml
    run -0 finished
    [ "$(cut -d' ' -f2 run.* | sort -u | wc -l)" = 1 ]
}

@test "alloc.placement=jobs runs executors in additional jobs alone" {
    until_told 2
    whole_node --set alloc.placement=jobs
    wait_until started 2
    additional_are RUNNING 1
    [ "$(cut -d' ' -f2 run.* | grep -c "^$(host_of "$job")\$")" = 0 ]
    touch go
    run -0 finished
    wait_until no_job_of alice
}

no_additional() {
    ! jobs_of alice | grep -q ' troupe '
}

@test "troupe-slurm is killed: the run goes on, and its jobs are cancelled in the end" {
    until_told 4
    whole_node
    wait_until started 4
    [ "$(additional RUNNING)" -ge 1 ]
    on "$(host_of "$job")" pkill -KILL -x troupe-slurm
    touch go
    run -0 finished
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

@test "troupe-slurm is killed: who waits for an additional job is told that there is none" {
    routed_to down
    whole_node --site site.yaml --set slurm.poll=1s
    wait_until test -e easy.ran
    wait_until said "is pending: .* (for 1 executor of profile large, partition down)"
    on "$(host_of "$job")" pkill -KILL -x troupe-slurm
    run -3 finished
    [[ "$output" == *"no additional Slurm job can be taken for profile large: troupe-slurm is gone"* ]]
    wait_until no_job_of alice
}

# full_job RUN-OPTION…: a run whose tasks fill both nodes of its job.
full_job() {
    # shellcheck disable=SC2016 # the task's words
    small_tasks 4 'hostname >>in.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done'
    sed -i 's/cores: 1/cores: 2/; s/cpus: 1/cpus: 2/' p.yaml
    submit alice --no-kill -N2 -n2 -c4 --mem=1500 -w node1,node2 -- "$TROUPE" run "$@" p.yaml
    wait_until begun 4
}

# begun N: so many attempts have.
begun() {
    [ "$(cat in.* 2>/dev/null | wc -l)" -ge "$1" ]
}

# is_missed NODE
is_missed() {
    on head sinfo -h -N -o '%N %T' | grep "^$1 down"
}

# ends_without NODE: the run succeeds; then Slurm is told what it has not noticed, since it waits
# for the node before the job is over. What its dead have left goes when it boots.
ends_without() {
    touch go
    wait_until said "stage s succeeded"
    misses "$1"
    cluster heal "$1"
    finished
    on head scontrol update nodename="$1" state=resume 2>/dev/null || true # it may be back
    wait_until no_job_of alice
    wait_until state_is "$1" idle
    on "$1" sh -c 'rm -rf /tmp/troupe-*'
}

@test "a node that had no spare room beside it dies, and Slurm does not know: an additional job" {
    full_job
    cluster kill node2
    wait_until begun 6
    run ! is_missed node2
    [ "$(cat in.* | grep -c node2)" = 2 ]
    [ "$(additional RUNNING)" = 1 ]
    ends_without node2
    run ! said "not answer"
}

@test "the same when its network is cut for ever" {
    full_job --set network.timeout=2s --set executor.heartbeatInterval=500ms
    cluster cut node2
    wait_until begun 6
    run ! is_missed node2
    [ "$(cat in.* | grep -c node2)" = 2 ]
    ends_without node2
}

@test "the same with a node of an additional job" {
    local node
    # shellcheck disable=SC2016 # the task's words
    small_tasks 4 'hostname >>in.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done'
    whole_node --set driver.cores=4
    wait_until begun 4
    node=$(sort -u in.*)
    [ "$node" != "$(host_of "$job")" ]
    cluster kill "$node"
    wait_until begun 8
    run ! is_missed "$node"
    [ "$(cat in.* | grep -c "$node")" = 4 ]
    ends_without "$node"
}

@test "a dead node is tried when there is nothing else, for 10 s; what comes then is used" {
    hog 4 4 -w node3,node4,node5,node6
    full_job
    cluster kill node2
    wait_until said "node2 does not answer; there is no other room for executors of profile small"
    additional_are PENDING 1
    on head scancel "$hog"
    wait_until begun 6
    [ "$(cat in.* | grep -c node2)" = 2 ]
    ends_without node2
}

@test "alloc.placement=inside: a dead node is tried, and the others do its tasks" {
    full_job --set alloc.placement=inside
    cluster kill node2
    wait_until said "node2 does not answer; there is no other room for executors of profile small"
    ends_without node2
    [ "$(cat in.* | grep -c node1)" = 4 ]
}

guarded() {
    on head squeue -h -s -u alice -o %j | grep -q ':guard$'
}

# guards COMMAND…: whether it succeeds on a node where there is a guard, whose process is $pid.
guards() {
    local node
    for node in node1 node2 node3 node4 node5 node6; do
        # shellcheck disable=SC2016 # the host's words
        on "$node" bash -c 'pid=$(pgrep -u alice -f "troupe-rank guard") && eval "$@"' - "$@" &&
            return 0
    done
    return 1
}

# It has a connection to the driver.
guard_has_called() {
    # shellcheck disable=SC2016 # the host's words
    guards 'ss -Htnp state established | grep -q "pid=$pid,"'
}

guard_tells_slurm() {
    guards 'pgrep -P "$pid" -x scancel'
}

# A run of which most is in an additional job, with its guard; sets host.
with_additional_job() {
    until_told 8
    whole_node
    wait_until started 8
    wait_until guarded
    wait_until guard_has_called
    additional_are RUNNING 1
    host=$(host_of "$job")
}

none_runs() {
    ! jobs_of alice | grep -v ' COMPLETING '
}

# What ends while slurmctld is away: slurmstepd tells it again a minute later, and until
# then a job is COMPLETING. That is not waited for.
end_of_outage() {
    wait_until none_runs
    local node
    for node in node1 node2 node3 node4 node5 node6; do
        on "$node" pkill -KILL -x slurmstepd || true
    done
    wait_until no_job_of alice
    nothing_left node1 node2 node3 node4 node5 node6
}

@test "a run ends while slurmctld hangs: it waits until its jobs are ended" {
    with_additional_job
    on head pkill -STOP -x slurmctld
    touch go
    wait_until said "waiting for Slurm to end job [0-9]*, 60 s at most"
    on "$host" pgrep -f '^troupe: driver'
    on head pkill -CONT -x slurmctld
    end_of_outage
    run -0 finished
}

@test "driver and troupe-slurm are killed while slurmctld is away: the job's guard ends it" {
    with_additional_job
    slurmctld_goes
    touch go
    wait_until said "waiting for Slurm to end job"
    on "$host" pkill -KILL -f '^troupe: driver'
    on "$host" pkill -KILL -x troupe-slurm # which would do it, too
    wait_until nobody_but_guards "$host"
    wait_until guard_tells_slurm
    cluster heal head
    end_of_outage
}

# nobody_but_guards HOST: nothing of alice's is there, and one process elsewhere.
nobody_but_guards() {
    ! on "$1" pgrep -u alice . &&
        [ "$(leftovers node1 node2 node3 node4 node5 node6 | grep -c 'troupe-rank guard')" = 1 ]
}

# The last one: its node is in no state to run anything afterwards.
@test "the driver's node dies: granted jobs go, pending ones when they are granted" {
    until_told 8
    hog 4 4
    whole_node --set network.timeout=3s --set executor.heartbeatInterval=500ms
    wait_until started 5
    wait_until additional_are PENDING 1
    local host
    host=$(host_of "$job")
    cluster cut "$host"
    cluster kill "$host"
    wait_until additional_are RUNNING 0
    on head scancel "$hog"
    wait_until no_additional
    cluster heal "$host"
}
