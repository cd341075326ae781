# troupe submit and troupe site-shape where there is no Slurm: scripts, shapes, refusals.
load common
bats_require_minimum_version 1.5.0

site() {
    cat >site.yaml
}

one_stage() {
    pipeline <<'END'
troupe: 1
name: my weather
stages:
  - {name: a, run: "true"}
END
}

# has LINE: the script that was printed has it, alone.
has() {
    grep -qxF -- "$1" <<<"$output" || { echo "no line: $1" && echo "$output" && return 1; }
}

# none PATTERN: no line of it has that.
none() {
    if grep -E -- "$1" <<<"$output"; then return 1; fi
}

@test "a script asks for the driver's job and execs troupe run" {
    one_stage
    site <<<'{site: 1, driver: {cores: 2, memory: 3g, time: 90m, account: a, partition: p}}'
    run -0 troupe submit --print --site site.yaml --set run.grace=1s p.yaml --quiet
    [ "$(head -n 1 <<<"$output")" = "#!/bin/sh" ]
    has '#SBATCH --job-name="my weather"'
    has '#SBATCH --comment="troupe my weather"'
    has '#SBATCH --cpus-per-task=2'
    has '#SBATCH --mem=3072M'
    has '#SBATCH --time=90'
    has '#SBATCH --account=a'
    has '#SBATCH --partition=p'
    has '#SBATCH --signal=B:USR1@120'
    has '#SBATCH --requeue'
    has '#SBATCH --no-kill'
    has '#SBATCH --open-mode=append'
    # shellcheck disable=SC2016
    has 'run=my-weather-$SLURM_JOB_ID'
    [ "$(tail -n 1 <<<"$output")" = "exec $(realpath "$TROUPE_BUILD")/bin/troupe run \
--run-name=\"\$run\" --site=site.yaml --set=run.grace=1s --quiet p.yaml" ]
    sh -n <<<"$output"
    [ ! -e troupe-runs ]
}

@test "without a site file the driver has a core and 1 GiB" {
    one_stage
    run -0 troupe submit --print p.yaml
    has '#SBATCH --cpus-per-task=1'
    has '#SBATCH --mem=1024M'
    none 'time|account|partition'
}

@test "a job with less memory than its driver takes is refused" {
    one_stage
    run -2 troupe submit --print --mem=512M p.yaml
    [ "$output" = "troupe: --mem=512M: the driver takes 528 MiB (driver.memory 512 MiB, and 16 MiB for an srun), its job has 512 MiB; give it more, or set driver.memory" ]
    run -0 troupe submit --print --mem=528 p.yaml
    run -0 troupe submit --print --mem=512M --set driver.memory=400m p.yaml
    run -0 troupe submit --print --mem=1G p.yaml
    run -0 troupe submit --print --mem=0 p.yaml
    site <<<'{site: 1, driver: {memory: 512m}}'
    run -2 troupe submit --print --site site.yaml p.yaml
    [[ "$output" == "troupe: driver: memory: the driver takes 528 MiB "* ]]
}

@test "what the user says to sbatch wins, in each of its forms" {
    one_stage
    site <<<'{site: 1, driver: {cores: 2, memory: 3g, time: 90m, account: a, partition: p}}'
    run -0 troupe submit --print --site site.yaml -p gpu -Aother --time 2:00:00 \
        -J name -HQ --signal=USR2@60 --comment='a "b" \c #d' --no-requeue p.yaml
    has '#SBATCH --partition=gpu'
    has '#SBATCH --account=other'
    has '#SBATCH --time=2:00:00'
    has '#SBATCH --job-name=name'
    has '#SBATCH --hold'
    has '#SBATCH --quiet'
    has '#SBATCH --signal=USR2@60'
    has '#SBATCH --comment="a \"b\" \\c #d"'
    has '#SBATCH --mem=3072M'
    [ "$(grep -cE '^#.*(partition|account|time|job-name|signal|requeue)' <<<"$output")" = 6 ]
}

@test "who asks for room has all of it from sbatch's options" {
    one_stage
    for option in -N4 --mem=4g --exclusive "-n 8" --gpus=1 -c2; do
        # shellcheck disable=SC2086
        run -0 troupe submit --print $option p.yaml
        [ "$(grep -cE '^#.*(ntasks|nodes|cpus|mem|exclusive|gpus)' <<<"$output")" = 1 ]
    done
}

@test "a stage profile is the job's shape, and says where it goes" {
    one_stage
    site <<<'{site: 1, driver: {cores: 2, memory: 3g, time: 90m, account: a, partition: p}}'
    run -0 troupe submit --print --site site.yaml --stage-profile small p.yaml
    has '#SBATCH --stage-profile=small'
    has '#SBATCH --time=90'
    [ "$(grep -cE '^#.*(ntasks|cpus|mem|account|partition)' <<<"$output")" = 0 ]
}

@test "a short job gets no signal at its begin" {
    one_stage
    for time in 4 4:59 0:4:59 0-0:4; do
        run -0 troupe submit --print --time $time p.yaml
        none signal
    done
    for time in 5 5:00 0:5:00 0-1 1-0 UNLIMITED; do
        run -0 troupe submit --print --time $time p.yaml
        has '#SBATCH --signal=B:USR1@120'
    done
}

@test "a job that is short by SBATCH_TIMELIMIT gets no signal either" {
    one_stage
    site <<<'{site: 1, driver: {time: 90m}}'
    SBATCH_TIMELIMIT=1 run -0 troupe submit --print p.yaml
    none signal
    SBATCH_TIMELIMIT=1 run -0 troupe submit --print --site site.yaml p.yaml
    none signal
    SBATCH_TIMELIMIT=1 run -0 troupe submit --print --time 60 p.yaml # which wins
    has '#SBATCH --signal=B:USR1@120'
    SBATCH_TIMELIMIT=1 run -0 troupe submit --print --time 60 : -N1 p.yaml # there it does not
    none signal
    SBATCH_TIMELIMIT=60 run -0 troupe submit --print --time 1 p.yaml
    none signal
}

@test "components of a heterogeneous job stand apart" {
    one_stage
    run -0 troupe submit --print -N1 : -N2 --gpus=4 p.yaml
    [ "$(grep -A2 hetjob <<<"$output")" = \
        $'#SBATCH hetjob\n#SBATCH --nodes=2\n#SBATCH --gpus=4' ]
}

# In a job that Slurm starts again `troupe run` itself goes on with its run.
@test "the script knows nothing of restarts" {
    one_stage
    run -0 troupe submit --print --run-name x --set=task.cpus='1' p.yaml
    has 'run=x'
    has '#SBATCH --comment="troupe x"'
    [[ "$output" == *'troupe run --run-name="$run" --set=task.cpus=1 p.yaml' ]]
    run -0 troupe submit --print -- /bin/echo "it's" -p x
    [[ "$output" == *" -- /bin/echo 'it'\\''s' -p x" ]]
    none resume
    none RESTART
}

@test "wrong calls are exit 2 and say what to do" {
    one_stage
    check 2 "no pipeline file and no application" troupe submit -p main
    check 2 "two words that are no options, a and p.yaml; write an option's value behind =" \
        troupe submit --of-a-plugin a p.yaml
    check 2 "--time needs a value" troupe submit p.yaml --time
    check 2 "unknown option -j of -j" troupe submit -j p.yaml
    check 2 "--array does not go with a run" troupe submit --array=1-4 p.yaml
    check 2 "--resume goes on under the run's own name" \
        troupe submit --resume x --run-name y
    check 2 "x is no run" troupe submit --resume x
    check 2 "--print takes no value" troupe submit --print=x p.yaml
    check 2 "^troupe: q.yaml: cannot be read" troupe submit --print q.yaml
    check 2 "nowhere: No such file" troupe submit --print -D nowhere p.yaml
    check 0 "^usage: troupe submit" troupe submit --help
}

@test "what has a line break gets into no script and no shape" {
    one_stage
    check 2 '^troupe: submit: --comment=a\?b: a line break .*; write it in one line$' \
        troupe submit --print --comment $'a\nb' p.yaml
    check 2 "^troupe: submit: --a\?b=c: a line break" troupe submit --print $'--a\rb=c' p.yaml
    check 2 '^troupe: submit: --output=.*a\?b/x/job-%j.out: a line' \
        troupe submit --runs-dir $'a\nb' --run-name x p.yaml
    [ ! -e $'a\nb/x' ]
    printf 'troupe: 1\nname: |\n  nightly\n  #SBATCH --hold\nstages: [{name: a, run: "true"}]\n' >p.yaml
    check 2 "^troupe: submit: --job-name=nightly\?#SBATCH --hold\?: a line break" \
        troupe submit --print p.yaml
    [ "${#lines[@]}" = 1 ]
    site <<<'{site: 1, scratch: "/tmp/x\nlimit time 1", profiles: {a: {executor: {cores: 1}}}}'
    check 2 "^troupe: site-shape: .scratch /tmp/x\?limit time 1. has a line break" \
        troupe site-shape --all --site site.yaml --output shapes
    [ ! -e shapes ]
    site <<<'{site: 1, resources: {lic: {slurm: "license:matlab", env: "A B"}}}'
    check 2 "^troupe: site.yaml:1:59: .A B. is not a variable's name" troupe site-shape --all --site site.yaml
}

@test "what the site does not allow is exit 3 before anything is submitted" {
    pipeline <<'END'
troupe: 1
profiles:
  card: {executor: {cores: 1, fpga: 1}, task: {fpga: 1}}
  wide: {executor: {cores: 64}}
stages:
  - {name: a, profile: card, run: "true"}
END
    check 3 "^troupe: p.yaml:3:3: profile card cannot be had from Slurm: resource fpga is nothing" \
        troupe submit p.yaml
    site <<<'{site: 1, resources: {fpga: {slurm: "gres:fpga"}}, limits: {deny: [fpga]}}'
    check 3 "resource fpga is denied at site.yaml:1:67; ask for another one" \
        troupe submit --site site.yaml p.yaml
    sed -i 's/profile: card/profile: wide/' p.yaml
    site <<<'{site: 1, route: [{when: {cores: "<64"}, partition: p}]}'
    check 3 "^troupe: p.yaml:4:3: .*no route at site.yaml:1:11 takes it \(cores 64, memory 1126 MiB\)" \
        troupe submit --site site.yaml p.yaml
    run -0 troupe submit --print --local --site site.yaml p.yaml
    [ ! -e troupe-runs ]
}

@test "no sbatch is exit 4, and nothing is left" {
    one_stage
    PATH=/nowhere run -4 "$TROUPE_BUILD/bin/troupe" submit p.yaml
    [[ "$output" == "troupe: sbatch is not in PATH"* ]]
    [ ! -e troupe-runs ]
}

@test "a site's profile is shown as Slurm's options" {
    site <<'END'
site: 1
resources:
  gpu: {slurm: "gres:gpu:a100"}
  lic: {slurm: "license:matlab"}
memory: {overhead_factor: 0.25}
route:
  - {when: {gpu: ">0"}, partition: gpu, qos: high}
  - {partition: cpu}
nodes: exclusive
profiles:
  gpu-small: {executor: {cores: 4, memory: 16g, gpu: 1, lic: 2}, task: {cpus: 4, gpu: 1}}
  odd: {executor: {cores: 1, fpga: 1}}
END
    run -0 troupe site-shape --site site.yaml gpu-small
    [ "$output" = "cpus-per-task=4
mem=20480M
gres=gpu:a100:1
licenses=matlab:2
partition=gpu
qos=high" ]
    run -0 troupe site-shape --json --site site.yaml gpu-small
    [ "$(json '$$d{options}{gres}' <<<"$output")" = gpu:a100:1 ]
    [ "$(json '$$d{name}' <<<"$output")" = gpu-small ]
    check 2 'unknown profile "gpu-smal"; did you mean "gpu-small"\?' \
        troupe site-shape --site site.yaml gpu-smal
    check 2 'unknown profile "zzz"; there are: gpu-small, odd' \
        troupe site-shape --site site.yaml zzz
    check 3 "^troupe: site.yaml:12:3: resource fpga is nothing" \
        troupe site-shape --site site.yaml odd
    check 2 "takes one NAME" troupe site-shape a b
    check 2 "no NAME" troupe site-shape
}

@test "all shapes go into a file, which a wrong site file leaves as it is" {
    site <<'END'
site: 1
resources: {lic: {slurm: "license:matlab"}, big: {slurm: "constraint:big", countable: false}}
scratch: /var/tmp/x
limits: {time: 90m, deny: [gpu]}
profiles:
  a: {executor: {cores: 2, memory: 1g, memoryOverhead: 0, lic: 2, big: 1}}
  b: {executor: {cores: 1, gpu: 1}}
END
    run -0 troupe site-shape --all --site site.yaml
    [ "$output" = "troupe-shapes 1
# Made by \`troupe site-shape --all\` from site.yaml; do not edit.
scratch /var/tmp/x
limit time 90
limit deny gres gpu
profile a
option cpus-per-task 2
option mem 1024M
option licenses matlab:2
option constraint big
resource big constraint 1 -
resource lic license 2 -
profile b
never resource gpu is denied at site.yaml:4:27; ask for another one
end" ]
    echo "$output" >wanted
    (umask 077 && troupe site-shape --all --site site.yaml --output shapes)
    cmp shapes wanted
    [ "$(stat -c %a shapes)" = 644 ] # for everybody's srun
    sed -i 's/^limits/limtis/' site.yaml
    check 2 "^troupe: site.yaml:4:1: " troupe site-shape --all --site site.yaml --output shapes
    cmp shapes wanted
    sed -i 's/^limtis/limits/' site.yaml
    check 4 "no/shapes: cannot be written: No such file" \
        troupe site-shape --all --site site.yaml --output no/shapes
    check 2 "takes neither a NAME nor --json" troupe site-shape --all a
    check 2 "takes neither a NAME nor --json" troupe site-shape --all --json
    check 2 "--output is for --all" troupe site-shape --output x a
    [ "$(echo *)" = "shapes site.yaml wanted" ]
}

@test "a route that no request reaches is told where plans are made" {
    one_stage
    site <<<'{site: 1, route: [{partition: a}, {partition: b}]}'
    check 0 "^troupe: site.yaml:1:35: warning: this route can never match: the one at line 1 comes first" \
        troupe plan --site site.yaml p.yaml
}

@test "a plan says what profiles and gangs become in Slurm" {
    pipeline <<'END'
troupe: 1
profiles:
  big: {executor: {cores: 2, memory: 1g, memoryOverhead: 1g}, task: {cpus: 2}}
  odd: {executor: {cores: 1, fpga: 1}}
stages:
  - {name: a, profile: big, mpi: {ranks: 3}, run: "true"}
END
    site <<<'{site: 1, route: [{partition: cpu}]}'
    run -0 troupe plan --local=8 --site site.yaml p.yaml
    [[ "$output" == *$'\nbig              --nodes=1 --ntasks=1 --cpus-per-task=2 --mem=2048M\n                 --partition=cpu\n'* ]]
    [[ "$output" == *$'\ngang of stage a  --ntasks=3 --cpus-per-task=2 --mem-per-cpu=1024M\n                 --partition=cpu'* ]]
    [[ "$output" == *$'\nodd              never: resource fpga is nothing'* ]]
    run -0 troupe plan --json --local=8 --site site.yaml p.yaml
    [ "$(json '$$d{profiles}[1]{slurm}{mem}' <<<"$output")" = 2048M ]
    [ "$(json '$$d{profiles}[2]{slurm}' <<<"$output")" = null ]
    [[ "$(json '$$d{profiles}[2]{slurm_never}' <<<"$output")" == "resource fpga"* ]]
    [ "$(json '$$d{stages}[0]{slurm}{ntasks}' <<<"$output")" = 3 ]
}

@test "the site file that is shipped means what its comments say" {
    local site=$TROUPE_SOURCE/slurm-conf/site.yaml name want
    [ "$(grep -cE '^  # [a-z0-9-]+: cpus-per-task=' "$site")" = \
        "$(grep -cE '^  [a-z0-9-]+: \{executor' "$site")" ]
    while read -r name want; do
        run -0 --separate-stderr troupe site-shape --site "$site" "${name%:}"
        # shellcheck disable=SC2086
        [ "$output" = "$(printf '%s\n' $want)" ] || {
            echo "$name wanted $want, got $output"
            return 1
        }
        [ -z "$stderr" ]
    done < <(sed -n 's/^  # \([a-z0-9-]*: cpus-per-task=.*\)/\1/p' "$site")
    run -0 --separate-stderr troupe topo --site "$site" --json
    [ "$(json 'join ",", @{$$d{racks}[0]{hosts}[0]{devices}{gpu}}' <<<"$output")" = 0,1 ]
}
