# Spark's History Server, for a test: from the Python package pyspark, kept below the build.

# It reads format 4.0.0, which the log says it is; Java 17 or newer.
PYSPARK=4.3.0

# have_server: there is one in $spark; else $why says why not.
have_server() {
    local cache=$TROUPE_BUILD/history
    spark=$cache/pyspark-$PYSPARK
    mkdir -p "$cache"
    have_java && { have_spark || fetch_spark; }
}

have_java() {
    command -v java >/dev/null || install default-jre-headless && command -v java >/dev/null
}

have_spark() { [ -x "$spark/pyspark/bin/spark-class" ]; }

# install PACKAGE…: of Debian.
install() {
    local said
    said=$(bash -c '. "$1/tests/lib/setup.sh"; install_packages "${@:2}"' _ "$TROUPE_SOURCE" "$@" 2>&1) ||
        { why="cannot install $*: $(tail -n 1 <<<"$said")" && return 1; }
}

# About 430 MB; made whole or not at all. Jars and what starts them are kept.
fetch_spark() {
    local new=$spark.new said
    python3 -m venv --help >/dev/null 2>&1 && python3 -c 'import ensurepip' 2>/dev/null ||
        install python3-venv || return 1
    rm -rf "$new"
    said=$({ python3 -m venv "$new" && nice timeout 900 "$new/bin/pip" --retries 1 --timeout 30 \
        install --no-deps --no-compile --no-cache-dir --progress-bar off \
        --target "$new/lib" "pyspark==$PYSPARK"; } 2>&1) ||
        { why="cannot fetch pyspark $PYSPARK: $(grep -v '^ *$' <<<"$said" | tail -n 1)" && rm -rf "$new" && return 1; }
    mkdir "$new/spark" "$new/spark/pyspark"
    mv "$new/lib/pyspark/jars" "$new/lib/pyspark/bin" "$new/spark/pyspark"
    rm -rf "$spark"
    mv "$new/spark" "$spark"
    rm -rf "$new"
}

# start_server LOGS FOLDER: what it writes lies in FOLDER; $url is where it answers, and it
# ends with this shell.
start_server() {
    local until=$((SECONDS + 120))
    mkdir -p "$2/conf" "$2/tmp" "$1"
    env -u DRILL_TOKEN -u SPARK_MASTER SPARK_HOME="$spark/pyspark" SPARK_CONF_DIR="$2/conf" \
        SPARK_LOCAL_IP=127.0.0.1 SPARK_DAEMON_MEMORY=768m SPARK_HISTORY_OPTS="
        -Dspark.history.fs.logDirectory=file:$1 -Dspark.history.ui.port=0
        -Dspark.history.fs.update.interval=1s -Djava.io.tmpdir=$2/tmp -XX:-UsePerfData
        -XX:TieredStopAtLevel=1" setpriv --pdeathsig KILL \
        "$spark/pyspark/bin/spark-class" org.apache.spark.deploy.history.HistoryServer \
        >"$2/log" 2>&1 3>&- </dev/null &
    server=$!
    echo "$server" >"$2/pid"
    until port=$(server_port "$2/log") && [ -n "$port" ]; do
        if ! kill -0 "$server" 2>/dev/null || [ $SECONDS -ge $until ]; then
            tail -n 20 "$2/log"
            return 1
        fi
        sleep 0.2
    done
    url=http://127.0.0.1:$port
}

server_port() { sed -n "s/.*service 'HistoryServerUI' on port \([0-9]*\)\..*/\1/p" "$1"; }

# stop_server FOLDER
stop_server() {
    local pid
    [ -e "$1/pid" ] || return 0
    pid=$(cat "$1/pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
}
