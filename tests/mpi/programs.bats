#!/usr/bin/env bats
# C programs on troupe.h: elastic under `troupe run`, static under mpirun.
load drill.bash

static() { # as root too
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun --oversubscribe "$@"
}

# bats test_tags=mpi
@test "the same program counts the same words elastic and static" {
    printf 'a b a\nc a\n' >text
    run -0 troupe run --quiet -- "$programs/wordcount" text
    elastic=$output
    run -0 static -n 3 "$programs/wordcount" text
    for line in $elastic; do [[ "$output" == *"$line"* ]]; done
}

@test "started alone it says how to start it" {
    run "$programs/wordcount" text
    [ "$status" -ne 0 ]
    [[ "$output" == *"troupe run --"* ]]
}

@test "a function that crashes its executor is counted against its task and run again" {
    run -0 troupe run --run-name r -- "$programs/crash"
    [[ "$output" == *SIGSEGV* ]]
    # its neighbours were lost with it, which is no failure of theirs
    [[ "$output" == *"20 tasks, 1 failed attempt,"* ]]
    [ "$(awk '$1 == "total" { print $4 }' <<<"$output")" = 1 ]
}

@test "an executor dies, and the program has SIGCHLD blocked, handled or ignored, or has waited for it" {
    for what in blocked handled ignored taken; do
        run -0 troupe run --run-name "$what" --local=2 -- "$programs/children" "$what"
        [[ "$output" == *"count 2"* ]]
    done
    run troupe run --run-name early --local=2 -- "$programs/children" early
    [[ "$status" = 4 && "$output" == *"children: "*"ended with exit status 3"* ]]
}

@test "the name of a program moves no cursor" {
    cp "$programs/ends" $'e\e[31m\302\23331m'
    touch go
    run -0 troupe run --local=1 --run-name r -- ./$'e\e[31m\302\23331m' away
    run -0 troupe ls
    [[ "$output" == *"e?[31m??31m"* ]]
    [ "$(troupe report r | LC_ALL=C grep -c $'[\033\233]')" = 0 ]
}

@test "what a function says of its failure is told once" {
    run -1 troupe run --run-name r -- "$programs/fails" 9
    [[ "$output" == *": task 1, attempt 0: exit status 37: attempt 0 is no good; it is run again"* ]]
    [[ "$output" == *"task 1 failed 4 times, last with exit status 37: attempt 3 is no good"* ]]
    [[ "$output" != *"no good: attempt"* ]]
    run -1 troupe run --set task.maxFailures=1 -- "$programs/fails" 9
    [[ "$output" == *": task 1 failed once, with exit status 37: attempt 0 is no good"* ]]
    run -1 troupe run --set task.maxFailures=1 -- "$programs/crash" always
    [[ "$output" == *"task 3 failed once: "*SIGSEGV* ]]
}

@test "one that always crashes is given up after four attempts; its neighbours are not charged" {
    run -1 troupe run --run-name r -- "$programs/crash" always
    [[ "$output" == *"task 3 failed 4 times"*SIGSEGV* ]]
    run ! grep -v '^task 3,' <<<"$(grep -o 'task [0-9]*, attempt [0-9]*: .*' <<<"$output")"
}

@test "a function that calls exit() is told of, counted once and not tried again" {
    run -1 troupe run --run-name r -- "$programs/crash" exit
    [[ "$output" == *"task 3 failed once, with a mistake in the program: its function called exit(0), which ends the executor; let it return a status"* ]]
    [ "$(grep -c 'task [0-9]*, attempt [0-9]*: ' <<<"$output")" = 1 ]
    events r | grep -q '"Removed Reason":"a function ended it by exit(0)"'
}

@test "an assertion that fails in a function is told in its words, and run again" {
    run -0 troupe run --run-name r -- "$programs/crash" assert
    [[ "$output" == *"task 3, attempt 0: killed by SIGABRT (6): "*"die: Assertion \`!first' failed.; it is run again"* ]]
    [[ "$output" == *"20 tasks, 1 failed attempt,"* ]]
}

# bats test_tags=plain
@test "a function over its executor's memory is named, and its neighbours run again uncharged" {
    run -1 troupe run --run-name r -- "$programs/memory" 600
    [[ "$output" =~ "task 1 failed 4 times, last: killed for memory (limit 256 MiB, peak "[0-9]+" MiB)" ]]
    run ! grep -v '^task 1,' <<<"$(grep -o 'task [0-9]*, attempt [0-9]*: .*' <<<"$output")"
}

@test "a result of 50 MB comes back whole" {
    run -0 troupe run --quiet -- "$programs/bigresult"
}

@test "results above driver.maxResultSize fail the job, also those of the last task alone" {
    for parts in 3 1; do
        run -1 troupe run --set driver.maxResultSize=1m -- "$programs/bigresult" 4 $parts
        [[ "$output" == *"above driver.maxResultSize (1.0 MiB)"* ]]
        [[ "$output" != *collected* ]]
    done
    run -0 troupe run --quiet --set driver.maxResultSize=0 -- "$programs/bigresult" 4 1
}

@test "executor profiles are refused in a static run, with the reason" {
    run -3 --separate-stderr static -n 3 "$programs/shapes"
    grep -q 'shapes: .*profile' <<<"$stderr"
    run ! grep -E '^(troupe|rank)' <<<"$stderr" # only the reason
    run -0 troupe ls
    [[ "$output" == *shapes*@(succeeded|failed)* ]]
}

# gpus GPUS-AN-EXECUTOR GPUS-A-TASK WORD…: a static run with devices in the default profile.
gpus() {
    local each=$1 task=$2
    shift 2
    TROUPE_OPT_executor_resource_gpu_amount=$each TROUPE_OPT_task_resource_gpu_amount=$task \
        static "$@"
}

@test "ranks of a static run share the devices of their host out" {
    echo '{site: 1, local: {gpu: ["g10", "g9", "g0", "g1", "g2"]}}' >site.yaml
    export TROUPE_SITE=$PWD/site.yaml
    run -0 --separate-stderr gpus 2 2 -n 3 "$programs/shapes" -d gpu
    [ "$(grep -o 'gpu=.*' <<<"$output" | sort | uniq | xargs)" = "gpu=g0,g1 gpu=g2,g9" ]
    grep -q '"spark.dynamicAllocation.enabled":"false"' troupe-runs/last/events.jsonl
    # What Slurm says is stronger; half a device a task.
    SLURM_STEP_GPUS=5,6 run -0 --separate-stderr gpus 1 1/2 -n 3 "$programs/shapes" -d gpu
    [ "$(grep -o 'gpu=.*' <<<"$output" | sort | uniq | xargs)" = "gpu=5 gpu=6" ]
    unset TROUPE_SITE
    export TROUPE_OPT_executor_cores=2
    CUDA_VISIBLE_DEVICES=3,1 run -0 --separate-stderr gpus 2 1 -n 2 "$programs/shapes" -d gpu
    [ "$(grep -o 'gpu=.*' <<<"$output" | sort | uniq | xargs)" = "gpu=1 gpu=3" ]
}

# bats test_tags=mpi
@test "a static run over sockets is refused: its messages travel over its MPI" {
    run -2 --separate-stderr bash -c "$(declare -f static); static -n 2 -x TROUPE_OPT_comm_transport=socket $programs/shapes -d gpu"
    [[ "$stderr" == *"troupe: TROUPE_OPT_comm_transport: comm.transport=socket: "*"leave it out"* ]]
}

@test "a static run without enough devices says so at its start and ends with 3" {
    run -3 --separate-stderr bash -c "$(declare -f static gpus); gpus 2 1 -n 2 $programs/shapes -d gpu"
    grep -q "^troupe: TROUPE_OPT_executor_resource_gpu_amount: .* nothing says which gpu rank 1 " <<<"$stderr"
    [ "$(grep -c '^troupe' <<<"$stderr")" = 1 ]
    export CUDA_VISIBLE_DEVICES=0,1,2
    run -3 --separate-stderr bash -c "$(declare -f static gpus); gpus 2 1 -n 3 $programs/shapes -d gpu"
    grep -q "of the 3 gpu on .* (by CUDA_VISIBLE_DEVICES) 1 is left for rank 2" <<<"$stderr"
    [ ! -e troupe-runs ]
}

@test "tasks of a barrier stage start together, wait for each other and tell each other" {
    run -0 troupe run --quiet --local=4 -- "$programs/together" 4
    [[ "$output" == *"4 tasks said: 0 1 2 3"* ]]
    run -0 static -n 3 --oversubscribe "$programs/together" 2
    [[ "$output" == *"2 tasks said: 0 1"* ]]
    run -1 troupe run --quiet -- "$programs/together" 2 plain
    [[ "$output" == *"its stage is no barrier stage"* ]]
}

@test "when a task of a barrier stage fails all run again" {
    run -0 troupe run --local=3 -- "$programs/together" 3 fail
    [[ "$output" == *"3 tasks said: 0 1 2"* ]]
    [[ "$output" == *"is run again: task 1 of barrier stage"*"exit status 9"* ]]
    [ "$(awk '$1 == "total" { print $3; exit }' <<<"$output")" = 6 ]
}

@test "a barrier stage that can never have its slots says so" {
    run -3 troupe run --local=2 -- "$programs/together" 3
    [[ "$output" == *"a barrier stage of 3 tasks needs as many slots at once"* ]]
}

@test "each stage has the shape of its profile, and its tasks their parts of devices" {
    echo '{site: 1, local: {gpu: ["g0", "g1"]}}' >site.yaml
    run -0 --separate-stderr troupe run --quiet --local=4 --site site.yaml -- "$programs/shapes"
    [ "$(grep -cx 'wide task [0-5] cpus 1 =' <<<"$output")" = 6 ]
    [ "$(grep -cx 'device task [0-5] cpus 1 gpu=g[01]' <<<"$output")" = 6 ]
}

@test "a task-only profile: elastic and static" {
    for how in "troupe run --quiet --local=4 --set executor.cores=2 --" "static -n 2 -x TROUPE_OPT_executor_cores=2"; do
        run -0 $how "$programs/shapes" -t 2
        [ "$(grep -cx 'light task [0-3] cpus 2 =' <<<"$output")" = 4 ]
    done
}

@test "trp_save writes a file for each partition, into a new folder only" {
    run -0 troupe run --quiet -- "$programs/saves" out 10 3
    [ "$output" = saved ]
    [ "$(echo out/*)" = "out/part-00000 out/part-00001 out/part-00002" ]
    [ "$(cut -f2 out/part-* | tr '\n' ' ')" = "0 1 4 9 16 25 36 49 64 81 " ]
    run -2 troupe run --quiet -- "$programs/saves" out
    [[ "$output" == *"cannot make the folder out: File exists"* ]]
}

@test "two profiles in one stage are an error that names the option which merges them" {
    run -2 troupe run --quiet -- "$programs/conflict"
    [[ "$output" == *"one stage has several profiles, one and other; use one, or set scheduler.resource.profileMergeConflicts=true"* ]]
    run -0 troupe run --quiet --set scheduler.resource.profileMergeConflicts=true --run-name r -- "$programs/conflict"
    [ "$output" = "count 100" ]
    # the larger of each
    events r | grep ExecutorAdded | head -n 1 | grep '"Total Cores":2'
    events r | grep '"Resource Profile Id":3,.*"cores","Amount":2,.*"memory","Amount":512,.*"one+other"'
}

@test "a program that ends without trp_finalize has its status, and leaves nothing" {
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # the program frees nothing
    run -7 troupe run --quiet --run-name r -- "$programs/leaves" 7
    [ "$output" = "count 1000" ]
    nothing_left
    run -7 static -n 2 "$programs/leaves" 7
    [[ "$output" == *"count 1000"* ]]
}

@test "what a program returns after trp_finalize is the run's status" {
    run -7 troupe run --quiet --run-name r -- "$programs/leaves" 7 finalize
    [ "$output" = "count 1000" ]
    run -0 troupe ls
    [[ "$output" == *"r "*failed*7* ]]
    run -0 troupe run --quiet -- "$programs/leaves" 0 finalize
}

@test "a function that asks whether it was given up is told so" {
    troupe run --quiet --local=2 --set run.grace=0 --run-name r -- "$programs/sleepy" 2 100000 >out 2>&1 &
    wait_until ls begun.0 begun.1
    kill -INT $!
    status=0
    wait $! || status=$?
    [ $status = 130 ]
    [ "$(echo gave-up.*)" = "gave-up.0 gave-up.1" ]
}

@test "a mistake in a program is told at once and not tried again" {
    mistake() { # WHAT WORDS
        rm -f attempts
        run -1 troupe run --quiet --local=4 -- "$programs/mistakes" "$1"
        [[ "$output" == *"task "[0-3]" failed once, with a mistake in the program: $2"* ]] ||
            { echo "$output" && return 1; }
        [ ! -e attempts ] || [ "$(cat attempts)" = 0 ]
    }
    mistake map "trp_map: wrong emitted 10 records for 5; one for each is needed"
    mistake filter "trp_filter: wrong emitted 0 values"
    mistake key "wrong: some records have a key and some have none"
    mistake combine "nothing a combine function must emit exactly one value"
    mistake barrier "trp_map: wrong emitted 10 records for 5"
}

@test "an error that is not made good is the run's exit status, whatever main returns" {
    owes() { # STATUS STEP…
        local want=$1
        shift
        run "-$want" troupe run --quiet --local=2 --run-name "r.$(IFS=-; echo "$*")" -- "$programs/owes" "$@"
    }
    owes 3 never
    [[ "$output" == "owes: profile odd: "* ]]
    run -0 troupe ls
    [[ "$output" == *"r.never "*failed*3* ]]
    owes 3 never exit
    owes 0 never built
    owes 2 saved B
    owes 0 saved A
    owes 3 never saved
    owes 2 never saved built
    owes 0 never saved clear
    owes 2 never clear wrong
}

@test "a program that never calls trp_init is told so, unless it was asked for help" {
    run -2 --separate-stderr troupe run -- echo hello
    [ "$output" = hello ]
    [[ "$stderr" == "troupe: "*"/echo ended and never came through trp_init; \`troupe run --\` is for programs that use troupe.h" ]]
    run -0 troupe ls
    [[ "$output" == *failed*2* ]]
    run -0 --separate-stderr troupe run -- bash --version
    [[ "$output" == *version* ]]
    [ -z "$stderr" ]
}

@test "what functions print is among the logs that the summary names, and nothing else is" {
    run -0 troupe run --local=2 --run-name r -- "$programs/prints" 6
    [[ "$output" == *"logs: troupe-runs/r/logs"[[:space:]]* ]]
    [ "$(cat troupe-runs/r/logs/executor-*.log | sort)" = "$(for i in 0 1 2 3 4 5; do
        echo "task $i complains"
        echo "task $i speaks"
    done)" ]
    # Where nothing was printed there is nothing to see.
    run -0 troupe run --local=2 --run-name silent -- "$programs/sums"
    [[ "$output" == *"events: troupe-runs/silent/events.jsonl"* && "$output" != *"logs: "* ]]
    run -0 troupe report silent
    [[ "$output" == *"events: "* && "$output" != *"logs: "* ]]
    run -0 static -n 2 "$programs/prints" 1
    [[ "$output" == *"task 0 speaks"*"events: troupe-runs/prints-"* && "$output" != *"logs: "* ]]
}

@test "inline: driver and tasks are one process and thread, and leave nothing" {
    mkdir mine
    export TROUPE_SCRATCH=$PWD/mine # its private folder is made there
    chmod 700 mine
    run -0 --separate-stderr troupe run --inline -- "$programs/prints" 3
    [ "$output" = "$(for i in 0 1 2; do echo "task $i speaks"; done)" ] # not in logs
    [ -z "$(ls -A mine)" ]
    [ ! -e troupe-runs ]
    # what fails is told at once, and ends the program as it does elsewhere
    run -1 --separate-stderr troupe run --inline -- "$programs/fails" 1
    [[ "$stderr" == *"task 1 failed once, with exit status 37: attempt 0 is no good" ]]
    # any shape fits; a task has the first devices
    run -0 env TROUPE_INLINE=1 "$programs/shapes" fpga
    [[ "$output" == *"device task 5 cpus 1 fpga=0" ]]
    run -2 env TROUPE_INLINE=1 "$programs/together" 2
    [[ "$output" == *"a barrier of 2 tasks: without executors tasks run one after the other, and cannot wait for each other" ]]
    run -0 env TROUPE_INLINE=1 "$programs/together" 1
    [ "$output" = "1 tasks said: 0" ]
    run -1 env TROUPE_INLINE=1 "$programs/together" 1 plain
    [[ "$output" == *"its stage is no barrier stage (trp_barrier)" ]]
    # what is kept elsewhere is made again, and is the same
    run -0 env TROUPE_INLINE=1 CACHED_NUMBERS=8000 "$programs/cached" unpersist memory calls
    [ "$(sort -u <<<"${output//round ?: /}")" = "8000 31996000" ]
    run -2 --separate-stderr troupe run --inline --set no.such=1 -- "$programs/fails" 0
    [[ "$stderr" == "troupe: "*"no_such"* ]]
    [ -z "$(ls -A mine)" ]
}

# Each is held against what other programs compute of the same input.
@test "sessions, the greatest, the first, and records of one width: with executors and without" {
    local how
    awk 'BEGIN { srand(7); for (i = 0; i < 3000; i++)
        printf "u%02d %d\n", rand() * 40, rand() * 3000 }' >visits
    sort -k1,1 -k2,2n visits | awk '
        $1 != user { if (user) print out, n; user = out = $1; n = 0; last = $2 }
        n && $2 - last >= 30 { out = out " " n; n = 0 }
        { n++; last = $2 } END { print out, n }' >sessions
    seq 5000 | sort -R --random-source=visits | sed 's/$/ x/' >numbers
    mkdir records
    # of 16 bytes, with a key of 8
    seq 10000001 10003000 | sort -R --random-source=visits | sed 's/.*/&-------|/' | tr -d '\n' >records/a
    for how in "troupe run --local=2 --quiet --" "troupe run --inline --"; do
        rm -rf sorted
        run -0 --separate-stderr $how "$programs/kinds" sessions visits
        sort <<<"$output" | diff - sessions
        run -0 --separate-stderr $how "$programs/kinds" top numbers 12
        sort -nr numbers | head -n 12 | diff - <(echo "$output")
        run -0 --separate-stderr $how "$programs/kinds" take numbers 1500
        head -n 1500 numbers | diff - <(echo "$output")
        run -0 --separate-stderr $how "$programs/kinds" lines numbers
        [ "$output" = "4 5000" ]
        run -0 $how "$programs/kinds" sort 'records/*' sorted
        diff <(cat sorted/part-* <(echo) | fold -w 16) <(fold -w 16 records/a | sort)
    done
}
