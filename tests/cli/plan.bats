# troupe plan, and the checks of troupe run before anything is made.
load common

@test "a plan shows stages, tasks, profiles and slots" {
    pipeline <<'END'
troupe: 1
name: weather
profiles:
  prep: {executor: {cores: 4, memory: 1g}, task: {cpus: 2}}
stages:
  - {name: split, tasks: 3, profile: prep, run: "true", outputs: [list]}
  - {name: solve, after: [split], mpi: {ranks: 2}, run: "true"}
  - {name: each, after: [split], foreach: {lines: list}, run: "true"}
END
    check 0 "split" troupe plan --local=4 p.yaml
    run troupe plan --local=4 --json p.yaml
    [ "$status" = 0 ]
    [ "$(json '$$d{name}' <<<"$output")" = weather ]
    [ "$(json '$$d{profiles}[1]{slots}' <<<"$output")" = 2 ]
    [ "$(json '$$d{profiles}[1]{limiting}' <<<"$output")" = cpus ]
    [ "$(json '$$d{stages}[0]{tasks}' <<<"$output")" = 3 ]
    [ "$(json '$$d{stages}[2]{tasks}' <<<"$output")" = null ]
    [ "$(json '$$d{stages}[1]{after}[0]' <<<"$output")" = split ]
    [ "$(json '$$d{stages}[1]{never}' <<<"$output")" = null ]
    [ ! -e troupe-runs ]
}

@test "a pattern without a match is told in a line of its own, and is an error of run" {
    pipeline <<'END'
troupe: 1
stages:
  - {name: s, foreach: {files: "none/*.x"}, run: "true"}
END
    check 0 "^p.yaml:3:32: stage s: no file matches none/.\.x; " troupe plan p.yaml
    check 0 "^s +default +\? +- +see below" troupe plan p.yaml
}

@test "tasks of a table that is there are counted below other stages, too" {
    pipeline <<'END'
troupe: 1
stages:
  - {name: a, outputs: [made.tsv, "n*"], run: "true"}
  - {name: b, after: [a], foreach: {table: samples.tsv}, run: "true"}
  - {name: c, after: [a], foreach: {product: {x: [1, 2], y: {table: samples.tsv}}}, run: "true"}
  - {name: d, after: [a], foreach: {table: made.tsv}, run: "true"}
  - {name: e, after: [a], foreach: {lines: none}, run: "true"}
END
    printf 'id\n1\n2\n3\n' | tee samples.tsv >made.tsv
    run -0 troupe plan --local=2 p.yaml
    [ "$(awk '/^[a-e] / { print $1, $3 }' <<<"$output" | tr '\n' ' ')" = "a 1 b 3 c 6 d ? e ? " ]
}

@test "a profile that never fits is exit 3 with resource, wanted and available" {
    pipeline <<'END'
troupe: 1
profiles:
  wide: {executor: {cores: 4}}
  card: {executor: {cores: 1, gpu: 3}, task: {gpu: 1}}
stages:
  - {name: a, profile: wide, run: "true"}
  - {name: b, profile: card, run: "true"}
END
    echo '{site: 1, local: {gpu: ["0", "1"]}}' >site.yaml
    check 3 "p.yaml:3:3: profile wide never fits here: cores wanted 4, available 2" \
        troupe plan --local=2 p.yaml
    check 3 "^ *b " troupe plan --local=2 p.yaml
    check 3 "p.yaml:4:3: .*gpu wanted 3, available 2" \
        troupe run --local=4 --site site.yaml p.yaml
    [ ! -e troupe-runs ]
}

@test "memory that this machine does not have is exit 3" {
    pipeline <<'END'
troupe: 1
profiles:
  huge: {executor: {cores: 1, memory: 4000t}}
stages:
  - {name: a, profile: huge, run: "true"}
END
    check 3 "p.yaml:3:3: .*memory wanted .*, available " troupe run p.yaml
}

@test "a gang that never has room is exit 3" {
    pipeline <<'END'
troupe: 1
stages:
  - {name: a, mpi: {ranks: 9}, run: "true"}
END
    check 3 "p.yaml:3:.*9 ranks" troupe run --local=8 p.yaml
}

@test "what is impossible whatever the cluster is exit 2" {
    pipeline <<'END'
troupe: 1
profiles:
  odd: {executor: {cores: 2}, task: {cpus: 4}}
stages:
  - {name: a, profile: odd, run: "true"}
END
    check 2 "^troupe: p.yaml:3:3: .*cpus 4" troupe plan p.yaml
    check 2 "^a +odd +1 .*never: profile odd: task cpus 4" troupe plan p.yaml
    check 2 '"never": "profile odd: task cpus 4' troupe plan --json p.yaml
    check 2 "p.yaml:3:.*cpus 4" troupe run p.yaml
    [ ! -e troupe-runs ]
}

@test "errors in a file say where" {
    pipeline <<'END'
troupe: 1
stages:
  - name: a
    rnu: "true"
END
    check 2 '^troupe: p.yaml:4:5: .*rnu' troupe plan p.yaml
    check 2 '^troupe: p.yaml:4:5: .*rnu' troupe run p.yaml
    printf 'troupe: 1\nstages: [\x00\x01\x02]\n' >p.yaml
    check 2 '^troupe: p.yaml:2:' troupe plan p.yaml
    head -c 50000000 /dev/zero | tr '\0' 'a' >p.yaml
    check 2 '^troupe: p.yaml:' troupe plan p.yaml
    check 2 'Is a directory' troupe plan .
}

@test "all errors of a file are told, the first twenty by their places, one a value" {
    pipeline <<'END'
troupe: 1
include: [part.yaml]
params: {n: 1}
stages:
  - {name: a, rnu: x, tasks: -1}
  - {name: b, after: [nowhere, c], argv: ["${x}", "${stem}"], tasks: "${m}"}
  - {name: b, run: x, naem: y}
  - {run: x, after: [unnamed]}
END
    echo '{troupe: 1, profiles: {p: {cores: 1}}, stages: [{name: c, run: [x]}]}' >part.yaml
    local call
    for call in plan run; do
        run troupe $call p.yaml
        [ "$status" = 2 ]
        [ "$(cut -d ' ' -f -2 <<<"$output")" = "$(printf 'troupe: %s:\n' p.yaml:5:15 p.yaml:5:30 p.yaml:6:43 \
            p.yaml:6:51 p.yaml:6:70 p.yaml:7:12 p.yaml:7:23 p.yaml:8:5 part.yaml:1:28 part.yaml:1:64)" ]
    done
    { echo '{troupe: 1, stages: ['; seq -f '{name: a%g, rnu: x},' 30; echo ']}'; } >p.yaml
    run troupe plan p.yaml
    [ "${#lines[@]}" = 20 ]
    [[ "${lines[19]}" == *'p.yaml:21:13: unknown key "rnu"'* ]]
    [ ! -e troupe-runs ]
}

@test "a pipeline may come through a pipe" {
    check 0 "one" troupe plan <(echo '{troupe: 1, stages: [{name: one, run: "true"}]}')
}

@test "params and stages that do not exist are named" {
    pipeline <<'END'
troupe: 1
params: {size: 3}
stages:
  - {name: a, run: "true"}
END
    check 2 "siez" troupe run --param siez=4 p.yaml
    check 2 "not of the form" troupe run --param size p.yaml
    check 2 "\-\-from b: p.yaml has no such stage" troupe run --from b p.yaml
    check 2 "\-\-until b: p.yaml has no such stage" troupe run --until b p.yaml
    check 2 "\-\-force b: p.yaml has no such stage" troupe run --force b p.yaml
    printf 'troupe: 1\nparams: {x: no}\nstages:\n  - {name: a, run: "true"}\n  - {name: b, when: "${x}", run: "true"}\n  - {name: c, after: [a, b], run: "true"}\n' >w.yaml
    check 2 "^troupe: --from c --until a leaves no stage to run" troupe run --from c --until a w.yaml
    [ ! -e troupe-runs ]
    check 0 "^c: runs" troupe run --dry-run --until c w.yaml
    check 0 "^b: runs" troupe run --dry-run --until b --param x=yes w.yaml
    for option in from until force; do
        check 2 "^troupe: w.yaml:5:21: --$option b: this when leaves the stage out$" troupe run --$option b w.yaml
    done
    check 2 "run name" troupe run --run-name ../x p.yaml
}

@test "a barrier stage that can never have its slots at once is exit 3, by plan" {
    pipeline <<<'{troupe: 1, stages: [{name: a, tasks: 3, barrier: true, run: "true"}]}'
    check 3 "p.yaml:1:29: stage a: a barrier stage of 3 tasks" troupe plan --local=2 p.yaml
    check 0 "a .*default" troupe plan --local=3 p.yaml
}

@test "what a limit over all profiles never allows is exit 3, by plan and by run alike" {
    pipeline <<'END'
troupe: 1
options: {alloc.max_cores: 2, alloc.max_gpu: 1, alloc.max_memory: 3g}
profiles:
  wide: {executor: {cores: 3}}
  card: {executor: {cores: 1, gpu: 2}, task: {gpu: 1}}
  big: {executor: {cores: 1, memory: 4g, memoryOverhead: 0}}
stages:
  - {name: a, profile: wide, run: "true"}
  - {name: b, profile: card, run: "true"}
  - {name: c, profile: big, run: "true"}
  - {name: d, mpi: {ranks: 3}, run: "true"}
  - {name: e, tasks: 3, barrier: true, run: "true"}
  - {name: f, tasks: 3, run: "true"}
END
    echo '{site: 1, local: {gpu: ["0", "1"]}}' >site.yaml
    cores="cores 3, and alloc.max_cores is 2; raise it or ask for less"
    for call in plan run; do
        check 3 "^troupe: p.yaml:4:3: profile wide never fits here: an executor takes $cores" \
            troupe $call --local=8 --site site.yaml p.yaml
    done
    check 3 "^wide .*never: an executor takes $cores" troupe plan --local=8 p.yaml
    check 3 "^b .*never: an executor takes gpu 2, and alloc.max_gpu is 1" \
        troupe plan --local=8 --site site.yaml p.yaml
    check 3 "^c .*never: an executor takes memory 4 GiB, and alloc.max_memory is 3 GiB" \
        troupe plan --local=8 p.yaml
    check 3 "^d .*never: 3 ranks take $cores" troupe plan --local=8 p.yaml
    check 3 "^e .*never: a barrier stage of 3 tasks .* at most 2 of profile default" \
        troupe plan --local=8 p.yaml
    check 3 "^f .*3 tasks, 2 at once" troupe plan --local=8 p.yaml
    check 3 '"fits": 2,' troupe plan --local=8 --json p.yaml
    for stage in d e; do
        sed "/^  - {name: [a-cf]/d; /name: [de]/{/name: $stage/!d}" p.yaml >one.yaml
        for call in plan run; do
            [ $call$stage = rune ] && continue # tests/mpi/runs.bats
            check 3 "^troupe: one.yaml:8:.*stage $stage: .*3" troupe $call --local=8 one.yaml
        done
    done
    [ ! -e troupe-runs ]
}

@test "executors that would take map outputs along when they go are refused" {
    pipeline <<<'{troupe: 1, options: {shuffle.host_files: false}, stages: [{name: a, run: "true"}]}'
    tracking=dynamicAllocation.shuffleTracking.enabled
    for call in plan run; do
        check 2 "^troupe: .*set: with shuffle.host_files, .*all false .*set one of them to true" \
            troupe $call --local=2 --set $tracking=false --set decommission.enabled=true p.yaml
    done
    check 0 "^a" troupe plan --local=2 p.yaml
    check 0 "^a" troupe plan --local=2 --set $tracking=false --set shuffle.service.enabled=true p.yaml
    [ ! -e troupe-runs ]
}

@test "--dry-run runs nothing and makes nothing" {
    pipeline <<'END'
troupe: 1
stages:
  - {name: a, tasks: 2, run: "touch made"}
  - {name: b, after: [a], run: "true"}
  - {name: c, foreach: {items: [x]}, argv: [echo, "$${HOME}", "$${a}${item}", "$$${item}$"]}
  - {name: d, run: 'echo "$${e}${}"'}
END
    check 0 "touch made" troupe run --dry-run p.yaml
    [[ "$output" == *"    echo '\$\${HOME}' '\$\${a}\${item}' '\$\$\${item}\$'"* ]]
    [[ "$output" == *"    /bin/sh -e -c 'echo \"\$\${e}\${}\"'"* ]]
    check 0 "b: does not run" troupe run --dry-run --until a p.yaml
    [ ! -e troupe-runs ]
    [ ! -e made ]
}

@test "a run folder that cannot be made is exit 4 before anything starts" {
    pipeline <<<'{troupe: 1, stages: [{name: a, run: "true"}]}'
    touch troupe-runs
    check 4 "troupe-runs" troupe run p.yaml
}

@test "what an executor has and its tasks cannot use is said; the profile still runs" {
    pipeline <<'END'
troupe: 1
profiles:
  tight: {executor: {cores: 2, gpu: 4}, task: {cpus: 1, gpu: 1}}
stages:
  - {name: a, profile: tight, run: "true"}
  - {name: b, run: "true"}
END
    echo '{site: 1, local: {gpu: ["0", "1", "2", "3"]}}' >site.yaml
    check 0 "^profile tight: cpus limits an executor to 2 tasks: gpu 4 would take 4" \
        troupe plan --local=2 --site site.yaml p.yaml
    [ "$(grep -c "^profile .*limits" <<<"$output")" = 1 ]
    run troupe plan --local=2 --site site.yaml --json p.yaml
    [ "$(json '$$d{profiles}[1]{waste} =~ /^cpus limits/' <<<"$output")" = 1 ]
    [ "$(json '$$d{profiles}[0]{waste}' <<<"$output")" = null ]
}

@test "an executor has a tenth of its memory on top, 64 MiB at least; a site file may ask for more" {
    pipeline <<'END'
troupe: 1
profiles:
  small: {executor: {memory: 256m}}
  fat: {executor: {memory: 2g}}
  own: {executor: {memory: 256m, memoryOverhead: 1m}}
stages: [{name: a, profile: small, run: "true"}]
END
    echo '{site: 1, memory: {overhead_min: 384m}}' >site.yaml
    shapes() { troupe plan --local "$@" | grep -o "^[a-z]* *cores 1, memory [0-9]* MiB" | tr -s ' ' | xargs; }
    [ "$(shapes p.yaml)" = "default cores 1, memory 1126 MiB small cores 1, memory 320 MiB fat cores 1, memory 2252 MiB own cores 1, memory 257 MiB" ]
    [ "$(shapes --site site.yaml p.yaml)" = "default cores 1, memory 1408 MiB small cores 1, memory 640 MiB fat cores 1, memory 2432 MiB own cores 1, memory 257 MiB" ]
}

# Two stages in two pools; what is on stdin comes first.
pooled() {
    {
        cat
        cat <<'END'
troupe: 1
stages:
  - {name: a, tasks: 40, pool: big, run: "true"}
  - {name: b, tasks: 40, pool: small, run: "true"}
  - {name: c, run: "true"}
  - {name: g, mpi: {ranks: 2}, run: "true"}
END
    } >p.yaml
}

@test "pools: the plan shows them and who is in them" {
    pooled <<<$'options: {scheduler.mode: FAIR}\npools: {big: {weight: 3, mode: FAIR}, small: {min_share: 2}}'
    check 0 "^big +3 +0 +FAIR +a$" troupe plan --local=2 p.yaml
    check 0 "^small +1 +2 +FIFO +b$" troupe plan --local=2 p.yaml
    check 0 "^default +1 +0 +FIFO +c$" troupe plan --local=2 p.yaml
    run troupe plan --local=2 --json p.yaml
    [ "$(json 'join " ", map { $_->{pool} // "-" } @{$$d{stages}}' <<<"$output")" = "big small default -" ]
    [ "$(json '@{$$d{pools}}[0]->{weight}' <<<"$output")" = 3 ]
    # A file adds those that the pipeline has not, and is looked for where we are.
    sed -i 's/^pools:.*/pools: {big: {weight: 5}}/' p.yaml
    echo 'pools: {small: {weight: 7}, big: {weight: 9}}' >more.yaml
    check 0 "^big +5 " troupe plan --set scheduler.allocation.file=more.yaml --local=2 p.yaml
    check 0 "^small +7 " troupe plan --set scheduler.allocation.file=more.yaml --local=2 p.yaml
    # Without pools there is the default one, in which stages take turns; with FIFO none.
    sed -i '/^pools/d; s/pool: [a-z]*, //' p.yaml
    check 0 "^default +1 +0 +FAIR +a, b, c$" troupe plan --local=2 p.yaml
    run troupe plan --set scheduler.mode=FIFO --local=2 p.yaml
    [ "$status" = 0 ]
    [ "$(grep -c "^pool " <<<"$output")" = 0 ]
}

@test "pools: what is wrong with them has its place, before anything is made" {
    local fair='options: {scheduler.mode: FAIR}'
    pooled <<<"$fair"$'\npools: {big: {}, smal: {}}'
    check 2 'p.yaml:6:32: unknown pool "small"; did you mean "smal"' troupe plan p.yaml
    check 2 'p.yaml:6:32: unknown pool' troupe run p.yaml
    check 2 'p.yaml:6:32: unknown pool' troupe run --dry-run p.yaml
    check 2 'p.yaml:6:32: unknown pool' troupe submit --print p.yaml
    pooled <<<"$fair"$'\npools: {one: {}, two: {}}'
    check 2 'p.yaml:5:32: unknown pool "big"; the pools are one, two, default' troupe plan p.yaml
    pooled <<<"$fair"
    check 2 'p.yaml:4:32: unknown pool "big"; write pools: .big: .weight: 1' troupe plan p.yaml
    pooled <<<'pools: {big: {}, small: {}}'
    check 2 'p.yaml:1:9: .*scheduler.mode FAIR only.*write options: .scheduler.mode: FAIR' \
        troupe plan p.yaml
    pooled </dev/null
    check 2 'p.yaml:3:32: pools share slots' troupe run p.yaml
    pooled <<<"$fair"$'\npools: {big: {weight: heavy}, small: {}}'
    check 2 'p.yaml:2:23: weight is heavy; write a whole number from 1 ' troupe plan p.yaml
    sed -i 's/weight: heavy/weight: 0/' p.yaml
    check 2 'p.yaml:2:23: weight is 0' troupe plan p.yaml
    sed -i 's/weight: 0/mode: LIFO/' p.yaml
    check 2 'p.yaml:2:21: mode is "LIFO"; write FIFO or FAIR' troupe plan p.yaml
    sed -i 's/mode: LIFO/wieght: 1/' p.yaml
    check 2 'p.yaml:2:15: unknown key "wieght".*did you mean "weight"' troupe plan p.yaml
    pooled <<<"$fair"$'\npools: {big: {}, small: {}}'
    sed -i 's/mpi: {/pool: big, &/' p.yaml
    check 2 'p.yaml:8:26: a gang .mpi. .*leave pool out' troupe plan p.yaml
    pooled <<<"$fair"
    check 2 '^troupe: --set: scheduler.allocation.file: more.yaml:1:1: cannot be opened' \
        troupe plan --set scheduler.allocation.file=more.yaml p.yaml
    printf '%s\n' '<?xml version="1.0"?>' '<allocations>' '  <pool name="big"><weight>2</weight></pool>' \
        '</allocations>' >fairscheduler.xml
    check 2 'scheduler.allocation.file: fairscheduler.xml: this is XML; write YAML, .*pools: .NAME' \
        troupe plan --set scheduler.allocation.file=fairscheduler.xml p.yaml
    echo word >more.yaml
    check 2 'scheduler.allocation.file: more.yaml:1:1: .*mapping' \
        troupe plan --set scheduler.allocation.file=more.yaml p.yaml
    echo 'pools: {big: {min_share: -1}}' >more.yaml
    check 2 'scheduler.allocation.file: more.yaml:1:26: min_share is -1' \
        troupe run --set scheduler.allocation.file=more.yaml p.yaml
    [ ! -e troupe-runs ]
}

# one_stage KEYS: a pipeline of one stage with these keys.
one_stage() {
    printf 'troupe: 1\nstages:\n  - {name: a, %s}\n' "$1" >p.yaml
}

@test "bad tables, products, values and includes are told with their place" {
    printf 'sample\tfq\na\t1\nb\t2\n' >s.tsv
    one_stage 'foreach: {table: s.tsv}, argv: [echo, "x${col.smaple}"]'
    check 2 '^troupe: p.yaml:3:55: stage a: .{col.smaple}: there is no such column; did you mean "sample"' \
        troupe plan p.yaml
    check 2 'p.yaml:3:55: .*the columns are sample, fq$' troupe run --dry-run p.yaml
    # One that a stage makes may have others by then.
    printf '  - {name: b, outputs: ["*.tsv"], run: x}\n' >>p.yaml
    check 0 '' troupe plan p.yaml
    one_stage 'foreach: {product: {lr: [1], opt: [a]}}, argv: [echo, "${col.op}"]'
    check 2 '^troupe: p.yaml:3:.*did you mean "col.opt"' troupe plan p.yaml
    one_stage 'foreach: {files: "*"}, argv: [echo, "${col.op}"]'
    check 2 'its items have no columns; those of a table or a product' troupe plan p.yaml

    printf 'sample\tfq\na\t1\nb\n' >s.tsv
    one_stage 'foreach: {table: s.tsv}, run: x'
    local call
    for call in plan 'plan --json' 'run --dry-run' run; do
        check 2 '^troupe: p.yaml:3:32: stage a: the table s.tsv: line 3 has 1 value, the header has 2$' \
            troupe $call p.yaml
    done
    # What comes after a stage that does not say that it makes it is looked at, too.
    printf '  - {name: b, run: x}\n  - {name: c, after: [b], run: x, foreach: {table: t.tsv}}\n' >>p.yaml
    printf 'sample\n' >s.tsv
    printf 's\ts\na\t1\n' >t.tsv
    for call in plan run; do
        check 2 '^troupe: p.yaml:5:.*: stage c: the table t.tsv: line 1 has the column s twice$' \
            troupe $call p.yaml
    done
    sed -i 's/name: b,/name: b, outputs: [t.tsv],/' p.yaml
    check 0 '^c +default +\?' troupe plan p.yaml
    one_stage 'foreach: {table: none.tsv}, run: x'
    for call in plan 'run --dry-run' run; do
        check 2 '^troupe: p.yaml:3:32: stage a: the table none.tsv is not there; make it before the run' \
            troupe $call p.yaml
    done
    # What may be made is a warning, once, and so is what only looks wrong.
    printf '  - {name: b, foreach: {table: t.tsv}, run: "echo $TROUPE_COL_smaple"}\n' >>p.yaml
    printf '  - {name: c, run: x}\n' >>p.yaml
    sed -i 's/table: none.tsv}/lines: none}, after: [c]/' p.yaml
    printf 'sample\na\n' >t.tsv
    for call in plan 'plan --json' 'run --dry-run'; do
        check 0 '^troupe: p.yaml:3:32: warning: stage a: the list file none is not there; write into' \
            troupe $call p.yaml
        [ "$(grep -c 'p.yaml:4:45: warning: stage b: no run sets TROUPE_COL_smaple' <<<"$output")" = 1 ]
        [ "$(grep -c 'warning' <<<"$output")" = 2 ]
    done
    printf 'a\n\0b\n' >l
    one_stage 'foreach: {lines: l}, run: x'
    check 2 '^troupe: p.yaml:3:32: stage a: line 2 has a NUL byte' troupe run p.yaml
    printf '\357\273\277s\tfq\r\na\t1\r\nb\t2\r\n' >s.tsv
    one_stage 'foreach: {table: s.tsv}, argv: ["${col.s}", "${col.fq}"]'
    check 0 '^a +default +2 ' troupe plan p.yaml

    seq 1000 >l
    one_stage 'foreach: {product: {a: {lines: l}, b: {lines: l}, c: {lines: l}}}, run: x'
    for call in plan 'run --dry-run' run; do
        check 2 '^troupe: p.yaml:3:.*1000 × 1000 × 1000: 1000000000 tasks are more than a stage may have' \
            troupe $call p.yaml
    done
    one_stage "foreach: {product: {a: [$(seq -s, 4000)], b: [$(seq -s, 4000)]}}, run: x"
    for call in plan run; do
        check 2 '4000 × 4000: 16000000 tasks are more than a stage may have' troupe $call p.yaml
    done

    one_stage 'argv: [echo, "${a"]'
    check 2 '^troupe: p.yaml:3:29: ".{a" has no end; write .{NAME}' troupe plan p.yaml
    one_stage 'tasks: "${a", run: x' # also where what is left of it is no number
    check 2 '^troupe: p.yaml:3:23: ".{a" has no end' troupe plan p.yaml
    one_stage 'tasks: "1${typo}", run: x'
    check 2 '^troupe: p.yaml:3:24: .{typo} stands for nothing' troupe plan p.yaml
    one_stage 'cwd: "${typo}", run: x'
    check 2 '^troupe: p.yaml:3:20: .{typo} stands for nothing' troupe plan p.yaml
    printf 'troupe: 1\nparams: {b: "x${n}", n: 1}\nstages:\n  - {name: a, run: x}\n' >p.yaml
    check 2 '^troupe: p.yaml:2:15: .{n}: a param can be made only of those above it$' troupe plan p.yaml
    printf 'troupe: 1\nparams: {n: 1}\nstages:\n  - {name: a, tasks: "${n}", run: x}\n' >p.yaml
    check 2 'tasks is -1; write a whole number' troupe plan --param n=-1 p.yaml
    check 0 '^a +default +3 ' troupe plan --param n=3 p.yaml

    mkdir inc
    printf 'troupe: 1\ninclude: [inc/b.yaml]\nstages:\n  - {name: a, run: x}\n' >p.yaml
    printf 'troupe: 1\ninclude: [../p.yaml]\n' >inc/b.yaml
    check 2 '^troupe: inc/b.yaml:2:11: inc/../p.yaml includes itself: p.yaml, inc/b.yaml' troupe plan p.yaml
    printf 'troupe: 1\ninclude: [no.yaml]\n' >inc/b.yaml
    check 2 '^troupe: inc/b.yaml:2:11: included: inc/no.yaml: cannot be read' troupe plan p.yaml
    mkfifo inc/no.yaml # nobody would write into it
    check 2 '^troupe: inc/b.yaml:2:11: included: inc/no.yaml: cannot be read: it is not a regular file' troupe plan p.yaml
    [ ! -e troupe-runs ]
}

# bats test_tags=plain
@test "a table of 1,000,000 rows costs its bytes and a few more a row" {
    awk 'BEGIN { print "s\tf"; for (i = 0; i < 1000000; i++) printf "s%06d\treads/%06d.fq.gz\n", i, i }' >m.tsv
    one_stage 'foreach: {table: m.tsv}, argv: [echo, "${col.s}"]'
    head -n 2 m.tsv >few.tsv
    sed s/m.tsv/few.tsv/ p.yaml >few.yaml
    planned() { (ulimit -v $(($2 * 1024)) && troupe plan "$1" >out 2>&1); }
    # What the program itself takes, in steps of 4 MiB.
    local mib=16
    until planned few.yaml $mib; do
        mib=$((mib + 4))
        [ $mib -lt 400 ] || return 1
    done
    # 29 MiB of rows, 16 MiB for where they are and 8 MiB to see that their keys differ, and a tenth.
    planned p.yaml $((mib + 58))
    grep -qE '^a +default +1000000 ' out
    if planned p.yaml $((mib + 36)); then return 1; fi # it is this that was measured
}

# refused TEXT: plan and run refuse p.yaml with it, before anything starts.
refused() {
    for command in plan run; do
        run troupe $command --local=2 p.yaml
        [ "$status" = 2 ]
        [[ "$output" == *"troupe: p.yaml:"*"$1"* ]]
    done
    run ! grep -qs SparkListenerTaskStart troupe-runs/last/events.jsonl
}

@test "two that name one file as their output are refused, and an output that is the input" {
    one() { printf 'troupe: 1\nname: p\nstages:\n%s\n' "$1" >p.yaml; }
    one '  - {name: a, foreach: {items: [x/r.fq, y/r.fq]}, run: "true", outputs: ["out/${stem}.bam"]}'
    refused "stage a: tasks 0 and 1 both name the output out/r.bam; give each its own"
    one '  - {name: a, run: "true", outputs: [r.txt]}
  - {name: b, after: [a], tasks: 2, run: "true", outputs: ["./x/../r.txt"]}'
    refused "stage a and stage b both name the output r.txt"
    printf 'name\tv\nA\t1\nB\t2\nA\t3\n' >t.tsv
    one '  - {name: a, run: "true"}
  - {name: b, after: [a], foreach: {table: t.tsv}, run: "true", outputs: ["${col.name}.txt"]}'
    refused "stage b: tasks 0 and 2 both name the output A.txt"
    printf 'k\tname\nx\tA\ny\tB\nz\tA\n' >t.tsv
    refused "stage b: tasks x and z both name the output A.txt"
    touch same
    one '  - {name: b, run: "true", outputs: [same]}
  - {name: c, run: "true", outputs: [same]}'
    refused "stage b and stage c both name the output same"
    mkdir in && touch in/1 in/2
    one '  - {name: a, foreach: {files: "in/*"}, run: "true", outputs: ["in/${name}"]}'
    refused "stage a: the output in/1 of task 0 is its input; name another file"
    one '  - {name: a, foreach: {items: [u, v]}, run: "true", inputs: ["db/${item}"], outputs: ["./db/${item}"]}'
    refused "the output db/u of task 0 is its input"
    printf 'id\tv\nA\t1\nB\t2\nA\t3\n' >t.tsv
    one '  - {name: a, foreach: {table: t.tsv}, run: "true"}'
    refused "stage a: the table t.tsv: its rows 1 and 3 both have the id A; give each row its own"
    one '  - {name: a, foreach: {table: t.tsv, key: w}, run: "true"}'
    refused "4:44: stage a: key: the table t.tsv has no column w; the columns are id, v"
    # By a link to its folder it is the same file.
    mkdir real && ln -s real link
    one '  - {name: a, run: "true", outputs: [real/x.txt]}
  - {name: b, run: "true", outputs: [link/x.txt]}'
    refused "stage a and stage b both name the output link/x.txt (real/x.txt); give each its own"
    touch real/1
    one '  - {name: a, foreach: {files: "real/*"}, run: "true", outputs: ["link/${name}"]}'
    refused "stage a: the output link/1 (real/1) of task 0 is its input"
    # A folder that several name, what a wildcard matches, and one task that names it twice.
    one '  - {name: a, foreach: {items: [x/1, x/2]}, run: "true", outputs: ["${dir}", "all/", "*.txt", "f.${task}", "f.${task}"]}
  - {name: b, run: "true", outputs: ["all/", "*.txt", results]}
  - {name: c, run: "true", outputs: [results]}'
    check 0 "a" troupe plan --local=2 p.yaml
}

@test "a folder that is too large to be looked into is told" {
    mkdir ref few
    (cd ref && seq 10001 | xargs touch)
    touch few/1
    printf 'troupe: 1\nstages:\n  - {name: a, inputs: [ref, few], run: "true"}\n' >p.yaml
    check 0 "p.yaml:3:12: warning: stage a: the folder ref has more than 10000 entries" troupe plan --local=2 p.yaml
    rm ref/1
    check 0 "a" troupe plan --local=2 p.yaml
    [[ "$output" != *warning* ]]
}

@test "an output that is temp although nobody waits for it is told" {
    printf 'troupe: 1\nstages:\n  - {name: a, outputs: [{file: x, temp: true}], run: x}\n' >p.yaml
    check 0 "p.yaml:3:25: warning: stage a: no stage comes after it, so its output that is temp stays" troupe plan --local=2 p.yaml
    printf '  - {name: b, after: [a], run: x}\n' >>p.yaml
    check 0 "a" troupe plan --local=2 p.yaml
    [[ "$output" != *warning* ]]
    sed -i 's/name: b/&, always: true/' p.yaml
    check 0 "p.yaml:3:25: warning: stage a: a stage after it runs at every --resume, so its output that is temp stays" troupe plan --local=2 p.yaml
    sed -i 's/temp: true/&, protected: true/' p.yaml
    check 2 "p.yaml:3:25: an output that is temp goes, and one that is protected stays; leave one of them out" troupe plan --local=2 p.yaml
}
