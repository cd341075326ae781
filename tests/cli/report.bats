# troupe report where there is no Slurm: a run's summary once more, wrong calls, an sacct
# that prints what it should not.
load common
bats_require_minimum_version 1.5.0

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

a_run() {
    pipeline <<'END'
troupe: 1
name: weather
stages:
  - {name: split, tasks: 3, run: "echo split"}
  - {name: join, after: [split], retries: {max_failures: 1}, run: "exit 3"}
END
    run -1 --separate-stderr troupe run --local=2 --run-name r p.yaml
}

# columns: of the table, but for times, which the log has in milliseconds. With long ones it
# is too wide, and goes on in a second table.
columns() {
    awk '/^(split|join|total) / && !seen[$1]++ {
        print $1, $2, $3, $4, $1 == "total" ? "" : $5, $NF == "failed"
    }' <<<"$output"
}

@test "report prints the summary of a run, by its name, folder or event log" {
    a_run
    local then shown
    then=$(columns)
    for shown in "" r last troupe-runs/r "$PWD/troupe-runs/r" troupe-runs/r/events.jsonl; do
        # shellcheck disable=SC2086
        run -0 troupe report $shown
        [[ "${lines[0]}" =~ ^"weather, started 20".*", exit status 1"$ ]]
        output=${output#*$'\n'}
        [ "$(columns)" = "$then" ]
        if [[ $shown == *.jsonl ]]; then
            [[ "$output" != *logs:* ]]
        else
            [[ "$output" == *"logs: $PWD/troupe-runs/r/logs"$'\n'"events: $PWD/troupe-runs/r/events.jsonl" ]]
        fi
    done
}

@test "report says what a log lacks" {
    a_run
    grep -v SparkListenerApplicationStart troupe-runs/r/events.jsonl >cut
    run -0 --separate-stderr troupe report cut
    [ "${lines[0]}" = "?, started ?, exit status 1" ]
    [ "$stderr" = "troupe: warning: cut has no SparkListenerApplicationStart: the application's name and start are not known" ]
    run -0 --separate-stderr troupe report
    [ -z "$stderr" ]
}

@test "a run that was resumed has a summary for each of its starts" {
    a_run
    sed -i 's/exit 3/exit 0/' p.yaml
    run -0 troupe run --local=2 --resume r p.yaml
    run -0 troupe report r
    [[ "${lines[0]}" == "weather, started "*" (1 of 2), exit status 1" ]]
    [ "$(grep -c '^weather, started .* (2 of 2), exit status 0$' <<<"$output")" = 1 ]
    run -0 troupe report --json r
    [ "$(json 'join " ", map {; $_->{exit} . ":" . @{$_->{stages}} } @{$d->{starts}}' <<<"$output")" = "1:2 0:1" ]
}

@test "report --json has what the text has" {
    a_run
    run -0 troupe report --json
    [ "$(json '$d->{events}' <<<"$output")" = "$PWD/troupe-runs/r/events.jsonl" ]
    [ "$(json 'join " ", map {; "$_->{name} $_->{profile} $_->{tasks} $_->{attempts} $_->{failed} $_->{outcome}" } @{$d->{starts}[0]{stages}}' \
        <<<"$output")" = "split default 3 3 0 succeeded join default 1 1 1 failed" ]
    [ "$(json '$d->{starts}[0]{total}{attempts}' <<<"$output")" = 4 ]
    [ "$(json '$d->{starts}[0]{sacct}' <<<"$output")" = null ]
    [ "$(json '0 + @{$d->{starts}[0]{jobs}}' <<<"$output")" = 0 ]
}

@test "numbers in JSON have the digits that they are written with" {
    a_run
    # of no more than 15 digits: a double has no more of what was written
    local number='(^|[^0-9."])(0\.0*|[1-9][0-9]*\.)[0-9]{16,}'
    run -0 troupe report --json r
    [[ "$output" == *'"wall":'* ]]
    [ "$(grep -oE "$number" <<<"$output")" = "" ]
    pipeline <<'END'
troupe: 1
default: {executor: {cores: 1, gpu: 1}, task: {gpu: 0.1}}
stages: [{name: s, run: "true"}]
END
    printf 'site: 1\nlocal: {gpu: ["0"]}\n' >site.yaml
    run -0 troupe plan --site site.yaml --json p.yaml
    [[ "$output" =~ \"gpu\":\ 0.1[^0-9] ]]
}

@test "report --json has what a run was made of" {
    a_run
    run -0 troupe report --json
    local ours=$output
    of() { json "my \$s = \$d->{starts}[0]; $1" <<<"$ours"; }
    [ "$(of '"$s->{actions}[0]{outcome} @{$s->{actions}[0]{stages}}"')" = "failed 0 1" ]
    [ "$(of '$s->{ended} >= $s->{started} + 1000 * $s->{total}{wall} - 1 ? 1 : 0')" = 1 ]
    [ "$(of '$s->{profiles}[0]{name}')" = default ]
    [ "$(of '$s->{profiles}[0]{task}{cpus}')" = 1 ]
    [ "$(of 'join " ", map {; "$_->{id} $_->{attempt} $_->{succeeded} $_->{failed}" } map {; my $x = $_; map {; +{%$_, id => $x->{id}} } @{$x->{tries}} } @{$s->{stages}}')" = "0 0 3 0 1 0 0 1" ]
    [ "$(of '$s->{stages}[1]{tries}[0]{reason} =~ /./ ? 1 : 0')" = 1 ]
    # all tasks ran on these executors
    [ "$(of 'my ($n, $m) = (0, 0); $n += $_->{succeeded} + $_->{failed}, $m += $_->{reason} eq "released" for @{$s->{executors}}; "$n " . ($m == @{$s->{executors}} ? "all" : $m)')" = "4 all" ]
    [ "$(json '$d->{starts}[0]{app_id}' <<<"$ours")" = "$(basename "$(find troupe-runs/.history -type l)")" ]
}

# two_runs: r fails where s succeeds, with other stages and more tasks.
two_runs() {
    a_run
    pipeline <<'END'
troupe: 1
name: weather
stages:
  - {name: split, tasks: 5, run: "sleep 0.3"}
  - {name: join, after: [split], run: "true"}
  - {name: "new", after: [join], run: "true"}
END
    run -0 --separate-stderr troupe run --local=2 --run-name s p.yaml
}

@test "two runs are compared stage by stage, by name, folder or event log" {
    two_runs
    local pair shown
    for pair in "r s" "troupe-runs/r last" "troupe-runs/r/events.jsonl s"; do
        # shellcheck disable=SC2086
        run -0 troupe report $pair
        local words
        words=$(tr -s '\n ' ' ' <<<"$output")
        [[ "$words" =~ ^"A: ".*"r"("/events.jsonl")?", weather, started 20".*", exit status 1 B: s, weather, started 20".*", exit status 0" ]]
        # each part of the table has each stage, those first that changed most
        [ "$(awk '$1 == "split" || $1 == "total" { print $1 }' <<<"$output" | uniq -c | awk '{ print $1, $2 }' | sort -u)" = $'1 split\n1 total' ]
        [ "$(awk '$1 == "stage" { getline; print $1 }' <<<"$output" | sort -u)" = split ]
        shown=$(grep -E '^(split|join|new) .*(succeeded|failed|-) ' <<<"$output" | awk '{ print $1, $2, $3 }' | sort)
        [ "$shown" = $'join failed succeeded\nnew - succeeded\nsplit succeeded succeeded' ]
        grep -qE '^slower: split \+[0-9.]+m?s \(' <<<"$output"
        grep -qE '^held more: split \+' <<<"$output"
        grep -qx 'only in B: new' <<<"$output"
        [[ "$words" == *"note: split has 3 tasks in A, 5 in B: times of tasks compare"* ]]
        [[ "$words" == *"note: join ended otherwise in A (failed) than in B (succeeded)"* ]]
        [[ "$output" == *$'\nin all: wall +'* ]]
        [ "$(perl -CSD -ne 'chomp; print if length > 80' <<<"$output")" = "" ]
        run ! grep 'only in A' <<<"$output"
    done
    run -0 troupe report s r
    grep -qE '^quicker: split -[0-9.]+m?s' <<<"$output"
    grep -qx 'only in A: new' <<<"$output"
}

@test "what did not run, or failed, in one of the runs is neither quicker nor slower" {
    pipeline <<'END'
troupe: 1
stages:
  - {name: a, run: "[ -e fail ] && exit 3; sleep 0.2"}
  - {name: b, after: [a], run: sleep 0.2}
END
    run -0 troupe run --local=2 --run-name r p.yaml
    touch fail
    run -1 troupe run --local=2 --run-name s p.yaml
    run -0 troupe report r s
    grep -qx 'quicker: nothing' <<<"$output"
    grep -q 'b ended otherwise\|and others did, too' <<<"$output"
    run -0 troupe report s r
    grep -qx 'slower: nothing' <<<"$output"
}

@test "a run compared with itself has not changed" {
    a_run
    run -0 troupe report r r
    grep -qx 'slower: nothing' <<<"$output"
    grep -qx 'quicker: nothing' <<<"$output"
    grep -qx 'held more: nothing' <<<"$output"
    run ! grep -E '^(note|only)' <<<"$output"
    run -0 troupe report --json r r
    [ "$(json 'join " ", map {; $_->{difference}{wall} + $_->{difference}{held}{cores} } @{$d->{stages}}, $d->{total}' <<<"$output")" = "0 0 0" ]
}

@test "report --json of two runs has both and what differs" {
    two_runs
    run -0 troupe report --json r s
    local ours=$output
    of() { json "my %s = map {; \$_->{name} => \$_ } @{\$d->{stages}}; $1" <<<"$ours"; }
    [ "$(of '"$d->{a}{run} $d->{a}{exit} $d->{b}{run} $d->{b}{exit}"')" = "r 1 s 0" ]
    [ "$(of '$s{split}{difference}{tasks}')" = 2 ]
    [ "$(of '$s{join}{difference}{failed}')" = -1 ]
    [ "$(of '"$s{join}{a}{outcome} $s{join}{b}{outcome}"')" = "failed succeeded" ]
    [ "$(of '$s{new}{a}')$(of '$s{new}{difference}')" = nullnull ]
    [ "$(of 'abs($s{split}{b}{wall} - $s{split}{a}{wall} - $s{split}{difference}{wall}) < 1e-6 ? 1 : 0')" = 1 ]
    [ "$(of 'abs($d->{total}{b}{held}{cores} - $d->{total}{a}{held}{cores} - $d->{total}{difference}{held}{cores}) < 1e-6 ? 1 : 0')" = 1 ]
    [ "$(of '0 + grep(/3 tasks in A, 5 in B/, @{$d->{notes}})')" = 1 ]
    # the figures are those of each alone
    [ "$(of '$s{split}{a}{wall}')" = "$(troupe report --json r | json '$d->{starts}[0]{stages}[0]{wall}')" ]
}

@test "starts of a run count together in a comparison" {
    a_run
    cp -r troupe-runs/r troupe-runs/s
    sed -i 's/exit 3/exit 0/' p.yaml
    run -0 troupe run --local=2 --resume r p.yaml
    run -0 troupe report s r
    [[ "$(tr -s '\n ' ' ' <<<"$output")" == *" B: r, weather, started "*", exit status 0, all its starts together "* ]]
    run -0 troupe report --json s r
    [ "$(json '"$d->{a}{starts} $d->{b}{starts} $d->{total}{difference}{attempts} $d->{total}{difference}{tasks}"' <<<"$output")" = "1 2 1 0" ]
}

@test "runs that do not compare are told so" {
    a_run
    pipeline <<'END'
troupe: 1
name: other
stages: [{name: alone, run: "true"}]
END
    run -0 --separate-stderr troupe run --local=2 --run-name s p.yaml
    sed '$d' troupe-runs/s/events.jsonl >open.jsonl
    run -0 troupe report r open.jsonl
    [[ "${lines[1]}" == "B: open.jsonl, other, started "*", not ended" ]]
    [[ "$output" == *"note: B has not ended (not ended): its figures are those up to there"* ]]
    [[ "$output" == *"note: these are runs of two applications: A of weather, B of other"* ]]
    [[ "$output" == *"note: they have no stage in common: nothing compares but the totals"* ]]
    check 2 'is of one run' troupe report --sacct r s
    check 2 'nothing is no run' troupe report r nothing
    check 2 '^troupe: open.jsonl:1: not JSON' bash -c "echo x >open.jsonl; '$TROUPE_BUILD/bin/troupe' report r open.jsonl"
}

@test "what got slower is red on a terminal, and plain elsewhere" {
    two_runs
    run -0 env -u NO_COLOR TERM=xterm script -qec "'$TROUPE_BUILD/bin/troupe' report r s" /dev/null
    [[ "$output" == *$'\e[31mslower: split'* ]]
    run -0 env NO_COLOR=1 TERM=xterm script -qec "'$TROUPE_BUILD/bin/troupe' report r s" /dev/null
    [[ "$output" != *$'\e['* ]]
    run -0 troupe report r s
    [[ "$output" != *$'\e['* ]]
}

@test "wrong calls of report are exit 2 and say what to do" {
    check 0 '^usage: troupe report' troupe report --help
    check 2 'report: there are no runs in this folder; name a RUN' troupe report
    check 2 'nothing is no run' troupe report nothing
    check 2 'one RUN or EVENTS, or two to compare' troupe report a b c
    check 2 'unknown option --sact; did you mean "--sacct"' troupe report --sact
    echo 'no log' >file
    check 2 '^troupe: file:1: not JSON' troupe report file
    : >file
    check 2 '^troupe: file: no event log' troupe report file
    a_run
    check 2 '^troupe: report: .*/r/events.jsonl tells of no Slurm job' troupe report --sacct
}

# in_slurm: an event log of a run that was in a job.
in_slurm() {
    cat >events.jsonl <<'END'
{"Event":"SparkListenerLogStart"}
{"Event":"SparkListenerApplicationStart","App Name":"weather","Timestamp":1800000000000}
{"Event":"TroupeSlurmJob","Job ID":7,"Further":false,"Timestamp":1800000000000}
{"Event":"TroupeSlurmJob","Job ID":9,"Further":true,"Timestamp":1800000001000}
END
}

@test "without sacct in PATH report --sacct is exit 4, after the summary" {
    in_slurm
    run -4 --separate-stderr env PATH=/nowhere "$TROUPE_BUILD/bin/troupe" report --sacct events.jsonl
    [ "$stderr" = "troupe: sacct is not in PATH; call troupe report --sacct where Slurm's commands are" ]
    [[ "$output" == *"total"* ]]
}

# No sacct prints these: what is tried is that none is believed.
@test "what is not sacct's is exit 4, and sacct is asked for the jobs alone, without a shell" {
    in_slurm
    mkdir bin
    cat >bin/sacct <<END
#!/bin/sh
printf '%s\n' "\$@" "\$SLURM_TIME_FORMAT" >$PWD/asked
cat $PWD/answer
exit \$(cat $PWD/status)
END
    chmod 755 bin/sacct
    sacct_says() {
        echo "$1" >status
        printf '%s' "$2" >answer
        run -4 --separate-stderr env PATH="$PWD/bin:$PATH" SLURM_TIME_FORMAT=relative \
            "$TROUPE_BUILD/bin/troupe" report --sacct events.jsonl
    }
    sacct_says 0 $'7|COMPLETED|0:0|4|14\n'
    [ "$stderr" = "troupe: line 1 of sacct's has 5 fields instead of 9" ]
    [ "$(tail -n 2 asked)" = $'--jobs=7,9\n%s' ]
    [ "$(grep -cv -e '^--' asked)" = 1 ]
    sacct_says 0 $'7|COMPLETED|0:0|4|14|00:01||x|a\n'
    [ "$stderr" = "troupe: line 1 of sacct's: no Start: \"x\"" ]
    sacct_says 3 ''
    [ "$stderr" = "troupe: sacct ended with 3 and said nothing" ]
}
