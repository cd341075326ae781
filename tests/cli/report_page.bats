# troupe report -o FILE.html, and report.html at a run's end. What the page shows of it in
# a browser is tests/page.
load common
bats_require_minimum_version 1.5.0

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

a_run() {
    pipeline <<'END'
troupe: 1
name: weather
stages:
  - {name: split, tasks: 3, run: "true"}
  - {name: join, after: [split], retries: {max_failures: 1},
     run: "echo 'no <b>luck</b> & so on' >&2; exit 3"}
END
    run -1 --separate-stderr troupe run --local=2 --run-name r "$@" p.yaml
}

# document PAGE: what the script of a page is given.
document() {
    perl -0777 -ne 'print $1 if m{<script type="application/json" id="data">(.*?)</script>}s' "$1"
}

# without_parts: of a start as JSON, what the page tells in its own way (executors, attempts).
without_parts='for my $s (@{$d->{starts}}) { delete @$s{qw(app_id actions executors profiles)}; delete $_->{tries} for @{$s->{stages}} } '

@test "report -o writes a page with the document of report --json in it" {
    local shown
    a_run
    run -4 bash -c '"$TROUPE_BUILD/bin/troupe" report r -o - >/dev/full'
    [ "$output" = "troupe: cannot write to stdout: No space left on device" ]
    for shown in "" r "$PWD/troupe-runs/r" troupe-runs/r/events.jsonl; do
        rm -f page.html
        # shellcheck disable=SC2086
        run -0 troupe report -o page.html $shown
        [ -z "$output" ]
        [ "$(head -n 1 page.html)" = '<!DOCTYPE html>' ]
        [ "$(tail -n 1 page.html)" = '</html>' ]
        # shellcheck disable=SC2086
        troupe report --json $shown | json "$without_parts"'$d->{events} =~ s/.*troupe-runs//; JSON::PP->new->canonical->encode($d)' >want
        document page.html | json '$d = $d->{report}; $d->{events} =~ s/.*troupe-runs//; JSON::PP->new->canonical->encode($d)' >got
        diff want got
    done
    [ "$(stat -c %a page.html)" = 600 ]
    [ ! -e page.html.new ]
}

@test "-o - prints the page, and -oFILE is -o FILE" {
    a_run
    run -0 troupe report -opage.html
    troupe report -o - r >printed.html
    [ "$(document printed.html | json '$d->{head}{run}')" = r ]
    [ "$(document page.html | json '$d->{head}{state}')" = 'exit status 1' ]
}

@test "the page needs nothing from elsewhere, and allows its own script and style alone" {
    a_run
    troupe report -o page.html
    run ! grep -oE '(src|href|action)="[^#"]+"' page.html
    run ! grep -E '@import|url\([^#]' page.html
    local policy script
    policy=$(grep -oE 'http-equiv="Content-Security-Policy" content="[^"]*"' page.html)
    [[ "$policy" == *"default-src 'none'"* ]]
    [[ "$policy" != *unsafe* ]]
    script=$(perl -0777 -ne 'print $1 if m{<script>(.*)</script>}s' page.html | openssl dgst -sha256 -binary | base64)
    [[ "$policy" == *"script-src 'sha256-$script'"* ]]
}

@test "failures are told with the last lines of their logs, and a link that is relative" {
    a_run
    troupe report -o page.html
    mkdir -p 'deep/er folder'
    troupe report -o 'deep/er folder/page.html'
    troupe report -o troupe-runs/r/page.html
    local failure='$d->{page}{failures}[0]'
    [ "$(document page.html | json "$failure{reason}")" = 'exit status 3' ]
    [ "$(document page.html | json "$failure{examples}[0]{tail}")" = 'no <b>luck</b> & so on' ]
    [ "$(document page.html | json "$failure{examples}[0]{link}")" = troupe-runs/r/logs/join/0.0.err ]
    [ "$(document 'deep/er folder/page.html' | json "$failure{examples}[0]{link}")" = ../../troupe-runs/r/logs/join/0.0.err ]
    [ "$(document troupe-runs/r/page.html | json "$failure{examples}[0]{link}")" = logs/join/0.0.err ]
    run ! grep -q '<b>luck' page.html
}

@test "logs that are together in a stream are found, too" {
    pipeline <<'END'
troupe: 1
name: weather
stages:
  - {name: many, tasks: 2, task_logs: stage, retries: {max_failures: 1}, run: "echo bad luck >&2; exit 3"}
END
    run -1 troupe run --local=2 --run-name r p.yaml
    troupe report -o page.html
    [ "$(document page.html | json '$d->{page}{failures}[0]{examples}[0]{tail}')" = 'bad luck' ]
    [ "$(document page.html | json '$d->{page}{failures}[0]{examples}[0]{link}')" = null ]
}

@test "a log that ends in the middle, as of a run that died, has a page" {
    a_run
    grep -v ApplicationEnd troupe-runs/r/events.jsonl | head -c -40 >cut.jsonl
    run -0 troupe report -o page.html cut.jsonl
    [ "$(document page.html | json '$d->{head}{state}')" = 'not ended' ]
    [ "$(document page.html | json '$d->{report}{starts}[0]{exit}')" = null ]
}

@test "wrong calls of report -o say what to do, and leave what was there" {
    check 2 'report: -o page.pdf: the page is HTML; name a file that ends in .html, or - for stdout' troupe report -o page.pdf
    check 2 'report: -o needs a value' troupe report -o
    check 2 'unknown option --o' troupe report --o page.html
    check 2 'unknown option -p' troupe report -p page.html
    a_run
    check 2 'one at a time' troupe report -o page.html --json
    check 4 'nowhere/page.html: cannot be written: No such file' troupe report -o nowhere/page.html
    mkdir page.html
    check 4 'page.html: cannot be written' troupe report -o page.html
    [ ! -e page.html.new ]
    run -0 troupe report --help
    [[ "$output" == *$'\n  -o FILE '* ]]
}

@test "report.html=true writes RUN/report.html at the end, also of a run that failed" {
    a_run
    [ ! -e troupe-runs/r/report.html ]
    rm -rf troupe-runs
    a_run --set report.html=true
    [ "$(document troupe-runs/r/report.html | json '$d->{head}{state}')" = 'exit status 1' ]
    troupe report --json | json "$without_parts"'JSON::PP->new->canonical->encode($d->{starts})' >want
    document troupe-runs/r/report.html | json 'JSON::PP->new->canonical->encode($d->{report}{starts})' >got
    diff want got
}

@test "a report.html that cannot be written is a warning, and the run ends as it did" {
    pipeline <<'END'
troupe: 1
name: weather
options: {report.html: true}
stages:
  - {name: one, run: "mkdir \"$TROUPE_RUN_DIR/report.html\""}
END
    run -0 --separate-stderr troupe run --local=1 --run-name r p.yaml
    [[ "$stderr" == *"troupe: warning: report.html was not made: "*"cannot be written"* ]]
}

@test "what the run would have held otherwise is played on its own times" {
    pipeline <<'END'
troupe: 1
name: weather
profiles: {wide: {executor: {cores: 2}}}
stages:
  - {name: split, tasks: 4, profile: wide, run: sleep 0.3}
  - {name: none, after: [split], tasks: 0, run: "true"}
  - {name: join, after: [none], run: sleep 0.2}
END
    troupe run --quiet --local=2 --run-name r p.yaml
    troupe report -o page.html
    [ "$(document page.html | json 'join " ", map { $_->{policy} } @{$d->{alternatives}{runs}}')" = 'monolithic job-per-stage inside-first' ]
    # Used: four times 0.3 s and once 0.2 s of a core.
    document page.html | json '
        my ($one, $chain) = @{$d->{alternatives}{runs}};
        my $used = $d->{report}{starts}[0]{total}{used}{cores};
        die "used: $one->{used}, not $used" if abs($one->{used} - $used) > 0.1 * $used;
        die "held: $one->{cores}" if $one->{cores} < $used || $chain->{cores} > $one->{cores};
        die "time: $one->{makespan}" if $one->{makespan} < 0.8'
}

@test "why the run is not played is said on the page" {
    a_run
    troupe report -o page.html
    [[ "$(document page.html | json '$d->{alternatives}{why}')" == *"of stage join no task has succeeded"* ]]
    troupe report -o page.html troupe-runs/r/events.jsonl
    [[ "$(document page.html | json '$d->{alternatives}{why}')" == *"only the event log"* ]]
    # As if there were 1,600 stages more.
    perl -i -ne 'print; if (/"SparkListenerStage(Submitted|Completed)"/ && /"Stage ID":0,/) {
        for my $i (10 .. 1609) { (my $l = $_) =~ s/"Stage ID":0,/"Stage ID":$i,/; print $l } }' troupe-runs/r/events.jsonl
    troupe report -o page.html
    [[ "$(document page.html | json '$d->{alternatives}{why}')" == *"too many stages"* ]]
    troupe run --quiet --local=1 --run-name c -- "$TROUPE_BUILD/examples/first" /etc/hostname || true
    troupe report -o page.html c
    [[ "$(document page.html | json '$d->{alternatives}{why}')" == *"is of a program"* ]]
}

@test "executors are in the log from when they are asked for, and when they never come" {
    pipeline <<'END'
troupe: 1
name: weather
profiles: {wide: {executor: {cores: 2}}}
stages:
  - {name: first, tasks: 2, retries: {max_failures: 1}, run: "sleep 2; exit 1"}
  - {name: second, profile: wide, run: "true"}
END
    run -1 --separate-stderr troupe run --local=2 --run-name r p.yaml
    local log=troupe-runs/r/events.jsonl
    # Two of the default shape came; the wide one, for which there was no room, did not.
    [ "$(grep -c '"Event":"TroupeExecutorAsked"' "$log")" = 3 ]
    [ "$(grep -c '"Event":"SparkListenerExecutorAdded"' "$log")" = 2 ]
    [ "$(grep -c '"Event":"TroupeExecutorDropped"' "$log")" = 1 ]
    troupe report -o page.html
    document page.html | json '
        my %asked = map { $d->{page}{profiles}[$_->{of}]{name} => $_ } @{$d->{page}{series}{asked}};
        die "not asked for: wide" unless $asked{wide};
        my ($second) = grep { $_->{name} eq "second" } @{$d->{page}{stages}};
        die "it did not wait: @{$second->{waits}}" unless $second->{waits}[3] > 1000'
}

@test "why slots that are free are not taken is in the log, on the page, and in report --json" {
    pipeline <<'END'
troupe: 1
name: weather
stages:
  - {name: few, tasks: 3, max_running: 1, run: "touch begun.$TROUPE_TASK; until [ -e go.$TROUPE_TASK ]; do sleep 0.1; done"}
  - {name: behind, tasks: 3, after: [{stage: few, each: true}], run: "true"}
END
    moving_clock
    troupe run --quiet --local=4 --run-name r p.yaml &
    local task
    for task in 0 1 2; do
        wait_until [ -e begun.$task ]
        advance 20s
        touch go.$task
    done
    await $!
    grep '"Event":"TroupeStageWaits"' troupe-runs/r/events.jsonl
    troupe report --json | json '
        my ($few, $behind) = map { $_->{waits} } @{$d->{starts}[0]{stages}};
        # Of two tasks for 20 s, and of one, but for what passed before the driver looked.
        die "max_running: $few->{max_running}" unless $few->{max_running} > 59;
        die "a slot was free: $few->{free_slot}" if ($few->{free_slot} // 0) > $few->{max_running} / 2;
        die "parents: $behind->{parents}" unless $behind->{parents} > 1.5 * $few->{max_running}'
    troupe report -o page.html
    document page.html | json 'die "bars: @{$d->{page}{stages}[0]{waits}}"
        unless $d->{page}{stages}[0]{waits}[7] ==
               sprintf "%.0f", 1000 * $d->{report}{starts}[0]{stages}[0]{waits}{max_running}'
}
