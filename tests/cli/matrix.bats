# The exit status of what CI runs (tests/matrix), with machines that are only pretended.
load common

# machines NAME=STATUS…: how the machine of each release ends.
machines() {
    mkdir -p t/tests/lib
    cp "$TROUPE_SOURCE/tests/matrix" t/tests
    cp "$TROUPE_SOURCE/tests/lib/setup.sh" t/tests/lib
    printf '%s\n' '#!/bin/bash' 'case $2 in' >t/tests/fresh-machine
    local one
    for one; do
        printf '%s) echo "MATRIX all of it ran"; exit %s ;;\n' "${one%=*}" "${one#*=}"
    done >>t/tests/fresh-machine
    echo esac >>t/tests/fresh-machine
    chmod +x t/tests/*
}

@test "the matrix ends with 0 where all releases passed, else it says which did not" {
    machines bookworm=0 trixie=0
    check 0 '^2 of 2 releases passed$' t/tests/matrix --short bookworm trixie
    machines bookworm=0 trixie=1
    check 1 '^1 of 2 releases passed; failed: trixie$' t/tests/matrix --short bookworm trixie
    machines bookworm=69
    check 69 '^0 of 1 releases passed; no machine of: bookworm$' t/tests/matrix --short bookworm
}
