#!/usr/bin/env bats
# What is left on nodes: folders of jobs, shared memory and processes, after every way in
# which a job, a node or its slurmd can end; and users who mean harm. The inner functions are
# in tests/plugin.
# shellcheck disable=SC2154 # variables of slurm.bash
# shellcheck disable=SC2317 # functions that wait_until calls
# bats file_tags=plain
load slurm.bash

setup_file() {
    cluster_up -n 2 --fast --plugin
    shapes=/var/lib/troupe-slurm/$TROUPE_CLUSTER/etc/troupe/shapes
    logs=/var/lib/troupe-slurm/$TROUPE_CLUSTER/log
    export shapes logs jobs=/run/scratch/jobs
}

teardown() {
    on head scancel -u alice
    on head scancel -u bob
}

# Of jobs that are over nothing is on the nodes: folders, records, processes, shared memory. A job
# may be over for a moment before its epilogs are.
clean() {
    local host left
    for host in node1 node2; do
        # shellcheck disable=SC2016 # the host's words
        left=$(leftovers "$host" && on "$host" bash -c '
            find "$0" /run/troupe -mindepth 1 ! -name going ! -name .swept 2>/dev/null
            true' "$jobs")
        [ -z "$left" ] || { echo "$host: $left" && return 1; }
    done
}

# run_job: a run of alice in a job on both nodes, all of whose tasks have begun: each
# has files in its scratch folder and waits, and so do the two ranks of an MPI program.
run_job() {
    cat >p.yaml <<'END'
troupe: 1
profiles: {one: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}}
stages:
  - name: wait
    tasks: 4
    profile: one
    run: |
      mkdir -p $TROUPE_SCRATCH/a/b; echo x >$TROUPE_SCRATCH/a/b/file
      echo $TROUPE_SCRATCH >at.$TROUPE_TASK
      until [ -e go ]; do sleep 0.1; done
END
    cat >both.sh <<END
#!/bin/bash
mpirun --mca ras ^slurm --mca plm ^slurm --oversubscribe -n 2 $programs/sleepy 4 100000 >sleepy.out 2>&1 &
TROUPE_SITE=/etc/slurm/troupe/site.yaml $TROUPE run --quiet --set alloc.placement=inside --set run.grace=0 p.yaml
kill %1
wait
END
    chmod +x both.sh
    submit alice --no-requeue -N2 -n2 -c2 --mem=1500 -- ./both.sh
    begun() { [ "$(cat at.* | wc -l)" = 4 ] && [ -e begun.0 ]; }
    wait_until begun
}

# segments: how many of Open MPI's are in shared memory of the batch script's node.
segments() {
    on node1 ls /dev/shm | grep -cE '^(vader|sm)_segment'
}

@test "a job has a folder on each node, its owner's alone, while it runs" {
    # shellcheck disable=SC2016 # the step's words
    run -0 as alice head srun -N2 -n2 bash -c '
        touch $TROUPE_SCRATCH/x; mkdir -m 0 $TROUPE_SCRATCH/y
        stat -c "$HOSTNAME %U %G %a %n" $TROUPE_SCRATCH; echo $SLURM_JOB_ID >job'
    local id
    id=$(cat job)
    [ "$(sort <<<"$output")" = "node1 alice alice 700 $jobs/$id
node2 alice alice 700 $jobs/$id" ]
    wait_until clean
    # All steps of a job have the same, others nothing of it.
    submit alice -N1 -- "bash -c 'echo \$TROUPE_SCRATCH; echo x >\$TROUPE_SCRATCH/x
        srun cat \$TROUPE_SCRATCH/x; until [ -e go ]; do sleep 0.1; done'"
    there() { [ "$(cat out)" = "$jobs/$job
x" ]; }
    wait_until there
    run ! as bob node1 ls "$jobs/$job"
    run ! as bob node1 touch "$jobs/x"
    run ! as bob node1 rmdir "$jobs/$job"
    touch go
    run -0 finished
    wait_until clean
    # The user's word for it is not taken.
    # shellcheck disable=SC2016 # the step's words
    [ "$(as alice head env TROUPE_SCRATCH=/tmp srun -n1 bash -c 'dirname $TROUPE_SCRATCH')" = "$jobs" ]
    # Nothing of all this was worth a line.
    run ! grep -h spank_troupe "$logs"/slurmd.*.log
}

@test "a site without scratch: has no folders" {
    sed -i 's/^scratch/#&/' "$shapes"
    # shellcheck disable=SC2016 # the step's words
    run as alice head srun -n1 bash -c 'echo ${TROUPE_SCRATCH-unset}; ls /run/troupe 2>/dev/null; true'
    sed -i 's/^#scratch/scratch/' "$shapes"
    [ "$output" = unset ]
}

@test "check tells of a slurmd that is older than the plugin's line" {
    check() { as alice head env TROUPE_SITE=/etc/slurm/troupe/site.yaml "$TROUPE" check; }
    local old="slurmd on node1, and maybe on others, began before this file was changed: if it did not load the plugin, jobs there get no folder (scratch:); restart slurmd on the nodes"
    run check
    [[ "$output" != *"$old"* ]]
    touch "${shapes%/*/*}/plugstack.conf"
    run check
    [[ "$output" == *"warning: plugin: /etc/slurm/plugstack.conf:"*": $old"* ]]
}

@test "a run keeps everything in its job's folder, and ends in order" {
    run_job
    [ "$(cat at.* | grep -c "^$jobs/$job/")" = 4 ]
    [ -z "$(on node1 find /tmp -maxdepth 1 -name 'troupe-*')" ]
    [ -z "$(on node2 find /tmp -maxdepth 1 -name 'troupe-*')" ]
    [ "$(segments)" -ge 2 ]
    touch go
    run -0 finished
    wait_until clean
}

@test "scancel leaves nothing" {
    run_job
    on head scancel "$job"
    wait_until job_is_over "$job"
    wait_until clean
}

@test "SIGKILL of all of a job's processes leaves nothing" {
    run_job
    on node2 pkill -KILL -u alice . &
    on node1 pkill -KILL -u alice .
    wait $! || true # they end by themselves, too
    on head scancel "$job"
    wait_until job_is_over "$job"
    wait_until clean
}

@test "SIGKILL of slurmstepd leaves processes, which are killed; another job's are not" {
    local mine
    # One of the same user, on the same node, with files, shared memory and a process.
    submit alice -N1 -w node1 -n1 --mem=200 -- \
        "bash -c 'touch \$TROUPE_SCRATCH/keep /dev/shm/keep; exec sleep 1000'"
    mine=$job
    kept() { on node1 ls "$jobs/$mine/keep" /dev/shm/keep; }
    wait_until kept
    cat >step.sh <<END
trap '' TERM HUP PIPE
mkdir -p \$TROUPE_SCRATCH/a/b; touch \$TROUPE_SCRATCH/a/b/c
cp $programs/sleepy /dev/shm/vader_segment.\$HOSTNAME.mine.0
setsid sleep 2000 & sleep 2000 &
touch begun.\$SLURM_PROCID
for ((;;)); do wait; done
END
    submit alice --no-requeue -N2 -n2 --mem=1500 -- srun bash step.sh
    begun() { [ -e begun.0 ] && [ -e begun.1 ]; }
    wait_until begun
    on node1 pkill -KILL -f "^slurmstepd: \[$job\\."
    on node2 pkill -KILL -x slurmstepd
    stepds_are_gone() { ! on node2 pgrep -x slurmstepd && ! on node1 pgrep -f "^slurmstepd: \[$job\\."; }
    wait_until stepds_are_gone
    [ "$(on node2 pgrep -c -u alice .)" = 3 ]
    [ "$(on node1 pgrep -c -u alice -f 'sleep 2000')" = 2 ]
    on head scancel "$job"
    wait_until job_is_over "$job"
    gone() { ! on node1 ls "$jobs/$job" && ! on node2 pgrep -u alice .; }
    wait_until gone
    [ "$(on node1 pgrep -u alice -a .)" = "$(on node1 pgrep -u alice -a -x sleep)" ]
    [ "$(on node1 pgrep -c -u alice -x sleep)" = 1 ]
    [ "$(on node1 ls /dev/shm)" = keep ]
    kept
    on head scancel "$mine"
    wait_until job_is_over "$mine"
    # A file that says nothing of whose it is is the user's to remove.
    on node1 rm /dev/shm/keep
    wait_until clean
}

@test "an OOM kill leaves nothing" {
    cat >fill.sh <<END
#!/bin/bash
mpirun --mca ras ^slurm --mca plm ^slurm --oversubscribe -n 2 $programs/sleepy 4 100000 >sleepy.out 2>&1 &
until [ -e begun.0 ]; do sleep 0.1; done
mkdir -p \$TROUPE_SCRATCH/a/b && touch \$TROUPE_SCRATCH/a/b/c
tail /dev/zero
kill -KILL 0
END
    chmod +x fill.sh
    submit alice --no-requeue -n2 --mem=300 -- ./fill.sh
    wait_until job_is_over "$job"
    on head scontrol show job "$job" | grep -q OUT_OF_MEMORY
    wait_until clean
}

@test "a node that went down and is back: the next job there finds it clean" {
    run_job
    on node2 touch "$jobs/$job/more"
    cluster cut node2
    cluster kill node2
    on node2 rm -r /run/troupe # lives in memory
    on head scontrol update nodename=node2 state=down reason=test
    wait_until job_is_over "$job"
    cluster heal node2
    on head scontrol update nodename=node2 state=resume || true # it is back already
    wait_until state_is node2 idle
    # An epilog, if one came, knew of nothing; the first prolog looks for leftovers.
    on node2 test -e "$jobs/$job/more"
    as bob head srun -w node2 true
    wait_until clean
}

@test "a slurmd that dies and comes back keeps the folders of jobs that go on" {
    # One with a step, one that is only allocated.
    submit alice -N1 -w node2 -n1 --mem=100 -- \
        "bash -c 'touch \$TROUPE_SCRATCH/keep; until [ -e go ]; do sleep 0.1; done; ls \$TROUPE_SCRATCH'"
    # shellcheck disable=SC2016 # the job's words
    as alice head salloc -N1 -w node2 -n1 --mem=100 bash -c '
        srun bash -c "touch \$TROUPE_SCRATCH/idle"; touch ready; until [ -e go ]; do sleep 0.1; done
        srun bash -c "ls \$TROUPE_SCRATCH >idle"' 3>&- &
    local idle=$!
    kept() { [ -e ready ] && on node2 ls "$jobs/$job/keep"; }
    wait_until kept
    on node2 pkill -KILL -x slurmd
    cluster heal node2
    on node2 touch -d '1 hour ago' /run/troupe/.swept
    back() { as bob head srun -w node2 -n1 --mem=100 true; }
    wait_until back
    kept
    touch go
    run -0 finished
    [ "$output" = keep ]
    wait $idle
    [ "$(cat idle)" = idle ]
    wait_until clean
}

@test "bob's links and folders do alice no harm" {
    # In a place where both may write, as on many a scratch disk.
    as alice node1 bash -c 'mkdir -p /var/tmp/hers/private && touch /var/tmp/hers/{1,2} \
        /var/tmp/hers/private/3 && chmod -R 777 /var/tmp/hers && chmod 700 /var/tmp/hers/private'
    # His job's folder: links to hers, strange names, a fifo, no rights, and a folder of
    # hers that she let him move.
    on node1 install -d -m 777 /run/both
    as alice node1 bash -c 'mkdir -m 777 /run/both/open && mkdir /run/both/open/in &&
        touch /run/both/open/in/file'
    # shellcheck disable=SC2016 # the job's words
    run -0 --separate-stderr as bob head srun -w node1 -n1 bash -c '
        cd $TROUPE_SCRATCH; ln -s /var/tmp/hers soft; ln -s ../../../hers up; mkfifo pipe
        ln -s /var/tmp/hers "$(printf "a\nb")"; mkdir -p x/y; ln -s /var/tmp/hers x/y/z
        chmod 0 x/y; chmod 500 x; mv /run/both/open .; echo $SLURM_JOB_ID; cd ..
        ! mv $SLURM_JOB_ID other && ! ln -s /var/tmp/hers 999 && ! touch /run/troupe/x'
    local id=$output
    gone() { ! on node1 test -e "$jobs/$id"; }
    wait_until gone
    wait_until state_is node1 idle
    # Hers is all there, his own has gone; what is left is told and out of reach.
    [ "$(on node1 find /var/tmp/hers -type f | wc -l)" = 3 ]
    [ "$(on node1 bash -c "cd $jobs/going/$id.* && find . ! -type d")" = ./open/in/file ]
    grep -q "spank_troupe: job $id: not all of its scratch folder could be removed .*jobs/going/$id\." "$logs/slurmd.node1.log"
    # It does not keep the node from working.
    run -0 as alice head srun -w node1 true
    on node1 rm -r "$jobs/going/" /var/tmp/hers /run/both
    wait_until clean
}

@test "bob swaps folders and links while they are removed" {
    as alice node1 bash -c 'mkdir -m 777 /var/tmp/hers && touch /var/tmp/hers/{1..50}'
    # What swaps is in no job, but of a login, say; it stays where it is when the folder goes.
    # shellcheck disable=SC2016 # the process's words
    as bob node1 bash -c '
        for ((;;)); do
            until cd "$(cat where)"; do sleep 0.02; done
            for ((i = 0; i < 60; i++)); do
                mkdir -p x; : >x/1; mv -T x y; ln -sfn /var/tmp/hers x; mv -T x d7; rm -f x
                [ $i != 5 ] || : >"$OLDPWD/swaps.$BASHPID"
            done
            cd "$OLDPWD"
        done' >/dev/null 2>&1 3>&- &
    local other=$! _
    for _ in 1 2 3; do
        # shellcheck disable=SC2016 # the step's words
        as bob head srun -w node1 -n1 bash -c '
            mkdir -p $TROUPE_SCRATCH/d{1..60}/x; echo $TROUPE_SCRATCH >where
            until ls swaps.*; do sleep 0.02; done'
        rm where swaps.*
    done
    on node1 pkill -KILL -u bob .
    wait $other || true
    wait_until state_is node1 idle
    [ "$(on node1 find /var/tmp/hers -type f | wc -l)" = 50 ]
    on node1 rm -r "$jobs/going" /var/tmp/hers
    wait_until clean
}
