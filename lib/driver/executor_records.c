/*
 * The driver's records of its executors, from request to end.
 *
 *     start ─▶ granted ─▶ up ─▶ (runs tasks) ─▶ down, gone (in either order)
 *
 * Two sources report the end of an executor: the admission socket (`down`, at once,
 * perhaps with its last words: a reason) and the cluster (`gone`, once the process was
 * reaped and its resources are free). The engine is told once. With a reason, or after
 * a release, it is told at the first of the two. When `down` comes first without a
 * reason, we wait for `gone`, which knows whether the kernel killed the process for
 * memory. When `gone` comes first, we wait up to WORDS_NS for `down`, which brings the
 * reason: the spawner sends it and then closes the socket. After a `down` we kill the
 * process in any case: it may hang, or have lost its connection.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"
#include "driver/driver_state.h"
#include "events/run_folder.h"
#include "os/clock.h"
#include "os/held.h"

#define WORDS_NS (5 * TRP_DRIVER_SECOND)

struct trp_executor_record *trp_record_of(const trp_driver *d, uint32_t executor)
{
    return executor < d->nrecords ? d->records[executor] : NULL;
}

static struct trp_executor_record *record_new(trp_driver *d, trp_executor_id id,
                                              trp_profile_id profile)
{
    struct trp_executor_record *x = calloc(1, sizeof(*x));
    if (!x || !TRP_ARRAY_GROW(d->records, id.n, d->records_cap)) {
        free(x);
        return NULL;
    }
    while (d->nrecords <= id.n)
        d->records[d->nrecords++] = NULL;
    x->id = id;
    x->profile = profile;
    x->requested = d->now;
    return d->records[id.n] = x;
}

static void record_free(trp_driver *d, struct trp_executor_record *x)
{
    d->records[x->id.n] = NULL;
    for (uint32_t i = 0; i < x->nresources; i++) {
        for (uint32_t k = 0; k < x->resources[i].naddresses; k++)
            free((void *)(uintptr_t)x->resources[i].addresses[k]);
        free((void *)(uintptr_t)x->resources[i].addresses);
        free((void *)(uintptr_t)x->resources[i].name);
    }
    free(x->resources);
    trp_buf_free(&x->launches);
    free(x->host);
    free(x->rack);
    free(x->cause);
    free(x);
}

void trp_record_free(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nrecords; i++)
        if (d->records[i])
            record_free(d, d->records[i]);
    free(d->records);
}

/* ---- what the engine wants ---- */

static void refuse(trp_driver *d, trp_executor_id id, enum trp_refusal how,
                   const char *text)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.executor = id, .how = how, .text = text}
    };
    trp_driver_step(d, &ev);
}

void trp_record_need(trp_driver *d, trp_executor_id id)
{
    const struct trp_executor_record *x = trp_record_of(d, id.n);
    if (x && x->here && !x->released && d->cluster->ops->need)
        d->cluster->ops->need(d->cluster, id);
}

void trp_record_may_add(trp_driver *d, trp_executor_id id)
{
    const struct trp_executor_record *x = trp_record_of(d, id.n);
    if (x && x->here && !x->released && d->cluster->ops->may_add)
        d->cluster->ops->may_add(d->cluster, id);
}

void trp_record_start(trp_driver *d, trp_executor_id id, trp_profile_id profile,
                      bool ahead, const char *not_on)
{
    trp_error err = {0};
    struct trp_executor_record *x = record_new(d, id, profile);
    if (!x) {
        refuse(d, id, TRP_REFUSED_LATER, "out of memory");
        return;
    }
    x->here = true;
    d->here++;
    int rc = d->cluster->ops->start(
        d->cluster, id, trp_profiles_get(d->profiles, profile), ahead, not_on, &err);
    if (rc == 0)
        return;
    d->here--;
    record_free(d, x);
    refuse(d, id, rc == TRP_ENEVER ? TRP_REFUSED_NEVER : TRP_REFUSED_LATER, err.text);
}

void trp_record_release(trp_driver *d, trp_executor_id id)
{
    struct trp_executor_record *x = trp_record_of(d, id.n);
    if (!x || x->released)
        return;
    x->released = true;
    if (x->up) {
        struct trp_buf b = {0};
        trp_shutdown_put(&b);
        if (!b.failed)
            trp_channel_send(d->channel, id.n, b.data, b.size);
        trp_buf_free(&b);
    }
    if (x->here && d->cluster)
        d->cluster->ops->release(d->cluster, id, x->up);
}

void trp_record_relabel(trp_driver *d, trp_executor_id id, trp_profile_id profile)
{
    struct trp_executor_record *x = trp_record_of(d, id.n);
    if (!x)
        return;
    x->profile = profile;
    trp_event_executor_relabelled(d->log, id, trp_profiles_get(d->profiles, profile),
                                  trp_driver_wall(d, d->now));
}

/* ---- what happens to them ---- */

static const char *loss_text(const struct trp_executor_record *x, enum trp_loss reason,
                             char *buf, size_t size)
{
    switch (reason) {
    case TRP_LOSS_RELEASED:
        return "released";
    case TRP_LOSS_CRASHED:
        snprintf(buf, size, "a function crashed it: %s", strsignal(x->words.signal));
        return buf;
    case TRP_LOSS_MEMORY:
        if (!x->words.limit_mib)
            return "killed for memory";
        snprintf(buf, size, "killed for memory (limit %lld MiB, peak %lld MiB)",
                 (long long)x->words.limit_mib, (long long)x->words.peak_mib);
        return buf;
    case TRP_LOSS_TIMEOUT:
        return "a function ran over its timeout";
    case TRP_LOSS_HEARTBEAT:
        return "silent for network.timeout";
    case TRP_LOSS_NEVER_CAME:
        return "ended before it was ready";
    case TRP_LOSS_HOST:
        return "its host is gone";
    case TRP_LOSS_DECOMMISSIONED:
    case TRP_LOSS_TIME_LIMIT:
        return x->cause ? x->cause : "its Slurm job was ended";
    case TRP_LOSS_SPAWNER_DIED:
        snprintf(buf, size, "its spawner %s%s",
                 x->words.signal ? "was killed: " : "ended",
                 x->words.signal ? strsignal(x->words.signal) : "");
        return buf;
    case TRP_LOSS_SPAWNER_HUNG:
        return "its spawner was stopped, or hung";
    case TRP_LOSS_EXITED:
        break;
    }
    return x->cause  ? x->cause
           : x->down ? "its connection closed: it died, or was cut off"
                     : "its process ended";
}

/* Tells event log and engine, once. */
static void lose(trp_driver *d, struct trp_executor_record *x, enum trp_loss reason)
{
    char buf[160];
    if (x->lost)
        return;
    x->lost = true;
    if (x->up) {
        d->up--;
        x->up = false;
        trp_event_executor_removed(d->log, x->id,
                                   loss_text(x, reason, buf, sizeof(buf)),
                                   trp_driver_wall(d, d->now));
    }
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.executor = x->id,
                 .reason = reason,
                 .has_culprit = x->words.has_culprit,
                 .culprit = x->words.culprit,
                 .code = x->words.signal}
    };
    /* What is known of the end of the attempt that is to blame. */
    struct trp_end end = {.attempt = x->words.culprit,
                          .code = x->words.signal,
                          .limit_mib = x->words.limit_mib,
                          .peak_kib = x->words.peak_mib * 1024};
    d->ended = x->words.has_culprit ? &end : NULL;
    trp_driver_step(d, &ev);
    d->ended = NULL;
}

/* Without words of its own. */
static enum trp_loss end_of(const struct trp_executor_record *x, bool memory)
{
    if (x->outran)
        return TRP_LOSS_TIME_LIMIT;
    if (x->planned)
        return TRP_LOSS_DECOMMISSIONED;
    return memory ? TRP_LOSS_MEMORY : TRP_LOSS_EXITED;
}

static void forget_if_over(trp_driver *d, struct trp_executor_record *x)
{
    if (x->lost && !x->here)
        record_free(d, x);
}

/* What functions print is in their executor's log, to be found where a user looks for
 * what tasks print. Without the link it is still there. */
static void link_log(const trp_driver *d, trp_executor_id id)
{
    char path[4200], target[64], text[4400];
    snprintf(path, sizeof(path), "%s/logs/executor-%u.log", d->run_dir, id.n);
    snprintf(target, sizeof(target), "../state/executors/%u.log", id.n);
    if (trp_held_symlink(target, path) == 0 || errno == EEXIST)
        return;
    snprintf(text, sizeof(text), "cannot make the link %s: %s", path, strerror(errno));
    trp_event_message(d->log, "warning", text, trp_driver_wall(d, d->now));
}

static void on_up(void *context, uint32_t peer, const struct trp_hello *hello)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, peer);
    char what[64];
    if (!x || x->lost)
        return;
    int64_t now = d->now;
    x->up = true;
    d->up++;
    if (x->here && d->cluster && d->cluster->ops->came)
        d->cluster->ops->came(d->cluster, x->id);
    if (!x->host)
        x->host = strdup(hello->host);
    if (x->released) { /* it was withdrawn while it came */
        x->released = false;
        trp_record_release(d, x->id);
        return;
    }
    snprintf(what, sizeof(what), "executor %u", peer);
    trp_run_folder_pid(d->run_dir, hello->pid, what);
    snprintf(what, sizeof(what), "spawner %u", peer);
    if (hello->spawner_pid > 0)
        trp_run_folder_pid(d->run_dir, hello->spawner_pid, what);
    if (d->config.prints)
        link_log(d, x->id);
    trp_event_executor_added_with(
        d->log, x->id, x->host, trp_profiles_get(d->profiles, x->profile), x->resources,
        x->nresources, trp_driver_wall(d, x->requested), trp_driver_wall(d, now));
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = x->id,
                  .host = x->host ? x->host : "",
                  .rack = x->rack,
                  .resources = x->resources,
                  .nresources = x->nresources}
    };
    trp_driver_step(d, &ev);
}

static void on_down(void *context, uint32_t peer, const struct trp_last_words *words)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, peer);
    if (!x)
        return;
    x->down = true;
    if (words)
        x->words = *words;
    if (x->words.garbled && !x->cause)
        x->cause = strdup("what came on its connection is not what was sent");
    if (x->here && d->cluster && !x->released)
        d->cluster->ops->kill(d->cluster, x->id);
    if (x->released)
        lose(d, x, TRP_LOSS_RELEASED);
    else if (x->words.reason == TRP_LOSS_HEARTBEAT ||
             (x->words.said && !x->words.garbled &&
              x->words.reason != TRP_LOSS_RELEASED))
        lose(d, x, x->words.reason);
    else if (!x->here)
        lose(d, x, end_of(x, x->killed_for_memory));
    forget_if_over(d, x);
}

static void on_silent(void *context, uint32_t peer, bool silent)
{
    trp_driver *d = context;
    const struct trp_executor_record *x = trp_record_of(d, peer);
    char text[400];
    if (!x || x->lost || !x->here)
        return;
    snprintf(text, sizeof text, "executor %u on %s %s", peer, x->host ? x->host : "?",
             silent ? "is silent: its heartbeat is late" : "is heard again");
    trp_event_message(d->log, "warning", text, trp_driver_wall(d, trp_clock_ns()));
    if (d->cluster && d->cluster->ops->silent)
        d->cluster->ops->silent(d->cluster, x->id, silent);
}

static void on_refused(void *context, uint32_t executor, bool fatal_build,
                       const char *text)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, executor);
    trp_event_message(d->log, "warning", text, trp_driver_wall(d, d->now));
    if (!fatal_build || !x || x->lost)
        return;
    trp_progress_line(d->progress, d->now, text);
    x->lost = x->released = true;
    if (x->here && d->cluster)
        d->cluster->ops->kill(d->cluster, x->id);
    refuse(d, x->id, TRP_REFUSED_NEVER, text);
}

/* A static run's executors are there from the start. */
static void on_left_mpi(void *context, const char *text)
{
    trp_driver *d = context;
    char line[TRP_ERROR_TEXT + 360];
    d->now = trp_clock_ns();
    if (d->cluster)
        d->cluster->ops->over_sockets(d->cluster);
    snprintf(line, sizeof line, "%s; the run goes on over sockets", text);
    trp_driver_on_notice(d, line);
}

static void on_granted(void *context, trp_executor_id executor,
                       const struct trp_granted *g)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x)
        return;
    x->host = strdup(g->host);
    x->rack = g->rack ? strdup(g->rack) : NULL;
    x->resources = calloc(g->nresources ? g->nresources : 1, sizeof(*x->resources));
    for (uint32_t i = 0; x->resources && i < g->nresources; i++) {
        const struct trp_resource_addresses *r = &g->resources[i];
        const char **v = calloc(r->naddresses ? r->naddresses : 1, sizeof(*v));
        x->resources[i].name = strdup(r->name);
        x->resources[i].addresses = v;
        x->resources[i].naddresses = v ? r->naddresses : 0;
        for (uint32_t k = 0; v && k < r->naddresses; k++)
            v[k] = strdup(r->addresses[k]);
        x->nresources = i + 1;
    }
}

/* It is there, or will be, and no cluster looks after it. */
int trp_record_expect(trp_driver *d, trp_executor_id id,
                      const struct trp_granted *granted, trp_error *err)
{
    if (id.n == TRP_NONE || !record_new(d, id, (trp_profile_id){0}))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    on_granted(d, id, granted);
    return 0;
}

/* A start that came to nothing. By itself it ends with any status. */
static void refuse_gone(trp_driver *d, trp_executor_id id, const struct trp_gone *g)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.executor = id,
                    .how = g->status == TRP_ENEVER ? TRP_REFUSED_NEVER
                           : g->status == TRP_ESYSTEM || g->status == 0
                               ? TRP_REFUSED_FAILED
                               : TRP_REFUSED_LATER,
                    .untried = g->untried,
                    .text = g->text,
                    .cause = g->cause}
    };
    if (*g->text)
        trp_event_message(d->log, "warning", g->text, trp_driver_wall(d, d->now));
    trp_driver_step(d, &ev);
}

static void on_gone(void *context, trp_executor_id executor, const struct trp_gone *g)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x)
        return;
    bool came = x->up || x->words.said;
    x->outran = g->status == TRP_ETIME;
    x->planned |= g->status == TRP_ECANCELLED;
    if (x->outran || g->status == TRP_ECANCELLED || g->status == TRP_ENOENT)
        x->cause = strdup(g->text);
    else if (g->status == TRP_ESYSTEM && g->cause && !x->cause &&
             asprintf(&x->cause, "its process %s", g->cause) < 0)
        x->cause = NULL;
    if (x->here) {
        x->here = false;
        d->here--;
    }
    if (!x->lost && !came && !x->released) {
        x->lost = true;
        refuse_gone(d, executor, g);
    } else if (x->released) {
        lose(d, x, TRP_LOSS_RELEASED);
    } else if (x->up && !x->down) {
        x->killed_for_memory = g->memory;
        x->words_due = d->now + WORDS_NS;
        if (x->words_due < d->words_due)
            d->words_due = x->words_due;
        return;
    } else {
        lose(d, x, end_of(x, g->memory));
    }
    forget_if_over(d, x);
}

/* The socket of one whose node is gone stays open until network.timeout. */
void trp_record_give_up_late(trp_driver *d, int64_t now)
{
    if (now < d->words_due)
        return;
    d->words_due = INT64_MAX;
    for (uint32_t i = 0; i < d->nrecords; i++) {
        struct trp_executor_record *x = d->records[i];
        if (!x || !x->words_due || x->lost)
            continue;
        if (now < x->words_due) {
            d->words_due = x->words_due < d->words_due ? x->words_due : d->words_due;
            continue;
        }
        trp_channel_drop(d->channel, x->id.n);
        lose(d, x, end_of(x, x->killed_for_memory));
        forget_if_over(d, x);
    }
}

static void on_leaving(void *context, trp_executor_id executor)
{
    trp_driver *d = context;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
                           .decommissioned = {.executor = executor}};
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x || !x->up || x->leaving)
        return;
    d->now = trp_clock_ns();
    x->leaving = true;
    char text[320];
    snprintf(text, sizeof(text), "executor %u is to go: %s is being drained",
             executor.n, x->host);
    trp_event_message(d->log, "warning", text, trp_driver_wall(d, d->now));
    trp_driver_step(d, &ev);
}

/* Its Slurm job is being ended. */
static void on_ending(void *context, trp_executor_id executor)
{
    trp_driver *d = context;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
                           .decommissioned = {.executor = executor}};
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x || x->lost)
        return;
    x->planned = true;
    trp_driver_step(d, &ev);
}

static void on_gang_ended(void *context, trp_attempt_id attempt,
                          const struct trp_end *end)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = attempt,
                  .status = end->status,
                  .code = end->code,
                  .duration_ns = end->duration_ns}
    };
    d->ended = end;
    trp_driver_step(d, &ev);
    d->ended = NULL;
}

static void on_ends(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                    size_t size)
{
    struct trp_view v;
    struct trp_end end;
    uint32_t count;
    int rc = trp_ends_open(data, size, &v, &count);
    struct trp_event ev = {.kind = TRP_EVENT_TASK_ENDED};
    while (rc == 0 && (rc = trp_ends_next(&v, &end)) > 0) {
        ev.ended.attempt = end.attempt;
        ev.ended.status = end.status;
        ev.ended.code = end.code;
        ev.ended.duration_ns = end.duration_ns;
        ev.ended.result_bytes = end.status == TRP_END_SUCCESS ? end.extra_size : 0;
        d->ended = &end;
        x->ends++;
        trp_driver_step(d, &ev);
        d->ended = NULL;
        rc = 0;
    }
    if (rc < 0)
        trp_event_message(d->log, "error", "a garbled message about ended tasks",
                          trp_driver_wall(d, d->now));
}

static void on_sync(trp_driver *d, const uint8_t *data, size_t size)
{
    struct trp_sync s;
    struct trp_event ev = {.kind = TRP_EVENT_SYNC};
    if (trp_sync_get(data, size, &s) < 0) {
        trp_event_message(d->log, "error", "a garbled message of a waiting task",
                          trp_driver_wall(d, d->now));
        return;
    }
    ev.sync.attempt = s.attempt;
    ev.sync.epoch = s.epoch;
    ev.sync.gather = s.gather;
    ev.sync.data = s.message;
    ev.sync.size = s.size;
    trp_driver_step(d, &ev);
}

static void on_message(void *context, uint32_t peer, const uint8_t *data, size_t size)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, peer);
    if (!x)
        return;
    d->now = trp_clock_ns();
    if (trp_message_kind_of(data, size) == TRP_MSG_ENDS)
        on_ends(d, x, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_SYNC)
        on_sync(d, data, size);
    else
        trp_event_message(d->log, "error", "a message of unknown kind was dropped",
                          trp_driver_wall(d, d->now));
}

bool trp_record_expected(void *context, uint32_t executor)
{
    const trp_driver *d = context;
    const struct trp_executor_record *x = trp_record_of(d, executor);
    if (executor >= TRP_CLUSTER_GUARDS)
        return d->cluster && d->cluster->ops->guard &&
               d->cluster->ops->guard(d->cluster, executor);
    /* A rank is there whether it is still needed or not, and leaves as all do. */
    return x && !x->up && !x->lost && (!x->released || !d->cluster);
}

const struct trp_channel_handler trp_driver_channel_handler = {
    .up = on_up,
    .message = on_message,
    .down = on_down,
    .silent = on_silent,
    .refused = on_refused,
    .full = trp_driver_on_notice,
    .left_mpi = on_left_mpi,
};

const struct trp_cluster_handler trp_driver_cluster_handler = {
    .granted = on_granted,
    .gone = on_gone,
    .gang_ended = on_gang_ended,
    .leaving = on_leaving,
    .ending = on_ending,
    .notice = trp_driver_on_notice,
    .shrunk = trp_driver_on_shrunk,
    .outlook = trp_driver_on_outlook,
    .held = trp_driver_on_held,
    .queue_wait = trp_driver_on_queue_wait,
    .ends = trp_driver_ends,
    .executor_ends = trp_driver_executor_ends,
    .nodes = trp_driver_on_nodes,
    .job = trp_driver_on_job,
    .step = trp_driver_on_step,
};
