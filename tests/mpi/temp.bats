#!/usr/bin/env bats
# Files that a run makes and lets go, and those that nobody may write.
load drill

pipeline() {
    cat >p.yaml <<'Y'
troupe: 1
name: t
stages:
  - name: cut
    foreach: {items: [a, b, c]}
    outputs: [{file: "t/${item}", temp: true}]
    run: |
      echo c$TROUPE_ITEM >>ran; mkdir -p t
      if [ -e half ]; then echo x >t/$TROUPE_ITEM; touch begun; sleep 1000; fi
      cp in/$TROUPE_ITEM t
  - name: use
    after: [{stage: cut, each: true}]
    foreach: {items: [a, b, c]}
    inputs: ["t/${item}"]
    outputs: ["u/${item}"]
    run: 'echo u$TROUPE_ITEM >>ran; [ ! -e bad-$TROUPE_ITEM ]; mkdir -p u keep; cp -p t/$TROUPE_ITEM keep; cp t/$TROUPE_ITEM u'
  - name: see
    after: [{stage: cut, each: true}]
    foreach: {items: [a, b, c]}
    outputs: ["v/${item}"]
    run: 'echo v$TROUPE_ITEM >>ran; mkdir -p v; cp t/$TROUPE_ITEM v'
  - {name: all, after: [use], outputs: [sum], run: 'echo all >>ran; cat u/* >sum'}
Y
    mkdir in
    for i in a b c; do echo $i >in/$i; done
}

# again OPTION…: what a resumed run does.
again() {
    rm -f ran
    troupe run --local=2 --resume r "$@" >out.txt 2>err.txt || return 1
    sort ran 2>/dev/null | tr '\n' ' '
}

planned() {
    troupe plan --resume r --local=2 | sed '1,/^of /d'
}

left() { find t -type f | sort | tr '\n' ' '; }

@test "a temp file goes when what needs it is done, is not missed then, and is made again when it is needed" {
    pipeline
    run -0 troupe run --local=2 --run-name r p.yaml
    [[ "$output" == *"troupe: 3 temp files were removed"* ]]
    [ "$(left)" = "" ]
    [ "$(sort -u ran | wc -l)" = 10 ]
    [ "$(tr -d '\n' <sum)" = abc ]
    [ "$(planned | sed -n 1p)" = "cut: does not run; 3 temp files are gone, and nothing needs them" ]
    run -0 troupe explain r cut
    [[ "$output" == *"3 temp files were removed"* ]]
    [ "$(again)" = "" ]
    # Of one task; what else was made of it stays.
    rm u/b
    [ "$(planned | sed -n 1p)" = "cut: 2 tasks are done, 1 of 3 runs: stage use needs t/b again; 2 temp files are gone, and nothing needs them" ]
    [ "$(again)" = "all cb ub " ]
    grep -q 'stage cut: 1 task that was done is to run again: stage use needs t/b again' err.txt
    [ "$(left)" = "" ]
    [ "$(again)" = "" ]
    [ "$(again --force all)" = "all " ]
    [ "$(again --from use --force use)" = "all ca cb cc ua ub uc " ]
    [ "$(again --until use)" = "" ]
    echo aa >in/a
    sed -i 's/name: cut/&\n    inputs: ["in\/${item}"]/' p.yaml
    [ "$(again)" = "all ca cb cc ua ub uc va vb vc " ] # another command
    echo aaa >in/a
    [ "$(again)" = "all ca ua va " ]
    [ "$(left)" = "" ]
}

@test "nothing goes that is needed still, or that was changed; a kill at any time loses nothing" {
    pipeline
    touch bad-b
    run -1 troupe run --local=2 --keep-going --run-name r p.yaml
    [ "$(left)" = "t/b " ]
    rm bad-b
    [ "$(again)" = "all ub " ]
    [ "$(left)" = "" ]
    # Killed before they were removed.
    cp -p keep/a keep/c t
    [ "$(again)" = "" ]
    grep -q '2 temp files were removed' err.txt
    [ "$(left)" = "" ]
    # Killed while one is made again: that is not somebody's change.
    rm u/b
    touch half
    troupe run --local=2 --resume r >out.txt 2>err.txt &
    wait_until [ -e begun ]
    kill -9 "$(pid_of driver r)"
    wait $! || true
    rm half
    [ "$(cat t/b)" = x ]
    [ "$(again)" = "all cb ub " ]
    [ "$(left)" = "" ]
    [ "$(tr -d '\n' <sum)" = abc ]
    # A change is one.
    echo other >t/c
    [ "$(again)" = "all cc uc vc " ]
    # What somebody else has put there, and what a link leads to, stays.
    echo mine >t/mine
    sed -i 's/cp in\/$TROUPE_ITEM t/ln -sf ..\/in\/$TROUPE_ITEM t/' p.yaml
    [ "$(again)" = "all ca cb cc ua ub uc va vb vc " ]
    [ "$(ls -A t)" = mine ]
    [ "$(cat in/*)" = "$(cat sum)" ]
}

@test "a stage may work on files that are temp, and a folder of them goes" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: split, outputs: [{file: parts, temp: true}], run: 'echo s >>ran; mkdir -p parts; for i in 1 2 3; do echo $i >parts/$i; done'}
  - {name: map, after: [split], foreach: {files: "parts/*"}, outputs: ["out/${name}"], run: 'echo m$TROUPE_ITEM_NAME >>ran; mkdir -p out; cp $TROUPE_ITEM out'}
  - {name: all, after: [map], inputs: ["out/*"], run: 'echo all >>ran'}
  - {name: last, after: [all], inputs: ["parts/2"], run: 'echo last >>ran; cat parts/2'}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ ! -e parts ]
    [ "$(again)" = "" ]
    rm out/2
    [ "$(again)" = "all last m2 s " ]
    [ ! -e parts ]
    [ "$(again)" = "" ]
    sed -i 's/for i in 1 2 3/for i in 1 2/' p.yaml
    rm -r out
    [ "$(again)" = "all last m1 m2 s " ]
}

@test "what is protected is read-only; an attempt that runs again may write it" {
    cat >p.yaml <<'Y'
troupe: 1
stages:
  - {name: a, tasks: 2, outputs: [{file: "o/${task}", protected: true}], run: 'mkdir -p o; [ ! -e o/$TROUPE_TASK ] || [ "$(stat -c %A o/$TROUPE_TASK | cut -c 3)" = w ]; echo $$ >o/$TROUPE_TASK'}
  - {name: b, after: [a], outputs: [{file: sum, protected: true}], run: 'umask 2; cat o/* >sum'}
Y
    run -0 troupe run --local=2 --run-name r p.yaml
    [ "$(stat -c %a o/0 o/1 sum | sort -u)" = 444 ]
    was=$(cat sum)
    [ "$(again)" = "" ]
    again --force a
    [ "$(stat -c %a o/0 o/1 sum | sort -u)" = 444 ]
    [ "$(cat sum)" != "$was" ]
}
