# Shared by ./check and tests/nightly/run, after setup.sh: runs tests of a build and steps,
# adds up how they ended, and says at the end which took longest. Sourced by bash.
#
# The caller sets $results, the folder for reports, and may set $chosen and $short, which
# why_not heeds.

token=$$.$RANDOM$RANDOM
release=$(debian_release)
passed=0 failed=0 skipped=0
problems=()
chosen='' short='' beside='' last_error=''

# begin_results: before the first test or step. A script that ends before show_end has told too
# little, whatever its status is. What runs beside it is the process group $beside.
begin_results() {
    mkdir -p "$results"
    rm -f "$results/times" "$results/counts"
    set -E
    trap 'last_error="${BASH_SOURCE[0]}:$LINENO: $BASH_COMMAND"' ERR
    trap 'ended_early $?' EXIT
}

ended_early() {
    [ -z "$beside" ] || kill -- -"$beside" 2>/dev/null || true
    printf 'FAILED: %s ended early, with %s%s\n' "$(basename "$0")" "$1" \
        "${last_error:+; last error in $last_error}"
    [ "$1" != 0 ] || exit 1
}

problem() {
    problems+=("$1")
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$1" >&2
}

# said_of NAME WHEN…: why, where tests/releases says one of these of a test or step here.
said_of() {
    local on when names why
    while read -r on when names why; do
        if [[ ,$on, == *",$release,"* && " ${*:2} " == *" $when "* && $1 =~ ^($names)$ ]]; then
            echo "$why"
            return
        fi
    done < <(grep -v '^#' tests/releases)
    return 1
}

# why_not NAME: why a test or a step does not run here; 1 where it does, as when it is asked for.
why_not() {
    [ -z "$chosen" ] && said_of "$1" never ${short:+short}
}

# runs NAME
runs() {
    ! why_not "$1" >/dev/null
}

# step NAME COMMAND…: one check that is not a test of ctest. With status 69 it cannot run
# here, for the reason that its last line on stdout gives.
step() {
    local name=$1 why status=0 begin=$SECONDS
    shift
    if why=$(why_not "$name"); then
        tell_skip "$name" "$why"
        return
    fi
    say "$name"
    "$@" || status=$?
    printf '%s\t%s\t%s\n' $((SECONDS - begin)) step "$name" >>"$results/times"
    case $status in
    0) passed=$((passed + 1)) ;;
    69) skip "$name" "it cannot run here" ;;
    *) problem "$name" ;;
    esac
}

# run_tests FOLDER [ctest options]: adds up what the tests of a build say.
run_tests() {
    local folder=$1 report=$results/$1.xml name why out=()
    shift
    rm -f "$report"
    say "testing $folder $*"
    for name in $(test_names "$folder" "$@"); do
        why=$(why_not "$name") || continue
        tell_skip "$name" "$why"
        out+=("$name")
    done
    [ ${#out[@]} = 0 ] || set -- "$@" -E "^($(IFS='|'; echo "${out[*]}"))\$"
    run_ctest "$folder" "$report" "$@"
    if [ ! -s "$report" ]; then
        problem "no test ran in $folder"
        return
    fi
    count_tests "$folder" "$report"
}

# test_names FOLDER [ctest options]
test_names() {
    ctest --test-dir "$1" -N "${@:2}" | sed -n 's/^ *Test *#[0-9]*: //p'
}

# run_ctest FOLDER REPORT [ctest options]
run_ctest() {
    local folder=$1 report=$PWD/$2
    shift 2
    # Verbose, so that the report has every point with the reason of a skip.
    HARNESS_VERBOSE=1 TROUPE_CHECK=$token ctest --test-dir "$folder" --output-on-failure \
        --no-tests=error --test-output-size-passed 10000000 \
        --test-output-size-failed 10000000 --output-junit "$report" "$@" || true
}

# A line for each test, with tabs: status, name, TAP points ok, not ok, seconds; and a line
# for each skip: "skip", name, reason.
read_report() {
    perl -0777 -ne '
        while (/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/sg) {
            my ($head, $body) = ($1, $2 // "");
            my ($name) = $head =~ /\bname="([^"]*)"/;
            my ($status) = $head =~ /\bstatus="([^"]*)"/;
            my ($time) = $head =~ /\btime="([^"]*)"/;
            my $bad = () = $body =~ /^not ok \d+(?!.*# TODO)/mg;
            my ($good, @skips) = (0);
            while ($body =~ /^ok \d+([^\n]*)/mg) {
                my $rest = $1;
                if ($rest =~ /# SKIP:? *(.*)/i) { push @skips, $1 } else { $good++ }
            }
            push @skips, $1 if $body =~ /^1\.\.0 *# *SKIP *([^\n]*)/mi ||
                $body =~ / \.\.+ skipped: ([^\n]*)/;
            push @skips, "not run" if $status =~ /notrun|disabled/;
            $status = "skipped" if $status eq "run" && @skips && !$good;
            print join("\t", $status, $name, $good, $bad, $time), "\n";
            print join("\t", "skip", $name, $_, "", ""), "\n" for @skips;
        }' "$1"
}

# count_tests FOLDER REPORT: adds up a report.
count_tests() {
    local status name good bad time folder=$1
    while IFS=$'\t' read -r status name good bad time; do
        [ -z "$time" ] || printf '%.0f\t%s\t%s\n' "$time" "$(kind_of "$name")" "$name" >>"$results/times"
        case $status in
        skip) skip "$name" "$good" ;;
        notrun | disabled | skipped) ;;
        run) passed=$((passed + (good > 0 ? good : 1))) ;;
        *)
            problem "$name in $folder"
            passed=$((passed + good))
            failed=$((failed + (bad > 1 ? bad - 1 : 0)))
            ;;
        esac
    done < <(read_report "$2")
}

# kind_of TEST: what docs/testing.md calls its kind.
kind_of() {
    case $1 in
    cli_* | drill_* | fuzz_* | property_* | scenarios_* | slurm_*) echo "${1%%_*}" ;;
    history_* | page_*) echo views ;;
    *) echo unit ;;
    esac
}

# tell_skip NAME WHY
tell_skip() {
    skipped=$((skipped + 1))
    printf 'SKIPPED: %s: %s\n' "$1" "$2"
}

# In CI nothing may be skipped that needs MPI or Slurm: it is there. Nor may what needs Slurm
# where a cluster can be had. tests/releases says where parts of a test cannot run; and what
# needs a clock that tests move runs in the build that has one.
skip() {
    tell_skip "$@"
    if said_of "$1" parts >/dev/null || [[ $2 == *TROUPE_TEST_CLOCK* ]]; then
        return
    elif [ -n "${CI:-}" ] && grep -qiE 'mpi|slurm|conformance' <<<"$1 $2"; then
        problem "$1 was skipped"
    elif grep -qi slurm <<<"$1 $2" && tests/slurm/cluster check 2>/dev/null; then
        problem "$1 was skipped"
    fi
}

# What a sanitizer said of a process that a drill started: its own output goes elsewhere.
no_reports() {
    local reports
    reports=$(find build*/reports -type f 2>/dev/null) || true
    [ -z "$reports" ] && return 0
    while read -r report; do
        printf '%s:\n%s\n' "$report" "$(head -n 60 "$report")"
    done <<<"$reports" >&2
    return 1
}

# nothing_left BEFORE: processes that tests left, but for those that ran before them.
nothing_left() {
    local left
    left=$(leftovers "$token" "$1")
    # What was told to end is given the time that the kernel takes.
    while [ -n "$left" ] && [ -z "$(still_there "$left")" ]; do
        left=$(leftovers "$token" "$1")
    done
    [ -z "$left" ] && return 0
    printf 'processes that were left behind:\n%s\n' "$left" >&2
    return 1
}

# The ten slowest of all that ran, and the sum of each kind.
show_times() {
    [ -s "$results/times" ] || return 0
    say "the slowest (seconds, kind, name)"
    sort -rn "$results/times" | sed -n 1,10p # head would end before sort has written all
    say "seconds by kind"
    awk -F'\t' '{ sum[$2] += $1; n[$2]++ } END { for (k in sum) printf "%6d  %-9s (%d)\n", sum[k], k, n[k] }' \
        "$results/times" | sort -rn
}

# show_end: what failed, and the line that sums up. 1 if something failed.
show_end() {
    local name
    trap - ERR EXIT
    [ -z "$beside" ] || kill -- -"$beside" 2>/dev/null || true
    for name in "${problems[@]+"${problems[@]}"}"; do
        printf 'FAILED: %s\n' "$name"
    done
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" |
        tee "$results/counts"
    [ "$failed" = 0 ]
}
