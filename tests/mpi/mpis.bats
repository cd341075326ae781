#!/usr/bin/env bats
# Open MPI and MPICH beside each other: what each is used for is seen by the program.
# bats file_tags=mpi
load drill.bash

# meets MPI: ./MPI-meets, a plain program of that MPI.
meets() {
    "mpicc.$1" -o "$1-meets" "$TROUPE_SOURCE/tests/mpi/meets.c"
}

# words MPI: ./MPI-words, a program of libtroupe that is linked with that MPI too.
words() {
    local mpi=${1/openmpi/ompi-c}
    # shellcheck disable=SC2046
    cc $(pkg-config --cflags "$mpi") -I"$TROUPE_BUILD/include" -o "$1-words" \
        "$TROUPE_SOURCE/tests/mpi/programs/wordcount.c" -L"$TROUPE_BUILD/lib" \
        -Wl,-rpath,"$TROUPE_BUILD/lib" -ltroupe -Wl,--no-as-needed $(pkg-config --libs "$mpi")
    printf 'a b a\nc a\n' >text
}

both() {
    type mpirun.openmpi mpirun.mpich mpicc.mpich >/dev/null 2>&1 || skip "not both MPIs are here under Debian's names"
}

# static MPI N WORD…: under that MPI's mpirun, as root too.
static() {
    local mpi=$1 n=$2
    shift 2
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        "mpirun.$mpi" \
        $([ "$mpi" = mpich ] || echo --oversubscribe) -n "$n" "$@"
}

@test "nothing but its modules is linked with an MPI" {
    local file
    for file in lib/libtroupe.so bin/troupe bin/troupe-rank; do
        readelf -d "$TROUPE_BUILD/$file" >needed
        grep -q NEEDED needed
        run ! grep -E 'NEEDED.*lib(mpi|open-|pmix|mpich)' needed
    done
    readelf -d "$TROUPE_BUILD/lib/troupe/mpi-openmpi.so" | grep -q 'NEEDED.*libmpi\.so'
}

@test "messages over MPI go over TCP; no other network is looked for" {
    over_mpi
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
    LD_DEBUG=files LD_DEBUG_OUTPUT=$PWD/loaded \
        troupe run --set comm.transport=mpi --run-name r --quiet p.yaml
    # Driver and executor.
    grep -l 'init: .*/mca_btl_tcp\.so' loaded.* >ranks
    [ "$(wc -l <ranks)" -ge 2 ]
    xargs grep -h 'init: ' <ranks >began
    run ! grep -E '/(mca_(btl_(sm|vader|openib|ofi)|pml_(cm|ucx)|mtl_.*)\.so|libpsm|libucp)' began
}

@test "a gang is started by the mpirun of the MPI that its program is linked with" {
    both
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: open, mpi: {ranks: 2}, argv: [./openmpi-meets]}
  - {name: mpich, after: [open], mpi: {ranks: 2}, argv: [./mpich-meets]}
  - {name: path, after: [mpich], mpi: {ranks: 2}, argv: [mpich-meets], env: {PATH: "/usr/bin:."}}
Y
    meets openmpi
    meets mpich
    run -0 troupe run --local=2 --run-name r p.yaml
    for stage in open mpich path; do
        [ "$(cat troupe-runs/r/logs/$stage/0.0.0.out)" = "rank 0 of 2, sum 3" ]
        [ "$(cat troupe-runs/r/logs/$stage/0.0.1.out)" = "rank 1 of 2, sum 3" ]
    done
}

@test "the program of a gang is found behind a shell and a wrapper, too" {
    both
    meets openmpi
    meets mpich
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: open, mpi: {ranks: 2}, run: "./openmpi-meets"}
  - {name: mpich, after: [open], mpi: {ranks: 2}, run: "./mpich-meets"}
  - {name: words, after: [mpich], mpi: {ranks: 2}, prelude: "ulimit -c 0", run: "X=1 && (exec \"./mpich-meets\")"}
  - {name: wrapped, after: [words], mpi: {ranks: 2}, wrap: [env, X=1], argv: [./mpich-meets]}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    for stage in open mpich words wrapped; do
        [ "$(cat troupe-runs/r/logs/$stage/0.0.1.out)" = "rank 1 of 2, sum 3" ]
    done
}

@test "how a rank of MPICH ended is told: an exit status is no signal" {
    both
    meets mpich
    echo '{troupe: 1, stages: [{name: g, mpi: {ranks: 2}, retries: {max_failures: 1}, argv: [./mpich-meets, exit, "9"]}]}' >p.yaml
    # Its mpirun kills the other rank, and tells of that one now and then.
    for _ in {1..12}; do
        run -1 troupe run --local=2 p.yaml
        [[ "$output" == *"task 0 failed once, with exit status 9"* ]]
    done
    sed -i 's/ exit, / kill, /' p.yaml
    # Its mpirun may end with 0 for that (4.2.1).
    for _ in 1 2 3 4 5 6; do
        run -1 troupe run --local=2 p.yaml
        [[ "$output" == *"task 0 failed once"*SIGKILL* ]]
    done
}

@test "a gang of MPICH whose mpirun is killed is run again, and no rank of it is left" {
    both
    meets mpich
    echo '{troupe: 1, stages: [{name: g, mpi: {ranks: 2}, argv: [./mpich-meets, wait, go], retries: {max_failures: 2}}]}' >p.yaml
    troupe run --local=2 --run-name r p.yaml >out 2>&1 &
    wait_until grep -q "rank 1 of 2" troupe-runs/r/logs/g/0.0.1.out
    local first
    first=$(ours_like '^[^ ]*mpich-meets')
    [ "$(wc -w <<<"$first")" = 2 ]
    kill -9 "$(pgrep -f "^mpiexec.hydra .*$PWD/")"
    wait_until grep -q "rank 1 of 2" troupe-runs/r/logs/g/0.1.1.out
    run ! kill -0 $first
    touch go
    wait $!
}

@test "a gang whose MPI has no mpirun here can never be: it says which is, and ends with 3" {
    both
    meets mpich
    mkdir bin
    ln -s "$(command -v mpirun.openmpi)" bin/mpirun
    echo '{troupe: 1, stages: [{name: g, mpi: {ranks: 2}, argv: [./mpich-meets]}]}' >p.yaml
    PATH=$TROUPE_BUILD/bin:$PWD/bin run -3 "$TROUPE_BUILD/bin/troupe" run --local=2 p.yaml
    [[ "$output" == *"stage g: its program is linked with MPICH, and the mpirun in PATH is of Open MPI"*mpiexec.hydra* ]]
    rm bin/mpirun
    PATH=$TROUPE_BUILD/bin:$PWD/bin run -3 "$TROUPE_BUILD/bin/troupe" run --local=2 p.yaml
    [[ "$output" == *"there is no mpirun in PATH"* ]]
}

# mpirun_that COMMANDS: bin/mpirun, which answers --version, and otherwise does that.
mpirun_that() {
    mkdir -p bin
    printf '#!/bin/sh\n[ "$1" = --version ] && exec %s --version\n%s\n' "$(command -v mpirun)" "$1" >bin/mpirun
    chmod +x bin/mpirun
}

@test "an mpirun that starts no rank of a gang: where it says why is told" {
    echo '{troupe: 1, stages: [{name: g, mpi: {ranks: 2}, argv: [hostname]}]}' >p.yaml
    mpirun_that 'echo "no luck" >&2; exit 255'
    PATH=$PWD/bin:$PATH run -4 troupe run --local=2 --run-name r p.yaml
    [[ "$output" == *"mpirun ended with exit status 255 before any rank was started; see troupe-runs/r/logs/g/0.0.err"* ]]
    [ "$(cat troupe-runs/r/logs/g/0.0.err)" = "no luck" ]
    mpirun_that 'exit 3' # it says nothing: there is no log
    PATH=$PWD/bin:$PATH run -4 troupe run --local=2 p.yaml
    grep -q "mpirun ended with exit status 3 before any rank was started$" <<<"$output"
}

@test "an mpirun that answers and does not start the driver is named, with what does without it" {
    over_mpi
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
    mpirun_that 'echo "no luck" >&2; exit 7'
    PATH=$PWD/bin:$PATH run -4 troupe run --set comm.transport=mpi --run-name r p.yaml
    [ "$output" = "troupe: $PWD/bin/mpirun did not bring up the driver (exit status 7); its output is in troupe-runs/r/state/driver.err; --set comm.transport=socket does without it" ]
    [ "$(cat troupe-runs/r/state/driver.err)" = "no luck" ]
    moving_clock
    mpirun_that "touch $PWD/began; exec sleep 100"
    late() {
        PATH=$PWD/bin:$PATH troupe run --set comm.transport=mpi --run-name "$@" >out 2>&1 &
        wait_until rm began
        advance 21s
        local status=0
        wait $! || status=$?
        [ $status = 4 ]
        grep -q "^troupe: $PWD/bin/mpirun did not bring up the driver (not within 20 s); its output is in troupe-runs/$1/state/driver.err; " out
    }
    late late p.yaml
    late p -- "$TROUPE_BUILD/examples/first"
}

@test "a program of no MPI is a static run under the mpirun of either" {
    both
    printf 'a b a\nc a\n' >text
    for mpi in openmpi mpich; do
        run -0 static "$mpi" 3 "$programs/wordcount" text
        [[ "$output" == *"lines 2 words 5 bytes 10"* ]]
    done
}

# bats test_tags=plain
@test "a static run of a program that is linked with an MPI uses that MPI, or says that another has started it" {
    both
    words mpich
    run -0 static mpich 3 ./mpich-words text
    [[ "$output" == *"lines 2 words 5 bytes 10"* ]]
    run ! static openmpi 3 ./mpich-words text
    # MPICH 5 ends by itself.
    [[ "$output" == *"troupe: 3 ranks were started, but MPICH "*", which this program uses, sees 1; start it by that MPI's own mpirun"* ||
        "$output" == *"unsupported PMI version PMIx"* ]]
}

# bats test_tags=plain
@test "a program that is linked with MPICH, itself or by a library, has its executors over sockets, never over MPI" {
    both
    words mpich
    mpicc.mpich -shared -fPIC -x c -o libuses.so - <<<'#include <mpi.h>
        int uses(void) { int is; return MPI_Initialized(&is); }'
    cc -I"$TROUPE_BUILD/include" -o uses-words "$TROUPE_SOURCE/tests/mpi/programs/wordcount.c" \
        -L"$TROUPE_BUILD/lib" -Wl,-rpath,"$TROUPE_BUILD/lib:$PWD" -ltroupe \
        -Wl,--no-as-needed -L. -luses
    for words in mpich-words uses-words; do
        run -0 troupe run -- ./$words text
        [[ "$output" == *"lines 2 words 5 bytes 10"* ]]
    done
    run -2 troupe run --set comm.transport=mpi -- ./mpich-words text
    [[ "$output" == *"comm.transport=mpi: "*"/mpich-words is linked with MPICH"* ]]
    joins || return 0
    run -2 troupe run --set comm.transport=mpi -- ./uses-words text
    [ "$(count '^troupe: command line: comm.transport=mpi: this program is linked with MPICH [0-9.]*, which cannot join separately started programs; set comm.transport=socket, or leave it at auto$' "$output")" = 1 ]
}

@test "where the first mpirun is of MPICH, nothing is joined, whatever else is in PATH" {
    both
    mkdir first
    ln -s "$(command -v mpirun.mpich)" first/mpirun
    export PATH=$PWD/first:$PATH
    echo '{troupe: 1, stages: [{name: s, tasks: 3, run: "true"}]}' >p.yaml
    run -0 troupe run --local=2 p.yaml
    run -2 troupe run --local=2 --set comm.transport=mpi p.yaml
    [[ "$output" == *"comm.transport=mpi: mpirun is MPICH "*", which cannot join"* ]]
    troupe topo --mpi >mpis
    cat mpis
    grep -q '^Open MPI .* yes  *yes  *no ' mpis
}

@test "a Troupe that has no module for Open MPI sends its messages over sockets" {
    cp -a "$TROUPE_BUILD/bin" .
    mkdir -p lib/troupe
    cp "$TROUPE_BUILD"/lib/troupe/{hwloc,munge}.so lib/troupe/
    echo '{troupe: 1, stages: [{name: s, tasks: 3, run: "true"}]}' >p.yaml
    run -0 bin/troupe run --local=2 p.yaml
    run -2 bin/troupe run --local=2 --set comm.transport=mpi p.yaml
    [[ "$output" == *"this Troupe has no module for Open MPI; set comm.transport=socket"* ]]
}
