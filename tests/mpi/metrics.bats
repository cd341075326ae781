#!/usr/bin/env bats
# What a run tells a monitoring system: a file, and answers over HTTP.
load drill.bash

# long_run OPTION…: one that goes on until `go` is there.
long_run() {
    cat >p.yaml <<Y
troupe: 1
name: told
stages:
  - {name: quick, tasks: 4, run: "true"}
  - {name: one, after: [quick], tasks: 3, run: "touch began; until [ -e go ]; do sleep 0.1; done"}
Y
    troupe run --run-name r --local=2 --set=executor.memory=64m "$@" p.yaml >out 2>err &
    wait_until [ -e began ]
}

# http REQUEST: sends it as it is (with \r\n for ends of lines), prints what comes.
http() {
    perl -MIO::Socket::INET -MIO::Socket::UNIX -e '
        my ($where, $request) = @ARGV;
        my $s = $where =~ /^unix:(.*)/ ? IO::Socket::UNIX->new(Peer => $1)
            : $where =~ m{http://([0-9.]+:\d+)} ? IO::Socket::INET->new(PeerAddr => $1) : die $where;
        die "no: $!" unless $s;
        $SIG{PIPE} = "IGNORE";
        $request =~ s/\\r\\n/\r\n/g;
        print $s $request; $s->flush;
        local $/; print <$s>;' "$(cat troupe-runs/r/state/metrics)" "$1"
}

teardown() {
    local status=0
    touch go
    [ -z "${d:-}" ] || rm -rf "$d"
    nothing_left || status=1
    [ $status = 0 ] || kill -9 $(ours) 2>/dev/null
    return $status
}

@test "a file is written whole while the run goes on and at its end, for others to read" {
    umask 077
    mkdir -m 755 prom
    long_run --set metrics.file=prom
    wait_until grep -q '^troupe_stage_tasks{run="r",stage="one",id="1",profile="default",state="running"} 2$' prom/troupe-r.prom
    [ "$(stat -c %a prom/troupe-r.prom)" = 644 ]
    grep -q '^troupe_executors{run="r",profile="default",state="up"} 2$' prom/troupe-r.prom
    touch go
    wait $!
    grep -q '^troupe_run_attempts_total{run="r",result="succeeded"} 7$' prom/troupe-r.prom
    grep -q '^troupe_run_end_time_seconds{run="r"} ' prom/troupe-r.prom
    grep -q '^troupe_run_stages{run="r",state="succeeded"} 2$' prom/troupe-r.prom
    [ "$(ls prom)" = troupe-r.prom ]
}

@test "over HTTP who has the token is answered, and nobody else" {
    long_run --set metrics.listen=127.0.0.1:0
    [ "$(stat -c %a troupe-runs/r/state/metrics.token)" = 600 ]
    token=$(cat troupe-runs/r/state/metrics.token)
    [ "${#token}" -ge 32 ]
    http "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $token\r\n\r\n" >answer
    cat answer
    grep -q '^HTTP/1.1 200 OK' answer
    grep -q '^Content-Type: text/plain; version=0.0.4' answer
    grep -q '^troupe_run_tasks{run="r",state="running"} 2$' answer
    run ! grep -q '^troupe_run_end_time_seconds' answer
    # Each set of labels once.
    [ -z "$(grep '^troupe' answer | sed 's/} .*/}/' | sort | uniq -d)" ]
    [[ "$(http "GET /metrics HTTP/1.1\r\n\r\n")" == "HTTP/1.1 401 "* ]]
    [[ "$(http "GET /metrics HTTP/1.1\r\nAuthorization: Bearer ${token%?}\r\n\r\n")" == "HTTP/1.1 401 "* ]]
    [[ "$(http "POST /metrics HTTP/1.1\r\nAuthorization: Bearer $token\r\n\r\n")" == "HTTP/1.1 405 "* ]]
    [[ "$(http "GET / HTTP/1.1\r\nAuthorization: Bearer $token\r\n\r\n")" == "HTTP/1.1 404 "* ]]
    # Those that say nothing, or too much, hold up neither the run nor others.
    perl -MIO::Socket::INET -e '
        my ($at) = `cat troupe-runs/r/state/metrics` =~ m{http://([0-9.:]+)};
        my @c = map { IO::Socket::INET->new(PeerAddr => $at) } 1 .. 40;
        $SIG{PIPE} = "IGNORE";
        $_ && print $_ "x" x 3000 for @c[0 .. 10];
        $_ && $_->flush for @c;
        mkdir "silent"; sleep 60' &
    wait_until [ -d silent ]
    for _ in 1 2 3; do
        [[ "$(http "GET /metrics HTTP/1.1\r\nAuthorization: Bearer $token\r\n\r\n")" == "HTTP/1.1 200 "* ]]
    done
    kill $!
    touch go
    wait_until grep -q succeeded troupe-runs/r/state/run.json
    [ ! -e troupe-runs/r/state/metrics ]
}

@test "a Unix socket is its user's alone, and goes with the run" {
    # what a run leaves that was killed
    perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "sock", Listen => 1) or die'
    long_run --set metrics.listen=unix:sock
    [ "$(stat -c '%a %F' sock)" = "600 socket" ]
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >q.yaml
    run -0 troupe run --quiet --run-name b --set metrics.listen=unix:sock q.yaml
    grep -q 'metrics.listen: unix:sock: Address already in use; the run goes on without' troupe-runs/b/events.jsonl
    [[ "$(http "GET /metrics HTTP/1.1\r\n\r\n")" == "HTTP/1.1 200 "*"troupe_run_info"* ]]
    touch go
    wait_until grep -q succeeded troupe-runs/r/state/run.json
    [ ! -e sock ]
}

@test "an address of others is refused, and one that is taken is told" {
    echo '{troupe: 1, stages: [{name: s, run: "true"}]}' >p.yaml
    run troupe run --quiet --run-name a --set metrics.listen=0.0.0.0:9100 p.yaml
    echo "$output"
    [ "$status" = 2 ]
    [[ "$output" == *"metrics.listen: 0.0.0.0:9100 is no address of this host alone: use 127.0.0.1:PORT, [::1]:PORT or unix:PATH"* ]]
    echo kept >sock
    run -0 troupe run --quiet --run-name b --set metrics.listen=unix:sock --set metrics.file=none/m.prom p.yaml
    [ "$(cat sock)" = kept ]
    grep -q 'metrics.listen: unix:sock: Address already in use; the run goes on without' troupe-runs/b/events.jsonl
    run -0 troupe status b
    [[ "$output" == "b: succeeded"* ]]
}

# A Prometheus: the one that is installed, else that of Debian's packages (in Debian 12 one has
# both programs), which are unpacked here and not installed, since that would start it.
prometheus_here() {
    prometheus=$(command -v prometheus) promtool=$(command -v promtool) && return
    mkdir deb
    (cd deb && apt-get -q download prometheus && { apt-get -q download promtool || true; } &&
        for file in *.deb; do dpkg -x "$file" . || exit; done) >deb.out 2>&1 ||
        skip "no Prometheus: $(tail -n 1 deb.out)"
    prometheus=$PWD/deb/usr/bin/prometheus promtool=$PWD/deb/usr/bin/promtool
    "$promtool" --version >deb.out 2>&1 || skip "Prometheus does not run here: $(tail -n 1 deb.out)"
}

# free_port: one that nobody listens on now.
free_port() { perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'; }

@test "promtool finds nothing wrong, and Prometheus answers each query of the dashboard" {
    prometheus_here
    long_run --set metrics.listen=127.0.0.1:0 --set metrics.file=m.prom
    wait_until [ -s m.prom ]
    run "$promtool" check metrics <m.prom
    echo "$output"
    [ "$status" = 0 ]
    [ -z "$output" ]
    target=$(sed -n 's,http://\([0-9.:]*\)/metrics,\1,p' troupe-runs/r/state/metrics)
    cat >prometheus.yml <<Y
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: troupe
    authorization: {credentials_file: $PWD/troupe-runs/r/state/metrics.token}
    static_configs: [{targets: ["$target"]}]
Y
    port=$(free_port)
    "$prometheus" --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="127.0.0.1:$port" >prometheus.out 2>&1 &
    perl -MHTTP::Tiny -MJSON::PP -e '
        my ($port, $dashboard) = @ARGV;
        local $/;
        open my $f, "<", $dashboard or die;
        my @queries = map { $_->{expr} } map { @{$_->{targets}} } @{decode_json(<$f>)->{panels}};
        die "no queries" unless @queries > 10;
        for my $query (@queries) {
            (my $asked = $query) =~ s/\$run/r/g;
            $asked =~ s/\$__rate_interval/1m/g;
            my $n;
            do {
                my $answer = HTTP::Tiny->new->post_form("http://127.0.0.1:$port/api/v1/query", {query => $asked});
                my $d = eval { decode_json($answer->{content}) };
                die "$query: $d->{error}" if $d && $d->{error};
                $n = $d ? scalar @{$d->{data}{result}} : 0;
                sleep 1 unless $n;
            } until $n;
            print "$n of $query\n";
        }' "$port" "$TROUPE_SOURCE/docs/grafana-troupe.json"
    kill $!
}
