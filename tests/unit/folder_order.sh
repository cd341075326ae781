#!/bin/bash
# Folders use those that they may (docs/tour.md): each line is a folder and all that its
# objects may take functions and data from, besides their own. Speaks TAP.
set -u
export LC_ALL=C

may_use='
core:
os:             core
wire:           core
conf:           core os
events:         core os conf
sim/scenario:   core conf
sim/run:        core conf events
comm:           core os
data:           core os comm
executor:       core os wire comm data
cluster:        core os wire conf events executor
cluster/local:  core os events executor cluster
cluster/slurm/accounts: core conf
cluster/slurm/helper: core os conf cluster/slurm/accounts
cluster/slurm/check: core os conf cluster/slurm/accounts cluster/slurm/helper
cluster/slurm/shared: core os conf cluster cluster/slurm/accounts cluster/slurm/helper
cluster/slurm/jobs: core os conf events executor cluster cluster/slurm/accounts cluster/slurm/helper cluster/slurm/shared
cluster/slurm/steps: core os conf events executor cluster cluster/slurm/accounts cluster/slurm/helper cluster/slurm/shared cluster/slurm/jobs
cluster/slurm: core os conf events cluster cluster/slurm/accounts cluster/slurm/helper cluster/slurm/shared cluster/slurm/jobs cluster/slurm/steps
driver:         core os wire conf events comm data executor cluster cluster/local cluster/slurm cluster/slurm/accounts cluster/slurm/helper cluster/slurm/check
api:            core os wire events data executor driver
modules:        core os comm
launcher:       core os conf events sim/scenario sim/run comm cluster cluster/slurm/helper cluster/slurm/check driver
launcher/rank:  os comm executor cluster/slurm/jobs cluster/slurm/steps driver
launcher/slurm: cluster/slurm/helper
plugin:         core os conf
'

# Lines "FOLDER OBJECT" of all whose source is there still. What is compiled into another
# folder's library (`__`: its path goes up) belongs to its own.
objects() {
    local object source folder
    find lib launcher plugin -name '*.c.o' ! -path 'lib/mpi/*' | while read -r object; do
        [[ $object =~ ^(.*)CMakeFiles/[^/]*/(.*)\.o$ ]]
        source=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
        [[ $source != *__/lib/* ]] || source=lib/${source##*__/lib/}
        [ -f "$TROUPE_SOURCE/$source" ] || continue
        folder=${source%/*} folder=${folder#lib/}
        [[ $folder == cluster/* || $folder == sim/* || $folder == launcher/* ]] || folder=${folder%%/*}
        echo "$folder $object"
    done
}

# Lines "FOLDER defines|takes SYMBOL".
symbols() {
    local list
    list=$(objects)
    awk '{ print $2 }' <<<"$list" | xargs nm -gA |
        awk 'NR == FNR { folder[$2 ":"] = $1; next }
            / U trp_/ { print folder[$1], "takes", $NF }
            / [A-TV-Z] trp_/ { sub(":.*", ":", $1); print folder[$1], "defines", $NF }' <(echo "$list") - |
        sort -u
}

# Lines "FOLDER uses FOLDER SYMBOL" that the table does not have.
strange() {
    awk -v table="$may_use" '
        BEGIN {
            n = split(table, lines, "\n")
            for (i = 1; i <= n; i++) {
                k = split(lines[i], words, "[: ]+")
                for (j = 2; j <= k; j++) allowed[words[1], words[j]] = 1
            }
        }
        $2 == "defines" { where[$3] = $1; own[$1, $3] = 1 }
        $2 == "takes" { takes[$1, $3] = 1 }
        END {
            for (pair in takes) {
                split(pair, part, SUBSEP)
                to = where[part[2]]
                if (to != "" && !(pair in own) && !((part[1], to) in allowed))
                    print part[1], "uses", to ":", part[2]
            }
        }' <<<"$1" | sort
}

echo 1..2
cd "$TROUPE_BUILD" || exit 1
all=$(symbols)
count=$(wc -l <<<"$all")
[ "$count" -gt 1000 ] && echo "ok 1 - there are objects" || echo "not ok 1 - $count symbols only"
found=$(strange "$all")
if [ -z "$found" ]; then
    echo "ok 2 - no folder uses one that it may not"
else
    echo "not ok 2 - no folder uses one that it may not"
    while read -r line; do echo "# $line"; done <<<"$found"
fi
