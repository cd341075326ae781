#!/usr/bin/env bats
# What `cmake --install` puts in place, wherever that is, and programs that are built
# against it. tests/packages does the same with packages.
# bats file_tags=plain
bats_require_minimum_version 1.5.0
load common

setup_file() {
    cmake --install "$TROUPE_BUILD" --prefix "$BATS_FILE_TMPDIR/first" >"$BATS_FILE_TMPDIR/log"
    # It may be moved as a whole.
    usr=$BATS_FILE_TMPDIR/moved
    mv "$BATS_FILE_TMPDIR/first" "$usr"
    lib=$(dirname "$(find "$usr" -name libtroupe.so)")
    export usr lib
}

# installed COMMAND…: with the installed troupe, and without any setting of this build.
installed() {
    env -i PATH="$usr/bin:$PATH" HOME="$PWD" TROUPE_CHECK="${TROUPE_CHECK:-}" \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}

# It was told no more than where libtroupe is, as a program outside of /usr is.
first_works() {
    installed LD_LIBRARY_PATH="$lib" troupe run --quiet --local=2 -- "$1" >out
    grep -qxE '[0-9]{3,} words' out
}

@test "the installed troupe has its helpers, and runs a pipeline with them" {
    echo '{troupe: 1, stages: [{name: s, run: "readlink /proc/$PPID/exe"}]}' >p.yaml
    installed troupe run --local=1 --run-name r p.yaml
    [ "$(cat troupe-runs/r/logs/s/0.0.out)" = "$(readlink -f "$usr")/libexec/troupe/troupe-rank" ]
    [ -e "$TROUPE_BUILD/bin/troupe-slurm" ] || return 0 # built without Slurm's headers
    run -4 installed SLURM_JOB_ID=1 SLURM_CONF=/dev/null troupe run p.yaml
    [[ "$output" == *"this is Slurm job 1"* && "$output" != *"where troupe is installed"* ]]
}

@test "shells find their completion" {
    for file in bash-completion/completions/troupe fish/vendor_completions.d/troupe.fish; do
        grep -q 'troupe completion' "$usr/share/$file"
    done
    grep -qx '#compdef troupe' "$usr/share/zsh/site-functions/_troupe"
}

@test "a program is built by pkg-config" {
    export PKG_CONFIG_PATH=$lib/pkgconfig
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -pedantic -Werror "$TROUPE_SOURCE/examples/first.c" \
        $(pkg-config --cflags --libs troupe) -o first
    # It finds its library by itself.
    installed troupe run --quiet --local=2 -- ./first >out
    grep -qxE '[0-9]{3,} words' out
    for program in "$usr"/share/doc/troupe/examples/*.c; do
        # shellcheck disable=SC2046
        cc -std=c11 -Wall -Wextra -pedantic -Werror "$program" \
            $(pkg-config --cflags --libs troupe) -o program
    done
}

@test "the modules of MPIs are found: by troupe, and by a program of a static run" {
    find "$lib/troupe" -name 'mpi-*.so' | grep -q .
    [ "$(installed troupe topo --mpi)" = "$("$TROUPE_BUILD/bin/troupe" topo --mpi)" ]
    [ "$(installed troupe topo --mpi | grep -c yes)" = "$(find "$lib/troupe" -name 'mpi-*' | wc -l)" ]
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror "$TROUPE_SOURCE"/examples/ngrams/*.c \
        $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs troupe) -o ngrams
    echo one two one two >text
    installed mpirun --oversubscribe -n 2 ./ngrams --top 1 --min 1 text >out
    grep -q 'one two' out
}

@test "a module that is missing is told in one line" {
    local name
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
    for name in hwloc munge; do
        mv "$lib/troupe/$name.so" .
        run -3 installed troupe run --quiet --local=1 p.yaml
        mv "$name.so" "$lib/troupe/"
        [ "$output" = "troupe: Troupe is not installed as a whole: there is no lib/troupe/$name.so beside it; install it again" ]
    done
    installed troupe run --quiet --local=1 p.yaml
}

@test "what an executor starts with is not linked with libraries of modules" {
    local file
    for file in "$lib/libtroupe.so" "$usr/libexec/troupe/troupe-rank"; do
        readelf -d "$file" >dynamic
        grep -q 'NEEDED.*libnettle' dynamic
        run ! grep -E 'NEEDED.*lib(hwloc|munge|z)\.' dynamic
    done
}

@test "folders may be given by their whole paths, and what was left out is told" {
    cmake -S "$TROUPE_SOURCE" -B b -G Ninja -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/x \
        -DTROUPE_PLUGIN=OFF -DCMAKE_INSTALL_LIBDIR=/x/lib64 -DCMAKE_INSTALL_LIBEXECDIR=/x/libexec \
        -DCMAKE_INSTALL_INCLUDEDIR=/x/include >log
    grep -qF 'TROUPE_LIBDIR=\"lib64\"' b/build.ninja
    grep -qF 'TROUPE_LIBEXEC=\"libexec\"' b/build.ninja
    grep -qxF 'libdir=${prefix}/lib64' b/lib/api/troupe.pc
    grep -qxF 'includedir=${prefix}/include' b/lib/api/troupe.pc
    # The last words of cmake --install.
    sed -n '/Left out/p' b/cmake_install.cmake >last.cmake
    run -0 cmake -P last.cmake
    [[ "$output" == *"Left out: Slurm's plugin spank_troupe.so, since TROUPE_PLUGIN is OFF"* ]]
}

@test "a program is built by find_package" {
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(first C)
find_package(Troupe 0.1 REQUIRED)
add_executable(first first.c)
target_link_libraries(first Troupe::troupe)
END
    cp "$TROUPE_SOURCE/examples/first.c" .
    cmake -S . -B b -DCMAKE_PREFIX_PATH="$usr" >log
    cmake --build b >>log
    first_works b/first
}

@test "libtroupe shows what troupe.h declares, in a version, and nothing else" {
    nm -D --defined-only "$lib/libtroupe.so" | awk '$2 != "A" { print $3 }' >shown
    [ -s shown ]
    run -1 grep -v '^trp_[a-z_]*@@TROUPE_[0-9.]*$' shown
    grep -oP '^static inline .*?\K\btrp_[a-z_0-9]+(?=\()' "$usr/include/troupe.h" >inline
    grep -oP '\btrp_[a-z_0-9]+(?=\()' "$usr/include/troupe.h" | sort -u |
        grep -vxFf inline >declared
    diff declared <(sed 's/@@.*//' shown | sort)
}

@test "the plugin is where Debian's Slurm looks for it; it needs the C library and shows Slurm's hooks" {
    [ -e "$TROUPE_BUILD/lib/spank_troupe.so" ] || skip "built without Slurm's headers"
    local plugin=$lib/slurm-wlm/spank_troupe.so
    # scontrol show config says PluginDir = /usr/lib/<architecture>/slurm-wlm there
    [ -e "$plugin" ]
    run -1 grep -vE '^(slurm_spank_[a-z_]+|plugin_(name|type|version)|spank_plugin_version)$' \
        <(nm -D --defined-only "$plugin" | awk '{ print $3 }')
    [ "$(readelf -d "$plugin" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')" = libc.so.6 ]
    [ -e "$usr/share/doc/troupe/slurm-conf/cli_filter.lua" ]
    # The way from there to troupe.
    [ "$(readlink -e "${plugin%/*}/$(grep -aoE '[./]*/bin/troupe' "$plugin")")" = "$usr/bin/troupe" ]
}

@test "man pages are installed" {
    for page in man1/troupe.1 man5/troupe-pipeline.5 man5/troupe-site.5; do
        cmp "$usr/share/man/$page" "$TROUPE_SOURCE/docs/man/${page#*/}"
    done
    [ "$(MANPATH=$usr/share/man man -w 5 troupe-site)" = "$usr/share/man/man5/troupe-site.5" ]
}

@test "nothing that is installed knows where it was built or installed first" {
    run -1 grep -rlaF "$BATS_FILE_TMPDIR/first" "$usr"
    find "$usr" -type f -print0 | xargs -0 file | sed -n 's/: *ELF .*//p' >programs
    [ "$(wc -l <programs)" -ge 3 ]
    while read -r program; do
        run -1 grep -E 'R(UN)?PATH.*(\$ORIGIN|'"$TROUPE_BUILD"')' <(readelf -d "$program")
    done <programs
}

# elf FOLDER…: the programs and libraries there.
elf() {
    find "$@" -name CMakeFiles -prune -o -type f -size +3 \( -perm -1 -o -name '*.so*' \) -print0 |
        xargs -0 file | sed -n 's/: *ELF .*//p'
}

# A folder in which others may put a library; the empty one is the working folder.
is_open() {
    local at=$1
    [[ $at == /* ]] || return 0
    until [ -d "$at" ]; do at=${at%/*}/; at=${at%/}; done
    while :; do
        [[ $(stat -c %A "${at:-/}") == ????????[w]?* && $(stat -c %A "${at:-/}") != *[tT] ]] && return 0
        [ -n "${at%/}" ] || return 1
        at=${at%/*}
    done
}

@test "no program or library looks for libraries where others may put one" {
    is_open '' && is_open lib && run ! is_open /usr/lib
    mkdir -m 777 any && is_open "$PWD/any/lib"
    local file path bad=''
    elf "$TROUPE_BUILD" "$usr" >files
    [ "$(wc -l <files)" -ge 10 ]
    while read -r file; do
        path=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2:/p')
        while [ -n "$path" ]; do
            ! is_open "${path%%:*}" || bad+="$file: ${path%%:*}"$'\n'
            path=${path#*:}
        done
    done <files
    [ -z "$bad" ] || { echo "$bad" && false; }
}

@test "what is installed is hardened: the plugin first" {
    local file name
    elf "$usr" | grep -v '\.debug' >files
    while read -r file; do
        readelf -lW "$file" | grep -q GNU_RELRO
        readelf -d "$file" | grep -qE 'BIND_NOW|FLAGS_1.* NOW'
    done <files
    for name in spank_troupe.so libtroupe.so troupe troupe-rank troupe-slurm; do
        file=$(grep "/$name\(\.[0-9.]*\)\?$" files) || continue
        nm -D "$file" >symbols
        grep -q __stack_chk_fail symbols
        grep -qE '__[a-z]+_chk(@|$)' symbols
    done
    # No program that loads the plugin has all of Slurm's functions.
    file=$(grep '/spank_troupe\.so$' files) || skip "built without Slurm's headers"
    [ "$(nm -D "$file" | grep -c ' w \(spank\|slurm\)_')" -ge 5 ]
    run ! grep -E ' U (spank|slurm)_' <(nm -D "$file")
}

# loaded COMMANDS: after `module load troupe`.
loaded() {
    env -i PATH=/usr/bin:/bin HOME="$PWD" ${MANPATH:+"MANPATH=$MANPATH"} bash -ec '
        . /usr/share/modules/init/bash
        module use "$0/share/modulefiles"
        module load troupe
        eval "$1"' "$usr" "$1"
}

@test "a module sets what is needed, and takes it back" {
    [ "$(loaded 'command -v troupe')" = "$usr/bin/troupe" ]
    [ "$(loaded 'man -w troupe')" = "$usr/share/man/man1/troupe.1" ]
    [ "$(loaded 'man -w bash')" = "$(man -w bash)" ]
    [ "$(MANPATH=/usr/share/man loaded 'man -w troupe')" = "$usr/share/man/man1/troupe.1" ]
    [ "$(readlink -e "$(loaded 'pkg-config --variable=libdir troupe')")" = "$lib" ]
    [ "$(loaded 'echo $CMAKE_PREFIX_PATH')" = "$usr" ]
    loaded 'module unload troupe; ! command -v troupe && [ -z "$PKG_CONFIG_PATH" ]'
}

@test "Debian's packages are built with what a build from source takes" {
    . "$TROUPE_SOURCE/tests/lib/setup.sh"
    printf '%s\n' "${TROUPE_RUN_PACKAGES[@]}" libslurm-dev | grep -v build-essential |
        sed s/pkg-config/pkgconf/ | sort >source
    sed -n '/^Build-Depends:/,/^$/s/^ \([^ ,]*\).*/\1/p' "$TROUPE_SOURCE/debian/control" |
        grep -vE '^(bats|debhelper-compat|libglib2.0-dev|libmpich-dev)$' | sort >packages
    diff source packages
}

@test "what is missing is named by its Debian packages" {
    run env PKG_CONFIG_LIBDIR=/nonexistent cmake -S "$TROUPE_SOURCE" -B b
    [ "$status" != 0 ]
    # cmake breaks the line
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"On Debian 12: apt-get install libhwloc-dev libuv1-dev libfyaml-dev libjansson-dev "* ]]
}
