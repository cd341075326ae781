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
  - {name: split, tasks: 3, run: "true"}
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

@test "wrong calls of report are exit 2 and say what to do" {
    check 0 '^usage: troupe report' troupe report --help
    check 2 'report: there are no runs in this folder; name a RUN' troupe report
    check 2 'nothing is no run' troupe report nothing
    check 2 'one RUN or EVENTS' troupe report a b
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
