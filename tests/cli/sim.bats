# troupe sim: scenarios in virtual time.
load common

good() {
    cat >good.yaml <<'EOF'
scenario: a part of a device
layer: resources
addresses: {gpu: ["0"]}
steps:
- take: {gpu: 1/2}
  expect: {assigned: {gpu: ["0"]}, left: {gpu: {"0": 0.5}}}
- take: {gpu: 1}
  expect: {assigned: none}
EOF
}

@test "a case is a test point for each expect and one for the file" {
    good
    run troupe sim good.yaml
    [ "$status" = 0 ]
    [ "$output" = "TAP version 13
ok 1 - good.yaml: step 1, take
ok 2 - good.yaml: step 2, take
ok 3 - good.yaml: no unexpected error
1..3" ]
}

@test "points are numbered through several files" {
    good
    check 0 "^ok 6 - good.yaml: no unexpected error" troupe sim good.yaml good.yaml
    check 0 "^1\.\.6$" troupe sim good.yaml -- good.yaml
}

@test "a mismatch says what was wanted and got, and where" {
    good
    sed -i 's/none/{gpu: ["0"]}/' good.yaml
    check 1 "^not ok 2 - good.yaml: step 2, take" troupe sim good.yaml
    [[ $output == *'wanted: {"assigned":{"gpu":["0"]}}'* ]]
    [[ $output == *'got: {"assigned":"none"}'* ]]
    [[ $output == *$'  step: 2\n  line: 7\n'* ]]
}

@test "decisions are printed as JSON, one a line" {
    good
    run troupe sim --trace good.yaml
    [ "$status" = 0 ]
    [ "$output" = '{"at":0,"assigned":{"gpu":["0"]}}
{"at":0,"assigned":"none"}' ]
}

@test "what is no scenario is told with its place, and the other files run" {
    good
    echo '{scenario: x, layer: nosuch, steps: []}' >bad.yaml
    check 2 "bad.yaml:1:22: layer is \"nosuch\"" troupe sim bad.yaml good.yaml
    [[ $output == *"ok 3 - good.yaml"* ]]
    check 2 "nowhere.yaml" troupe sim nowhere.yaml
    check 2 "directory" troupe sim .
    head -c 3000 /dev/urandom >noise.yaml
    check 2 "noise.yaml" troupe sim noise.yaml
}

@test "sizes that no machine holds are refused kindly" {
    echo '{scenario: x, layer: outputs, steps: [{register: {shuffle: s, maps: 1000000000}}]}' \
        >big.yaml
    check 2 "big.yaml:1:50: .*100000" troupe sim big.yaml
    echo '{scenario: x, layer: outputs, steps: [{register: {shuffle: s, maps: 1e30}}]}' \
        >big.yaml
    check 2 "whole number" troupe sim big.yaml
}

@test "wrong calls are told" {
    check 2 "no scenario file" troupe sim
    check 2 'did you mean "--trace"' troupe sim --trase x.yaml
    check 0 "^usage: troupe sim" troupe sim --help
}

@test "a full disk is an error" {
    good
    run bash -c "'$TROUPE_BUILD/bin/troupe' sim good.yaml >/dev/full"
    [ "$status" = 4 ]
}
