# troupe check where there is no cluster: calls, site files with errors, no Slurm.
load common
bats_require_minimum_version 1.5.0

# No Slurm of this machine is asked.
setup_file() {
    export SLURM_CONF=$BATS_FILE_TMPDIR/none
}

@test "check takes options only" {
    check 2 "check: takes no arguments" troupe check site.yaml
    check 2 'unknown option --jsn; did you mean "--json"' troupe check --jsn
    check 2 "\-\-site needs a value" troupe check --site
}

@test "a site file with an error is refused with its place, before Slurm is asked" {
    printf 'site: 1\nroute:\n  - {partitoin: cpu}\n' >site.yaml
    check 2 '^troupe: site.yaml:3:6: unknown key "partitoin"' troupe check --site site.yaml
    [ "${#lines[@]}" = 1 ]
    export TROUPE_SITE=$PWD/site.yaml
    check 2 "^troupe: $PWD/site.yaml:3:6: " troupe check --json
    unset TROUPE_SITE
    check 2 "^troupe: nowhere.yaml:1:1: cannot be opened: No such file" troupe check --site nowhere.yaml
    printf 'site: 1\nracks: {file: racks}\n' >site.yaml
    echo 'node1 a b' >racks
    check 2 "^troupe: racks:1:9: a line has two words" troupe check --site site.yaml
}

# unasked: Slurm is not, and one line says so.
unasked() {
    run --separate-stderr troupe check
    [ "$status" = 4 ]
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" == "troupe: troupe-slurm is not where troupe is installed"* ||
        "$stderr" == "troupe: Slurm cannot be asked on this host: $1; run troupe check where sinfo works" ]]
}

@test "where Slurm is not set up one line says so" {
    unasked "SLURM_CONF is $SLURM_CONF: No such file or directory"
    [ ! -e /etc/slurm/slurm.conf ] || skip "this machine has a Slurm"
    unset SLURM_CONF
    unasked "Could not establish a configuration source"
}

@test "where slurmctld is not reached one line says so" {
    [ -x "$TROUPE_BUILD/bin/troupe-slurm" ] || skip "troupe-slurm is not built"
    # Nobody listens at port 1.
    cat >slurm.conf <<'END'
ClusterName=none
SlurmctldHost=head(127.0.0.1)
SlurmctldPort=1
MessageTimeout=2
NodeName=node1
PartitionName=main Nodes=ALL
END
    export SLURM_CONF=$PWD/slurm.conf
    run --separate-stderr troupe check
    [ "$status" = 4 ]
    [ -z "$output" ]
    [[ "$stderr" == "troupe: slurmctld does not answer: "*"; is it running?" ]]
    [ "${#stderr_lines[@]}" = 1 ]
}

@test "a troupe-slurm whose libslurm is not here says for which Slurm it was built" {
    [ -x "$TROUPE_BUILD/bin/troupe-slurm" ] || skip "troupe-slurm is not built"
    mkdir bin
    cp "$TROUPE_BUILD/bin/troupe" bin/
    # One that wants another libslurm, as that of another Slurm does.
    sed 's/libslurm\.so\.[0-9][0-9]/libslurm.so.99/' "$TROUPE_BUILD/bin/troupe-slurm" >bin/troupe-slurm
    chmod +x bin/troupe-slurm
    printf '#!/bin/sh\necho slurm 99.05.1\n' >bin/scontrol
    chmod +x bin/scontrol
    unset SLURM_CONF
    run --separate-stderr env PATH="$PWD/bin:$PATH" bin/troupe check
    [ "$status" = 4 ]
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" =~ ^"troupe: troupe-slurm was built for Slurm "[0-9]+\.[0-9]+", and here is Slurm 99.05.1; build Troupe with the headers of that one"$ ]]
    rm bin/scontrol
    run --separate-stderr env PATH="$PWD/bin" bin/troupe check
    [ "$status" = 4 ]
    [[ "$stderr" == "troupe: troupe-slurm ended before it had answered \"conf\"; is libslurm installed here?" ]]
}
