#!/usr/bin/env bats
# Runs whose ports are flooded by another user of the machine. Each run has a network of
# its own, so that nobody else's ports are met.
load drill.bash

# flooded NAME HELD WORD…: a run of that, with a flood of 4 s from 0.4 s on, a third of
# whose connections stay for HELD seconds more. NAME.status has its exit status, NAME.out
# what it said.
flooded() {
    local own=-n
    [ "$(id -u)" = 0 ] || own=-rn
    unshare $own bash -c '
        ip link set lo up && ip link add name eth0 type veth peer name eth1 || exit 99
        ip addr add 10.1.1.1/24 dev eth0 && ip link set eth0 up && ip link set eth1 up
        other="setpriv --reuid=nobody --regid=nogroup --clear-groups"
        $other true 2>/dev/null || other=
        (sleep 0.4; exec $other perl - 4 "$2") <"$3" >"$1.flood" 2>&1 &
        timeout -s KILL "$4" troupe run --local=4 --set comm.transport=socket \
            --run-name "$1" "${@:5}" >"$1.out" 2>&1
        echo "$? after $SECONDS s" >"$1.status"
        kill $! 2>/dev/null
    ' - "$1" "$2" "$TROUPE_SOURCE/tests/mpi/flood.perl" "${patience:-50}" "${@:3}" 3>&-
}

# well_ended NAME: it succeeded.
well_ended() {
    local status
    read -r status _ <"$1.status"
    echo "$1: $(cat "$1.status" "$1.flood" | tr '\n' ' ')"
    [ "$status" = 0 ] && return
    cat "$1.out"
    return 1
}

@test "20 runs whose ports another user floods end well" {
    unshare -n true 2>/dev/null || unshare -rn true || skip "no network of one's own here"
    cat >p.yaml <<'Y'
troupe: 1
profiles:
  a: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
  b: {executor: {cores: 2, memory: 64m}, task: {cpus: 1}}
stages:
  - {name: one, profile: a, tasks: 4, run: "sleep 0.2"}
  - {name: two, after: [one], profile: b, tasks: 4, run: "sleep 0.2"}
  - {name: three, after: [two], profile: a, tasks: 4, run: "sleep 0.2"}
Y
    others_folder # what a run has in folders for files that do not last
    export TROUPE_SCRATCH=$d TMPDIR=$d
    for held in 0 60; do
        for i in {1..10}; do flooded "held$held-$i" $held p.yaml & done
        wait
    done
    for run in held{0,60}-{1..10}; do well_ended $run; done
    nothing_left
    [ -z "$(ls -A "$d")" ] || { find "$d"; false; }
}

# Every block is fetched from a block server, for as long as the flood lasts.
@test "records between stages are right while another user floods the ports of block servers" {
    unshare -n true 2>/dev/null || unshare -rn true || skip "no network of one's own here"
    others_folder
    export TROUPE_SCRATCH=$d TMPDIR=$d TROUPE_OPT_shuffle_readHostLocalDisk=false
    local held run patience=120
    for held in 0 60; do
        flooded "shuffle$held" $held --set events.tasks=all -- "$programs/flooded" 5000 100 &
    done
    wait
    for run in shuffle0 shuffle60; do
        well_ended $run
        grep '^rounds: ' $run.out
        [[ "$(grep -c '^round [0-9]*: right$' $run.out)" -ge 2 ]]
        run ! grep 'round [0-9]*: wrong' $run.out
        [ "$(events $run | grep -o '"Remote Bytes Read":[1-9]' | wc -l)" -ge 10 ]
        run ! grep '"Local Bytes Read":[1-9]' troupe-runs/$run/events.jsonl
    done
    nothing_left
    [ -z "$(ls -A "$d")" ] || { find "$d"; false; }
}
