#!/usr/bin/env bats
# Runs whose ports are flooded by another user of the machine. Each run has a network of
# its own, so that nobody else's ports are met.
load drill.bash

# flooded NAME HELD WORD…: a run of that, with a flood for as long as it lasts; HELD is what
# flood.perl takes, or empty. NAME.status has its exit status, NAME.out what it said.
flooded() {
    local own=-n
    [ "$(id -u)" = 0 ] || own=-rn
    unshare $own bash -c '
        ip link set lo up && ip link add name eth0 type veth peer name eth1 || exit 99
        ip addr add 10.1.1.1/24 dev eth0 && ip link set eth0 up && ip link set eth1 up
        other="setpriv --reuid=nobody --regid=nogroup --clear-groups"
        $other true 2>/dev/null || other=
        $other perl - "$(cksum <<<"$1" | cut -d" " -f1)" $2 <"$3" >"$1.flood" 2>&1 &
        troupe run --local=4 --set comm.transport="${transport:-auto}" --run-name "$1" "${@:4}" >"$1.out" 2>&1
        echo $? >"$1.status"
        kill $!
    ' - "$1" "$2" "$TROUPE_SOURCE/tests/mpi/flood.perl" "${@:3}" 3>&-
}

# well_ended NAME: it succeeded.
well_ended() {
    echo "$1: $(<"$1.status"), $(tail -n 1 "$1.flood")"
    [ "$(<"$1.status")" = 0 ] || { cat "$1.out" && return 1; }
}

@test "a run under auto ends well while another user holds its ports; over MPI it does, or ends with 4 and says what to set" {
    unshare -n true 2>/dev/null || unshare -rn true || skip "no network of one's own here"
    others_folder
    export TROUPE_SCRATCH=$d TMPDIR=$d transport
    printf 'troupe: 1\nstages:\n  - {name: s, tasks: 4, run: "until [ $(wc -l <$TROUPE_RUN.flood) -ge 2 ]; do sleep 0.2; done"}\n' >p.yaml
    transport=auto flooded auto held p.yaml
    well_ended auto
    grep -q 'messages travel over sockets' troupe-runs/auto/events.jsonl
    joins || skip "Open MPI has no ompi-server here, by which programs are joined"
    transport=mpi flooded mpi held p.yaml
    [ "$(<mpi.status)" = 0 ] || { [ "$(<mpi.status)" = 4 ] && grep -q 'set comm.transport=socket' mpi.out; }
    nothing_left
}

# bats test_tags=nightly
@test "20 runs whose ports another user floods end well" {
    unshare -n true 2>/dev/null || unshare -rn true || skip "no network of one's own here"
    cat >p.yaml <<'Y'
troupe: 1
profiles:
  a: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
  b: {executor: {cores: 2, memory: 64m}, task: {cpus: 1}}
stages:
  - {name: one, profile: a, tasks: 4, run: "until [ $(wc -l <$TROUPE_RUN.flood) -ge 2 ]; do sleep 0.2; done"}
  - {name: two, after: [one], profile: b, tasks: 4, run: "until [ $(wc -l <$TROUPE_RUN.flood) -ge 4 ]; do sleep 0.2; done"}
  - {name: three, after: [two], profile: a, tasks: 4, run: "until [ $(wc -l <$TROUPE_RUN.flood) -ge 6 ]; do sleep 0.2; done"}
Y
    others_folder # what a run has in folders for files that do not last
    export TROUPE_SCRATCH=$d TMPDIR=$d
    local held run
    for held in '' held; do
        for i in {1..10}; do flooded "run$held-$i" "$held" p.yaml & done
        wait
    done
    for run in run{,held}-{1..10}; do well_ended $run; done
    nothing_left
    [ -z "$(ls -A "$d")" ] || { find "$d"; false; }
}

# Every block is fetched from a block server.
@test "records between stages are right while another user floods the ports of block servers" {
    unshare -n true 2>/dev/null || unshare -rn true || skip "no network of one's own here"
    others_folder
    export TROUPE_SCRATCH=$d TMPDIR=$d TROUPE_OPT_shuffle_readHostLocalDisk=false
    local held run
    for held in '' held; do
        flooded "shuffle$held" "$held" -- "$programs/flooded" "shuffle$held.flood" 200 100 &
    done
    wait
    for run in shuffle shuffleheld; do
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
