# Runs of one user on one machine share its cores: here two of them, whatever there are.
load drill.bash

prepare() {
    local allowed
    allowed=$(taskset -cp $BASHPID | sed 's/.*: //' | tr ',' '\n' |
        awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' | head -2 | paste -sd,)
    taskset -cp "$allowed" $BASHPID >/dev/null
    [ "$(troupe topo --json | grep -o '"cores":[0-9]*')" = '"cores":2' ] || skip "there are no two cores"
    export XDG_RUNTIME_DIR=$PWD/runtime LOG=$PWD/log
    mkdir -m 700 runtime
    cat >count <<'END'
date +"%s.%N 1 $TROUPE_RUN" >>"$LOG"
case $1 in go*) until [ -e "$1" ]; do sleep 0.05; done ;; *) sleep "$1" ;; esac
date +"%s.%N -1 $TROUPE_RUN" >>"$LOG"
END
}

# pipeline NAME STAGE…: NAME.yaml, of executors of one core.
pipeline() {
    printf '%s\n' 'troupe: 1' 'default: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}' \
        'stages:' >"$1.yaml"
    printf '  - {%s}\n' "${@:2}" >>"$1.yaml"
}

# begin NAME [OPTION…]: runs it; `end NAME` waits for it, and shows what it said.
declare -gA pids
begin() {
    troupe run --run-name "$1" "${@:2}" "$1.yaml" >"$1.out" 2>&1 3>&- &
    pids[$1]=$!
}
end() {
    local status=0
    wait "${pids[$1]}" || status=$?
    cat "$1.out"
    return $status
}

# How many tasks ran at once, at most.
most() {
    sort -n log | awk '{ n += $2; if (n > most) most = n } END { print most }'
}
begun() { [ "$(grep -c ' 1 ' log)" = "$1" ]; }
waits() { grep -q "waiting for cores: other runs of this user $2" "$1.out"; }

@test "two runs at once never have more tasks than there are cores, and the second says that it waits" {
    prepare
    pipeline a 'name: s, tasks: 6, run: sh count go'
    pipeline b 'name: s, tasks: 6, run: sh count 0.3'
    begin a
    wait_until begun 2
    begin b
    wait_until waits b '(a) have 2 of the 2 cores here; --local=N takes N without waiting'
    touch go
    end a
    end b
    [ "$(most)" = 2 ]
    [ "$(wc -l <log)" = 24 ]
    [ -z "$(grep waiting a.out)" ]
}

@test "a run takes what is free, and goes on with that" {
    prepare
    pipeline a 'name: s, run: sh count go'
    pipeline b 'name: s, tasks: 3, run: sh count 0.1'
    begin a
    wait_until begun 1
    begin b
    end b
    touch go
    end a
    [ "$(most)" = 2 ]
}

@test "two barrier stages that have one core each, and want two, both end" {
    prepare
    pipeline a 'name: s, run: sh count go' 'name: t, after: [s], tasks: 2, barrier: true, run: sh count 0.1'
    cp a.yaml b.yaml
    begin a
    begin b
    wait_until begun 2
    touch go
    end a
    end b
    [ "$(most)" = 2 ]
}

@test "a gang waits for the cores of all its ranks, and is not overtaken" {
    prepare
    pipeline a 'name: s, run: sh count go'
    pipeline b 'name: g, mpi: {ranks: 2}, run: sh count 0.1'
    pipeline c 'name: s, run: sh count 0.1'
    begin a
    wait_until begun 1
    begin b
    wait_until waits b '(a) have 1 of the 2 cores here'
    begin c
    wait_until waits c '(., .) have 1 of the 2 cores here, and wait for more before this one'
    run -0 troupe explain b
    output=$(tr -s ' \n' ' ' <<<"$output") # lines are cut
    [[ "$output" == *"other runs of this user ("?", "?") have 1 of the 2 cores here"* ]]
    [[ "$output" == *"there is: 1 of 2 cores, "* ]]
    run -0 troupe status b
    begun 1
    touch go
    end a
    end b
    end c
    [ "$(sort -n log | awk '$2 == 1 { printf "%s", $3 }')" = abbc ]
    [ "$(most)" = 2 ]
}

@test "an idle executor is given back to who waits" {
    prepare
    pipeline a 'name: wide, tasks: 2, run: sh count 0.1' 'name: thin, after: [wide], run: sh count go'
    pipeline b 'name: s, run: sh count 0.1'
    begin a --set alloc.release=idle
    wait_until begun 3
    begin b
    end b
    touch go
    end a
    [ "$(most)" = 2 ]
}

@test "the cores of a driver that is killed are free" {
    prepare
    pipeline a 'name: s, tasks: 2, run: sh count go'
    pipeline b 'name: s, tasks: 2, run: touch b.ran'
    begin a
    wait_until begun 2
    begin b
    wait_until waits b '(a) have 2 of the 2 cores here'
    kill -9 "$(pid_of driver a)"
    end b
    local status=0
    end a || status=$?
    [ $status = 4 ]
    touch go
}

@test "pretended cores, runs in a batch job or in a task, and those without the folder take no part" {
    prepare
    pipeline a 'name: s, tasks: 2, run: sh count go'
    pipeline b 'name: s, tasks: 2, run: sh count go_b'
    pipeline c 'name: s, tasks: 2, run: troupe run --quiet --run-name inner-$TROUPE_TASK d.yaml'
    pipeline d 'name: s, tasks: 2, run: "true"'
    begin a
    wait_until begun 2
    begin b --local=2
    wait_until begun 4
    touch go_b
    end b
    rm -r troupe-runs/b
    XDG_RUNTIME_DIR=/nonexistent begin b
    end b
    rm -r troupe-runs/b
    SLURM_JOB_ID=1 begin b --local
    end b
    touch go
    end a
    begin c
    end c
    troupe run --run-name f --set executor.cores=2 -- "$programs/shells" \
        'troupe run --run-name inner-f d.yaml'
}
