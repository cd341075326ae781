# troupe config: values and where they come from.
bats_require_minimum_version 1.5.0
load common

@test "every option is listed with its origin" {
    check 0 "^task.maxFailures = 1 in pipelines, 4 in programs  \(default\)$" troupe config
    run troupe config --json
    [ "$(json '$$d[0]{key}' <<<"$output")" = admission.munge ]
    [ "$(json 'scalar @$d' <<<"$output")" -ge 20 ]
}

@test "the stronger place wins: default, site, user, pipeline, environment, command line" {
    echo '{site: 1, options: {task.maxFailures: 5}}' >site.yaml
    echo '{troupe: 1, options: {task.maxFailures: 6}, stages: [{name: a, run: b}]}' >p.yaml
    value() { troupe config --json "$@" task.maxFailures | json '"$$d{value} $$d{origin}"'; }
    [ "$(value)" = "1 in pipelines, 4 in programs default" ]
    [ "$(value --site site.yaml)" = "5 site" ]
    [ "$(TROUPE_SITE=site.yaml value)" = "5 site" ]
    mkdir -p config/troupe
    echo 'task.maxFailures: 9' >config/troupe/options.yaml
    [ "$(value --site site.yaml)" = "9 user" ]
    [ "$(value --site site.yaml --pipeline p.yaml)" = "6 pipeline" ]
    export TROUPE_OPT_task_maxFailures=7
    [ "$(value --site site.yaml --pipeline p.yaml)" = "7 environment" ]
    [ "$(value --pipeline p.yaml --set task.maxFailures=8)" = "8 command line" ]
}

@test "all errors of a site file are told, the first twenty by their places, and no others for these" {
    cat >site.yaml <<'END'
site: 1
resources: {a: {slurm: none}, b: {slrm: "license:b"}, c: {slurm: "license:c"}}
route:
  - {when: {a: ">0", b: ">0", d: ">0"}, partition: p}
  - {when: {c: many}, partitoin: p}
limits: {executors: -1, deny: [b, e]}
options: {no.such: 1}
END
    local call
    for call in config topo "plan p.yaml"; do
        # shellcheck disable=SC2086 # two words
        run troupe $call --site site.yaml
        [ "$status" = 2 ]
        [ "$(cut -d ' ' -f -2 <<<"$output")" = "$(printf 'troupe: site.yaml:%s:\n' 2:24 2:35 4:34 5:16 5:23 \
            6:21 6:31 7:11)" ]
    done
    echo '{site: 1, resorces: {d: {slurm: "license:d"}}, route: [{when: {d: 1}}], limits: {deny: [d]}}' >site.yaml
    run troupe config --site site.yaml
    [[ "${#lines[@]}" = 1 && "$output" == *':1:11: unknown key "resorces"'* ]]
    { echo '{site: 1,'; seq -f 'x%g: y,' 30; echo '}'; } >site.yaml
    run troupe config --site site.yaml
    [[ "${#lines[@]}" = 20 && "${lines[19]}" == *'site.yaml:21:1: unknown key "x20"'* ]]
}

@test "one KEY is one document, an unknown one is an error" {
    run troupe config --json run.grace
    [ "$status" = 0 ]
    [ "$(json '$$d{default}' <<<"$output")" = 30s ]
    [ "$(json 'join " ", sort keys %$d' <<<"$output")" = "default help key max min origin value" ]
    check 2 'unknown option run.grase; did you mean "run.grace"' troupe config run.grase
    check 0 "executor.resource.gpu.amount" troupe config executor.resource.gpu.amount
}

@test "a bad value is refused with the place it came from" {
    check 2 "\-\-set.*task.maxFailures" troupe config --set task.maxFailures=0
    check 2 "\-\-set.*unknown option" troupe config --set no.such=1
    check 2 "not of the form KEY=VALUE" troupe config --set task.cpus
    TROUPE_OPT_task_cpus=many check 2 "TROUPE_OPT_task_cpus" troupe config
    check 2 "nowhere.yaml" troupe config --site nowhere.yaml
    mkdir -p config/troupe
    echo 'task.maxFailure: 9' >config/troupe/options.yaml
    check 2 'config/troupe/options.yaml:1:1: unknown option.*task.maxFailures' troupe config
    echo 'task.maxFailures: 9' >config/troupe/options.yaml
    chmod o+w config/troupe/options.yaml
    check 2 'config/troupe/options.yaml: every user may write it; chmod o-w it' troupe config
    chmod o-w config/troupe/options.yaml
    [ "$(id -u)" = 0 ] || return 0
    chown nobody config/troupe/options.yaml
    check 2 'config/troupe/options.yaml: belongs to another user (.*); remove it, or set XDG_CONFIG_HOME' troupe config
}

@test "the man page has every option" {
    keys=$(sed -n 's/^    {"\([a-zA-Z._*]*\)",.*/\1/p' \
        "$TROUPE_SOURCE/lib/conf/options_table.c")
    [ "$(wc -w <<<"$keys")" -ge 20 ]
    for key in $keys; do
        troupe config "${key/\*/x}" >/dev/null 2>&1 || continue # only scenarios have it
        # Of a family what stands around the resource's name.
        grep -F -- "${key%%\**}" "$TROUPE_SOURCE/docs/man/troupe.1" | grep -qF -- "${key##*\*}" || {
            echo "$key is not in troupe.1"
            return 1
        }
    done
}

@test "every option is read somewhere, or told to do nothing" {
    unread=''
    members=$(awk -F'"' '/^    \{"/ { key = $2 } /(ENGINE|PROFILE)(_OR)?\(/ { print key }' \
        "$TROUPE_SOURCE/lib/conf/options_table.c")
    for key in $(sed -n 's/^    {"\([a-zA-Z._*]*\)",.*/\1/p' \
        "$TROUPE_SOURCE/lib/conf/options_table.c"); do
        grep -qxF "$key" <<<"$members" && continue
        grep -rqF --include='*.c' --exclude=options_table.c --exclude=options.c \
            "\"$key\"" "$TROUPE_SOURCE/lib" "$TROUPE_SOURCE/launcher" && continue
        grep -qF "\"=$key\"" "$TROUPE_SOURCE/lib/conf/options_table.c" && continue
        troupe config "$key" | grep -q 'does nothing: ' || unread+=" $key"
    done
    [ -z "$unread" ] || { echo "nobody reads$unread"; return 1; }
}

@test "the man pages have every command and stage key, and are well formed" {
    for c in $(commands); do
        grep -q "^.Ss troupe $c" "$TROUPE_SOURCE/docs/man/troupe.1" || {
            echo "$c is not in troupe.1"
            return 1
        }
    done
    for key in $(sed -n '/stage_keys\[\]/,/^};/s/^    {"\([a-z_]*\)",.*/\1/p' \
        "$TROUPE_SOURCE/lib/conf/pipeline_stage.c"); do
        grep -q "^.It Cm $key" "$TROUPE_SOURCE/docs/man/troupe-pipeline.5" || {
            echo "$key is not in troupe-pipeline.5"
            return 1
        }
    done
    for key in $(sed -n '/_keys\[\]/,/^};/s/^    {"\([a-z_]*\)",.*/\1/p' \
        "$TROUPE_SOURCE"/lib/conf/site.c); do
        grep -q "^.It Cm $key" "$TROUPE_SOURCE/docs/man/troupe-site.5" || {
            echo "$key is not in troupe-site.5"
            return 1
        }
    done
    for page in troupe.1 troupe-pipeline.5 troupe-site.5; do
        warnings=$(LC_ALL=C.UTF-8 man --warnings=mac,syntax -l \
            "$TROUPE_SOURCE/docs/man/$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || { echo "$warnings"; return 1; }
    done
}

@test "options of parts that no run has are told as such, listed and when they are set" {
    check 0 '"help":.*\(does nothing: no run moves what executors keep yet\)' \
        troupe config --json storage.decommission.enabled
    check 0 '"help":.*\(does nothing: no run moves map outputs yet\)' \
        troupe config --json storage.decommission.shuffleBlocks.enabled
    run -0 troupe config task.cpus
    [[ "$output" != *"does nothing"* ]]
    echo '{troupe: 1, options: {storage.decommission.shuffleBlocks.enabled: "false"}, stages: [{name: a, run: "true"}]}' >p.yaml
    run -0 --separate-stderr troupe plan --local=1 p.yaml
    [[ "$stderr" == "troupe: p.yaml:1:"*": warning: storage.decommission.shuffleBlocks.enabled does nothing: no run moves map outputs yet" ]]
    run -0 --separate-stderr troupe run --dry-run --local=1 --set storage.decommission.enabled=true p.yaml
    [[ "$stderr" == *"troupe: --set: warning: storage.decommission.enabled does nothing: no run moves what executors keep yet"* ]]
}

@test "the site's limit of executors is above what anybody sets" {
    echo '{site: 1, limits: {executors: 8}}' >site.yaml
    check 0 "^alloc.max_executors = 8  \(site\)$" troupe config --site site.yaml alloc.max_executors
    check 2 "^troupe: --set: alloc.max_executors 9 is above the site's limit of 8 \(site.yaml:1:31\); write at most that$" \
        troupe config --site site.yaml --set alloc.max_executors=9
}

@test "help of options fits 80 columns" {
    run -0 troupe config
    [ "${#lines[@]}" -gt 200 ]
    run ! grep -E '^.{81}' <<<"$output"
}
