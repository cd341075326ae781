#!/usr/bin/env bats
# What Slurm 22.05 does not have: a limit for how often a user may call, and jobs that make
# their steps themselves.
# shellcheck disable=SC2154 # variables of slurm.bash
load slurm.bash
load run.bash

setup_file() {
    cluster_up -n 4 --fast --conf PrologFlags=Contain --conf \
        SlurmctldParameters=rl_enable,rl_bucket_size=10,rl_refill_rate=2,rl_log_freq=0
    slurm=$(on head scontrol --version | sed 's/.* //')
    ctld=/var/lib/troupe-slurm/$TROUPE_CLUSTER/log/slurmctld.log
    export slurm ctld
}

teardown() {
    on head scancel -u alice
}

# since VERSION WHAT: skips what this Slurm does not have.
since() {
    [ "$(printf '%s\n' "$1" "$slurm" | sort -V | head -n 1)" = "$1" ] || skip "Slurm $slurm has no $2"
}

# limited: how often slurmctld has told a user to come again later.
limited() {
    grep -c "RPC rate limit exceeded" "$ctld" || true
}

# full: the user may call as often as can be.
full() {
    sleep 10
}

# wide TASKS: all of them run at the same time.
wide() {
    # shellcheck disable=SC2016 # the task's words
    pipeline "$1" 'until [ $(ls ran.* | wc -l) -ge '"$1"' ]; do sleep 0.2; done'
}

@test "a run keeps below the calls that a user may make" {
    since 23.02 "limit of calls"
    wide 8
    full
    local before
    before=$(limited)
    run_on -N2 -n2 -c4 --mem=2000 --
    well
    [[ "$output" == *"Slurm limits how often it is called; executors are started more slowly"* ]]
    have_run 8
    [ "$(limited)" = "$before" ]
}

@test "so does one that takes an additional job" {
    since 23.02 "limit of calls"
    wide 8
    full
    local before
    before=$(limited)
    run_on -N1 -n1 -c4 --mem=2000 -- --set alloc.placement=inside-first --set driver.cores=1
    well
    have_run 8
    [ "$(limited)" = "$before" ]
}

@test "a run that does not is right, too" {
    since 23.02 "limit of calls"
    wide 8
    full
    local before
    before=$(limited)
    run_on -N2 -n2 -c4 --mem=2000 -- --set slurm.max_rpcs_per_minute=100000
    well
    have_run 8
    [ "$(limited)" -gt "$before" ]
    run ! grep -q "was not started" troupe-runs/r/events.jsonl
}

# made_by_slurmctld: how many steps it has made.
made_by_slurmctld() {
    on head sdiag | awk '$1 == "REQUEST_JOB_STEP_CREATE" { sub(/.*count:/, ""); n += $1 } END { print n + 0 }'
}

@test "in a job with --stepmgr the steps of a run cost slurmctld no call" {
    since 24.05 "--stepmgr"
    wide 4
    cat >>p.yaml <<'END'
  - name: gang
    after: [s]
    profile: small
    mpi: {ranks: 2}
    run: hostname >rank.$TROUPE_RANK
END
    local before
    before=$(made_by_slurmctld)
    run_on --stepmgr -N2 -n2 -c2 --mem=1000 --
    well
    have_run 4
    [ "$(cat rank.* | wc -l)" = 2 ]
    [ "$(made_by_slurmctld)" = "$before" ]
    nothing_left node1 node2 node3 node4
}

@test "in such a job an additional one is taken, whose steps slurmctld makes" {
    since 24.05 "--stepmgr"
    # shellcheck disable=SC2016 # the task's words
    pipeline 6 'until [ -e go ]; do sleep 0.2; done'
    run_on --stepmgr -N1 -n1 -c4 --mem=1000 -- --set alloc.placement=inside-first --set driver.cores=1
    wait_until have_run 6
    [ "$(on head squeue -h -u alice -t RUNNING | wc -l)" = 2 ]
    touch go
    well
    nothing_left node1 node2 node3 node4
}

@test "such a job ends in order when its driver is killed, and when a node of it dies" {
    since 24.05 "--stepmgr"
    # shellcheck disable=SC2016 # the task's words
    pipeline 4 'until [ -e go ]; do sleep 0.2; done'
    run_on --stepmgr -N2 -n2 -c3 --mem=1000 -w node1,node2 --
    wait_until have_run 4
    on node1 pkill -KILL -f '^troupe: driver'
    wait_until job_is_over "$job"
    wait_until nothing_left node1 node2 node3 node4
    rm -rf ran.* troupe-runs
    # More than one node has room for.
    sed -i "s/tasks: 4/tasks: 6/" p.yaml
    run_on --stepmgr -N2 -n2 -c4 --mem=2000 -w node1,node2 -- "${quick[@]}"
    wait_until have_run 6
    cluster kill node2
    wait_until grep -q "lost its executor" out
    touch go
    wait_until grep -q "stage s succeeded" out
    cluster heal node2
    well
}

# Racks as a job in a partition finds them: "rack1:node1,node2 rack2:…".
racks_in() {
    as alice head salloc -Q -p "$1" -N4 -n4 "$TROUPE" topo --json >racks.json
    perl -MJSON::PP -0777 -e '
        my $d = decode_json(<STDIN>);
        print join(" ", sort map {
            $_->{name} . ":" . join(",", sort map { $_->{name} } @{$_->{hosts}})
        } @{$d->{racks}}), "\n"' <racks.json
}

# The last one: it changes the cluster.
@test "racks are those of the topology that the job's partition has" {
    since 25.05 "topology.yaml"
    local etc=/var/lib/troupe-slurm/$TROUPE_CLUSTER/etc
    cat >"$etc/topology.yaml" <<'END'
- topology: rows
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "row[1-2]"}
      - {switch: row1, nodes: "node[1-2]"}
      - {switch: row2, nodes: "node[3-4]"}
- topology: columns
  tree:
    switches:
      - {switch: top, children: "column[1-2]"}
      - {switch: column1, nodes: "node[1,3]"}
      - {switch: column2, nodes: "node[2,4]"}
- topology: pods
  block:
    block_sizes: [1]
    blocks:
      - {block: pod1, nodes: "node1"}
      - {block: pod2, nodes: "node[2-4]"}
END
    {
        echo "PartitionName=crossed Nodes=ALL Topology=columns"
        echo "PartitionName=block Nodes=ALL Topology=pods"
    } >>"$etc/slurm.conf"
    slurmctld_goes
    cluster heal head
    wait_until as alice head srun -p crossed true
    [ "$(racks_in main)" = "row1:node1,node2 row2:node3,node4" ]
    [ "$(racks_in crossed)" = "column1:node1,node3 column2:node2,node4" ]
    [ "$(racks_in block)" = "pod1:node1 pod2:node2,node3,node4" ]
}
