#!/usr/bin/env bats
# What a run is to Slurm and to its site: how often Slurm is called, licences, features,
# racks of the site file, run folders.
load slurm.bash

setup_file() {
    cluster_up -n 4 --gpus 1 --racks 2 --fast --conf Licenses=matlab:3
}

teardown() {
    on head scancel -u alice
}

# stage NAME TASKS [LINE…]: a pipeline of one stage in executors of one core; what the
# tasks do is read.
stage() {
    local name=$1 tasks=$2
    shift 2
    printf '%s\n' 'troupe: 1' 'profiles:' \
        '  one: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}' \
        'stages:' "  - name: $name" "    tasks: $tasks" '    profile: one' '    run: |'
    sed 's/^/      /'
    [ $# = 0 ] || printf '    %s\n' "$@"
}

# Tasks that wait for each other, so that each has an executor of its own.
together() {
    echo "hostname >at.\$TROUPE_TASK; until [ \$(ls at.* | wc -l) -ge $1 ]; do sleep 0.1; done"
}

# rpcs: how many calls slurmctld had from alice, and of ends of steps.
rpcs() {
    on head sdiag | awk '$1 == "alice" || $1 == "REQUEST_STEP_COMPLETE" {
        sub(/.*count:/, ""); n += $1 } END { print n + 0 }'
}

@test "a run asks Slurm once, and tells how often it and its sruns called, as sdiag does" {
    together 4 | stage wide 4 >p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -- \
        "bash -c 'until [ -e go ]; do sleep 0.1; done; exec $TROUPE run --set alloc.placement=inside p.yaml'"
    local before ours theirs
    before=$(rpcs)
    touch go
    run -0 finished
    [[ "$output" =~ "Slurm: "([0-9]+)" RPCs of ours, about "([0-9]+)" by srun (4 steps)" ]]
    ours=${BASH_REMATCH[1]} theirs=${BASH_REMATCH[2]}
    [ "$ours" -ge 5 ]
    [ "$theirs" = 12 ]
    # The last of them are told by slurmstepd when the run is over already.
    counted() { [ "$(rpcs)" -ge $((before + ours + theirs)) ]; }
    wait_until counted
    [ "$(rpcs)" = $((before + ours + theirs)) ]
    cd troupe-runs/last
    grep -q "\"TroupeSlurmCosts\",\"RPCs\":$ours,\"Sruns\":4,\"Srun RPCs\":12" events.jsonl
    grep -q '"TroupeNodes","Nodes":2' events.jsonl
    # What the driver works from is nobody else's.
    [ "$(stat -c %a state/run_spec.json)" = 600 ]
    # Node-seconds: two nodes for as long as the stage ran.
    [[ "$output" =~ "node-seconds: "[0-9.]+" held" ]]
}

@test "with slurm.max_rpcs_per_minute executors come more slowly" {
    together 4 | stage wide 4 >p.yaml
    # The bucket holds 15, of which the inventory takes 5; the fourth waits for 2 s. The others
    # may be late as well, on a busy machine.
    submit alice -N2 -n2 -c2 --mem=2000 -- \
        "$TROUPE" run --set alloc.placement=inside --set slurm.max_rpcs_per_minute=60 p.yaml
    run -0 finished
    local times
    times=$(grep -e SparkListenerApplicationStart -e SparkListenerExecutorAdded troupe-runs/last/events.jsonl |
        sed 's/.*"Timestamp":\([0-9]*\).*/\1/')
    [ "$(wc -l <<<"$times")" = 5 ]
    [ $(($(tail -n 1 <<<"$times") - $(head -n 1 <<<"$times"))) -ge 2000 ]
}

# refusing_srun CALLS [WORDS]: an srun that refuses the first calls, as that of Slurm 23.02
# and later does.
refusing_srun() {
    local words=${2:-Rate limit exceeded, please retry momentarily}
    mkdir bin
    cat >bin/srun <<END
#!/bin/bash
[ "\$1" != --mpi=list ] || exec /usr/bin/srun "\$@"
exec 9>>$PWD/calls
flock 9
echo x >&9
if [ \$(wc -l <$PWD/calls) -le $1 ]; then
    echo "srun: error: Unable to create step for job \$SLURM_JOB_ID: $words" >&2
    exit 1
fi
flock -u 9
exec /usr/bin/srun "\$@"
END
    chmod 755 bin/srun
    touch calls
    chmod 666 calls
}

@test "steps that Slurm refuses for too many calls are started later" {
    refusing_srun 3
    together 2 | stage wide 2 >p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -- \
        "env PATH=$PWD/bin:\$PATH $TROUPE run p.yaml"
    run -0 finished
    [[ "$output" == *"Slurm limits how often it is called"* ]]
    [[ "$output" != *"ate limit exceeded"* ]]
    [ "$(wc -l <calls)" -ge 5 ]
    run ! grep -q "was not started" troupe-runs/last/events.jsonl
    [ "$(grep -c SparkListenerExecutorAdded troupe-runs/last/events.jsonl)" = 2 ]
    nothing_left node1 node2 node3 node4
}

# gang_refused [WORDS]: the first two sruns of a gang are.
gang_refused() {
    refusing_srun 2 "$@"
    echo "echo rank \$TROUPE_RANK of attempt \$TROUPE_ATTEMPT" |
        stage solve 1 'mpi: {ranks: 2}' 'retries: {max_failures: 1}' | sed '/tasks:/d' >p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -- \
        "env PATH=$PWD/bin:\$PATH $TROUPE run p.yaml"
    run -0 finished
    [ "$(wc -l <calls)" = 3 ]
    [ "$(cat troupe-runs/last/logs/solve/0.0.1.out)" = "rank 1 of attempt 0" ]
}

@test "so are gangs, which do not fail for it" {
    gang_refused
}

@test "a gang for which Slurm has no room at the moment, though it should fit, waits" {
    gang_refused "Memory required by task is not available"
}

@test "licences of the job are shared out among executors" {
    cat >site.yaml <<'END'
site: 1
resources: {seat: {slurm: "license:matlab"}}
END
    # shellcheck disable=SC2016 # the tasks' words
    echo 'touch in.$TROUPE_TASK; [ $(ls -d in.* | wc -l) -le 2 ] || touch toomany; sleep 0.7; rm in.$TROUPE_TASK' |
        stage s 6 >p.yaml
    sed -i 's/cores: 1,/cores: 1, seat: 1,/' p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -L matlab:2 -- \
        "$TROUPE" run --site site.yaml --set alloc.placement=inside p.yaml
    run -0 finished
    [ "$(grep -c SparkListenerExecutorAdded troupe-runs/last/events.jsonl)" = 2 ]
    [ ! -e toomany ]
    # More than the job has never fits.
    sed -i 's/seat: 1/seat: 3/' p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -L matlab:2 -- \
        "$TROUPE" run --site site.yaml --set alloc.placement=inside p.yaml
    run -3 finished
    [[ "$output" == *"p.yaml:3:"*"seat"* ]]
}

@test "a constraint keeps executors on nodes with that feature" {
    cat >site.yaml <<'END'
site: 1
resources: {back: {slurm: "constraint:rack2", countable: false}, far: {slurm: "constraint:rack9", countable: false}}
END
    together 2 | stage s 2 >p.yaml
    sed -i 's/cores: 1,/cores: 1, back: 1,/' p.yaml
    submit alice -N4 -n4 -c1 --mem=1000 -- "$TROUPE" run --site site.yaml p.yaml
    run -0 finished
    [[ "$(sort -u at.* | xargs)" =~ ^"node3"(" node4")?$|^"node4"$ ]]
    sed -i 's/back: 1/far: 1/' p.yaml
    submit alice -N4 -n4 -c1 --mem=1000 -- "$TROUPE" run --site site.yaml p.yaml
    run -3 finished
    [[ "$output" == *"p.yaml:3:"*"far"* ]]
}

@test "an additional job has the licences, features and devices of its executors, and whole nodes" {
    cat >site.yaml <<'END'
site: 1
nodes: exclusive
resources:
  seat: {slurm: "license:matlab"}
  back: {slurm: "constraint:rack2", countable: false}
END
    # shellcheck disable=SC2016 # the tasks' words
    echo 'echo $(hostname) $CUDA_VISIBLE_DEVICES >at.$TROUPE_TASK; until [ -e go ]; do sleep 0.1; done' | stage s 2 >p.yaml
    sed -i 's/cores: 1,/cores: 1, seat: 1, back: 1, gpu: 1,/; s/task: {/task: {gpu: 1, /' p.yaml
    submit alice -N1 -n1 -c1 --mem=1000 -w node1 -- "$TROUPE" run --site site.yaml p.yaml
    wait_until test -s at.0 -a -s at.1
    local additional
    additional=$(on head squeue -h -u alice -n "troupe $(readlink troupe-runs/last)" -o %i)
    run -0 on head scontrol show job "$additional"
    [[ "$output" == *" Licenses=matlab:2 "* ]]
    [[ "$output" == *"OverSubscribe=NO "* ]]
    [[ "$output" == *" NodeList=node[3-4]"* ]]
    [ "$(cat at.* | sort | xargs)" = "node3 0 node4 0" ]
    touch go
    run -0 finished
}

# where_local HOST: how near the tasks that ran there were, a line each.
where_local() {
    grep '"SparkListenerTaskEnd"' troupe-runs/last/events.jsonl |
        sed -n "s/.*\"Host\":\"$1\",\"Locality\":\"\([A-Z_]*\)\".*/\1/p"
}

@test "racks of the site file are those that tasks keep to" {
    printf 'site: 1\nracks: {file: racks}\n' >site.yaml
    printf 'node[1,3] odd\nnode[2,4] even\n' >racks
    echo 'sleep 1.2' | stage near 6 'prefer: [node1]' >p.yaml
    submit alice -w 'node[1-3]' -N3 -n3 -c1 --mem=1000 -- "$TROUPE" run --site site.yaml \
        --set alloc.placement=inside --set locality.wait.node=100ms --set locality.wait.rack=60s p.yaml
    run -0 finished
    # Slurm has node1 and node2 in one rack. Before anybody came who is nearer, some may
    # have gone to node2.
    [ "$(where_local node3 | sort -u)" = RACK_LOCAL ]
    [ "$(where_local node3 | wc -l)" -ge 1 ]
    [ "$(where_local node2 | wc -l)" -le 2 ]
    [ -z "$(where_local node2 | grep LOCAL)" ]
}

# in_tmp OPTION…: a job whose run folder is in /tmp of node1.
in_tmp() {
    submit alice -N2 -n2 -c2 --mem=1000 -w node1,node2 -- \
        "bash -c 'cd /tmp && mkdir w && cd w && cp $PWD/p.yaml . && $TROUPE run --set alloc.placement=inside $* p.yaml; s=\$?; cd; rm -rf /tmp/w; exit \$s'"
}

@test "a run folder that other nodes do not see is one clear error" {
    together 4 | stage wide 4 >p.yaml
    # A task that has begun on node1 waits for the others.
    in_tmp --set driver.memory=500m --fail-fast
    run -3 finished
    [[ "$output" == *"node2"*"/tmp/w/troupe-runs/"*"must be on a file system that all nodes share"* ]]
    [ "$(grep -c 'file system that all nodes share' <<<"$output")" = 1 ]
    echo true | stage solve 1 'mpi: {ranks: 4}' | sed '/tasks:/d' >p.yaml
    in_tmp
    run -4 finished
    [[ "$output" == *"/tmp/w/troupe-runs/"*" on node2 "* ]]
    [[ "$output" == *"must be on a file system that all nodes share"* ]]
    nothing_left node1 node2
}

@test "a run folder that cannot be made is an error before anything starts" {
    together 1 | stage wide 1 >p.yaml
    mkdir -m 555 ro
    cp p.yaml ro/
    submit alice -N1 -n1 -c2 --mem=1000 -- "bash -c 'cd ro && exec $TROUPE run p.yaml'"
    run -4 finished
    [[ "$output" == *"cannot make "*"troupe-runs"* ]]
}

# Two executors a node, with addresses that Slurm knows nothing of: each is its node's.
@test "a discovery script tells addresses on each node, and executors there have different ones" {
    cat >find <<'SH'
#!/bin/sh
echo "$(hostname)" >>"$(dirname "$0")/runs"
echo "{\"name\": \"fpga\", \"addresses\": [\"$(hostname).1\", \"$(hostname).2\"]}"
SH
    chmod +x find
    : >runs && chmod 666 runs
    echo 'echo $(hostname) $TROUPE_RESOURCE_fpga >at.$TROUPE_TASK
until [ $(ls at.* | wc -l) = 4 ]; do sleep 0.1; done' | stage s 4 >p.yaml
    sed -i 's/cores: 1, memory/fpga: 1, &/; s/cpus: 1/&, fpga: 1/' p.yaml
    submit alice -N2 -n2 -c2 --mem=2000 -- "$TROUPE" run --set alloc.placement=inside \
        --set executor.resource.fpga.discoveryScript=find p.yaml
    run -0 finished
    cat at.*
    [ "$(cat at.* | sort -u | wc -l)" = 4 ]
    [ "$(cut -d' ' -f2 at.* | sort | sed 's/\.[12]$//' | xargs)" = "$(cut -d' ' -f1 at.* | sort | xargs)" ]
    [ "$(wc -l <runs)" = 4 ]
    [ "$(sort -u runs | wc -l)" = 2 ]
    # Where it says fewer than there is room for, the next executor is asked for later.
    printf '#!/bin/sh\necho "{\\"name\\": \\"fpga\\", \\"addresses\\": [\\"7\\"]}"\n' >find
    echo 'mkdir fpga.$TROUPE_RESOURCE_fpga || exit 9; sleep 0.5; rmdir fpga.$TROUPE_RESOURCE_fpga' |
        stage s 4 'retries: {max_failures: 1}' >q.yaml
    sed -i 's/cores: 1, memory/fpga: 1, &/; s/cpus: 1/&, fpga: 1/' q.yaml
    submit alice -w node2 -N1 -n1 -c2 --mem=2000 -- "$TROUPE" run --set alloc.placement=inside \
        --set executor.resource.fpga.discoveryScript=find --run-name q q.yaml
    run -0 finished
    [ "$(grep -c '"SparkListenerExecutorAdded"' troupe-runs/q/events.jsonl)" = 1 ]
    # A script that fails says where and why.
    printf '#!/bin/sh\necho nothing here >&2\nexit 3\n' >find
    submit alice -N1 -n1 -c2 --mem=2000 -- "$TROUPE" run --set alloc.placement=inside \
        --set executor.resource.fpga.discoveryScript=find p.yaml
    wait_until grep -q "discovery script $PWD/find of fpga on node.*: it ended with exit status 3: nothing here" out
}
