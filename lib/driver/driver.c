/*
 * A driver's life: made and ended. Between the two it is given jobs (driver_jobs.c).
 *
 * Order of making: cluster (its spawner is forked while this process is small and has
 * no threads), channel (starts MPI), event log, engine. Order of ending: executors are
 * told to go and waited for, the cluster ends what is left, the channel is closed, the
 * event log is finished, the summary printed, `troupe` told. A process that has lost a
 * peer cannot go through MPI_Finalize and ends without it.
 */
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpirun.h"
#include "conf/site.h"
#include "core/topo/hosts.h"
#include "driver/answers.h"
#include "driver/driver_state.h"
#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/monitoring.h"
#include "driver/run_spec.h"
#include "events/run_folder.h"
#include "events/task_logs.h"
#include "executor/executor.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/title.h"
#include "os/tree.h"

/* ---- making ---- */

/* RUNS/.history; none where the run's folder was moved to a folder that is not the
 * user's own. */
static bool find_history(const char *run_dir, char *buf, size_t size)
{
    const char *name = strrchr(run_dir, '/');
    if (!name || name == run_dir)
        return false;
    snprintf(buf, size, "%.*s", (int)(name - run_dir), run_dir);
    if (trp_held_folder(buf, NULL, NULL) < 0) /* until this process ends */
        return false;
    size_t n = strlen(buf);
    snprintf(buf + n, size - n, "/.history");
    return true;
}

static int make_log(trp_driver *d, trp_error *err)
{
    char file[4200], app_id[64], history[4200], stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    const struct passwd *user = getpwuid(getuid());
    strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", localtime_r(&now, &tm));
    snprintf(app_id, sizeof(app_id), "app-%s-%d", stamp, (int)getpid());
    snprintf(file, sizeof(file), "%s/events.jsonl", d->run_dir);
    bool has_history = find_history(d->run_dir, history, sizeof(history));
    struct trp_event_log_config c = {
        .file = file,
        .app_id = app_id,
        .app_name = d->config.app_name,
        .user = user ? user->pw_name : "",
        .history_dir = has_history ? history : NULL,
        .wait_ns = trp_options_time_ns(d->options, "outputs.wait")};
    const char *tasks = trp_options_text(d->options, "events.tasks");
    c.tasks = TRP_EVENTS_AUTO;
    if (strcmp(tasks, "all") == 0)
        c.tasks = TRP_EVENTS_ALL;
    else if (strcmp(tasks, "summary") == 0)
        c.tasks = TRP_EVENTS_SUMMARY;
    int rc = trp_event_log_new(&c, &d->log, err);
    if (rc == 0)
        trp_event_application_start(d->log, trp_driver_wall(d, trp_clock_ns()));
    return rc;
}

struct environment {
    const char **keys, **values;
    uint32_t n, cap;
};

static int count_option(void *context, const struct trp_option_view *v)
{
    (void)v;
    ++*(uint32_t *)context;
    return 0;
}

static int add_option(void *context, const struct trp_option_view *v)
{
    struct environment *e = context;
    if (e->n == e->cap)
        return 0;
    e->keys[e->n] = v->key;
    e->values[e->n++] = v->value;
    return 0;
}

static void log_environment(trp_driver *d)
{
    struct environment e = {0};
    trp_options_each(d->options, count_option, &e.cap);
    e.keys = calloc(e.cap + 1, sizeof(*e.keys));
    e.values = calloc(e.cap + 1, sizeof(*e.values));
    if (e.keys && e.values) {
        trp_options_each(d->options, add_option, &e);
        trp_event_environment(d->log, e.keys, e.values, e.n);
    }
    free(e.keys);
    free(e.values);
}

static int make_cluster(trp_driver *d, const char *ompi_server, trp_error *err)
{
    const struct trp_site *site = d->config.site;
    const char *of_nodes =
        d->config.where.batch ? "" : d->shared; /* "": each one's own */
    struct trp_executor_command c = {.argv = d->config.executor_argv,
                                     .secret_file = d->secret_file,
                                     .munge = d->munge,
                                     .run_name = d->run_name,
                                     .run_dir = d->run_dir,
                                     .scratch = site && site->scratch ? site->scratch
                                                                      : of_nodes,
                                     .ompi_server = ompi_server ? ompi_server : "",
                                     .mac = trp_options_bool(d->options, "comm.mac"),
                                     .network_timeout_ns = d->network_timeout_ns,
                                     .heartbeat_ns = d->heartbeat_ns};
    struct trp_cluster_handler h = trp_driver_cluster_handler;
    h.context = d;
    return trp_cluster_new(&d->loop, &d->config.where, d->options, site, &c, &h,
                           &d->cluster, err);
}

/* For a thread that finds the others caught in MPI. */
static int stuck_control = -1;

/* Executors, gangs, Slurm's jobs and files are given back as after any death of the
 * driver: by themselves, by troupe-slurm and by the guard. */
static void end_stuck(const char *text)
{
    const int status = trp_error_exit_status(TRP_ESYSTEM);
    dprintf(2, "%stroupe: %s; " TRP_TRANSPORT_ADVICE "\n", isatty(2) ? "\r\033[K" : "",
            text);
    if (stuck_control >= 0)
        trp_control_exit(stuck_control, status);
    _exit(status);
}

int trp_driver_without_mpi(const trp_options *o, const char *why, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL,
                         "%s: comm.transport=mpi: %s; " TRP_TRANSPORT_ADVICE,
                         trp_options_where(o, "comm.transport"), why);
}

static int listen_for_executors(trp_driver *d, trp_error *err)
{
    struct trp_listen_config c = {
        .transport = d->config.mode == TRP_DRIVER_STATIC ? TRP_TRANSPORT_WORLD
                     : d->config.ompi_server             ? TRP_TRANSPORT_CONNECT
                                                         : TRP_TRANSPORT_SOCKET,
        .mac = trp_options_bool(d->options, "comm.mac"),
        .here_only = d->config.mode == TRP_DRIVER_ELASTIC && !d->config.where.batch,
        .secret = d->secret,
        .munge = d->munge,
        .network_timeout_ns = d->network_timeout_ns,
        .heartbeat_ns = d->heartbeat_ns,
        .handshake_timeout_ns = 10 * TRP_SECOND,
        .first_guard = TRP_CLUSTER_GUARDS,
        .stuck = end_stuck,
        .expected = trp_record_expected};
    struct trp_channel_handler h = trp_driver_channel_handler;
    h.context = d;
    stuck_control = d->config.control_fd;
    int rc = d->config.mode == TRP_DRIVER_STATIC
                 ? trp_channel_world(&c, &h, &d->channel, err)
                 : trp_channel_listen(&c, &h, &d->channel, err);
    if (rc == TRP_ENEVER && c.transport == TRP_TRANSPORT_CONNECT) {
        const trp_error why = *err;
        rc = trp_driver_without_mpi(d->options, why.text, err);
    }
    if (rc == 0)
        rc = trp_driver_loop_channel(d, err);
    if (rc == 0 && d->cluster)
        rc = d->cluster->ops->open(d->cluster, trp_channel_address(d->channel), err);
    return rc;
}

/* Of a resumed run the trace is that of its last part: it has an engine of its own. */
static int make_trace(trp_driver *d, const struct trp_engine_config *c, trp_error *err)
{
    char *file;
    if (!trp_options_bool(d->options, "events.engine"))
        return 0;
    if (asprintf(&file, "%s/state/engine.trace", d->run_dir) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int rc = trp_engine_trace_new(file, c, d->profiles, true, &d->trace, err);
    free(file);
    return rc;
}

/* Where the hosts stand; *ret is to be freed. */
static int list_racks(const trp_driver *d, struct trp_host_rack **ret, uint32_t *ret_n,
                      trp_error *err)
{
    const struct trp_topology *t =
        d->cluster ? d->cluster->ops->topology(d->cluster) : NULL;
    uint32_t n = t ? t->nhosts : 0;
    *ret_n = d->config.nracks;
    *ret = calloc(*ret_n + n + 1, sizeof **ret);
    if (!*ret)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the topology");
    if (*ret_n > 0)
        memcpy(*ret, d->config.racks, *ret_n * sizeof **ret);
    for (uint32_t i = 0; i < n; i++)
        if (*t->hosts[i].rack)
            (*ret)[(*ret_n)++] =
                (struct trp_host_rack){t->hosts[i].name, t->hosts[i].rack};
    return 0;
}

static int make_engine(trp_driver *d, trp_error *err)
{
    static const char elastic[] = "dynamicAllocation.enabled";
    struct trp_engine_config c;
    struct trp_host_rack *racks;
    if (d->config.mode == TRP_DRIVER_ELASTIC && !trp_options_bool(d->options, elastic))
        return trp_error_set(err, TRP_EINVAL,
                             "%s: %s false: executors come and go by need, but for "
                             "those of mpirun or srun; leave it out",
                             trp_options_where(d->options, elastic), elastic);
    trp_options_engine_config(d->options, &c);
    c.pools = d->config.pools;
    c.npools = d->config.npools;
    c.fixed = d->config.mode == TRP_DRIVER_STATIC;
    c.start_patience_ns = d->config.where.batch ? 60 * TRP_SECOND : 0;
    int rc = list_racks(d, &racks, &c.nracks, err);
    c.racks = racks;
    if (rc == 0)
        rc = trp_engine_new(&c, d->profiles, &d->engine, err);
    if (rc == 0)
        rc = make_trace(d, &c, err);
    free(racks);
    return rc;
}

static int make_parts(trp_driver *d, trp_error *err)
{
    bool elastic = d->config.mode == TRP_DRIVER_ELASTIC;
    trp_error no_munge = {0};
    int rc = trp_driver_loop_init(d, err);
    if (rc == 0)
        rc = trp_driver_secrets(d, &no_munge, err);
    if (rc == 0 && elastic)
        rc = make_cluster(d, d->config.ompi_server, err);
    if (rc == 0)
        rc = listen_for_executors(d, err);
    if (rc == 0)
        rc = make_log(d, err);
    if (rc == 0)
        trp_driver_tell_no_munge(d, &no_munge);
    if (rc == 0 && d->config.carried)
        trp_driver_log(d, "info", "messages travel %s", d->config.carried);
    if (rc == 0)
        rc = make_engine(d, err);
    return rc;
}

static void driver_free(trp_driver *d)
{
    trp_driver_metrics_close(d);
    trp_driver_metrics_end(d);
    trp_asked_close(d->asked);
    if (d->cluster)
        d->cluster->ops->close(d->cluster, NULL);
    if (d->channel)
        trp_channel_close(d->channel);
    trp_driver_loop_close(d);
    free(d->metrics);
    while (d->there)
        trp_driver_job_free(d, d->there);
    trp_engine_trace_close(d->trace, NULL);
    trp_engine_free(d->engine);
    trp_event_log_free(d->log);
    trp_record_free(d);
    trp_baton_free(d->baton);
    trp_accumulators_free(d->accumulators);
    trp_pool_list_free(&d->pools);
    trp_run_spec_free(d->own_spec);
    trp_options_free(d->own_options);
    trp_site_free(d->own_site);
    trp_run_folder_free(d->own_folder);
    free(d->stages);
    free(d->jobs);
    trp_driver_kept_free(d);
    trp_driver_locations_free(d);
    free(d->to_flush);
    free(d->secret_file);
    free(d->run_name);
    free(d->run_dir);
    free(d->shared);
    free(d);
}

/* How often running functions tell what they have read: when slow ones are looked for
 * by that, as often as they are, but at most ten times a second. */
static int64_t records_ns(const trp_options *o)
{
    if (!trp_options_bool(o, "speculation") ||
        !trp_options_bool(o, "speculation.efficiency.enabled"))
        return 0;
    int64_t interval = trp_options_time_ns(o, "speculation.interval");
    return interval > TRP_SECOND / 10 ? interval : TRP_SECOND / 10;
}

/* A run that cannot be asked goes on all the same. */
static void listen_for_askers(trp_driver *d)
{
    trp_error err;
    d->asked = trp_asked_new(&d->loop, d->run_dir, trp_driver_answer, d, &err);
    if (!d->asked)
        trp_driver_log(d, "info", "troupe status and explain read the event log: %s",
                       err.text);
}

int trp_driver_new(const struct trp_driver_config *config, trp_driver **ret_driver,
                   trp_error *err)
{
    trp_driver *d = calloc(1, sizeof(*d));
    if (!d)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the driver");
    d->config = *config;
    d->options = config->options;
    d->profiles = config->profiles;
    d->now = trp_clock_ns();
    d->time_up = d->program_due = INT64_MAX;
    d->run_name = strdup(config->run_name);
    d->run_dir = strdup(config->run_dir);
    d->baton = trp_baton_new();
    d->accumulators = trp_accumulators_new();
    if (asprintf(&d->shared, "%s/state/scratch", config->run_dir) < 0)
        d->shared = NULL;
    d->network_timeout_ns = trp_options_time_ns(d->options, "network.timeout");
    d->heartbeat_ns = trp_options_time_ns(d->options, "executor.heartbeatInterval");
    d->records_ns = records_ns(d->options);
    d->memory_fraction = trp_options_number(d->options, "memory.fraction");
    d->wall_offset = trp_clock_wall_ns() - trp_clock_ns();
    int rc = d->run_name && d->run_dir && d->baton && d->accumulators && d->shared
                 ? make_parts(d, err)
                 : trp_error_set(err, TRP_ENOMEM, "out of memory for the driver");
    if (rc < 0) {
        driver_free(d);
        return rc;
    }
    trp_baton_take(d->baton);
    log_environment(d);
    trp_run_folder_pid(d->run_dir, (int)getpid(), "driver");
    trp_process_title("troupe: driver %s", d->run_name);
    if (!config->quiet)
        d->progress = trp_progress_new(2, isatty(2), trp_clock_ns(), d->wall_offset);
    listen_for_askers(d);
    rc = trp_driver_metrics_start(d, err);
    if (rc == 0)
        rc = trp_driver_standby_start(d, err);
    if (rc < 0) {
        driver_free(d);
        return rc;
    }
    trp_baton_leave(d->baton);
    *ret_driver = d;
    return 0;
}

/* ---- ending ---- */

/* Executors that live, or, in a static run, ranks that have not said goodbye: those
 * that have not even come up yet would take the end for the driver's death. */
static bool somebody_left(const trp_driver *d)
{
    if (d->cluster)
        return d->here > 0;
    for (uint32_t i = 0; i < d->nrecords; i++)
        if (d->records[i])
            return true;
    return false;
}

/* Attempts that were killed may still report: a moment for them. Then all must go, and
 * no executor is asked for in the place of one that went. */
static void end_attempts(trp_driver *d)
{
    trp_driver_cancel_jobs(d);
    struct trp_event drain = {.kind = TRP_EVENT_DRAIN};
    trp_driver_step(d, &drain);
    bool soft = d->killed && !d->hurry; /* SIGTERM, 5 s later SIGKILL */
    int64_t now = trp_clock_ns(), until = now + (soft ? 7 : 2) * TRP_SECOND;
    while (d->attempts && now < until && !(soft && d->hurry)) {
        trp_driver_turn(d, until);
        now = trp_clock_ns();
    }
}

void trp_driver_pass(trp_driver *d, int64_t ns)
{
    trp_driver_enter(d);
    trp_driver_turn(d, trp_clock_ns() + ns);
    trp_driver_leave(d);
}

void trp_driver_end_attempts(trp_driver *d)
{
    trp_driver_enter(d);
    end_attempts(d);
    trp_driver_leave(d);
}

void trp_driver_release_all(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nrecords; i++)
        if (d->records[i])
            trp_record_release(d, d->records[i]->id);
}

static void dismiss_all(trp_driver *d)
{
    trp_driver_release_all(d);
    int64_t now = trp_clock_ns(), until = now + 4 * TRP_SECOND;
    while (somebody_left(d) && now < until) {
        trp_driver_turn(d, until);
        now = trp_clock_ns();
    }
}

static void print_summary(const trp_driver *d)
{
    char logs[4200];
    snprintf(logs, sizeof logs, "%s/logs", d->run_dir);
    /* What executors of a static run say goes where mpirun's own output does. */
    trp_event_summary_print(d->log, stdout, trp_run_shown(d->run_dir),
                            d->config.mode != TRP_DRIVER_STATIC && trp_logs_any(logs));
    fflush(stdout);
}

/* The platform failed: that is what the run is known by, unless it was stopped. */
static int platform_failed(int status, const trp_error *why)
{
    fprintf(stderr, "troupe: %s\n", why->text);
    return status <= trp_error_exit_status(TRP_EFAILED)
               ? trp_error_exit_status(TRP_ESYSTEM)
               : status;
}

/* Ends the event log. Tasks that fail on a full disk fail by themselves: the disk is
 * looked at. What was told is not told again. */
static int end_log(trp_driver *d, int status)
{
    trp_error err;
    int64_t now = trp_driver_wall(d, trp_clock_ns());
    int failed = trp_error_exit_status(TRP_ESYSTEM);
    if (status == trp_error_exit_status(TRP_EFAILED) &&
        trp_run_folder_has_room(d->run_dir, &err) < 0)
        status = platform_failed(status, &err);
    if (trp_event_log_end(d->log, now, status, &err) < 0 && status != failed)
        status = platform_failed(status, &err);
    return status;
}

/* What still lives there is ended; what it was to Slurm is logged. */
static void close_cluster(trp_driver *d)
{
    struct trp_cluster_costs c = {0};
    if (d->cluster)
        d->cluster->ops->close(d->cluster, &c);
    d->cluster = NULL;
    if (c.rpcs || c.sruns)
        trp_event_slurm_costs(d->log, c.rpcs, c.sruns, c.srun_rpcs,
                              trp_driver_wall(d, trp_clock_ns()));
}

/* The control socket of a run that has ended well, until the process ends. */
static struct {
    int fd;
    pid_t owner;
} last_words = {.fd = -1};

void trp_driver_exits(int status)
{
    if (last_words.fd >= 0 && last_words.owner == getpid() && status)
        trp_control_exit(last_words.fd, status);
}

/* In place of `troupe`. Its guard still has the lock. */
static void note_state(const trp_driver *d, int status)
{
    trp_run_folder f = {
        .name = d->run_name, .path = d->run_dir, .shown = d->run_dir, .lock_fd = -1};
    trp_run_folder_state(&f, d->config.app_name, "cancelled", status, NULL);
}

int trp_driver_stopped(const trp_driver *d)
{
    return d->stop;
}

/* Of an elastic run its guard does it, however the run ends. */
static void remove_scratch(const trp_driver *d)
{
    size_t budget = SIZE_MAX;
    trp_tree_remove(AT_FDCWD, d->shared, &budget);
}

/* Ends all but what the driver holds in memory; the run's exit status. */
static int close_down(trp_driver *d, int status, bool quiet, bool *ret_clean)
{
    trp_error err = {0};
    end_attempts(d);
    d->over = true;
    dismiss_all(d);
    trp_driver_remove_files(d);
    trp_driver_standby_stop(d);
    trp_asked_close(d->asked);
    d->asked = NULL;
    trp_driver_metrics_close(d);
    close_cluster(d);
    *ret_clean = trp_channel_close(d->channel);
    d->channel = NULL;
    if (d->config.mode == TRP_DRIVER_STATIC)
        remove_scratch(d);
    if (status == 0 && d->stop)
        status = trp_error_exit_status(d->stop);
    status = end_log(d, status);
    trp_driver_metrics_end(d);
    if (d->orphaned)
        note_state(d, status);
    trp_progress_end(d->progress);
    d->progress = NULL;
    if (trp_engine_trace_close(d->trace, &err) < 0)
        status = platform_failed(status, &err);
    d->trace = NULL;
    if (!quiet && !d->config.quiet)
        print_summary(d);
    if (d->own_folder)
        trp_run_folder_state(d->own_folder, d->config.app_name,
                             status ? "failed" : "succeeded", status, NULL);
    return status;
}

void trp_driver_end_elsewhere(trp_driver *d)
{
    bool clean, free_stdout = ftrylockfile(stdout) == 0; /* the program may be in it */
    d->entered++;
    int status = close_down(d, trp_error_exit_status(d->stop), !free_stdout, &clean);
    trp_control_exit(d->config.control_fd, status);
    if (free_stdout)
        funlockfile(stdout);
}

int trp_driver_end(trp_driver *d, int status, bool quiet)
{
    bool clean;
    trp_driver_enter(d);
    status = close_down(d, status, quiet, &clean);
    int fd = d->config.control_fd;
    driver_free(d);
    if (fd >= 0) {
        trp_control_exit(fd, status);
        last_words.fd = fd;
        last_words.owner = getpid();
    }
    if (clean) /* with a lost peer it would wait for ever */
        trp_channel_finalize();
    if (fd >= 0)
        trp_control_answer(fd);
    return status;
}
