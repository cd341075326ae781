#!/usr/bin/env bats
# What goes wrong in a run, and what must follow.
load drill.bash

one() { # one STAGE-KEYS: a pipeline of one stage
    printf 'troupe: 1\nstages:\n  - {name: s, %s}\n' "$1" >p.yaml
}

@test "a command is tried once, and again where retries say so" {
    one 'run: "echo $TROUPE_ATTEMPT; [ $TROUPE_ATTEMPT = 1 ]"'
    run -1 troupe run --run-name once p.yaml
    [[ "$output" == *"failed once, with exit status 1; see troupe-runs/once/logs/s/0.0.out: 0"* ]]
    run -0 troupe run --set task.maxFailures=2 p.yaml
    one 'run: "echo $TROUPE_ATTEMPT; [ $TROUPE_ATTEMPT = 1 ]", retries: {max_failures: 2}'
    run -0 troupe run --run-name r p.yaml
    [[ "$output" == *"exit status 1"* ]]
    [ -e troupe-runs/r/logs/s/0.1.out ]
}

@test "one that always fails ends the run with stage, task, count, status and log" {
    one 'tasks: 3, run: "[ $TROUPE_TASK != 1 ] || { echo why >&2; exit 37; }", retries: {max_failures: 4}'
    run -1 troupe run --run-name r p.yaml
    [[ "$output" == *"troupe: p.yaml:3:"*": stage s: task 1 failed 4 times, last with exit status 37; see troupe-runs/r/logs/s/1.3.err"* ]]
}

@test "run stops at the first command that fails; shell says by what, and the end says what is missed easily" {
    one 'run: "false; touch went"'
    run -1 troupe run p.yaml
    [[ "$output" == *"failed once, with exit status 1; run stops at the first command that fails"* ]]
    [ ! -e went ]
    one 'prelude: "false", run: "touch went"'
    run -1 troupe run p.yaml
    [ ! -e went ]
    one 'shell: [/bin/sh, -c], run: "false; touch went"' # as it is written
    run -0 troupe run p.yaml
    [ -e went ]
    one 'run: "false | cat; touch piped"'
    run -0 troupe run p.yaml
    run -1 troupe run --set run.shell=bash p.yaml
    one 'shell: bash, prelude: "x=$no_such_name", run: "echo in; echo $no_such_name"'
    run -1 troupe run --run-name u p.yaml
    [ "$(cat troupe-runs/u/logs/s/0.0.out)" = in ]
    grep -q 'no_such_name: unbound variable' troupe-runs/u/logs/s/0.0.err
    one 'shell: bash, run: "yes | head -n 1 >/dev/null"'
    run -1 troupe run p.yaml
    [[ "$output" == *"with exit status 141; SIGPIPE under pipefail"* ]]
    one 'run: "shopt -s nullglob"'
    run -1 troupe run p.yaml
    [[ "$output" == *"with exit status 127; the shell is /bin/sh, and shell: bash has bash; see "* ]]
    one 'shell: fish, run: "true"'
    run -2 troupe plan p.yaml
    [[ "$output" == *"p.yaml:3:22: shell is bash, sh or a list such as [/bin/zsh, -c]; what tasks run is run: TEXT"* ]]
    one 'shell: bash, argv: ["true"]'
    run -2 troupe plan p.yaml
}

@test "a script that cannot be run names the interpreter that is not there" {
    printf '#!/bin/sh\r\ntrue\r\n' >crlf
    printf '#! /no/such -x\n' >gone
    chmod +x crlf gone
    one 'argv: [./crlf]'
    run -1 troupe run p.yaml
    [[ "$output" == *'failed once: could not be started: cannot run ./crlf: its first line names /bin/sh\r, which is not there; end its lines with LF, without CR'* ]]
    one 'argv: [./gone]'
    run -1 troupe run p.yaml
    [[ "$output" == *'cannot run ./gone: its first line names /no/such, which is not there'* ]]
    one 'argv: [./never]'
    run -1 troupe run p.yaml
    [[ "$output" == *'cannot run ./never: No such file or directory'* ]]
}

@test "one that hangs is ended by its timeout, with all it started" {
    one 'run: "sleep 100 & sleep 100", timeout: 1, retries: {max_failures: 1}'
    run -1 troupe run --run-name r p.yaml
    [[ "$output" == *"timed out after 1s"* ]]
}

@test "a daemon that leaves its session is gone when the attempt ends" {
    one 'run: "setsid sh -c \"sleep 77 & sleep 78\" & (setsid sleep 79 &) ; sleep 0.2"'
    run -0 troupe run --run-name r p.yaml
    run ! ours_like '^sleep 7[789]$'
}

@test "a signal is named" {
    one 'run: "kill -SEGV $$", retries: {max_failures: 1}'
    run -1 troupe run p.yaml
    [[ "$output" == *"killed by SIGSEGV (11)"* ]]
}

# bats test_tags=plain
@test "a command over its memory is named as killed for memory, with limit and peak" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 1, memory: 100m, memoryOverhead: 28m}}}
stages:
  - {name: s, profile: p, run: "perl -e '$x = \"a\" x ($ARGV[0]); sleep' 300000000", retries: {max_failures: 1}}
Y
    run -1 troupe run p.yaml
    [[ "$output" =~ "killed for memory (limit 128 MiB, peak "[0-9]+" MiB)" ]]
}

# bats test_tags=plain
@test "a process that is killed for memory fails its attempt although a pipe ends well, and no other" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 2, memory: 100m, memoryOverhead: 28m}}}
options: {task.maxFailures: 1}
stages:
  - {name: s, profile: p, tasks: 2, shell: [/bin/sh, -c], run: "[ $TROUPE_TASK = 0 ] || { until [ -e over ]; do sleep 0.01; done; exit 0; }; perl -e '$x = \"a\" x ($ARGV[0])' 300000000 | cat >made; touch over"}
Y
    run -1 troupe run --keep-going p.yaml
    [[ "$output" =~ "task 0 failed once: killed for memory (limit 128 MiB, peak "[0-9]+" MiB)" ]]
    [[ "$output" != *"task 1 failed"* ]]
}

# bats test_tags=plain
@test "memory is enforced for an ordinary user too, where no memory group can be made" {
    [ "$(id -u)" = 0 ] || skip "the tests run as an ordinary user already"
    others_folder
    chown nobody "$d"
    cat >"$d/p.yaml" <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 1, memory: 100m, memoryOverhead: 28m}}}
stages:
  - {name: s, profile: p, run: "perl -e '$x = \"a\" x ($ARGV[0]); sleep' 300000000", retries: {max_failures: 1}}
Y
    run -1 setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c "cd $d && troupe run p.yaml"
    [[ "$output" =~ "killed for memory (limit 128 MiB, peak "[0-9]+" MiB)" ]]
}

@test "a cwd that does not exist and a program that does not exist fail the task" {
    one 'cwd: nowhere, run: "true", retries: {max_failures: 1}'
    run -1 troupe run p.yaml
    [[ "$output" == *nowhere* ]]
    one 'argv: [/no/such/program], retries: {max_failures: 1}'
    run -1 troupe run p.yaml
}

@test "retries.not_on, tolerate and keep-going" {
    one 'run: "exit 3", retries: {max_failures: 4, not_on: [3]}'
    run -1 troupe run p.yaml
    [[ "$output" == *"task 0 failed once"* ]]
    one 'run: "true", retries: {not_on: [3]}'
    run -0 troupe run p.yaml
    [[ "$output" == *"p.yaml:3:12: warning: stage s: not_on without max_failures above 1 does nothing"* ]]
    one 'tasks: 4, tolerate: 1, run: "[ $TROUPE_TASK != 2 ]", retries: {max_failures: 1}'
    run -0 troupe run p.yaml
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: bad, run: "false", retries: {max_failures: 1}}
  - {name: after, after: [bad], run: "echo no"}
  - {name: other, run: "sleep 0.5; echo yes"}
  - {name: more, after: [other], run: "echo yes"}
Y
    run -1 troupe run --keep-going --run-name k p.yaml
    [ "$(cat troupe-runs/k/logs/more/0.0.out)" = yes ]
    [ ! -e troupe-runs/k/logs/after/0.0.out ]
}

@test "what is removed before a retry is the run's own, below its folder; the rest is named" {
    mkdir -p victim w/out w/old
    touch -d '1 minute ago' victim/data w/old/0
    cd w
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - name: s
    foreach: {items: [../../victim]}
    outputs: ["out/$TROUPE_ITEM", {file: "old/$TROUPE_TASK", optional: true}, "new/$TROUPE_TASK"]
    run: "[ ! -e new/0 ] || exit 7; mkdir -p new; echo x > new/0; echo x >> ../victim/data; [ $TROUPE_ATTEMPT = 1 ]"
    retries: {max_failures: 4}
Y
    run -0 --separate-stderr troupe run --run-name r p.yaml
    [ "$(cat ../victim/data)" = $'x\nx' ]
    [ -e old/0 ]
    line="troupe: stage s: task 0 runs again, its output out/../../victim stays: it lies outside the working folder; as does 1 more"
    [[ "$stderr" == *"$line"* ]]
}

@test "a retry removes nothing of another task, of what was there, or of what came meanwhile" {
    cat >p.yaml <<'Y'
troupe: 1
name: p
stages:
  - {name: before, tasks: 2, outputs: ["o.1.before.$TROUPE_TASK"], run: "echo >o.1.before.$TROUPE_TASK"}
  - name: s
    after: [before]
    tasks: 12
    outputs: ["o.$TROUPE_TASK*", "d", {file: "d/$TROUPE_TASK.*", optional: true}]
    retries: {max_failures: 2}
    run: |
      echo $TROUPE_ATTEMPT >o.$TROUPE_TASK.x
      mkdir -p d
      [ $TROUPE_TASK != 1 ] || [ $TROUPE_ATTEMPT = 1 ] || { echo >o.1.part; echo >d/1.part; echo more >>o.1.mine; until [ -e d/10 -a -e d/11.part ]; do sleep 0.01; done; exit 1; }
      [ $TROUPE_TASK != 11 ] || { echo >d/11.part; echo >o.11.part; until [ -e again ]; do sleep 0.01; done; }
      [ $TROUPE_TASK != 1 ] || echo >again
      echo >d/$TROUPE_TASK
Y
    echo mine >o.1.mine
    run -0 --separate-stderr troupe run --local=3 --run-name r p.yaml
    [ "$(echo o.1*)" = "o.1.before.0 o.1.before.1 o.1.mine o.1.x o.10.x o.11.part o.11.x" ]
    [ "$(echo d/1*)" = "d/1 d/10 d/11 d/11.part" ]
    [ "$(cat o.1.mine o.1.x)" = $'mine\nmore\n1' ]
    [[ "$stderr" == *"stage s: task 1 runs again, its output o.1.before.0 stays: task 0 of stage before has made it; as do "* ]]
}

@test "at the next start goes what a failed attempt had left, not what came between the two" {
    one 'tasks: 1, outputs: ["o.$TROUPE_TASK*"], retries: {max_failures: 1}, run: "echo >o.0.part; echo >o.0.late; [ -e go ] && echo >o.0"'
    run -1 troupe run --run-name r p.yaml
    touch o.0.mine o.0.late go
    run -0 --separate-stderr troupe run --resume r
    [ "$(echo o.0*)" = "o.0 o.0.late o.0.mine o.0.part" ]
    [[ "$stderr" == *"stage s: task 0 runs again, its output o.0.late stays: it has changed since; as does 1 more"* ]]
    sed -i 's/echo >o.0.part; //' p.yaml
    rm go
    run -1 troupe run --run-name q p.yaml # there before: nothing of it goes
    run -1 troupe run --resume q
    [ -e o.0.part ]
}

@test "logs are their owner's alone whatever the umask, and there only when something was printed" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, run: "echo x; exec 2>&-"}
  - {name: g, mpi: {ranks: 2}, run: "[ $TROUPE_RANK = 0 ] || echo x >&2"}
  - {name: dumb, run: "exit 3", retries: {max_failures: 1}}
  - {name: loud, after: [s, g], run: "echo so; exit 3", retries: {max_failures: 1}}
Y
    umask 0
    run -1 --separate-stderr troupe run --run-name r --keep-going p.yaml
    [ "$(cd troupe-runs/r/logs && find . -type f | sort | tr '\n' ' ')" = "./g/0.0.1.err ./loud/0.0.out ./s/0.0.out " ]
    [ -z "$(find troupe-runs ! -type l -perm /077)" ]
    grep -q 'stage dumb: task 0 failed once, with exit status 3; run stops at the first command that fails$' <<<"$stderr"
    [[ "$stderr" == *"stage loud: task 0 failed once, with exit status 3; see troupe-runs/r/logs/loud/0.0.out"* ]]
}

# groups_of FOLDER: memory groups of the run that has this private folder, where it may have any.
groups_of() { find /sys/fs/cgroup -type d -name "${1##*/}-[0-9]*" 2>/dev/null; }
without_groups() { [ -z "$(groups_of "$1")" ]; }

# hold_as_well FOLDER PIDS: shares the lock that one of them has on it, and makes the file "held".
hold_as_well() {
    # shellcheck disable=SC2016 # perl's variables
    exec env -u DRILL_TOKEN perl -e '
        my ($test, $folder, @pids) = (getppid, shift, split " ", shift);
        for my $pid (@pids) {
            for my $fd (map { m{([0-9]+)$} } glob "/proc/$pid/fd/*") {
                next if (readlink("/proc/$pid/fd/$fd") // "") ne $folder;
                my $process = syscall 434, $pid + 0, 0; # pidfd_open
                syscall(438, $process, $fd + 0, 0) < 0 or $held = 1; # pidfd_getfd
            }
        }
        open my $f, ">", "held" if $held;
        sleep 1 while getppid == $test' "$1" "$2" 3>&-
}

# at_one_blow PIDS: kills them, and waits for what is left of the run to end.
at_one_blow() {
    local all
    all=$(tr ' ' '\n' <<<"$1" | sort -rn) # one that is stopped is woken when its parent is gone: children first
    kill -STOP $all                       # or one sweeps what another leaves
    kill -9 $all
    nothing_left
}

@test "what a run leaves that was killed at one blow goes with the next one; nothing else" {
    moving_clock
    one 'run: "touch $TROUPE_SCRATCH/f begun; sleep 60"'
    mkdir -p -m 700 /tmp/troupe-drill1 # somebody's own, by chance of such a name
    touch -d '1 hour ago' /tmp/troupe-drill1
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls begun
    local mine holder
    mine=$(private_folder)
    [ -d "$mine" ]
    # Any run of this user's takes what nobody holds: until it has been seen this test does.
    hold_as_well "$mine" "$(ours)" &
    holder=$!
    wait_until test -e held
    at_one_blow "$(ours)"
    [ -d "$mine" ]
    ls -d troupe-runs/r/state/scratch/troupe-*
    echo "memory groups: $(groups_of "$mine")"
    kill $holder
    advance 6s # younger ones may be about to be locked
    one 'run: "true"'
    run -0 troupe run --resume r --force s p.yaml
    wait_until test ! -e "$mine"
    without_groups "$mine"
    [ ! -e troupe-runs/r/state/scratch ]
    rmdir /tmp/troupe-drill1
}

@test "troupe, driver and guard killed together leave one folder, which the user's next run takes" {
    moving_clock
    export XDG_RUNTIME_DIR=$PWD/runtime # of what runs share
    mkdir -m 700 runtime
    one 'run: "touch $TROUPE_SCRATCH/f begun; sleep 60"'
    troupe run --run-name r p.yaml >out 2>&1 &
    local troupe=$! mine holder
    wait_until ls begun
    mine=$(private_folder)
    hold_as_well "$mine" "$(ours)" &
    holder=$!
    wait_until test -e held
    at_one_blow "$troupe $(guard_of r) $(pid_of driver r)"
    [ -d "$mine" ]
    [ -z "$(ls troupe-runs/r/state/scratch)" ]
    kill $holder
    advance 6s
    one 'run: "true"'
    run -0 troupe run --run-name next p.yaml
    wait_until test ! -e "$mine"
    without_groups "$mine"
    [ "$(ls runtime)" = troupe-cores ]
}

@test "what executor and spawner leave in the site's scratch folder when killed at one blow goes with the run" {
    one 'run: "touch $TROUPE_SCRATCH/f begun.$TROUPE_ATTEMPT; [ $TROUPE_ATTEMPT = 1 ] || sleep 60"'
    mkdir -m 700 disk disk/troupe-backup
    printf "site: 1\nscratch: %s\n" "$PWD/disk" >site.yaml
    troupe run --run-name r --site site.yaml p.yaml >out 2>&1 &
    wait_until ls begun.0
    local left spawner
    left=$(echo disk/troupe-??????/0)
    [ -e "$left/f" ]
    spawner=$(pid_of "spawner 0" r)
    kill -STOP "$(pid_of "executor 0" r)" $spawner # or one removes what the other leaves
    kill -9 $spawner "$(pid_of "executor 0" r)"
    wait_until ls begun.1
    wait $!
    [ "$(ls -A disk)" = troupe-backup ]
}

@test "what a killed run leaves in the site's scratch folder goes with the next run" {
    one 'run: "touch $TROUPE_SCRATCH/f begun; [ -e go ] || sleep 60"'
    mkdir disk
    printf "site: 1\nscratch: %s\n" "$PWD/disk" >site.yaml
    troupe run --run-name r --site site.yaml p.yaml >out 2>&1 &
    wait_until ls begun
    at_one_blow "$(ours)"
    ls disk/troupe-*/0/f
    touch go
    run -0 troupe run --run-name next --site site.yaml p.yaml
    [ -z "$(ls -A disk)" ]
}

@test "a failed rank fails the gang, which runs again as a whole" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {g: {executor: {cores: 2}, task: {cpus: 1}}}
stages:
  - name: g
    profile: g
    mpi: {ranks: 2}
    run: "echo $TROUPE_ATTEMPT; [ $TROUPE_RANK = 0 ] || [ $TROUPE_ATTEMPT = 1 ] || exit 5; sleep 0.2"
    retries: {max_failures: 4}
Y
    run -0 troupe run --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/g/0.1.0.out)" = 1 ]
}

@test "the spawner of gangs killed: the run ends, says so, and leaves no rank" {
    one 'mpi: {ranks: 2}, run: "touch rank.$TROUPE_RANK; setsid sleep 98.8 & sleep 98.8"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls rank.1
    kill -9 "$(sed -n 's/^\([0-9]*\) spawner of gangs$/\1/p' troupe-runs/r/state/pids)"
    local status=0
    await $! || status=$?
    [ $status = 4 ]
    [ -z "$(pgrep -f '^sleep 98.8')" ]
    grep -q "the spawner of gangs was killed by SIGKILL (9)" out
}

@test "the spawner of gangs killed before there is one: the run says so, too" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: s, run: "touch begun; until [ -e go ]; do sleep 0.1; done"}
  - {name: g, after: [s], mpi: {ranks: 2}, run: "true"}
Y
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls begun
    kill -9 "$(sed -n 's/^\([0-9]*\) spawner of gangs$/\1/p' troupe-runs/r/state/pids)"
    touch go
    local status=0
    await $! || status=$?
    [ $status = 4 ]
    grep -q "stage g: the spawner of gangs was killed by SIGKILL (9)" out
}

# guard_of RUN: the newest one's number.
guard_of() {
    sed -n 's/^\([0-9]*\) guard$/\1/p' "troupe-runs/$1/state/pids" | tail -n 1
}

# kill_guard RUN: there is another one then, and nothing of the first.
kill_guard() {
    local first
    first=$(guard_of "$1")
    kill -9 "$first"
    wait_until other_guard "$1" "$first"
    kill -0 "$(guard_of "$1")"
}
other_guard() { [ "$(guard_of "$1")" != "$2" ]; }

# bats test_tags=both
@test "guards killed, one after the other: the run goes on, with new executors, and nothing stays" {
    export TROUPE_OPT_comm_transport=socket # one over MPI ends with its guard
    one 'tasks: 4, run: "touch $TROUPE_SCRATCH/f began.$TROUPE_TASK.$TROUPE_ATTEMPT; until [ -e go ]; do sleep 0.05; done; echo $TROUPE_TASK"'
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until [ -e began.0.0 -a -e began.1.0 ]
    local mine
    mine=$(private_folder)
    [ -d "$mine" ]
    kill_guard r
    [ -d "$mine" ]
    ls -d troupe-runs/r/state/scratch/troupe-*
    kill -9 "$(pid_of "executor 0" r)"
    wait_until grep -q "lost its executor" out
    kill_guard r
    wait_until [ -e began.0.1 -o -e began.1.1 ]
    touch go
    wait $!
    nothing_left
    [ "$(cat troupe-runs/r/logs/s/*.out | sort -un | wc -l)" = 4 ]
    [ ! -e troupe-runs/r/state/scratch ]
    [ ! -e "$mine" ]
}

@test "the guard killed while the run comes up: it begins again, and once only" {
    export TROUPE_OPT_comm_transport=socket # one over MPI ends with its guard
    local pause
    one 'run: "echo once >>told; until [ -e go ]; do sleep 0.05; done"' # it may have come up by then
    for pause in 0 0.02 0.05 0.1 0.2 0.3; do
        rm -rf told go troupe-runs
        troupe run --run-name r p.yaml >out 2>&1 &
        wait_until grep -q ' guard$' troupe-runs/r/state/pids
        sleep $pause
        kill_guard r
        touch go
        wait $!
        nothing_left
        [ "$(cat told)" = once ]
        [ -z "$(ls troupe-runs/r/state/scratch 2>/dev/null)" ]
    done
}

# bereave WHO: a run of a guard that came later, when WHO is killed; sets mine.
bereave() {
    export TROUPE_OPT_comm_transport=socket # one over MPI ends with its guard
    one 'tasks: 2, run: "touch $TROUPE_SCRATCH/f begun; trap : TERM; (setsid sleep 60 &); sleep 60; sleep 60"'
    troupe run --run-name r p.yaml >out 2>&1 &
    local troupe=$! status=0
    wait_until ls begun
    mine=$(private_folder)
    [ -d "$mine" ]
    kill_guard r
    case $1 in
    troupe) kill -9 $troupe ;;
    # What cannot end in order: the guard does it by force.
    stopped)
        kill -STOP $(ours_like '^troupe: driver')
        kill -9 $troupe
        ;;
    driver) kill -9 $(ours_like '^troupe: driver') ;;
    esac
    await $troupe || status=$?
    echo "$status" >status
}

@test "the guard killed, and then troupe: the other guard ends the run and leaves nothing" {
    bereave troupe
    nothing_left
    [ ! -e troupe-runs/r/state/scratch ]
    [ ! -e "$mine" ]
}

@test "the guard killed, and then troupe: the other guard goes with the driver" {
    export TROUPE_OPT_comm_transport=socket # one over MPI ends with its guard
    one 'run: "touch begun; sleep 60"'
    troupe run --run-name r p.yaml >out 2>&1 &
    local driver
    wait_until [ -e begun ]
    driver=$(pid_of driver r)
    kill_guard r
    kill -9 $!
    wait_until eval '! kill -0 $driver'
    nothing_left
}

@test "the guard killed, and then troupe while the driver is stopped: all the same" {
    bereave stopped
    nothing_left
    [ ! -e troupe-runs/r/state/scratch ]
    [ ! -e "$mine" ]
}

@test "guard and driver killed at once: executors still clean up" {
    export TROUPE_OPT_comm_transport=socket # one over MPI ends with its guard
    mkdir scratch
    printf 'site: 1\nscratch: %s\n' "$PWD/scratch" >site.yaml
    one 'run: "touch $TROUPE_SCRATCH/f began; sleep 60"'
    troupe run --site site.yaml --run-name r p.yaml >out 2>&1 &
    wait_until ls began
    ls scratch/*
    kill -9 "$(guard_of r)" "$(pid_of driver r)"
    local status=0
    wait $! || status=$?
    cat out
    [ $status = 4 ]
    [ -z "$(ls scratch)" ]
}

@test "the guard killed, and then the driver: the run ends with 4 and leaves nothing" {
    bereave driver
    nothing_left
    [ "$(cat status)" = 4 ]
    grep -q "the driver died (killed by SIGKILL (9))" out
    [ ! -e troupe-runs/r/state/scratch ]
    [ ! -e "$mine" ]
}

@test "an executor killed in mid-stage: its tasks run elsewhere and the result is right" {
    one 'tasks: 8, run: "until [ -e go ]; do sleep 0.05; done; echo $TROUPE_TASK"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until pid_of "executor 0" r
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -9 "$(pid_of "executor 0" r)"
    wait_until grep -q "lost its executor" out
    touch go
    wait $!
    [ "$(cat troupe-runs/r/logs/s/*.out | sort -un | wc -l)" = 8 ]
}

# bats test_tags=both
@test "all executors killed, and killed again while they connect" {
    export TROUPE_OPT_comm_transport=socket # MPI may not let anybody in afterwards
    one 'tasks: 4, run: "until [ -e go ]; do sleep 0.05; done; echo $TROUPE_TASK"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -9 $(pid_of 'executor [0-9]*' r)
    wait_until pid_of "executor 2" r
    kill -9 $(pid_of 'executor [23]' r)
    touch go
    wait $!
    [ "$(cat troupe-runs/r/logs/s/*.out | sort -un | wc -l)" = 4 ]
}

# user_run NAME: `troupe run` of $d/p.yaml in $d in the background; for root as an ordinary
# user, who has no control groups. Sets $run.
user_run() {
    local words=()
    [ "$(id -u)" != 0 ] ||
        words=(setpriv --reuid=nobody --regid=nogroup --clear-groups env "HOME=$d")
    [ "$(id -u)" != 0 ] || chown nobody "$d"
    (cd "$d" && exec "${words[@]}" troupe run --run-name "$1" p.yaml) >"$d/out" 2>&1 &
    run=$!
}

# spawner_of EXECUTOR FOLDER: its pid.
spawner_of() { sed -n "s/^\([0-9]*\) spawner $1\$/\1/p" "$2/state/pids" | grep .; }

@test "a spawner killed: nothing it had started goes on beside the retry" {
    others_folder
    cat >"$d/p.yaml" <<'Y'
troupe: 1
stages:
  - name: s
    run: |
      [ $TROUPE_ATTEMPT = 0 ] || { ps -eo args | grep -c "^sleep 98.7" > beside || true; exit 0; }
      sh -c "sleep 98.71" & setsid sh -c "sleep 98.72; :" &
      env -i PATH="$PATH" setsid sh -c "(sleep 98.73; :) &"
      touch begun; wait
Y
    user_run r
    wait_until ls "$d/begun"
    kill -9 "$(spawner_of 0 "$d/troupe-runs/r")"
    await $run
    [ "$(cat "$d/beside")" = 0 ]
    [ -z "$(ls "$d/troupe-runs/r/state/scratch" 2>/dev/null)" ]
    grep -q "task 0, attempt 0: lost its executor: its spawner died; it is run again" "$d/out"
    grep -q '"Removed Reason":"its spawner was killed: Killed"' "$d"/troupe-runs/r/events.jsonl
}

@test "executor and spawner killed together: nothing goes on beside the retry" {
    others_folder
    cat >"$d/p.yaml" <<'Y'
troupe: 1
stages:
  - name: s
    run: |
      [ $TROUPE_ATTEMPT = 0 ] || { ps -eo args | grep -c "^sleep 98.7" > beside || true; exit 0; }
      sleep 98.75 & setsid sh -c "sleep 98.76; :" & touch begun; wait
Y
    user_run r
    wait_until ls "$d/begun"
    pids=$(sed -n 's/^\([0-9]*\) \(spawner\|executor\) 0$/\1/p' "$d/troupe-runs/r/state/pids")
    kill -STOP $pids # so that neither cleans up behind the other
    kill -9 $pids
    await $run
    [ "$(cat "$d/beside")" = 0 ]
}

@test "a stopped spawner is found, and its tasks run again" {
    one 'run: "[ $TROUPE_ATTEMPT = 0 ] || exit 0; setsid sleep 98.74 & sleep 98.74", timeout: 60'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -STOP "$(spawner_of 0 troupe-runs/r)"
    await $!
    [ -z "$(pgrep -f "^sleep 98.74")" ]
    grep -q "lost its executor: its spawner hung; it is run again" out
    grep -q '"Removed Reason":"its spawner was stopped, or hung"' troupe-runs/r/events.jsonl
}

@test "a log that cannot be opened for ever, as on a hung file system, holds no run up" {
    one 'tasks: 2, run: "[ $TROUPE_TASK = 1 ] || sleep 1", retries: {max_failures: 3}'
    sed -i 's/stages:/stages:\n  - {name: first, run: "until [ -e go ]; do sleep 0.1; done"}/; s/name: s,/name: s, after: [first],/' p.yaml
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/first/0.0.out
    mkdir -p troupe-runs/r/logs/s
    mkfifo troupe-runs/r/logs/s/1.0.out
    touch go
    await $!
    grep -q "lost its executor: its spawner hung; it is run again" out
}

@test "an idle executor killed: the next stage has another" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {g: {executor: {cores: 1}, task: {cpus: 1}}}
stages:
  - {name: a, tasks: 2, run: "[ $TROUPE_TASK = 0 ] || until [ -e go ]; do sleep 0.1; done"}
  - {name: b, after: [a], tasks: 2, run: "echo ok"}
Y
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/a/1.0.out
    wait_until grep -q TaskEnd troupe-runs/r/events.jsonl
    ran=$(grep TaskEnd troupe-runs/r/events.jsonl | sed -n 's/.*"Executor ID":"\([0-9]*\)".*/\1/p' | head -1)
    kill -9 "$(pid_of "executor $ran" r)"
    wait_until grep -q ExecutorRemoved troupe-runs/r/events.jsonl
    touch go
    wait $!
    [ "$(cat troupe-runs/r/logs/b/*.out | wc -l)" = 2 ]
}

@test "nobody reads what it says any more: the run goes on, of a program as of commands" {
    one 'tasks: 4, run: "sleep 0.3; yes | head -1"'
    troupe run --run-name r p.yaml 2> >(:) > >(:) &
    wait $!
    [ "$(events r | grep -c '"Reason":"Success"')" = 4 ]
    run ! grep -r . troupe-runs/r/logs --include='*.err' # commands get their SIGPIPE
    troupe run --run-name c -- "$TROUPE_BUILD/examples/first" >out 2> >(:) &
    wait $!
    [ -s out ]
    nothing_left
}

@test "the driver killed: everything goes, and the log is readable" {
    one 'tasks: 4, run: "setsid sleep 100 & sleep 100"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    for title in driver "executor 0"; do
        ours | grep -qx "$(pid_of "$title" r)"
    done
    kill -9 "$(pid_of driver r)"
    status=0
    wait $! || status=$?
    [ $status = 4 ]
    nothing_left
    perl -MJSON::PP -ne 'decode_json($_)' troupe-runs/r/events.jsonl
    grep -q "driver" out
}

@test "troupe itself killed: the run ends and leaves nothing" {
    one 'tasks: 4, run: "sleep 100"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until ls troupe-runs/r/logs/s/0.0.out
    kill -9 $!
    nothing_left
    run -0 troupe ls
    [[ "$output" == *died* || "$output" == *cancelled* ]]
}

@test "troupe and its guard killed together: no other start while the driver is there" {
    local driver
    one 'run: "touch began; until [ -e go ]; do sleep 0.05; done; echo done"'
    troupe run --run-name r p.yaml >out 2>&1 &
    wait_until [ -e began ]
    driver=$(pid_of driver r)
    kill -STOP "$driver"
    kill -STOP "$(guard_of r)" $! # or one acts on the end of the other
    kill -9 "$(guard_of r)" $!
    run -4 troupe run --resume r
    [ "$output" = "troupe: run troupe-runs/r is still ending: its driver, which is in state/pids, has not gone yet; try again" ]
    troupe ls | grep -q '^r  *running'
    run -2 troupe cancel r
    [ "$output" = "troupe: cancel: run r ends already: its troupe is gone, and its driver follows" ]
    kill -CONT "$driver"
    touch go
    wait_until troupe run --resume r
    [ "$(events r | grep -c '"Event":"SparkListenerApplicationEnd"')" = 2 ]
}

# full_disk SIZE: p.yaml runs on a file system of that size and ends with 4.
full_disk() {
    [ "$(id -u)" = 0 ] || skip "needs root for a small file system"
    mkdir small && mount -t tmpfs -o size="$1" tmpfs small || skip "mount is not permitted"
    cp p.yaml small/
    cd small
    status=0
    troupe run --run-name r --set outputs.wait=100ms p.yaml >../out 2>&1 || status=$?
    cp troupe-runs/r/events.jsonl ../events || true
    cd ..
    wait_until umount small
    cat out
    [ $status = 4 ]
    grep -q '^troupe: cannot write .*: No space left on device' out
    [ "$(grep -c '^troupe: cannot write .*: No space left on device' out)" = 1 ]
    perl -MJSON::PP -ne 'decode_json($_)' events
}

@test "a disk that the tasks' output fills ends the run with 4 and a readable log" {
    one 'tasks: 6, run: "head -c 1000000 /dev/zero; echo x"'
    full_disk 3m
}

@test "a disk that the run's own events fill ends it with 4 and a readable log" {
    one 'tasks: 1000, run: "true"'
    full_disk 300k
}

@test "a disk that is full for a while is not the end of the run, and is told once" {
    [ "$(id -u)" = 0 ] || skip "needs root for a small file system"
    mkdir small && mount -t tmpfs -o size=2m tmpfs small || skip "mount is not permitted"
    cat >small/p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, run: "until [ -e ../go ]; do sleep 0.01; done"}
  - {name: b, after: [a], tasks: 300, run: "true"}
Y
    cd small
    troupe run --local=4 --run-name r p.yaml >../out 2>&1 3>&- &
    wait_until grep -q SparkListenerTaskStart troupe-runs/r/events.jsonl
    cat /dev/zero >fill 2>/dev/null || true
    touch ../go
    wait_until grep -q 'No space left on device; it is tried again for 60 s' ../out
    rm fill
    wait $! || { cat ../out; false; }
    [ "$(grep -c 'No space left' ../out)" = 1 ]
    [ "$(grep -c '"done":' troupe-runs/r/state/done.jsonl)" = 301 ]
    perl -MJSON::PP -ne 'decode_json($_)' troupe-runs/r/events.jsonl troupe-runs/r/state/done.jsonl
    run -0 troupe run --local=4 --resume r
    [[ "$output" == *"nothing is left to do"* ]]
    cd ..
    wait_until umount small
}

@test "a run that a full disk did not let begin can be begun again, or resumed" {
    [ "$(id -u)" = 0 ] || skip "needs root for a small file system"
    mkdir small && mount -t tmpfs -o size=2m tmpfs small || skip "mount is not permitted"
    one 'run: echo x'
    cp p.yaml small/
    cd small
    for pages in 0 1 2 4; do
        head -c $((pages * 4096)) /dev/zero >room
        cat /dev/zero >fill 2>/dev/null || true
        rm room
        run -4 troupe run --run-name "r$pages" p.yaml
        [[ "$output" == *"No space left on device"* ]]
        rm fill
        [ $pages != 0 ] || [ ! -e troupe-runs/r0 ]
        run -0 sh -c "troupe run --run-name r$pages p.yaml || troupe run --resume r$pages"
        [ -e "troupe-runs/r$pages/logs/s/0.0.out" ]
    done
    cd ..
    wait_until umount small
}

@test "a run folder that cannot be made is exit 4 before anything starts" {
    one 'run: "true"'
    touch troupe-runs
    run -4 troupe run p.yaml
    [[ "$output" == *troupe-runs* ]]
}

@test "a profile that never fits is exit 3 at once: resource, wanted, available" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 4096}}}
stages: [{name: s, profile: p, run: "true"}]
Y
    run -3 troupe run p.yaml
    [[ "$output" == *"p.yaml:2:"*cores*4096* ]]
    [ ! -d troupe-runs ] || [ -z "$(ls troupe-runs)" ] || true
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {gpu: 1}, task: {gpu: 1}}}
stages: [{name: s, profile: p, run: "true"}]
Y
    run -3 troupe run p.yaml
    [[ "$output" == *gpu* ]]
}

# bats test_tags=plain
@test "a task killed for memory runs again with more where memory_factor says so" {
    cat >p.yaml <<'Y'
troupe: 1
profiles: {p: {executor: {cores: 1, memory: 100m, memoryOverhead: 28m}}}
stages:
  - {name: s, profile: p, run: "perl -e '$x = \"a\" x ($ARGV[0]); sleep unless $ENV{TROUPE_ATTEMPT}' 300000000", retries: {memory_factor: 3}}
Y
    run -0 troupe run p.yaml
    [[ "$output" =~ "attempt 0: killed for memory (limit 128 MiB, peak "[0-9]+" MiB); it is run again with 384 MiB" ]]
}
