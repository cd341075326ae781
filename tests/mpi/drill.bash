# Shared by the drills: every test runs in a folder of its own, and after it no process
# that it started may be alive. Processes are known by a token in their environment; those
# that wrote their title over it (driver, executors, spawners) by title and folder.
bats_require_minimum_version 1.5.0
# shellcheck source=SCRIPTDIR/../lib/clock.bash
. "${BASH_SOURCE[0]%/*}/../lib/clock.bash"
# shellcheck source=SCRIPTDIR/../lib/wait.bash
. "${BASH_SOURCE[0]%/*}/../lib/wait.bash"

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export DRILL_TOKEN=$BATS_TEST_TMPDIR
    export PATH=$TROUPE_BUILD/bin:$PATH
    export TROUPE_OPT_events_tasks=all # each task has its events, however busy the machine is
    export XDG_RUNTIME_DIR=/nonexistent # all cores: none are shared with other tests
    programs=$TROUPE_BUILD/tests/programs
    d=''
}

# graph: a pipeline of 1,700 stages alike that go on until `go` is there, and one after all.
graph() {
    printf 'troupe: 1\nname: graph\nstages:\n'
    for i in $(seq 1700); do
        printf '  - {name: project-%d, run: "until [ -e go ]; do sleep 0.2; done"}\n' "$i"
    done
    printf '  - {name: concat, after: [project-%d' 1
    printf ', project-%d' $(seq 2 1700)
    printf '], run: "true"}\n'
}

# PIDs of live processes that this test started, but for its own shell. All processes are
# looked at by two commands: a drill asks this often. What these start themselves is younger
# than the list that they look through, and a dead process has neither.
ours() {
    local all=(/proc/[0-9]*) file
    {
        grep -lszxF "DRILL_TOKEN=$DRILL_TOKEN" "${all[@]/%//environ}" || true
        { grep -lsz '^troupe: ' "${all[@]/%//cmdline}" || true; } | while read -r file; do
            [[ "$(readlink "${file%/*}/cwd")/" != "$BATS_TEST_TMPDIR"/* ]] || echo "$file"
        done
    } 2>/dev/null | cut -d/ -f3 | sort -un | { grep -vxE "$BASHPID|$$" || true; }
}

# (A bare return in a trap would be of what went before the trap.)
is_ours() {
    grep -qzxF "DRILL_TOKEN=$DRILL_TOKEN" "/proc/$1/environ" && return 0
    grep -qz '^troupe: ' "/proc/$1/cmdline" &&
        [[ "$(readlink "/proc/$1/cwd")/" == "$BATS_TEST_TMPDIR"/* ]]
}

# nothing_left: waits for all of ours to be gone.
nothing_left() {
    local left
    wait_until none_of_ours && return
    left=$(ours)
    echo "left behind:"
    ps -o pid,ppid,stat,args -p "$(echo $left | tr ' ' ,)"
    return 1
}
none_of_ours() { [ -z "$(ours)" ]; }

# others_folder: makes one that an ordinary user may enter, $d, until the test is over.
others_folder() {
    d=$(mktemp -d /tmp/drill-user.XXXXXX)
}

# The folder for what does not last, of the run that goes on: its owner holds it locked.
private_folder() {
    local pid
    for pid in $(ours); do
        readlink "/proc/$pid/fd/"*
    done 2>/dev/null | grep -o -m 1 '^/tmp/troupe-[A-Za-z0-9]*'
}

# After a point that failed, what still runs is killed at once.
teardown() {
    local status=0
    [ -z "${d:-}" ] || rm -rf "$d"
    if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
        [ -z "${TROUPE_CLOCK:-}" ] || release_clock
        nothing_left || status=1
    fi
    for _ in {1..50}; do # what is killed first may be replaced by what is killed last
        none_of_ours && break
        kill -9 $(ours) 2>/dev/null || true
        sleep 0.1
    done
    return $status
}

# ours_like REGEX: those of ours with such a command line.
ours_like() {
    local pid found=1
    for pid in $(pgrep -f "$1"); do
        is_ours "$pid" && echo "$pid" && found=0
    done
    return $found
}

# pid_of WHAT RUN: "executor 0", "driver", "executor [0-9]*" of a run, by their titles.
pid_of() { ours_like "^troupe: $1 $2\$"; }

# over_mpi: skips what is about messages over MPI where two programs cannot be joined.
over_mpi() {
    joins || skip "Open MPI has no ompi-server here, by which programs are joined"
}
joins() { command -v ompi-server >/dev/null; }

events() { cat "troupe-runs/$1/events.jsonl"; }
# data RUN: what `report --json` has of the data of its first start, a line a figure; it is
# what the text has, and that of all stages.
data() {
    troupe report --json "$1" >report.json && troupe report "$1" >report.text &&
        perl -MJSON::PP -0777 - report.json report.text <<'END'
my ($json, $text) = map { open my $f, '<', $_ or die; <$f> } @ARGV;
my $start = decode_json($json)->{starts}[0];
my %all = flat($start->{total}{data});
sub flat { my ($d) = @_; map { my $k = $_; map { ("$k $_" => $d->{$k}{$_}) } keys %{$d->{$k}} } keys %$d }
for my $stage (@{$start->{stages}}) {
    my %one = flat($stage->{data});
    $sum{$_} += $one{$_} for keys %one;
}
for (keys %all) { die "$_: $all{$_} in total, $sum{$_} of stages\n" if $all{$_} != $sum{$_} }
sub bytes {
    my ($v, $u) = (@_, 0);
    ($v, $u) = ($v / 1024, $u + 1) while $v >= 1024;
    sprintf($u ? '%.1f %s' : '%.0f %s', $v, (qw(bytes KiB MiB GiB))[$u]);
}
my %b = map { $_ => bytes($all{$_}) } keys %all;
my ($hits, $looked) = ($all{'kept hits'}, $all{'kept hits'} + $all{'kept misses'});
my @want;
push @want, "kept: $b{'kept memory'} in memory, $b{'kept disk'} on disk; of $looked partitions looked for, $hits found" if $looked;
push @want, "shuffled: $b{'shuffled written'} written, $b{'shuffled read'} read ($b{'shuffled remote'} from other hosts)" .
    ($all{'shuffled spilled'} ? ", $b{'shuffled spilled'} spilled" : '') if $all{'shuffled written'};
my @got = $text =~ /^((?:kept|shuffled): .*)$/mg;
die "JSON:\n", map({ "$_\n" } @want), "text:\n", map({ "$_\n" } @got) if "@want" ne "@got" || !@want;
die "local and remote are not what was read\n" if $all{'shuffled local'} + $all{'shuffled remote'} != $all{'shuffled read'};
print "$_ $all{$_}\n" for sort keys %all;
END
}
count() { grep -c -- "$1" <<<"$2" || true; }
