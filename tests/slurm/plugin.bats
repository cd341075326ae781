#!/usr/bin/env bats
# The SPANK plugin and what slurm-conf/ has for it, as shipped, with real srun, sbatch,
# salloc, slurmctld and slurmd. Its inner functions are in tests/plugin.
# bats file_tags=plain
load slurm.bash

setup_file() {
    cluster_up -n 4 --gpus 2 --cpus 8 --memory 40000 --fast --plugin --conf Licenses=matlab:2
    etc=/var/lib/troupe-slurm/$TROUPE_CLUSTER/etc
    logs=/var/lib/troupe-slurm/$TROUPE_CLUSTER/log
    export etc logs
}

teardown() {
    on head scancel -u alice
}

# What a step has: the partition, cpus, memory and GPUs of its job, and what the plugin told it.
# shellcheck disable=SC2016 # the step's words
tell='scontrol show job $SLURM_JOB_ID | sed -n "s/^ *Partition=\([^ ]*\).*/partition \1/p"
    scontrol show step $SLURM_JOB_ID.$SLURM_STEP_ID | sed -n "s/.*TRES=\(cpu=[0-9]*,mem=[0-9.A-Z]*\).*/step \1/p"
    env | grep -E "^(TROUPE_PROFILE|TROUPE_RESOURCE_|CUDA_VISIBLE)" | sort'

# own_conf: a folder c, to be read instead of the cluster's /etc/slurm by SLURM_CONF.
own_conf() {
    cp -r "$etc" c
    sed -i "s,/etc/slurm/,$PWD/c/," c/plugstack.conf
    export SLURM_CONF=$PWD/c/slurm.conf
}

@test "srun --stage-profile: job and step take the profile's shape" {
    run -0 as alice head srun -n1 --stage-profile=gpu-small bash -c "$tell"
    [ "$output" = "partition gpu
step cpu=4,mem=18022M
CUDA_VISIBLE_DEVICES=0
TROUPE_PROFILE=gpu-small
TROUPE_RESOURCE_gpu=0" ]
    run -0 as alice head srun -n1 --stage-profile=model bash -c "
        scontrol show job \$SLURM_JOB_ID | grep Licenses; $tell"
    [[ "$output" == *" Licenses=matlab:1 "* ]]
    [[ "$output" == *"partition cpu"*"step cpu=1,mem=2432M"* ]]
    [[ "$output" == *"TROUPE_PROFILE=model"*"TROUPE_RESOURCE_matlab=0" ]]
}

@test "sbatch and salloc take it too, their steps are of that profile, additional jobs are not" {
    cat >job.sh <<END
#!/bin/bash
#SBATCH --stage-profile=small
scontrol show job \$SLURM_JOB_ID | grep -oE ' (Alloc)?TRES=cpu=2,mem=4505M' | sed 's/Alloc//'
echo batch \$TROUPE_PROFILE
srun -n1 -c1 --mem=100 bash -c '$tell'
srun -n1 --stage-profile=model bash -c '$tell'
sbatch -W -o additional --wrap 'env | grep -c -e TROUPE_PROFILE -e troupe_stage; true'
END
    as alice head sbatch -W -o out job.sh
    run -0 cat out
    [ "$(head -n 2 out)" = " TRES=cpu=2,mem=4505M
batch small" ]
    [[ "$output" == *"step cpu=1,mem=100M
TROUPE_PROFILE=small
"*"step cpu=1,mem=2432M
TROUPE_PROFILE=model
TROUPE_RESOURCE_matlab=0
"* ]]
    [ "$(cat additional)" = 0 ]
    run -0 --separate-stderr as alice head salloc --stage-profile=small bash -c "srun bash -c '$tell'"
    [ "$output" = "partition cpu
step cpu=2,mem=4505M
TROUPE_PROFILE=small" ]
}

@test "what the user wrote wins" {
    local words wanted
    while IFS='|' read -r words wanted; do
        # shellcheck disable=SC2086
        run -0 as alice head srun -n1 --stage-profile=gpu-small $words bash -c "$tell" </dev/null
        # shellcheck disable=SC2053 # a pattern
        [[ "$(xargs <<<"$output")" == $wanted ]] || { echo "$words: $output" && return 1; }
    done <<'END'
-p main|partition main step cpu=4,mem=18022M *=0
-c 1|partition gpu step cpu=1,mem=18022M *=0
--mem=300|partition gpu step cpu=4,mem=300M *=0
--mem-per-cpu=100|partition gpu step cpu=4,mem=400M *=0
--gpus=2|* CUDA_VISIBLE_DEVICES=0,1 *TROUPE_RESOURCE_gpu=0,1
--gres=none|partition gpu step cpu=4,mem=18022M TROUPE_PROFILE=gpu-small
END
    # shellcheck disable=SC2016 # the job's words
    as alice head env SBATCH_PARTITION=main sbatch -W -o out --stage-profile=small \
        --wrap 'echo $SLURM_JOB_PARTITION $TROUPE_PROFILE'
    [ "$(cat out)" = "main small" ]
}

@test "an unknown name is refused at once, with the names there are" {
    local c
    for c in "srun true" "salloc true" "sbatch --wrap true"; do
        # shellcheck disable=SC2086
        run ! as alice head ${c/ / --stage-profile=smal }
        [[ "$output" == *"unknown profile \"smal\"; did you mean \"small\"? there are: small, gpu-small, a100-quarter, a100-node, fat, model"* ]]
    done
    # shellcheck disable=SC2016 # nobody's words
    for c in '' ../small 'a b' '$(touch x)' '"]; os.execute("touch x")' $'small\nend' \
        "$(printf '%070d' 1)"; do
        run ! as alice head srun --stage-profile="$c" true
        [[ "$output" == *"is no name of a profile"* ]]
    done
    [ ! -e x ]
    [ -z "$(on head squeue -h)" ]
}

@test "slurmstepd takes no name from a user that srun would not" {
    # shellcheck disable=SC2016 # nobody's words
    run -0 as alice head env _SLURM_SPANK_OPTION_troupe_stage_profile='$(touch x)' \
        srun -n1 bash -c "$tell"
    [[ "$output" != *TROUPE_PROFILE* ]]
    # shellcheck disable=SC2016 # nobody's words
    grep -q 'spank_troupe: --stage-profile: "$(touch x)" is no name' "$logs"/slurmd.*.log
    # One that is a name and no profile is only a word.
    run -0 as alice head env _SLURM_SPANK_OPTION_troupe_stage_profile=nobody \
        srun -n1 bash -c "$tell"
    [[ "$output" == *TROUPE_PROFILE=nobody* ]]
    [ ! -e x ]
}

@test "a site without the filter, or without shapes, refuses profiles and nothing else" {
    own_conf
    sed -i '/^CliFilterPlugins/d' c/slurm.conf
    run ! as alice head srun --stage-profile=small true
    [[ "$output" == *"nothing gives the job its shape; the administrator puts CliFilterPlugins=lua"* ]]
    run -0 as alice head srun true
    [ -z "$output" ]
    cp "$etc/slurm.conf" c/
    sed -i '$d' c/troupe/shapes
    run ! as alice head srun --stage-profile=small true
    [[ "$output" == *"c/troupe/shapes:"*"it is cut"*"make it again: troupe site-shape --all --output $PWD/c/troupe/shapes"* ]]
    rm c/troupe/shapes
    run ! as alice head srun --stage-profile=small true
    [[ "$output" == *"No such file"*"the administrator makes it"* ]]
    run -0 as alice head srun true
    [ -z "$output" ]
    # Plugin and filter read what plugstack.conf names, and jobs hear nothing of it.
    sed -i "s,site=,shapes=$etc/troupe/shapes &," c/plugstack.conf
    # shellcheck disable=SC2016 # the step's words
    run -0 as alice head srun --stage-profile=small bash -c 'echo $TROUPE_PROFILE${TROUPE_SHAPES-}'
    [ "$output" = small ]
}

@test "a wrong site file leaves the shapes as they are" {
    own_conf
    echo 'profiles: {small: {executor: {coers: 1}}}' >>c/troupe/site.yaml
    run -2 "$TROUPE" site-shape --all --site c/troupe/site.yaml --output c/troupe/shapes
    [[ "$output" == "troupe: c/troupe/site.yaml:"*":"*": "* ]]
    cmp c/troupe/shapes "$etc/troupe/shapes"
    [ "$(ls c/troupe)" = "shapes
site.yaml" ]
    run -0 as alice head srun -n1 --stage-profile=small bash -c "$tell"
    [[ "$output" == *TROUPE_PROFILE=small* ]]
}

@test "trouble on a node is logged there, and the step runs" {
    local log=$logs/slurmd.node2.log
    # node2 alone sees other shapes.
    sed 's/^resource gpu.*/resource gpu/' "$etc/troupe/shapes" >shapes
    on node2 mount --bind "$PWD/shapes" /etc/slurm/troupe/shapes
    run -0 as alice head srun -n1 -w node2 --stage-profile=gpu-small bash -c "$tell"
    on node2 umount /etc/slurm/troupe/shapes
    [[ "$output" == *TROUPE_PROFILE=gpu-small* ]]
    [[ "$output" != *TROUPE_RESOURCE* ]]
    grep -q 'spank_troupe: /etc/slurm/troupe/shapes:.*not a resource' "$log"
    # A wrong plugstack.conf.
    sed 's/ troupe=/ trouble=1 site=x troupe=/' "$etc/plugstack.conf" >stack
    on node2 mount --bind "$PWD/stack" /etc/slurm/plugstack.conf
    run -0 as alice head srun -n1 -w node2 --stage-profile=small bash -c "$tell"
    on node2 umount /etc/slurm/plugstack.conf
    [[ "$output" == *TROUPE_PROFILE=small* ]]
    grep -q 'unknown argument "trouble=1"; there are: site=FILE, shapes=FILE, troupe=PROGRAM' "$log"
    state_is node2 idle
}

@test "a plugin for another Slurm is refused with a message, and Slurm goes on" {
    own_conf
    local at
    at=$(nm -D "$TROUPE_BUILD/lib/spank_troupe.so" | awk '$3 == "plugin_version" { print $1 }')
    cp "$TROUPE_BUILD/lib/spank_troupe.so" other.so
    # 23.02.0
    printf '\0\002\027\0' | dd of=other.so bs=1 seek=$((16#$at)) conv=notrunc status=none
    sed -i "s,^optional [^ ]*,optional $PWD/other.so," c/plugstack.conf
    run -0 as alice head srun -n1 hostname
    [[ "$output" == *"other.so: Incompatible plugin version"* ||
        "$output" == *"Incompatible Slurm plugin $PWD/other.so version (23.02.0)"* ]]
    [[ "$output" == *node* ]]
    run ! as alice head srun --stage-profile=small true
    [[ "$output" == *"unrecognized option"* ]]
}

@test "sbatch --stage-pipeline: only what the site can run is queued" {
    local name wanted
    printf 'troupe: 1\nstages:\n  - {name: a, profile: gpu-small, tasks: 99, run: "true"}\n' >good.yaml
    run -0 as alice head sbatch -H --stage-pipeline=good.yaml --wrap true
    [[ "$output" == "Submitted batch job "* ]]
    on head scancel -u alice
    # A job in that job, and in another folder, has nothing to do with it.
    as alice head sbatch -W -o out --stage-pipeline=good.yaml --wrap \
        'srun true; cd /tmp; sbatch -W -o /dev/null --wrap true'
    [[ "$(cat out)" == "Submitted batch job "* ]]
    [ "$(wc -l <out)" = 1 ]
    sed 's/tasks/tsaks/' good.yaml >wrong.yaml
    sed 's/gpu-small/gpu-smal/' good.yaml >unknown.yaml
    printf 'troupe: 1\nprofiles: {x: {executor: {cores: 1, tpu: 1}}}\nstages:\n  - {name: a, profile: x, run: "true"}\n' >never.yaml
    printf 'troupe: 1\nprofiles: {x: {executor: {cores: 1, gpu: 99}}}\nstages:\n  - {name: a, profile: x, run: "true"}\n' >large.yaml
    while IFS='|' read -r name wanted; do
        run ! as alice head sbatch --stage-pipeline="$name" --wrap true </dev/null
        # shellcheck disable=SC2053 # a pattern
        [[ "$output" == $wanted ]] || { echo "$name: $output" && return 1; }
        [[ "$output" == *"Invalid --stage-pipeline argument: $name" ]]
    done <<'END'
wrong.yaml|troupe: *wrong.yaml:3:35:*unknown key "tsaks"*
unknown.yaml|troupe: *unknown.yaml:3:24:*gpu-smal*did you mean*
never.yaml|troupe: *never.yaml:2:12:*cannot be had from Slurm: resource tpu*
large.yaml|troupe: *large.yaml:2:12: profile x never fits here: no node of partition *gpu wanted 99, at most *
missing.yaml|troupe: *missing.yaml:*No such file*
x;touch y.yaml|troupe: *x;touch y.yaml:*No such file*
--print.yaml|troupe: *--print.yaml:*No such file*
END
    run ! as alice head sbatch --stage-pipeline= --wrap true
    [[ "$output" == *"--stage-pipeline: no file"* ]]
    # What alice cannot read is not read for her.
    install -m 600 wrong.yaml root.yaml
    run ! as alice head sbatch --stage-pipeline=root.yaml --wrap true
    [[ "$output" == *"root.yaml: cannot be read: Permission denied"* ]]
    [ -z "$(on head squeue -h)" ]
    [ ! -e y.yaml ]
    own_conf
    sed -i 's, troupe=.*, troupe=/nowhere/troupe,' c/plugstack.conf
    run ! as alice head sbatch --stage-pipeline=good.yaml --wrap true
    [[ "$output" == *"/nowhere/troupe cannot be started: No such file"*"troupe=PROGRAM in plugstack.conf"* ]]
}

@test "a task is bound near its GPUs when that leaves it as many CPUs as it asked for" {
    [ "$(nproc)" -ge 2 ] || skip "one CPU only"
    local last all near list
    last=$(($(nproc) - 1)) all=0-$(($(nproc) - 1))
    near="srun -n1 -w node3 --stage-profile=gpu-small"
    list='sed -n "s/Cpus_allowed_list:\t//p" /proc/self/status'
    # What the kernel would show of these GPUs, which have no driver: the last CPU is near 0.
    on node3 bash -c "mount -t tmpfs tmpfs /sys/dev/char
        mkdir -p /sys/dev/char/120:{0,1}/device
        echo $last >/sys/dev/char/120:0/device/local_cpulist
        echo $all >/sys/dev/char/120:1/device/local_cpulist"
    # shellcheck disable=SC2086
    {
        [ "$(as alice head $near -c1 bash -c "$list")" = "$last" ]
        [ "$(as alice head $near -c2 bash -c "$list")" = "$all" ]
        [ "$(as alice head $near -c1 --gpus=2 bash -c "$list")" = "$all" ]
        [ "$(as alice head $near -c1 --gres=none bash -c "$list")" = "$all" ]
    }
    # A batch script starts other steps.
    as alice head sbatch -W -o out -w node3 -c1 --stage-profile=gpu-small --wrap "$list"
    [ "$(cat out)" = "$all" ]
    on node3 umount /sys/dev/char
    # Nothing is known of the device.
    # shellcheck disable=SC2086
    [ "$(as alice head $near -c1 bash -c "$list")" = "$all" ]
}

@test "slurmctld keeps the site's limits for jobs with a profile" {
    # shellcheck disable=SC2016 # the job's words
    local limit='squeue -h -j $SLURM_JOB_ID -o %l'
    [ "$(as alice head srun -n1 --stage-profile=small bash -c "$limit")" = 1-00:00:00 ]
    [ "$(as alice head srun -n1 -t 5 --stage-profile=small bash -c "$limit")" = 5:00 ]
    [ "$(as alice head srun -n1 bash -c "$limit")" = UNLIMITED ]
    run ! as alice head srun -t 2-0 --stage-profile=small true
    [[ "$output" == *"may run for 1440 minutes here; ask for no more"* ]]
    sed -i 's/^limit time.*/limit deny license matlab\nlimit deny gres gpu:a100/' "$etc/troupe/shapes"
    touch -d '+1 minute' "$etc/job_submit.lua"
    run ! as alice head srun --stage-profile=model true
    [[ "$output" == *"license matlab is denied here"* ]]
    run ! as alice head srun --stage-profile=small --gres=gpu:a100:1 true
    [[ "$output" == *"gres gpu:a100 is denied here"* ]]
    run -0 as alice head srun --stage-profile=gpu-small true
}

@test "without a profile nothing is told, to nobody" {
    local before
    before=$(cat "$logs"/slurmd.*.log "$logs"/slurmctld.log | grep -ci troupe)
    run -0 as alice head srun -N4 bash -c "env | grep -e TROUPE_P -e TROUPE_R; true"
    [ -z "$output" ]
    [ "$(cat "$logs"/slurmd.*.log "$logs"/slurmctld.log | grep -ci troupe)" = "$before" ]
}

# settings FILE: its lines, without comments.
settings() {
    grep -v '^#' "$1"
}

@test "the other examples are what this cluster has" {
    local conf=$TROUPE_SOURCE/slurm-conf machine
    diff <(settings "$conf/topology.conf") <(settings "$etc/topology.conf")
    diff <(settings "$conf/gres.conf") <(settings "$etc/gres.conf")
    # Of cgroup.conf but what the machine decides.
    machine='^(CgroupPlugin|IgnoreSystemd|ConstrainSwapSpace|ConstrainDevices)='
    diff <(settings "$conf/cgroup.conf" | sed -E "s/$machine.*/\1/") \
        <(settings "$etc/cgroup.conf" | sed -E "s/$machine.*/\1/")
}
