#!/usr/bin/env bats
# Several jobs of a C program at once.
load drill.bash

# jobs STATUS ARGUMENT…: runs the program, with $options.
options=''
jobs() {
    local status=$1
    shift
    # shellcheck disable=SC2086
    run "-$status" --separate-stderr troupe run --run-name r --local=4 $options -- \
        "$programs/jobs" "$@"
}
said() { grep -qx -- "$1" <<<"$output" || { echo "never said: $1"; echo "$output"; echo "$stderr"; return 1; }; }

# job_times: "ID FROM TO" of each job, ms, by the event log.
job_times() {
    events r | perl -ne '$s{$1} = $2 if /JobStart","Job ID":(\d+),"Submission Time":(\d+)/;
        print "$1 $s{$1} $2\n" if /JobEnd","Job ID":(\d+),"Completion Time":(\d+)/'
}

@test "two jobs run at the same time while the program does something else" {
    jobs 0 overlap
    [ "${lines[0]}" = begun ]
    said "b: 0 1"
    said "a: 0 2"
    said "c: 4, the last is 8"
    said "d: 0 -1"
    [ "$(cat saved/part-* | wc -c)" = 27 ] # three numbers of 8 bytes, each a line
    # by the log each began before the other ended, and says what it was
    job_times
    job_times | sort -n | awk '$1 == 0 { f = $2; t = $3 } $1 == 1 { exit !($2 < t && f < $3) }'
    events r | grep '"SparkListenerJobStart","Job ID":0,' |
        grep -F '"Properties":{"spark.job.description":"count trp_range → meets"}'
    events r | grep '"SparkListenerJobStart","Job ID":1,' |
        grep -F '"spark.job.description":"reduce trp_range → meets → add"'
}

has_started() { [ "$(wc -l <started)" -ge "$1" ]; }

@test "pools share the slots: 3 of 4 and 1 of 4; the log says which is whose" {
    echo 'pools: {one: {weight: 3}, two: {weight: 1}}' >pools.yaml
    : >started
    troupe run --run-name r --local=4 --set scheduler.mode=FAIR \
        --set scheduler.allocation.file=pools.yaml -- "$programs/jobs" shares one two >out 2>&1 3>&- &
    wait_until has_started 4 || { cat out; false; }
    for n in $(seq 20); do
        touch "called.$n"
        wait_until has_started $((4 + n))
    done
    running=$(tail -n +21 started | head -4 | sort | uniq -c | xargs)
    begun=$(tail -n +9 started | head -16 | sort | uniq -c | xargs)
    touch all
    wait $!
    echo "running $running, begun $begun"
    [ "$running" = "3 a 1 b" ]
    [ "$begun" = "12 a 4 b" ]
    events r | grep '"SparkListenerJobStart","Job ID":1,' | grep -F '"spark.scheduler.pool":"two"'
    events r | grep '"SparkListenerStageSubmitted"' | grep -F '"spark.scheduler.pool":"one"'
}

@test "a pool that nobody declared is refused where pools share, and none is asked for otherwise" {
    echo 'pools: {one: {weight: 3}}' >pools.yaml
    options="--set scheduler.mode=FAIR --set scheduler.allocation.file=pools.yaml"
    jobs 2 pool three
    said 'a: -1 -1 count trp_range: unknown pool "three"; the pools are .*'
    rm -r troupe-runs
    options=''
    jobs 0 pool three
    said "a: 0 5"
}

@test "a job that is cancelled leaves the other, and the stage that both need" {
    jobs 0 cancel
    said "cancel: 0 0"
    said "a: -10 -1 Job count .* cancelled"
    said "b: 0 -1"
    said "cancel: 0"
    said "n: 10"
    # one map stage for three jobs: each of its tasks ran once
    [ "$(events r | grep '"Task Type":"ShuffleMapTask"' | grep -c '"Reason":"Success"')" = 4 ]
    events r | grep '"SparkListenerJobEnd","Job ID":0,' | grep JobFailed
    events r | grep '"SparkListenerJobEnd","Job ID":1,' | grep JobSucceeded
}

@test "a stage that outlives its first job still has its inputs" {
    run -0 --separate-stderr troupe run --run-name r --local=1 -- "$programs/jobs" inputs
    said "a: -10 -1 Job count .* cancelled"
    said "b: 0 7998000"
}

@test "cancelling a stage cancels the jobs that need it, and no other" {
    jobs 0 stage
    said "none: -6"
    said "words: 0"
    said "a: -10 -1 Job count trp_reduce_by_key cancelled because stage words was cancelled"
    said "b: -10 -1 Job save .* cancelled because stage words was cancelled"
    said "c: 0 -1"
    said "words: -6"
}

@test "a job that fails says which it was, and the other goes on" {
    jobs 1 fails
    said "b: -11 -1 job foreach odd: stage odd: task [01] failed 4 times, last with exit status 9: no good"
    said "a: 0 -1"
    # every job that needs what failed says it
    rm -r troupe-runs
    jobs 1 shared
    said "a: -11 -1 job count first: stage words: task [01] failed 4 times, last with exit status 9: no good"
    said "b: -11 -1 job collect second: stage words: task [01] failed 4 times, last with exit status 9: no good"
}

@test "jobs that nobody waits for end with the run; one that had failed counts" {
    run -1 --separate-stderr troupe run --run-name r --local=1 -- "$programs/jobs" left
    [ "$(events r | grep -c '"SparkListenerJobEnd"')" = 2 ]
    events r | grep '"SparkListenerJobEnd","Job ID":0,' | grep -F "exit status 9: no good"
}

@test "two hundred jobs at once, some over the same sums" {
    jobs 0 many 200
    said "wrong: 0"
    [ "$(events r | grep '"Task Type":"ShuffleMapTask"' | grep -c '"Reason":"Success"')" = 4 ]
}

# bats test_tags=mpi
@test "a static run has them, too" {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    run -0 mpirun --oversubscribe -n 5 "$programs/jobs" overlap
    said "b: 0 1"
    said "a: 0 2"
}
