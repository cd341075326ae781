#!/usr/bin/env bats
# troupe check on a real cluster: a site that goes with it, and each kind of finding,
# provoked. What is decided from which fact is in tests/unit/test_slurm_check.c.
# bats file_tags=plain
load slurm.bash

setup_file() {
    cluster_up -n 2 --gpus 2 --fast --plugin --conf Licenses=matlab:3 --conf MessageTimeout=3
    export etc=/var/lib/troupe-slurm/$TROUPE_CLUSTER/etc
    cat >"$etc/troupe/site.yaml" <<'END'
site: 1
resources:
  a100: {slurm: "gres:gpu:a100"}
  matlab: {slurm: "license:matlab"}
  row: {slurm: "constraint:rack1"}
route:
  - {when: {a100: ">=2"}, partition: gpu, constraint: "rack1|rack2"}
  - {partition: "cpu,main"}
driver: {cores: 1, memory: 1g, time: 24h}
profiles:
  train: {executor: {cores: 2, memory: 2g, a100: 2, row: 1}}
  small: {executor: {cores: 1, memory: 1g, matlab: 1}}
END
    # Slurm may have no PMIx, and a site may say by what gangs are started then.
    pmix=
    ! has_pmix || pmix=pmix
    export pmix
    [ "$pmix" ] || echo "mpi: pmi2" >>"$etc/troupe/site.yaml"
    shapes
    cp -rp "$etc" "$BATS_FILE_TMPDIR/etc"
    slurm=$(on head scontrol -V | cut -d" " -f2)
    export slurm
}

# As the site is set up at first.
teardown() {
    [ "$changed" != yes ] || { restore && restart; }
}

shapes() {
    on head "$TROUPE" site-shape --all --site /etc/slurm/troupe/site.yaml \
        --output /etc/slurm/troupe/shapes
}

# change FILE SED-EXPRESSION: of /etc/slurm.
change() {
    changed=yes
    sed -i "$2" "$etc/$1"
}

restore() {
    cp -rp "$BATS_FILE_TMPDIR/etc/." "$etc/"
}

restart() {
    on head pkill -x slurmctld
    wait_until gone slurmctld
    cluster heal head
}

gone() {
    ! on head pgrep -x "$1"
}

# checked STATUS OPTION…: by a user, of the site file that users have.
checked() {
    local status=$1
    shift
    run "-$status" --separate-stderr as alice head env TROUPE_SITE=/etc/slurm/troupe/site.yaml \
        "$TROUPE" check "$@"
    # shellcheck disable=SC2154 # run sets it
    [ -z "$stderr" ] || { echo "stderr: $stderr" && return 1; }
}

# says LINE…: those and the count, no others.
says() {
    printf '%s\n' "$@" | diff - <(head -n -1 <<<"$output")
}

@test "a site that goes with its cluster has a clean bill, for every user" {
    checked 0
    [ "$output" = "cluster $TROUPE_CLUSTER, Slurm $slurm: 0 errors, 0 warnings" ]
    checked 0 --verbose
    [ "$(head -n -1 <<<"$output" | grep -c '^ok: ')" = 17 ]
    [ "$(wc -l <<<"$output")" = 18 ]
    [[ "$output" == *"ok: plugin: /etc/slurm/plugstack.conf:"*" loads $(readlink -e "$TROUPE_BUILD")/lib/spank_troupe.so"* ]]
    [[ "$output" == *"ok: mpi: Open MPI "*" on this host; gangs by srun --mpi=${pmix:-pmi2}"* ]]
    [[ "$output" == *"ok: topology: 2 racks from Slurm's topology"* ]]
    checked 0 --json
    perl -MJSON::PP -0777 -e '
        my $d = decode_json(<STDIN>);
        my @bad = grep { $_->{severity} ne "ok" || $_->{todo} ne "" } @{$d->{findings}};
        print "$d->{cluster} $d->{site} $d->{errors} $d->{warnings} ",
            scalar @{$d->{findings}}, " ", scalar @bad, "\n"' <<<"$output" >counts
    [ "$(cat counts)" = "$TROUPE_CLUSTER /etc/slurm/troupe/site.yaml 0 0 17 0" ]
}

@test "where scontrol is not in PATH that is told, not to set up a topology that is there" {
    run -0 as alice head env PATH=/nowhere TROUPE_SITE=/etc/slurm/troupe/site.yaml "$TROUPE" check
    [[ "$output" == *"warning: topology: there is no scontrol in PATH, which tells of racks: all nodes count as equally near; put Slurm's commands into PATH, also where troupe run is called, or write racks: in the site file"* ]]
}

@test "what a site file names and the cluster lacks is told with its place" {
    cat >site.yaml <<'END'
site: 1
resources:
  v100: {slurm: "gres:gpu:v100"}
  fpga: {slurm: "gres:fpga"}
  abaqus: {slurm: "license:abaqus"}
  matlab: {slurm: "license:matlab"}
  bigmem: {slurm: "constraint:bigmem"}
route:
  - {when: {cores: ">=5"}, partition: cpu}
  - {when: {matlab: ">0"}, partition: main}
  - {when: {matlab: ">1"}, partition: gpux}
  - {when: {gpu: ">0"}, partition: gpu, constraint: rack3}
  - {partition: main}
limits: {deny: [fpga]}
driver: {cores: 1, memory: 5g, time: 24h}
profiles:
  wide: {executor: {cores: 4, memory: 4g}}
  keys: {executor: {cores: 1, memory: 1g, matlab: 4}}
  dev: {executor: {cores: 1, memory: 1g, fpga: 1}}
END
    [ "$pmix" ] || echo "mpi: pmi2" >>site.yaml
    on head scontrol update PartitionName=cpu State=DOWN
    checked 1 --site site.yaml
    on head scontrol update PartitionName=cpu State=UP
    says "warning: partition: site.yaml:9:39: partition cpu is not up: no job starts there; scontrol update PartitionName=cpu State=UP" \
        "error: partition: site.yaml:11:39: Slurm has no partition gpux; did you mean gpu?" \
        "error: gres: site.yaml:3:3: no node has the GRES gpu:v100; did you mean gpu:a100?" \
        "error: gres: site.yaml:4:3: no node has the GRES fpga; there are: gpu:a100" \
        "error: licence: site.yaml:5:3: Slurm has no licence abaqus; there are: matlab" \
        "error: feature: site.yaml:7:3: no node has the feature bigmem; there are: rack1, rack2" \
        "error: feature: site.yaml:12:53: no node has the feature rack3; did you mean rack1?" \
        "warning: route: site.yaml:11:5: this route can never match: the one at line 10 comes first and takes all of it; put this one before it, or remove it" \
        "warning: route: site.yaml:9:20: this route can never be used: it wants cores 5 or more, and a node of partition cpu has 4 at most; correct its when:, or remove it" \
        "error: profile: site.yaml:17:3: profile wide can never be had: no node of partition main is so large: memory wanted 4505 MiB, at most 4096 MiB; make it smaller, or route it elsewhere" \
        "error: profile: site.yaml:18:3: profile keys can never be had: licence matlab wanted 4, Slurm has 3; ask for less" \
        "error: profile: site.yaml:19:3: profile dev can never be had: resource fpga is denied at site.yaml:14:16; ask for another one" \
        "error: driver: site.yaml:15:1: the driver's job can never be had: no node of partition main is so large: memory wanted 5 GiB, at most 4 GiB; make it smaller, or name another partition"
    [[ "${lines[-1]}" == *": 10 errors, 3 warnings" ]]
    # What it says is so: Slurm refuses such jobs.
    run ! as alice head sbatch --test-only -L matlab:4 --wrap true
    run ! as alice head sbatch --test-only -p gpux --wrap true
    run ! as alice head sbatch --test-only -p main -N1 --mem=4505M --wrap true
}

@test "without a site file that is told" {
    run -0 as alice head "$TROUPE" check
    [ "$pmix" ] || grep -q "^warning: mpi: gangs of Open MPI cannot start: srun has no --mpi=pmix" <<<"$output"
    output=$(grep -v "^warning: mpi: " <<<"$output")
    says "warning: site: there is no site file: profiles go to Slurm's default partition; copy slurm-conf/site.yaml to /etc/troupe/site.yaml and change it" \
        "warning: plugin: /etc/slurm/plugstack.conf:$(grep -n ^optional "$etc/plugstack.conf" | cut -d: -f1): the plugin reads /etc/slurm/troupe/site.yaml, users' commands no site file; write site=FILE there, or check that one: --site /etc/slurm/troupe/site.yaml"
}

@test "what Slurm does not enforce or know is told" {
    change cgroup.conf 's/^\(ConstrainRAMSpace\|ConstrainDevices\)=yes/\1=no/'
    change slurm.conf 's,^TopologyPlugin=.*,TopologyPlugin=topology/none,
        s,^SelectTypeParameters=.*,SelectTypeParameters=CR_Core,
        /^CliFilterPlugins/d'
    rm "$etc/plugstack.conf"
    restart
    checked 0
    local flat # is called topology/default from 23.11 on
    flat=$(on head scontrol show config | sed -n 's/^TopologyPlugin *= *//p')
    says "warning: memory: memory is not handed out: SelectTypeParameters is without Memory, so jobs share it unasked; add it in slurm.conf, as in SelectTypeParameters=CR_Core_Memory" \
        "warning: memory: cgroup.conf: memory is not enforced: ConstrainRAMSpace=no; write ConstrainRAMSpace=yes there and restart slurmctld and slurmd" \
        "warning: devices: cgroup.conf: tasks can open devices of others: ConstrainDevices=no; write ConstrainDevices=yes there and restart slurmctld and slurmd" \
        "warning: plugin: /etc/slurm/plugstack.conf: Slurm does not load spank_troupe.so: there is no --stage-profile; add the line: optional spank_troupe.so site=/etc/slurm/troupe/site.yaml" \
        "warning: cli_filter: CliFilterPlugins=(not set), without lua: --stage-profile gives jobs no shape; write CliFilterPlugins=lua in slurm.conf and put slurm-conf/cli_filter.lua beside it" \
        "warning: topology: no racks are known (TopologyPlugin=$flat): all nodes count as equally near; write TopologyPlugin=topology/tree and topology.conf, or racks: in the site file"
    # Without task/cgroup cgroup.conf says nothing.
    restore
    change slurm.conf 's,^TaskPlugin=.*,TaskPlugin=task/none,'
    restart
    checked 0
    local none # not even a name for it from 24.11 on
    none=$(on head scontrol show config | sed -n 's/^TaskPlugin *= *//p')
    [[ $none == task/* ]] || none='(not set)'
    says "warning: memory: memory is not enforced: TaskPlugin=$none, without task/cgroup; add task/cgroup to TaskPlugin in slurm.conf" \
        "warning: devices: tasks can open devices of others: TaskPlugin=$none, without task/cgroup; add task/cgroup to TaskPlugin in slurm.conf"
}

# own_conf: a folder c, which commands read instead of /etc/slurm.
own_conf() {
    cp -rp "$etc" c
    sed -i "s,/etc/slurm/,$PWD/c/," c/plugstack.conf
    export SLURM_CONF=$PWD/c/slurm.conf
    stack=$PWD/c/plugstack.conf:$(grep -n ^optional c/plugstack.conf | cut -d: -f1)
}

# finds LINE: this and nothing else; the site file is that of the folder c.
finds() {
    run --separate-stderr as alice head env TROUPE_SITE="$PWD/c/troupe/site.yaml" "$TROUPE" check
    says "$1"
    [[ "$1" == error:* && "$status" = 1 || "$1" == warning:* && "$status" = 0 ]]
}

@test "a plugin that Slurm does not load is told" {
    own_conf
    cat >other.c <<'END'
const char plugin_name[] = "troupe", plugin_type[] = "spank";
const unsigned int plugin_version = 0x150801;
END
    mkdir lib
    cc -shared -o lib/spank_troupe.so other.c
    sed -i "s,[^ ]*/spank_troupe.so,$PWD/lib/spank_troupe.so," c/plugstack.conf
    finds "warning: plugin: $stack: $PWD/lib/spank_troupe.so was built for Slurm 21.08, and Slurm $slurm does not load it: there is no --stage-profile; build Troupe with the headers of this Slurm"
    sed -i 's,^optional,required,' c/plugstack.conf
    rm lib/spank_troupe.so
    finds "error: plugin: $stack: $PWD/lib/spank_troupe.so is not there, and it is required: no job can be started; install it there, or write its path"
    run ! as alice head srun -n1 true
    # A name without a folder is looked for in Slurm's own.
    sed -i 's,^required [^ ]*/,optional ,' c/plugstack.conf
    local plugins
    plugins=$(on head scontrol show config | sed -n 's/^PluginDir *= //p')
    finds "warning: plugin: $stack: $plugins/spank_troupe.so is not there: there is no --stage-profile; install it there, or write its path"
    chmod 600 c/plugstack.conf
    finds "warning: plugin: whether Slurm loads spank_troupe.so cannot be told here: $PWD/c/plugstack.conf: Permission denied; run troupe check where Slurm's files can be read"
}

@test "shapes and a filter that are not what they should be are told" {
    own_conf
    local c=$PWD/c
    touch c/troupe/site.yaml
    finds "warning: shapes: $c/troupe/shapes: it is older than $c/troupe/site.yaml, of which it was made; troupe site-shape --all --site $c/troupe/site.yaml --output $c/troupe/shapes"
    mv c/troupe/shapes .
    finds "warning: shapes: $c/troupe/shapes: it is not there: every --stage-profile is refused; troupe site-shape --all --site $c/troupe/site.yaml --output $c/troupe/shapes"
    run ! as alice head srun -n1 --stage-profile=small true
    touch shapes && mv shapes c/troupe/
    echo 'function slurm_cli_pre_submit(options, offset) return slurm.SUCCESS end' >c/cli_filter.lua
    finds "warning: cli_filter: $c/cli_filter.lua: nothing of Troupe's is in it: --stage-profile gives jobs no shape; add what slurm-conf/cli_filter.lua does"
    chmod 600 c/cli_filter.lua
    finds "warning: cli_filter: what cli_filter.lua does cannot be told here: $c/cli_filter.lua: Permission denied; run troupe check where Slurm's files can be read"
    rm -f c/cli_filter.lua
    finds "error: cli_filter: $c/cli_filter.lua: CliFilterPlugins has lua, and its file is not there: no job can be submitted; put slurm-conf/cli_filter.lua there"
    run ! as alice head srun -n1 true
}

# unanswered COMMAND…: that is told, in one line.
unanswered() {
    run -4 --separate-stderr as alice head "$@"
    [ -z "$output" ]
    # shellcheck disable=SC2154 # run sets it
    [ "${#stderr_lines[@]}" = 1 ]
}

@test "without MUNGE, or a slurmctld that answers, that is told" {
    run -4 --separate-stderr on head unshare -m bash -c "mount -t tmpfs tmpfs /run/munge && $TROUPE check"
    [ "$stderr" = "troupe: Slurm cannot be asked: Protocol authentication error; is munged running here, with the cluster's key?" ]
    on head pkill -STOP -x slurmctld
    unanswered "$TROUPE" check --json
    [[ "$stderr" == "troupe: slurmctld does not answer: "*"; is it running?" ]]
    on head pkill -CONT -x slurmctld
    on head pkill -x slurmctld
    wait_until gone slurmctld
    unanswered "$TROUPE" check
    [[ "$stderr" == "troupe: slurmctld does not answer: "*"; is it running?" ]]
    nothing_left head
    cluster heal head
}

# One that answers whatever it is asked, with a header that a newer Slurm begins with.
answer_newer() {
    on head perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(LocalPort => 7999, Listen => 5, ReuseAddr => 1) or die;
        $SIG{CHLD} = "IGNORE";
        while (my $c = $s->accept()) {
            next if fork;
            # All of it, length first: libslurm loses a byte that comes while it still sends.
            read($c, my $asked, 4) == 4 or exit;
            read($c, $asked, unpack("N", $asked));
            $c->syswrite(pack("N n", 62, 0x7f00) . "\0" x 60);
            1 while $c->sysread($asked, 65536); # closed before, it would be reset
            exit;
        }' 3>&- &
}

@test "a slurmctld that libslurm does not understand is told, with what to do" {
    own_conf
    echo SlurmctldPort=7999 >>c/slurm.conf
    answer_newer
    wait_until on head bash -c ': </dev/tcp/localhost/7999'
    unanswered "$TROUPE" check
    kill $!
    echo "said: $stderr"
    [ "$stderr" = "troupe: slurmctld is not understood by libslurm ${slurm%.*}, for which Troupe was built; build it with the headers of slurmctld's Slurm" ]
}
