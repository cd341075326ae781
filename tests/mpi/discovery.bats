#!/usr/bin/env bats
# Discovery scripts: who runs them when, and who has which address then.
load drill.bash

# find TEXT…: a discovery script that notes each of its runs and prints the text.
find_prints() {
    printf '#!/bin/sh\necho run >>%q\ncat <<END\n%s\nEND\n' "$PWD/runs" "$*" >find
    chmod +x find
}

# A stage of tasks on executors with a gpu each; no two of them have the same at a time.
stage() {
    cat >p.yaml <<Y
troupe: 1
options: {executor.resource.gpu.discoveryScript: find}
profiles: {card: {executor: {cores: 1, gpu: 1}, task: {gpu: 1}}}
stages:
  - name: s
    tasks: $1
    profile: card
    timeout: 60
    run: |
      mkdir gpu.\$TROUPE_RESOURCE_gpu || exit 9
      echo \$TROUPE_RESOURCE_gpu >>used
      $2
      rmdir gpu.\$TROUPE_RESOURCE_gpu
Y
}

@test "each executor runs the script once, and has an address that no other has" {
    find_prints '{"name": "gpu", "addresses": ["b", "a", "c"]}'
    stage 3 'touch begun.$TROUPE_TASK; until [ $(ls begun.* | wc -l) = 3 ]; do sleep 0.05; done'
    run -0 troupe run --local=3 --run-name r p.yaml
    [ "$(sort used | xargs)" = "a b c" ]
    [ "$(wc -l <runs)" = 3 ]
    [ "$(grep -c 'ExecutorAdded' troupe-runs/r/events.jsonl)" = 3 ]
}

@test "where there are fewer addresses than room, executors wait for each other's" {
    find_prints '{"name": "gpu", "addresses": ["7"]}'
    stage 6 true
    run -0 troupe run --local=3 --run-name r p.yaml
    [ "$(sort -u used)" = 7 ]
    [ "$(wc -l <used)" = 6 ]
}

@test "a barrier stage that needs more devices than a script says ends at once" {
    find_prints '{"name": "gpu", "addresses": ["7", "8"]}'
    stage 3 true
    sed -i 's/tasks: 3/&\n    barrier: true/' p.yaml
    run -3 --separate-stderr troupe run --local=3 p.yaml
    [[ "${stderr_lines[-1]}" == "troupe: p.yaml:"*": stage s: "*"3 tasks"* ]]
    sed -i 's/tasks: 3/tasks: 2/' p.yaml
    run -0 troupe run --local=3 p.yaml
    [ "$(sort used | xargs)" = "7 8" ]
}

@test "what the site file says is not looked for" {
    find_prints '{"name": "gpu", "addresses": ["7"]}'
    stage 2 true
    echo '{site: 1, local: {gpu: ["8"]}}' >site.yaml
    run -0 troupe run --local=2 --site site.yaml p.yaml
    [ "$(sort -u used)" = 8 ]
    [ ! -e runs ]
}

@test "a script that fails ends the run, which says script, host and why" {
    stage 1 true
    printf '#!/bin/sh\necho one >&2\necho no driver is loaded >&2\nexit 5\n' >find
    chmod +x find
    run -4 --separate-stderr troupe run --local=1 p.yaml
    [[ "${stderr_lines[-1]}" == "troupe: p.yaml:5:11: stage s: discovery script $PWD/find of gpu on $(hostname): it ended with exit status 5: no driver is loaded" ]]
    # What this machine has never enough of is told at once.
    find_prints '{"name": "gpu", "addresses": []}'
    run -3 --separate-stderr troupe run --local=1 p.yaml
    [[ "${stderr_lines[-1]}" == "troupe: p.yaml:"*": stage s: discovery script $PWD/find of gpu on $(hostname): it says 0 addresses, an executor needs 1" ]]
    [ "$(wc -l <runs)" = 1 ]
}

@test "a run that ends does not wait for a script, and leaves nothing of it" {
    stage 1 true
    printf '#!/bin/sh\ntouch %q\nsleep 1000 &\nwait\n' "$PWD/begun" >find
    chmod +x find
    troupe run --local=1 --set run.grace=0 p.yaml >out 2>&1 3>&- &
    wait_until test -e begun
    kill -TERM $!
    local status=0
    wait $! || status=$?
    [ $status = 130 ]
    nothing_left
}

# bats test_tags=mpi
@test "the ranks of a static run look for theirs, and share them out" {
    find_prints '{"name": "gpu", "addresses": ["2", "10", "1"]}'
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export TROUPE_OPT_executor_resource_gpu_discoveryScript=$PWD/find
    export TROUPE_OPT_executor_resource_gpu_amount=1 TROUPE_OPT_task_resource_gpu_amount=1
    run -0 --separate-stderr mpirun --oversubscribe -n 4 "$programs/shapes" -d gpu
    [ "$(grep -o 'gpu=.*' <<<"$output" | sort -u | xargs)" = "gpu=1 gpu=10 gpu=2" ]
    [ "$(wc -l <runs)" = 3 ]
    # More ranks than addresses, and a script that fails: at the start, in one line.
    run -3 --separate-stderr mpirun --oversubscribe -n 5 \
        "$programs/shapes" -d gpu
    grep -q "of the 3 gpu on .* (by $PWD/find) 0 are left for rank 4" <<<"$stderr"
    find_prints '{"name": "fpga", "addresses": ["0"]}'
    run -4 --separate-stderr mpirun --oversubscribe -n 2 \
        "$programs/shapes" -d gpu
    grep -q "^troupe: rank 1 on .*: discovery script $PWD/find of gpu on .*: it says addresses of \"fpga\", not of gpu" <<<"$stderr"
    [ "$(grep -c '^troupe' <<<"$stderr")" = 1 ]
}
