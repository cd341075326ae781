# Accounting of a cluster (`cluster up --dbd`), sourced by ../cluster: MariaDB and slurmdbd
# on the head. Needs $folder, and daemons.bash.
# shellcheck disable=SC2154 # those
#
# The database is the cluster's own: its data are in the cluster's folder, it has no port,
# and its socket is at the usual place of the head, whose /run is no other host's. It runs
# as slurm, the one user whom it knows. Nothing of it is written through to the disk, as it
# goes with the cluster.

# shellcheck disable=SC2034,SC2054 # lines of slurm.conf; ../cluster adds them
accounting_lines=(
    AccountingStorageType=accounting_storage/slurmdbd
    AccountingStorageHost=head
    AccountingStorageEnforce=associations,limits,qos
    AccountingStoreFlags=job_comment
    # A short step's memory is seen too.
    JobAcctGatherFrequency=task=1
)

# For all of MariaDB's programs; --no-defaults has to be the first argument.
database_options() {
    printf '%s\n' --no-defaults "--datadir=$folder/accounts/data" --skip-name-resolve \
        --performance-schema=off --innodb-buffer-pool-size=8M --innodb-log-file-size=4M \
        --innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=0 \
        --innodb-lock-wait-timeout=900 --innodb-doublewrite=0
}

as_slurm() {
    host_run head setpriv --reuid slurm --regid slurm --init-groups "$@"
}

# make_accounts: the database, the daemons, the cluster's accounts and users.
make_accounts() {
    local said=$folder/log/accounts.log options
    mapfile -t options < <(database_options)
    install -d -o slurm -g slurm -m 700 "$folder/accounts" "$folder/accounts/data"
    fill slurmdbd.conf log "$folder/log/slurmdbd.log"
    touch "$folder/log/slurmdbd.log" "$folder/log/mariadb.log"
    chown slurm: "$folder/etc/slurmdbd.conf" "$folder/log/slurmdbd.log" \
        "$folder/log/mariadb.log"
    chmod 600 "$folder/etc/slurmdbd.conf"
    as_slurm mariadb-install-db "${options[@]}" --auth-root-authentication-method=socket \
        --auth-root-socket-user=slurm --skip-test-db >"$said" 2>&1 ||
        fail "the database cannot be made: $(last_words "$said")"
    start_accounting
    {
        echo "add cluster $cluster"
        echo "add account project,other"
        echo "add user alice,bob account=project"
        echo "add user bob account=other"
    } | while read -r words; do
        # shellcheck disable=SC2086 # words
        host_run head sacctmgr -i $words </dev/null >>"$said" 2>&1 ||
            fail "sacctmgr $words: $(last_words "$said")"
    done
}

# start_accounting: what does not run of it.
start_accounting() {
    local options until=$((SECONDS + 60))
    if ! host_run head pgrep -x mariadbd >/dev/null; then
        mapfile -t options < <(database_options)
        host_run head install -d -o slurm -g slurm -m 700 /run/mysqld
        host_run head ln -sfn mysqld /run/mariadbd # where clients of Debian sid look
        host_run head rm -f /run/mysqld/mysqld.sock
        (host_daemon head setpriv --reuid slurm --regid slurm --init-groups \
            mariadbd "${options[@]}" --skip-networking --socket=/run/mysqld/mysqld.sock \
            --pid-file=/run/mysqld/mysqld.pid) \
            </dev/null >>"$folder/log/mariadb.log" 2>&1 &
        # Its socket is there before it answers, and the database is made before slurmdbd looks
        # for it: the client library of MariaDB 11.8.9 (Debian 13) takes no answer any more on
        # a handle that has connected in vain once, and slurmdbd tries again on the same.
        until as_slurm mariadb --no-defaults --socket=/run/mysqld/mysqld.sock \
            -e 'create database if not exists slurm_acct_db' >/dev/null 2>&1; do
            [ $SECONDS -lt $until ] ||
                fail "MariaDB does not start: $(last_words "$folder/log/mariadb.log")"
            sleep 0.05
        done
    fi
    host_run head pgrep -x slurmdbd >/dev/null || start_on head slurmdbd
    until=$((SECONDS + 60)) # it makes its tables
    until host_run head sacctmgr -n list cluster >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] ||
            fail "slurmdbd does not answer: $(last_words "$folder/log/slurmdbd.log")"
        sleep 0.05
    done
}
