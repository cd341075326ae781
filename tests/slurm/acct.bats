#!/usr/bin/env bats
# A cluster with accounting: what sacct and squeue have of a run, `troupe report --sacct`,
# and what Slurm refuses for an account.
load slurm.bash

setup_file() {
    cluster_up -n 2 --fast --dbd
    # shellcheck disable=SC2154 # set by cluster_up
    export weather=$shared/weather
    mkdir -m 777 "$weather"
    cd "$weather"
    play
}

# submitted USER OPTION…: a run of p.yaml, until it is over; sbatch's own --wait looks too
# rarely. Sets $job.
submitted() {
    local user=$1
    shift
    job=$(as "$user" head "$TROUPE" submit --parsable "$@" p.yaml)
    wait_until job_is_over "$job"
}

# The run that most tests look at: two executors and a gang in the driver's job, an
# executor in an additional one.
play() {
    cat >p.yaml <<'END'
troupe: 1
name: weather
profiles:
  small: {executor: {cores: 1, memory: 200m, memoryOverhead: 56m}, task: {cpus: 1}}
  pair: {executor: {cores: 1, memory: 200m, memoryOverhead: 56m}, task: {cpus: 1}}
  wide: {executor: {cores: 4, memory: 200m, memoryOverhead: 56m}, task: {cpus: 4}}
stages:
  - name: split
    tasks: 2
    profile: small
    run: exec perl -e '$x = "x" x 60e6; $until = time + 3; 1 while time < $until'
  - name: solve
    after: [split]
    profile: pair
    mpi: {ranks: 2}
    run: |
      squeue -h -s -u alice -o %j >steps
      exec perl -e '$x = "x" x 60e6; $until = time + 3; 1 while time < $until'
  - name: join
    after: [solve]
    profile: wide
    run: |
      squeue -h -s -u alice -o %j >>steps
      squeue -h -u alice -o '%j, %k' >jobs
END
    submitted alice -w node1 -N1 -n1 -c3 --mem=2000 --run-name acct
    export job
}

# has_rows RUN N: so many steps of the run are in the account database, and over. Slurm's
# accounting is a few seconds late.
has_rows() {
    [ "$(on head sacct -n -P -a --format=JobName,State | grep "^$1:" |
        grep -cv ':guard|\||RUNNING')" = "$2" ]
}

report() {
    as alice head "$TROUPE" report "$@"
}

# of_json EXPRESSION: of the report $r in the file report.json, a value a line.
of_json() {
    perl -MJSON::PP -0777 -e '
        my $r = decode_json(<STDIN>)->{starts}[0];
        my @v = eval $ARGV[0];
        die $@ if $@;
        print map { "$_\n" } @v;' "$1" <report.json
}

@test "the account database is nobody else's: no port, no other user" {
    run -0 on head ss -Hltn
    [ "$(awk '{ print $4 }' <<<"$output" | sort)" = $'0.0.0.0:6817\n0.0.0.0:6819' ]
    [ "$(on head ps -o user= -C mariadbd,slurmdbd | sort -u)" = slurm ]
    on head test -S /run/mysqld/mysqld.sock
    run ! as alice head test -e /run/mysqld/mysqld.sock
}

@test "sacct and squeue show run, profile and stage of each step and job" {
    wait_until has_rows acct 4
    cd "$weather"
    run -0 on head sacct -n -P -a --format=JobName
    grep -qx 'acct:small.[01]' <<<"$output"
    [ "$(grep -c '^acct:small\.[01]$' <<<"$output")" = 2 ]
    grep -qx 'acct:pair:solve.0' <<<"$output"
    grep -qx 'acct:wide.[0-9]*' <<<"$output"
    run -0 on head sacct -n -P -a -X --format=JobName,Comment,Account
    grep -qx 'weather|troupe acct|project' <<<"$output"
    grep -qx "troupe acct|troupe acct of job $job|project" <<<"$output"
    grep -qx 'acct:pair:solve.0' steps
    grep -qx 'acct:wide.[0-9]*' steps
    grep -qx 'weather, troupe acct' jobs
    grep -qx "troupe acct, troupe acct of job $job" jobs
    # The event log knows them, too.
    grep -q "\"TroupeSlurmJob\",\"Job ID\":$job,\"Further\":false" troupe-runs/acct/events.jsonl
    grep -q '"TroupeSlurmJob".*"Further":true' troupe-runs/acct/events.jsonl
    [ "$(grep -c '"TroupeSlurmStep"' troupe-runs/acct/events.jsonl)" = 4 ]
}

# columns: of the summary those that count; seconds stand in a part of their own.
columns() {
    awk '/^stage / { on = !seen++ } /^$/ { on = 0 } on { print $1, $2, $3, $4, $5 }' |
        sed -E 's/^total.*/total/'
}

@test "report prints the run's closing summary again" {
    cd "$weather"
    run -0 report acct
    [[ "${lines[0]}" =~ ^"weather, started 20"[0-9]+-.*", exit status 0"$ ]]
    # Times may differ by the last digit: the log has milliseconds.
    diff <(columns <troupe-runs/acct/job-*.out) <(columns <<<"$output")
    [ "$(columns <<<"$output" | wc -l)" = 5 ]
    [[ "$output" =~ "Slurm: "[0-9]+" RPCs of ours, about "[0-9]+" by srun ("[0-9]+" steps)" ]]
}

@test "report --sacct has Slurm's figures beside ours, and they are the same" {
    wait_until has_rows acct 4
    cd "$weather"
    run -0 report --sacct
    [[ "$output" =~ "Slurm's accounting of jobs "[0-9]+", "[0-9]+" (additional)" ]]
    [[ "$output" =~ small" "+2" " ]]
    [[ "$output" =~ total" "+4" "  ]]
    [[ "$output" != *" here; "* ]]
    run -0 --separate-stderr report --sacct --json
    echo "$output" >report.json
    # shellcheck disable=SC2016 # the words of Perl
    {
        run -0 of_json 'map {; "$_->{profile} $_->{steps} $_->{completed}" } @{$r->{sacct}{profiles}}'
        [ "$output" = $'small 2 2\npair 1 1\nwide 1 1' ]
        # Slurm has whole seconds at both ends of a step, and counts the executor's start: more
        # than we do, and not more than there were of its job.
        local elapsed
        elapsed=$(on head sacct -n -P -a -X -j "$job" --format=ElapsedRaw)
        run -0 of_json 'grep { my $cores = {small => 1, pair => 2, wide => 4}->{$_->{profile}};
            my $slurm = $_->{slurm}{core_seconds} / $cores;
            $slurm < $_->{ours}{core_seconds} / $cores - 1 || $slurm > '"$elapsed"' + 1
            } @{$r->{sacct}{steps}}'
        [ -z "$output" ]
        # An executor and its mpirun use a little as well.
        run -0 of_json 'map { $_->{slurm}{cpu} - $_->{ours}{cpu} } @{$r->{sacct}{steps}}'
        [ "$(awk '$1 >= -0.05 && $1 <= 1.5' <<<"$output" | wc -l)" = 4 ]
        # Of the gang it is the ranks', not srun's.
        run -0 of_json 'grep { $_->{profile} ne "wide" && ($_->{ours}{cpu} < 0.3 ||
            $_->{ours}{peak_mib} < 57 || $_->{slurm}{peak_mib} < 57) } @{$r->{sacct}{steps}}'
        [ -z "$output" ]
        [ "$(of_json '$r->{sacct}{lacking} + $r->{sacct}{open}')" = 0 ]
    }
}

@test "how steps ended is compared, too" {
    cat >p.yaml <<'END'
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - {name: fat, profile: small, retries: {max_failures: 1}, run: "perl -e '$x = \"x\" x 300e6'"}
  - {name: bad, profile: small, retries: {max_failures: 1}, mpi: {ranks: 1}, run: "exit 3"}
END
    # (Of two ranks Slurm may have cancelled the second, and then tells that of the step.)
    submitted alice -N1 -n1 -c3 --mem=2000 --run-name ends --keep-going
    grep '"Troupe Reason":"exit status 3"' troupe-runs/ends/events.jsonl
    grep '"Troupe Reason":"killed for memory' troupe-runs/ends/events.jsonl
    wait_until has_rows ends 2
    run -0 --separate-stderr report --sacct --json ends
    echo "$output" >report.json
    # shellcheck disable=SC2016 # the words of Perl
    run -0 of_json 'map {; "$_->{end} $_->{slurm}{state} $_->{slurm}{exit}" }
        grep { $_->{name} eq "ends:small:bad.0" } @{$r->{sacct}{steps}}'
    [ "$output" = "exit status 3 FAILED 3" ]
    # The executor outlives its task; Slurm says of its step that something was killed there.
    run -0 report --sacct ends
    [[ "$output" =~ "step "[0-9]+.[0-9]+", ends:small.0: ended well here; OUT_OF_MEMORY, exit 0:125, in Slurm" ]]
    [[ "$output" != *"bad.0:"* ]]
}

@test "what sacct does not have is one line and exit 4, after the summary" {
    cd "$weather"
    local ghost='{"Event":"TroupeSlurmStep","Job ID":999999,"Step Name":"acct:ghost.9","Executor ID":"9","Timestamp":1}'
    local at='"Executor ID":"9","Timestamp":1'
    {
        grep -v ApplicationEnd troupe-runs/acct/events.jsonl
        echo "$ghost"
        echo "{\"Event\":\"SparkListenerExecutorAdded\",$at,\"Executor Info\":{\"Total Cores\":1,\"Resource Profile Id\":0}}"
        echo "{\"Event\":\"SparkListenerExecutorRemoved\",$at,\"Removed Reason\":\"released\"}"
    } | sed 's/"Timestamp":1\([,}]\)/"Timestamp":1900000000000\1/' >events.jsonl
    run -4 --separate-stderr report --sacct events.jsonl
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" == "troupe: sacct has no row, or none that is over, of 1 of 5 steps; the first: acct:ghost.9 in job 999999; "* ]]
    [[ "$output" == *"total"*"Slurm's accounting of job"*"total"* ]]
}

@test "without accounting, or without slurmdbd, report --sacct is exit 4 in Slurm's words" {
    cd "$weather"
    grep -v AccountingStorage /var/lib/troupe-slurm/"$TROUPE_CLUSTER"/etc/slurm.conf >none.conf
    run -4 --separate-stderr as alice head env SLURM_CONF="$PWD/none.conf" \
        "$TROUPE" report --sacct
    [ "$stderr" = "troupe: sacct: Slurm accounting storage is disabled" ]
    [[ "$output" == *"total"*"core-seconds:"*"events: "* ]]
    on head pkill slurmdbd
    gone() { run ! on head pgrep -x slurmdbd; }
    wait_until gone
    run -4 --separate-stderr report --sacct
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" == "troupe: sacct: "*"onnection refused"* ]]
    [[ "$output" == *"total"*"core-seconds:"*"events: "* ]]
    cluster heal head
    run -0 report --sacct
}

# one_stage: a stage of two executors, or a gang, for which an additional job is asked.
one_stage() {
    cat >p.yaml <<END
troupe: 1
profiles:
  one: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - {name: s, profile: one, $1, run: "true"}
END
}

# of_account NAME: $job is in the database, with success.
of_account() {
    [ "$(on head sacct -n -P -a -X -j "$job" --format=Account,State)" = "$1|COMPLETED" ]
}

@test "an account or a QOS that the user has not: submit ends with 3 and Slurm's words" {
    one_stage 'tasks: 2'
    for account in nosuch other; do
        run -3 as alice head "$TROUPE" submit --account $account p.yaml
        [ "$output" = "troupe: sbatch: Batch job submission failed: Invalid account or account/partition combination specified" ]
    done
    run -3 as alice head "$TROUPE" submit --qos nosuch p.yaml
    [ "$output" = "troupe: sbatch: Batch job submission failed: Invalid qos specification" ]
    # shellcheck disable=SC2012
    [ -z "$(ls troupe-runs 2>/dev/null)" ]
    # bob has it.
    submitted bob --account other -n1 -c2 --mem=1000
    wait_until of_account other
}

# refused TASKS RULE WORDS: of additional jobs, by the site's rule.
refused() {
    one_stage "$1"
    printf 'site: 1\nroute:\n  - {%s}\n' "$2" >site.yaml
    submit alice -N1 -n1 -c1 --mem=700 -- \
        "$TROUPE" run --site site.yaml --set alloc.placement=jobs p.yaml
    run -3 finished
    [[ "$output" == *"troupe: p.yaml:5:"*": stage s: Slurm: $3 (an additional job was asked for: "*", $4, by "*"/site.yaml:3:5)"* ]]
    [ -z "$(on head squeue -h -u alice)" ]
}

@test "the same in a rule of the site: the run ends with 3, Slurm's words and the rule" {
    local wrong="Invalid account or account/partition combination specified"
    refused 'tasks: 2' 'account: nosuch' "$wrong" 'partition main, account nosuch'
    refused 'tasks: 2' 'account: other' "$wrong" 'partition main, account other'
    refused 'mpi: {ranks: 2}' 'account: other' "$wrong" 'partition main, account other'
    refused 'tasks: 2' 'account: project, qos: nosuch' "Invalid qos specification" \
        'partition main, account project, QOS nosuch'
    nothing_left node1 node2
}

@test "with room inside such a rule does no harm" {
    one_stage 'tasks: 2'
    printf 'site: 1\nroute:\n  - {account: other}\n' >site.yaml
    submit alice -N1 -n1 -c2 --mem=1500 -- "$TROUPE" run --site site.yaml p.yaml
    run -0 finished
}

@test "down leaves nothing of it" {
    local database
    database=$(pgrep -x mariadbd | while read -r pid; do
        ! grep -q "/troupe-slurm-$TROUPE_CLUSTER/" "/proc/$pid/cgroup" || echo "$pid"
    done)
    [ -n "$database" ]
    cluster down
    [ ! -d "/proc/$database" ] || grep -q '^State:.Z' "/proc/$database/status"
    [ ! -e "/var/lib/troupe-slurm/$TROUPE_CLUSTER" ]
    [ -z "$(grep -lsE "/troupe-slurm-$TROUPE_CLUSTER(/|\$)" /proc/[0-9]*/cgroup)" ]
}
