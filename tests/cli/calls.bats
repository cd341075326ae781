# Calls: help, version, what is wrong with a call.
load common

@test "without a command the usage is an error" {
    check 2 "^usage: troupe COMMAND" troupe
}

@test "--help names every command, --version the version" {
    check 0 "troupe cancel" troupe --help
    for c in $(commands); do
        check 0 "troupe $c" troupe --help
        check 0 "^usage: troupe $c" troupe $c --help
    done
    check 0 "^troupe [0-9]+\.[0-9]+\.[0-9]+$" troupe --version
}

@test "an unknown command is refused with the nearest one" {
    check 2 'unknown command rnu; did you mean "run"' troupe rnu
    check 2 "unknown option --frobnicate" troupe --frobnicate
}

@test "an unknown option is refused with the nearest one" {
    check 2 'unknown option --quite; did you mean "--quiet"' troupe run --quite p.yaml
    check 2 'unknown option --verison; did you mean "--version"' troupe --verison
    local option
    for option in --core --cores=4 --jobs -j -j4 -n; do
        check 2 "unknown option ${option%=4}; --local=CORES runs on so many cores of this machine" \
            troupe run "$option" 4 p.yaml
    done
    check 2 'unknown option -n; see troupe ls --help' troupe ls -n
    check 2 'unknown option gpu; see `troupe config`' troupe config gpu
    check 2 "unknown option -x" troupe plan -x p.yaml
}

@test "a plan in a folder that was removed says so" {
    pipeline <<<'{troupe: 1, stages: [{name: a, run: x}]}'
    mkdir gone && cd gone && rmdir ../gone
    check 4 '^troupe: no working folder: No such file' troupe plan "$BATS_TEST_TMPDIR/p.yaml"
}

@test "an option's value may follow or stand behind =" {
    check 0 '"value":"3g"' troupe config --json --set executor.memory=3g executor.memory
    check 0 '"value":"3g"' troupe config --json --set=executor.memory=3g executor.memory
    check 2 "\-\-set needs a value" troupe config --set
    check 2 "\-\-json takes no value" troupe config --json=yes
}

@test "run wants one pipeline or one application" {
    check 2 "no pipeline file and no application" troupe run
    check 2 "no application behind --" troupe run --
    check 2 "one pipeline file, not also b.yaml" troupe run a.yaml b.yaml
    check 2 "both a pipeline file and an application" troupe run a.yaml -- true
    check 2 "\-\-keep-going is for pipelines only" troupe run --keep-going -- true
    check 2 "\-\-inline is for programs only" troupe run --inline a.yaml
    check 2 "\-\-inline leaves no run folder, whatever its name" troupe run --inline --run-name r -- true
    check 2 "no such program" troupe run --inline -- ./nothing
    check 2 "a.yaml: cannot be read: No such file" troupe run a.yaml
    check 2 "^troupe: run: /bin/true is a program; write troupe run -- /bin/true$" troupe run /bin/true
    check 0 "^s: 1 task" troupe run --dry-run <(echo '{troupe: 1, stages: [{name: s, run: "true"}]}')
    check 2 "no such program" troupe run -- ./nothing
    check 2 "no such program in PATH" troupe run -- nothing-of-this-name
    touch plain
    check 2 "not a program that can be run" troupe run -- ./plain
    [ ! -e troupe-runs ]
}

@test "--local wants a number of cores" {
    check 2 "not a number of cores" troupe topo --local=0
    check 2 "not a number of cores" troupe topo --local=some
    check 2 "not a number of cores" troupe topo --local=99999999
    check 2 "unknown option --locale" troupe topo --locale
    check 2 "--local 4: write --local=4" troupe topo --local 4
}

@test "ls and cancel of nothing" {
    check 0 '^\[\]$' troupe ls --json
    check 0 '' troupe ls
    check 2 "no run x here" troupe cancel x
    check 2 "no RUN given" troupe cancel
    check 2 "one RUN" troupe cancel a b
    check 2 "is no run" troupe run --resume x
}

@test "a result that cannot be written is an error" {
    check 4 "cannot write to stdout: No space left" \
        bash -c '"$TROUPE_BUILD/bin/troupe" topo >/dev/full'
}

@test "closed stdin, stdout and stderr do no harm" {
    run bash -c '"$TROUPE_BUILD/bin/troupe" topo <&- >&- 2>&-'
    [ "$status" = 0 ]
}
