# Shared by drills of map outputs: a count of words (tests/mpi/programs/tally.c), held in its
# last map task, on two nodes.

# In setup_file: what is counted, and what comes of it.
write_text() {
    find /usr/share/doc -name copyright -print0 | sort -z | xargs -0 cat |
        head -c 1000000 >"$BATS_FILE_TMPDIR/text"
    LC_ALL=C tr -cs a-zA-Z '\n' <"$BATS_FILE_TMPDIR/text" | LC_ALL=C tr A-Z a-z |
        LC_ALL=C awk 'NF { n[$1]++ } END { for (w in n) print w "\t" n[w] }' |
        LC_ALL=C sort >"$BATS_FILE_TMPDIR/want"
}

# tally [VARIABLE=VALUE…]: counts words on two nodes; the last map task waits for wait.go,
# when all others are done.
tally() {
    cp "$BATS_FILE_TMPDIR/text" . && chmod 644 text
    submit alice --no-kill -N2 ${cpus:--n2 -c2} --mem=2000 -w node1,node2 -- env TALLY_MS=300 "$@" \
        "$TROUPE" run --run-name r --set executor.memory=300m --set network.timeout=8s \
        --set executor.heartbeatInterval=1s --set events.tasks=all \
        --set scheduler.minRegisteredResourcesRatio=1 -- \
        "$programs/tally" "$PWD/text" "$PWD/out-dir" "$PWD/wait"
    wait_until test -s wait.here
    wait_until others_are_done
}
others_are_done() { [ "$(maps | wc -l)" = 6 ]; }

# Ends of map tasks: "NODE INDEX".
maps() {
    grep '"SparkListenerTaskEnd","Stage ID":0,' troupe-runs/r/events.jsonl | grep '"Reason":"Success"' |
        sed 's/.*"Index":\([0-9]*\).*"Host":"\([^"]*\)".*/\2 \1/'
}

# bytes KIND: read by all tasks, Local or Remote.
bytes() {
    grep -o "\"$1 Bytes Read\":[0-9]*" troupe-runs/r/events.jsonl | awk -F: '{ n += $2 } END { print n + 0 }'
}

right() {
    LC_ALL=C sort out-dir/part-* | cmp - "$BATS_FILE_TMPDIR/want"
}

# folders NODE: of the run's map outputs there.
folders() { on "$1" bash -c 'ls -d /tmp/troupe-*/shuffle 2>/dev/null'; }
