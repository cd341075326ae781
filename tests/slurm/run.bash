# Shared by drills: one stage of small executors, as a job of alice's.

# A silent network is given up soon.
# shellcheck disable=SC2034 # the tests use it
quick=(--set network.timeout=4s --set executor.heartbeatInterval=1s)

# pipeline TASKS COMMAND [KEY…]: one stage s of small executors. Each attempt of a task says
# in ran.TASK.ATTEMPT where it runs.
pipeline() {
    local tasks=$1 command=$2
    shift 2
    cat >p.yaml <<END
troupe: 1
profiles:
  small: {executor: {cores: 1, memory: 100m, memoryOverhead: 56m}, task: {cpus: 1}}
stages:
  - name: s
    tasks: $tasks
    profile: small
$(printf '    %s\n' "$@")
    run: |
      hostname >>ran.\$TROUPE_TASK.\$TROUPE_ATTEMPT
      $command
END
}

# run_on JOB OPTION… -- RUN OPTION…: alice's run of p.yaml, on the nodes of its job.
run_on() {
    local job_options=()
    while [ "$1" != -- ]; do
        job_options+=("$1")
        shift
    done
    shift
    submit alice --no-kill "${job_options[@]}" -- \
        "$TROUPE" run --set alloc.placement=inside --run-name r "$@" p.yaml
}

# have_run N: so many attempts have begun.
have_run() {
    [ "$(cat ran.* 2>/dev/null | wc -l)" -ge "$1" ]
}

has_run_on() {
    grep -lqx "$1" ran.*
}

# well: the job ends with success.
well() {
    run finished
    echo "$output"
    [ "$status" = 0 ]
}
