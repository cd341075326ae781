# troupe init and troupe completion.
bats_require_minimum_version 1.5.0
load common

@test "init writes a pipeline that runs as it is, and never over one" {
    check 0 "first/pipeline.yaml is a pipeline of three stages" troupe init first
    (
        cd first
        check 0 "^count  *small  *[0-9]+ " troupe plan --local=2 pipeline.yaml
        troupe run --quiet --local=2 --param top=3 pipeline.yaml
        [ "$(wc -l <total)" = 3 ]
        grep -qx '[0-9]* the' total
    )
    echo mine >first/pipeline.yaml
    check 2 "first/pipeline.yaml: it exists already" troupe init first
    [ "$(cat first/pipeline.yaml)" = mine ]
    check 2 "no/such" troupe init no/such
    check 2 "one FOLDER" troupe init a b
    troupe init >here
    [ -f pipeline.yaml ] && rm pipeline.yaml
    troupe init . | sed 's,^\./,,' | cmp - here
    check 2 "/dev/full/pipeline.yaml" troupe init /dev/full
}

# After the last of the words, which may be ''.
words() {
    troupe completion words -- "$@" | cut -f1 | paste -sd' '
}

@test "lines are completed by what the commands take" {
    pipeline <<'Y'
troupe: 1
params: {reads: in, ref: hg38}
stages: [{name: align, run: 'true'}, {name: call, after: [align], run: 'true'}]
Y
    troupe run --quiet --local=1 --run-name one p.yaml
    [ "$(words '' | wc -w)" = "$(commands | wc -w)" ]
    [ "$(words su)" = submit ]
    [ "$(words run --fr)" = --from ]
    [ "$(words run p.yaml --from '')" = "align call" ]
    [ "$(words run p.yaml --from=ca)" = --from=call ]
    [ "$(words run p.yaml --param re)" = "reads= ref=" ]
    [ "$(words run --set locality.wait.n)" = "locality.wait.node=" ]
    [ "$(words config locality.wait.n)" = "locality.wait.node" ]
    [ "$(words logs '')" = "one last" ]
    [ "$(words logs last c)" = call ]
    [ "$(words cancel --now o)" = one ]
    [ "$(words run --resume one --force a)" = align ]
    [ "$(words report '')" = "one last :files" ]
    [ "$(words run '')" = :files ]
    [ "$(words run p.yaml '')" = "" ]
    [ "$(words run --local=1 -- ./a --fr)" = :files ]
    [ "$(words completion '')" = "bash zsh fish" ]
    [ "$(words submit --pri)" = "--print" ]
    echo '{site: 1, profiles: {gpu-small: {executor: {cores: 1}}}}' >site.yaml
    [ "$(words site-shape --site site.yaml g)" = gpu-small ]
    # What is not there, or wrong, has no words and no message.
    [ "$(words nosuch '')" = "" ]
    [ "$(words run nosuch.yaml --from '' 2>&1)" = "" ]
    [ "$(words run --runs-dir none --resume '' 2>&1)" = "" ]
    check 2 "none for tcsh" troupe completion tcsh
    check 2 "which shell" troupe completion
}

# typed SHELL…: a pipeline with a stage `count`, and keys that only together make this
# line, in an interactive shell.
typed() {
    printf 'troupe pl\t--lo\t pipe\t >/dev/null; troupe run pipe\t--from co\t--set=run.gr\t1s --dry\t >out\nexit\n' |
        script -qec "$*" /dev/null >screen || { cat screen; return 1; }
    [ "$(sed -n '$p' out)" = "total: runs" ] || { cat -v screen; return 1; }
}

# Command lines are completed by the shell itself, on a terminal.
in_shells() {
    troupe init >/dev/null
    mkdir bin
    ln -s "$TROUPE_BUILD/bin/troupe" bin/troupe
    export PATH=$PWD/bin:$PATH HOME=$PWD TERM=dumb
}

@test "bash completes" {
    in_shells
    echo 'source <(troupe completion bash); bind "set enable-bracketed-paste off"' >rc
    typed bash --rcfile rc -i
}

@test "zsh completes" {
    command -v zsh >/dev/null || skip "no zsh"
    in_shells
    printf '%s\n' 'autoload -Uz compinit; compinit -D -u' 'source <(troupe completion zsh)' >.zshrc
    ZDOTDIR=$PWD typed zsh -i
}

@test "fish completes" {
    command -v fish >/dev/null || skip "no fish"
    in_shells
    line() { fish --no-config -c "troupe completion fish | source; complete -C 'troupe $1'" | cut -f1 | paste -sd' '; }
    [ "$(line ru)" = run ]
    [ "$(line 'run pipeline.yaml --from co')" = count ]
    [ "$(line 'run pipe')" = pipeline.yaml ]
}

@test "colours are for terminals, and not where NO_COLOR is set" {
    pipeline <<'Y'
troupe: 1
options: {task.maxFailures: 1}
stages: [{name: good, run: 'true'}, {name: bad, after: [good], run: 'false'}]
Y
    shown() { script -qec "$TROUPE_BUILD/bin/troupe $*" /dev/null </dev/null | cat -v; }
    export TERM=xterm
    shown nosuch | grep -qF '^[[31mtroupe:^[[0m unknown command nosuch'
    shown run --local=1 p.yaml >out
    grep -q '\^\[\[32mstage good succeeded: .*\^\[\[0m' out
    grep -q '\^\[\[31mstage bad failed: .*\^\[\[0m' out
    run ! grep -F '^[[3' <(NO_COLOR=1 shown run --local=1 p.yaml)
    run ! grep -F '^[[3' <(TERM=dumb shown nosuch)
    run ! grep -F '^[' <(troupe nosuch 2>&1 | cat -v)
}
