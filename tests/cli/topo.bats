# troupe topo: this machine as executors see it.
bats_require_minimum_version 1.5.0
load common

@test "this machine has cores and memory" {
    check 0 "^host .*: [0-9]+ cores?, [0-9]+ [GM]iB$" troupe topo
    run troupe topo --json
    [ "$(json 'scalar @{$$d{racks}}' <<<"$output")" = 1 ]
    host='$$d{racks}[0]{hosts}[0]'
    [ "$(json "$host{name}" <<<"$output")" = "$(uname -n)" ]
    [ "$(json "$host{cores}" <<<"$output")" -ge 1 ]
    [ "$(json "$host{memory}" <<<"$output")" -ge 64 ]
    [ "$(json "$host{devices}" <<<"$output")" = "{}" ]
}

@test "affinity is respected, cores may be pretended" {
    first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    [ "$(taskset -c "$first" "$TROUPE_BUILD/bin/troupe" topo --json |
        json '$$d{racks}[0]{hosts}[0]{cores}')" = 1 ]
    [ "$(troupe topo --local=77 --json | json '$$d{racks}[0]{hosts}[0]{cores}')" = 77 ]
}

@test "no plugin of hwloc is loaded for it" {
    run ! grep /hwloc_ <(LD_DEBUG=files troupe topo 2>&1)
}

@test "devices are those that the site file declares" {
    echo '{site: 1, local: {gpu: ["10", "2"], fpga: [a]}}' >site.yaml
    [ "$(troupe topo --site site.yaml --json |
        json 'join ",", @{$$d{racks}[0]{hosts}[0]{devices}{gpu}}')" = "2,10" ]
    check 0 "fpga: a" troupe topo --site site.yaml
}

@test "racks are those of the site's file or pattern" {
    echo "$(uname -n),node[1-4] rack-7  # the first row" >racks
    echo '{site: 1, racks: {file: racks}}' >site.yaml
    check 0 "^rack rack-7$" troupe topo --site site.yaml
    [ "$(troupe topo --site site.yaml --json | json '$$d{racks}[0]{name}')" = rack-7 ]
    echo '{site: 1, racks: {pattern: "(.).*"}}' >site.yaml
    [ "$(troupe topo --site site.yaml --json | json '$$d{racks}[0]{name}')" = \
        "$(uname -n | cut -c1)" ]
    echo '{site: 1, racks: {pattern: "no(.)"}}' >site.yaml
    [ "$(troupe topo --site site.yaml --json | json '$$d{racks}[0]{name}')" = "" ]
    echo '{site: 1, racks: {file: elsewhere}}' >site.yaml
    check 2 "^troupe: site.yaml:1:18: racks: elsewhere cannot be read: No such file" \
        troupe topo --site site.yaml
    echo 'node1 a b' >racks
    echo '{site: 1, racks: {file: racks}}' >site.yaml
    check 2 "^troupe: racks:1:9: a line has two words; write HOSTS RACK" \
        troupe topo --site site.yaml
}

@test "MPIs that are here are told with what works with each" {
    type mpirun.openmpi >/dev/null 2>&1 || skip "Open MPI is not here under Debian's names"
    version=$(mpirun.openmpi --version | sed -n '1s/.* //p')
    troupe topo --mpi >text
    grep -q "^Open MPI $version  *yes  *yes  *\(yes\|no\)  */" text
    troupe topo --mpi --json >found
    [ "$(json '(grep { $_->{name} =~ /^Open MPI/ } @{$$d{mpis}})[0]{static}' <found)" = true ]
    if type mpiexec.hydra && [ -e "$TROUPE_BUILD/lib/troupe/mpi-mpich.so" ]; then
        [ "$(json '(grep { $_->{name} =~ /^MPICH/ } @{$$d{mpis}})[0]{messages}' <found)" = false ]
    fi
}
