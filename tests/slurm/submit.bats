#!/usr/bin/env bats
# troupe submit on a real Slurm, as an ordinary user: the job starts, its script is the one
# that was printed, its end arrives, and refusals have Slurm's own words.
load slurm.bash

setup_file() {
    cluster_up -n 2 --gpus 2 --fast --conf 'Licenses=matlab:2' --conf EnforcePartLimits=ALL \
        --conf 'PartitionName=closed Nodes=ALL AllowGroups=root'
    on head scontrol update nodename=node1 availablefeatures=old,fast activefeatures=old,fast
    on head scontrol update nodename=node2 availablefeatures=new activefeatures=new
}

# With a pipeline and a site file.
setup() {
    own_folder
    cat >site.yaml <<'END'
site: 1
driver: {cores: 2, memory: 3g, time: 10m, partition: main}
END
    cat >p.yaml <<'END'
troupe: 1
name: my weather
params: {held: "no"}
stages:
  - {name: first, run: "echo first >>trace"}
  - name: second
    after: [first]
    tasks: 2
    run: |
      [ "$TROUPE_PARAM_held" = no ] || until [ -e go ]; do sleep 0.1; done
      echo $SLURM_JOB_ID
      if [ -e fail ]; then exit 7; fi
END
}

# submit ARG…: alice's, on the local machine of the job.
submit() {
    as alice head "$TROUPE" submit --local --site site.yaml "$@"
}

# The job whose output a run has.
job_of() {
    basename "$(ls troupe-runs/"$1"/job-*.out)" | tr -dc 0-9
}

job_field() {
    on head scontrol show job "$1" | grep -o "\b$2=[^ ]*" | cut -d= -f2-
}

state_of_job() {
    [ "$(job_field "$1" JobState)" = "$2" ]
}

@test "a pipeline is submitted, runs, and its success arrives" {
    run -0 --separate-stderr submit --wait p.yaml
    [[ "$output" =~ ^Submitted\ batch\ job\ ([0-9]+)$ ]]
    job=${BASH_REMATCH[1]}
    run=$(readlink troupe-runs/last)
    [[ "$run" == my-weather-* ]]
    [[ "$stderr" == "troupe: run $run is job $job; follow it by tail -F $PWD/troupe-runs/$run/job-$job.out, end it by scancel $job" ]]
    grep -q "stage second succeeded" "troupe-runs/$run/job-$job.out"
    [ "$(cat "troupe-runs/$run/logs/second/0.0.out")" = "$job" ]
    [ "$(stat -c %a "troupe-runs/$run")" = 700 ]
    [ ! -e "troupe-runs/$run/submitted" ]
    [ "$(job_field "$job" JobName)" = my ] # "my weather", up to the blank
    [ "$(job_field "$job" NumCPUs)" = 2 ]
    [ "$(job_field "$job" MinMemoryNode)" = 3G ]
    [ "$(job_field "$job" TimeLimit)" = 00:10:00 ]
    [ "$(job_field "$job" Requeue)" = 1 ]
}

@test "a run that fails ends --wait and the job with its status" {
    as alice head touch fail
    run -1 --separate-stderr submit --wait --set task.maxFailures=1 p.yaml
    [ "$(job_field "$(job_of last)" ExitCode)" = 1:0 ]
    grep -q "stage second: task .* exit status 7" troupe-runs/last/job-*.out
}

@test "the printed script can be submitted by hand" {
    submit --print --comment 'a "b" \c #d' p.yaml >job.sh
    run -0 as alice head sbatch --wait job.sh
    job=${output##* }
    [ "$(readlink troupe-runs/last)" = "my-weather-$job" ]
    grep -q "stage second succeeded" "slurm-$job.out"
    on head scontrol show job "$job" | grep -qF 'Comment=a "b" \c #d'
}

@test "a program is submitted and finds its words" {
    cat >app <<'END'
#!/bin/sh
printf '<%s>' "$@" >words
END
    chmod 755 app
    # It never calls trp_init, and is told so.
    run -2 submit --wait --parsable -- ./app "it's" 'a  b' '$x'
    wait_until test -s words
    [ "$(cat words)" = "<it's><a  b><\$x>" ]
}

@test "the announced end stops the run with 75, and --resume goes on in a new job" {
    run -0 --separate-stderr submit --run-name slow --param held=yes p.yaml
    wait_until grep -q "running" troupe-runs/slow/state/run.json
    wait_until test -e troupe-runs/slow/logs/second/0.0.out
    job=$(job_of slow)
    on head scancel --batch --signal=USR1 "$job"
    wait_until grep -q "time is up soon" "troupe-runs/slow/job-$job.out"
    as alice head touch go
    wait_until state_of_job "$job" FAILED
    [ "$(job_field "$job" ExitCode)" = 75:0 ]
    run -0 --separate-stderr submit --wait --resume last
    [ "$(ls troupe-runs)" = $'last\nslow' ]
    [ "$(ls troupe-runs/slow/job-*.out | wc -l)" = 2 ]
    [ "$(cat trace)" = first ]
}

@test "a requeued job goes on with its run under the same name" {
    run -0 --separate-stderr submit --run-name again --param held=yes p.yaml
    wait_until test -e troupe-runs/again/logs/second/0.0.out
    job=$(job_of again)
    on head scontrol requeue "$job"
    wait_until state_of_job "$job" PENDING
    as alice head touch go
    start_now "$job"
    wait_until state_of_job "$job" COMPLETED
    [ "$(job_field "$job" Restarts)" = 1 ]
    [ "$(ls troupe-runs)" = $'again\nlast' ]
    [ "$(cat trace)" = first ]
}

# refused STATUS WORDS OPTION…: told in one line, and nothing is left.
refused() {
    local want=$1 words=$2
    shift 2
    run -"$want" --separate-stderr submit "$@" p.yaml
    [ "$stderr" = "troupe: sbatch: $words" ] || { echo "got: $stderr" && return 1; }
    [ -z "$output" ]
    [ ! -e troupe-runs ]
}

@test "what Slurm refuses is told in its words, and leaves nothing" {
    refused 3 "invalid partition specified: nope; Batch job submission failed: Invalid partition name specified" -p nope
    refused 3 "Batch job submission failed: User's group not permitted to use this partition" -p closed
    refused 3 "Memory specification can not be satisfied; Batch job submission failed: Requested node configuration is not available" --mem=1t
    refused 3 "Batch job submission failed: Invalid license specification" -L sas
    refused 3 "Invalid generic resource (gres) specification" --gres=fpga:1
    refused 2 "unrecognized option '--nope'; Try \"sbatch --help\" for more information" --nope
    refused 2 "Invalid --time specification" -t soon
}

@test "a test of the queue leaves no folder" {
    run -0 submit --test-only p.yaml
    [[ "$output" == *"sbatch: Job "*" to start at "* ]]
    [ ! -e troupe-runs ]
}

# shape_runs PROFILE STATUS: Slurm takes the options that site-shape prints.
shape_runs() {
    local options
    mapfile -t options < <("$TROUPE" site-shape --site shapes.yaml "$1" | sed 's/^/--/')
    run -"$2" as alice head sbatch --wait "${options[@]}" --wrap true
}

@test "Slurm takes the options of a site's shapes" {
    cat >shapes.yaml <<'END'
site: 1
resources:
  matlab: {slurm: "license:matlab"}
  old: {slurm: "constraint:old"}
  none: {slurm: "constraint:no-such"}
route:
  - {when: {old: ">0"}, partition: main, constraint: "fast|new"}
  - {partition: main}
profiles:
  plain: {executor: {cores: 2, memory: 512m, memoryOverhead: 100m}}
  card: {executor: {cores: 1, memory: 512m, memoryOverhead: 0, gpu: 2}, task: {gpu: 1}}
  licensed: {executor: {cores: 1, memory: 512m, memoryOverhead: 0, matlab: 2}}
  aged: {executor: {cores: 1, memory: 512m, memoryOverhead: 0, old: 1}}
  never: {executor: {cores: 1, none: 1}}
END
    for profile in plain card licensed aged; do
        shape_runs $profile 0
        job=$(grep -o '[0-9]*$' <<<"$output")
        on head scontrol show job "$job" >"$profile"
    done
    grep -q "NumCPUs=2 .*" plain && grep -q "MinMemoryNode=612M" plain
    grep -q "TresPerNode=gres[:/]gpu:2" card
    grep -q "Licenses=matlab:2" licensed
    grep -qF "Features=old&(fast|new)" aged
    shape_runs never 1
    [[ "$output" == *"Invalid feature specification"* ]]
}

@test "a plan on a login node asks Slurm, and what no node has is neither planned nor submitted" {
    printf 'troupe: 1\nprofiles:\n  g: {executor: {cores: 1, gpu: 2}, task: {gpu: 1}}\n%s\n' \
        'stages: [{name: a, profile: g, tasks: 2, run: "true"}]' >g.yaml
    run -0 as alice head "$TROUPE" plan g.yaml
    [[ "$output" == *"what fits is what jobs of Slurm can have; --local plans for this machine"* ]]
    run -0 as alice head "$TROUPE" plan --json g.yaml
    [[ "$output" == *'"fits": 2,'*'"room": "Slurm"'* ]]
    run -3 as alice head "$TROUPE" plan --local g.yaml
    run -0 as alice head "$TROUPE" submit --print g.yaml
    sed -i 's/gpu: 2/gpu: 3/' g.yaml
    local call
    for call in plan 'submit --print' submit; do
        # shellcheck disable=SC2086 # words
        run -3 as alice head "$TROUPE" $call g.yaml
        [[ "$output" == *"g.yaml:3:3: profile g never fits here: no node of partition main is so large: gpu wanted 3, at most 2"* ]]
    done
    [ -z "$(on head squeue -h)" ]
    [ ! -e troupe-runs ]
}

@test "without slurmctld it is exit 4" {
    slurmctld_goes
    run -4 --separate-stderr submit p.yaml
    cluster heal head
    [[ "$stderr" == "troupe: sbatch: "*"slurm"* ]]
    [ ! -e troupe-runs ]
}
