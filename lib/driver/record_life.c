/*
 * The life of an executor, as the driver sees it.
 *
 *     coming ─▶ up ─┬─▶ down ─┬─▶ lost ─▶ freed
 *                   └─▶ gone ─┘
 *
 * Two sources report the end of an executor: the admission socket (`down`, at once,
 * perhaps with its last words: a reason) and the cluster (`gone`, once the process was
 * reaped and its resources are free). The engine is told once. With a reason, or after
 * a release, it is told at the first of the two. When `down` comes first without a
 * reason, we wait for `gone`, which knows whether the kernel killed the process for
 * memory. When `gone` comes first, we wait up to LAST_WORDS_NS for `down`, which brings the
 * reason: the spawner sends it and then closes the socket. After a `down` we kill the
 * process in any case: it may hang, or have lost its connection.
 *
 * What may happen when is a table (`rules`); what is not in it is logged and changes
 * nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_state.h"
#include "driver/locations.h"
#include "driver/moving.h"
#include "events/run_folder.h"
#include "os/clock.h"
#include "os/held.h"

#define LAST_WORDS_NS (5 * TRP_SECOND)

static const char *loss_text(const struct trp_executor_record *x, enum trp_loss reason,
                             char *buf, size_t size)
{
    switch (reason) {
    case TRP_LOSS_RELEASED:
        return "released";
    case TRP_LOSS_CRASHED:
        snprintf(buf, size, "a function crashed it: %s%s%s",
                 strsignal(x->last_words.signal), *x->last_words.text ? ": " : "",
                 x->last_words.text);
        return buf;
    case TRP_LOSS_CALLED_EXIT:
        snprintf(buf, size, "a function ended it by exit(%d)", x->last_words.signal);
        return buf;
    case TRP_LOSS_MEMORY:
        if (!x->last_words.limit_mib)
            return "killed for memory";
        snprintf(buf, size, "killed for memory (limit %lld MiB, peak %lld MiB)",
                 (long long)x->last_words.limit_mib, (long long)x->last_words.peak_mib);
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
                 x->last_words.signal ? "was killed: " : "ended",
                 x->last_words.signal ? strsignal(x->last_words.signal) : "");
        return buf;
    case TRP_LOSS_SPAWNER_HUNG:
        return "its spawner was stopped, or hung";
    case TRP_LOSS_EXITED:
        break;
    }
    return x->cause ? x->cause : "its connection closed: it died, or was cut off";
}

/* Tells engine and event log. The log has the ends of its attempts first, by what the
 * engine says of them: Spark's readers do not count those of an executor that is gone. */
static void tell_loss(trp_driver *d, struct trp_executor_record *x,
                      enum trp_record_state was, enum trp_loss reason)
{
    char buf[320], extra[TRP_LAST_WORDS_TEXT + 96];
    const trp_executor_id id = x->id;
    const int64_t now = d->now;
    char *text = strdup(loss_text(x, reason, buf, sizeof(buf)));
    trp_driver_serves_no_more(d, x);
    trp_driver_mover_lost(d, x);
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.executor = x->id,
                 .reason = reason,
                 .has_culprit = x->last_words.has_culprit,
                 .culprit = x->last_words.culprit,
                 .code = x->last_words.signal}
    };
    /* What is known of the end of the attempt that is to blame. */
    struct trp_end end = {.attempt = x->last_words.culprit,
                          .code = x->last_words.signal,
                          .limit_mib = x->last_words.limit_mib,
                          .peak_kib = x->last_words.peak_mib * 1024};
    if (reason == TRP_LOSS_CALLED_EXIT)
        snprintf(extra, sizeof extra,
                 "its function called exit(%d), which ends the executor; let it return "
                 "a status",
                 x->last_words.signal);
    else
        snprintf(extra, sizeof extra, "%s", x->last_words.text);
    end.extra = (const uint8_t *)extra;
    end.extra_size = (uint32_t)strlen(extra);
    d->ended = x->last_words.has_culprit ? &end : NULL;
    trp_driver_step(d, &ev);
    d->ended = NULL;
    if (was & TRP_RECORD_JOINED)
        trp_event_executor_removed(d->log, id, text ? text : "",
                                   trp_driver_wall(d, now));
    free(text);
}

/* What functions print is in their executor's log, to be found where a user looks for
 * what tasks print. Without the link it is still there. */
static void link_log(const trp_driver *d, trp_executor_id id)
{
    char path[4200], target[64];
    snprintf(path, sizeof(path), "%s/logs/executor-%u.log", d->run_dir, id.n);
    snprintf(target, sizeof(target), "../state/executors/%u.log", id.n);
    if (trp_held_symlink(target, path) < 0 && errno != EEXIST)
        trp_driver_log(d, "warning", "cannot make the link %s: %m", path);
}

/* ---- its life ---- */

enum happening {
    COMES_UP,
    DOWN_AS_TOLD,      /* its connection has closed, after a release, … */
    DOWN_WITH_REASON,  /* … it has said why, … */
    DOWN_WITHOUT_GONE, /* … nothing else will be told of it, … */
    DOWN,              /* … the cluster will tell why */
    GONE_AS_TOLD,      /* its process is gone, after a release, … */
    GONE,              /* … for some reason */
    UNANSWERED,        /* its node does not answer */
    WORDS_DUE,         /* its last words have not come in time */
    WRONG_BUILD,       /* it is of another version than the driver */
};

/* What a happening is about: what it has is set. */
struct about {
    const struct trp_hello *hello;
    const struct trp_gone *gone;
    const char *text;
};

static void tell_added(trp_driver *d, struct trp_executor_record *x,
                       enum trp_record_state was, const struct about *about)
{
    const char *host = x->host ? x->host : about->hello->host;
    char what[64];
    (void)was;
    if (x->here && d->cluster && d->cluster->ops->batch.came)
        d->cluster->ops->batch.came(d->cluster, x->id);
    if (x->released) { /* it was withdrawn while it came */
        x->released = false;
        trp_record_release(d, x->id);
        return;
    }
    snprintf(what, sizeof(what), "executor %u", x->id.n);
    trp_run_folder_pid(d->run_dir, about->hello->pid, what);
    snprintf(what, sizeof(what), "spawner %u", x->id.n);
    if (about->hello->spawner_pid > 0)
        trp_run_folder_pid(d->run_dir, about->hello->spawner_pid, what);
    if (d->config.prints)
        link_log(d, x->id);
    trp_driver_order_files(d, x);
    trp_event_executor_added(
        d->log, x->id, host, trp_profiles_get(d->profiles, x->profile), x->resources,
        x->nresources, trp_driver_wall(d, x->requested), trp_driver_wall(d, d->now));
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = x->id,
                  .host = host,
                  .rack = x->rack,
                  .resources = x->resources,
                  .nresources = x->nresources}
    };
    trp_driver_step(d, &ev);
}

static void tell_released(trp_driver *d, struct trp_executor_record *x,
                          enum trp_record_state was, const struct about *about)
{
    (void)about;
    tell_loss(d, x, was, TRP_LOSS_RELEASED);
}

static void tell_reason(trp_driver *d, struct trp_executor_record *x,
                        enum trp_record_state was, const struct about *about)
{
    (void)about;
    tell_loss(d, x, was, x->last_words.reason);
}

/* Without words of its own. */
static void tell_end(trp_driver *d, struct trp_executor_record *x,
                     enum trp_record_state was, const struct about *about)
{
    (void)about;
    tell_loss(d, x, was, x->ended);
}

static void await_words(trp_driver *d, struct trp_executor_record *x,
                        enum trp_record_state was, const struct about *about)
{
    (void)was, (void)about;
    x->last_words_due = d->now + LAST_WORDS_NS;
    d->last_words_due = trp_earlier(d->last_words_due, x->last_words_due);
}

/* The socket of one whose node is gone stays open until network.timeout. */
static void give_up_words(trp_driver *d, struct trp_executor_record *x,
                          enum trp_record_state was, const struct about *about)
{
    trp_channel_drop(d->channel, x->id.n);
    if (x->ended == TRP_LOSS_EXITED && !x->cause)
        x->cause = strdup("its process ended");
    tell_end(d, x, was, about);
}

/* A start that came to nothing. By itself it ends with any status. */
static void tell_failed_start(trp_driver *d, struct trp_executor_record *x,
                              enum trp_record_state was, const struct about *about)
{
    const struct trp_gone *g = about->gone;
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.executor = x->id,
                    .how = g->status == TRP_ENEVER ? TRP_REFUSED_NEVER
                           : g->status == TRP_ESYSTEM || g->status == 0
                               ? TRP_REFUSED_FAILED
                               : TRP_REFUSED_LATER,
                    .untried = g->untried,
                    .text = g->text,
                    .cause = g->cause}
    };
    if (x->last_words.said) {
        tell_end(d, x, was, about);
        return;
    }
    if (*g->text)
        trp_driver_log(d, "warning", "%s", g->text);
    trp_driver_step(d, &ev);
}

static void refuse_build(trp_driver *d, struct trp_executor_record *x,
                         enum trp_record_state was, const struct about *about)
{
    (void)was;
    trp_progress_line(d->progress, d->now, about->text);
    x->released = true;
    if (x->here && d->cluster)
        d->cluster->ops->kill(d->cluster, x->id);
    trp_record_refuse(d, x->id, TRP_REFUSED_NEVER, about->text);
}

enum {
    COMING = TRP_RECORD_COMING,
    UP = TRP_RECORD_UP,
    IS_DOWN = TRP_RECORD_DOWN,
    IS_GONE = TRP_RECORD_GONE,
    LOST = TRP_RECORD_LOST,
    LIVE = COMING | TRP_RECORD_JOINED,
    SAME = 0,
};

/* clang-format off */
static const struct rule {
    enum happening happening;
    uint8_t states, next;
    void (*act)(trp_driver *d, struct trp_executor_record *x, enum trp_record_state was,
                const struct about *about);
} rules[] = {
    {COMES_UP,          COMING,                UP,      tell_added       },
    {DOWN_AS_TOLD,      LIVE,                  LOST,    tell_released    },
    {DOWN_WITH_REASON,  LIVE,                  LOST,    tell_reason      },
    {DOWN_WITHOUT_GONE, LIVE,                  LOST,    tell_end         },
    {DOWN,              COMING,                SAME,    NULL             },
    {DOWN,              UP,                    IS_DOWN, NULL             },
    {GONE_AS_TOLD,      LIVE,                  LOST,    tell_released    },
    {GONE,              COMING,                LOST,    tell_failed_start},
    {GONE,              UP,                    IS_GONE, await_words      },
    {GONE,              IS_DOWN,               LOST,    tell_end         },
    {UNANSWERED,        IS_DOWN,               LOST,    tell_end         },
    {UNANSWERED,        LIVE,                  SAME,    NULL             },
    {WORDS_DUE,         IS_GONE,               LOST,    give_up_words    },
    {WRONG_BUILD,       LIVE,                  LOST,    refuse_build     },

    {COMES_UP,          LOST,                  SAME,    NULL             },
    {DOWN_AS_TOLD,      LOST,                  SAME,    NULL             },
    {DOWN_WITH_REASON,  LOST,                  SAME,    NULL             },
    {DOWN,              LOST,                  SAME,    NULL             },
    {GONE_AS_TOLD,      LOST,                  SAME,    NULL             },
    {UNANSWERED,        LOST,                  SAME,    NULL             },
    {GONE,              LOST,                  SAME,    NULL             },
    {WRONG_BUILD,       LOST,                  SAME,    NULL             },
};
/* clang-format on */

static void apply_rule(trp_driver *d, struct trp_executor_record *x,
                       const struct rule *r, const struct about *about)
{
    enum trp_record_state was = x->state;
    if (r->next)
        x->state = r->next;
    d->up -= (was & TRP_RECORD_JOINED) != 0;
    d->up += (x->state & TRP_RECORD_JOINED) != 0;
    if (was == TRP_RECORD_COMING && x->state == TRP_RECORD_LOST)
        trp_event_executor_dropped(d->log, x->id, trp_driver_wall(d, d->now));
    if (r->act)
        r->act(d, x, was, about);
    if (x->state == TRP_RECORD_LOST && !x->here)
        trp_record_drop(d, x);
}

/* It may be freed by that. */
static void happen(trp_driver *d, struct trp_executor_record *x, enum happening what,
                   const struct about *about)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].happening == what && rules[i].states & x->state) {
            apply_rule(d, x, &rules[i], about);
            return;
        }
    }
    trp_driver_log(d, "error",
                   "a mistake in Troupe: executor %u in state %#x was told %d", x->id.n,
                   (unsigned)x->state, (int)what);
}

static void on_up(void *context, uint32_t peer, const struct trp_hello *hello)
{
    trp_driver *d = context;
    const struct about about = {.hello = hello};
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, peer);
    if (x)
        happen(d, x, COMES_UP, &about);
}

static enum happening kind_of_down(const struct trp_executor_record *x)
{
    const struct trp_last_words *w = &x->last_words;
    if (x->released)
        return DOWN_AS_TOLD;
    if (w->reason == TRP_LOSS_HEARTBEAT ||
        (w->said && !w->garbled && w->reason != TRP_LOSS_RELEASED))
        return DOWN_WITH_REASON;
    return x->here ? DOWN : DOWN_WITHOUT_GONE;
}

static void on_down(void *context, uint32_t peer,
                    const struct trp_last_words *last_words)
{
    trp_driver *d = context;
    const struct about about = {0};
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, peer);
    if (!x)
        return;
    if (last_words)
        x->last_words = *last_words;
    const bool told = x->released;
    x->released |= x->held_back;
    if (x->last_words.garbled && !x->cause)
        x->cause = strdup("what came on its connection is not what was sent");
    if (x->here && d->cluster && !told)
        d->cluster->ops->kill(d->cluster, x->id);
    happen(d, x, kind_of_down(x), &about);
}

void trp_record_give_up(trp_driver *d, struct trp_executor_record *x, const char *about)
{
    if (!x->cause &&
        asprintf(&x->cause, "it sent a message about %s that cannot be right", about) <
            0)
        x->cause = NULL;
    trp_driver_warn(d,
                    "executor %u on %s is given up: it sent a message about %s that "
                    "cannot be right",
                    x->id.n, x->host ? x->host : "?", about);
    trp_channel_drop(d->channel, x->id.n);
    on_down(d, x->id.n, &(struct trp_last_words){.garbled = true});
}

static void on_silent(void *context, uint32_t peer, bool silent)
{
    trp_driver *d = context;
    const struct trp_executor_record *x = trp_record_of(d, peer);
    if (!x || x->state == TRP_RECORD_LOST || !x->here)
        return;
    d->now = trp_clock_ns();
    trp_driver_log(d, "warning", "executor %u on %s %s", peer, x->host ? x->host : "?",
                   silent ? "is silent: its heartbeat is late" : "is heard again");
    if (d->cluster && d->cluster->ops->batch.silent)
        d->cluster->ops->batch.silent(d->cluster, x->id, silent);
}

static void on_refused(void *context, uint32_t executor, bool fatal_build,
                       const char *text)
{
    trp_driver *d = context;
    const struct about about = {.text = text};
    struct trp_executor_record *x = trp_record_of(d, executor);
    trp_driver_log(d, "warning", "%s", text);
    if (fatal_build && x)
        happen(d, x, WRONG_BUILD, &about);
}

static void on_granted(void *context, trp_executor_id executor,
                       const struct trp_granted *g)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    const struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_GRANTED,
                                 .granted = {executor}};
    if (!x)
        return;
    d->now = trp_clock_ns();
    if (trp_record_grant(x, g)) {
        trp_driver_step(d, &ev);
        return;
    }
    trp_driver_log(d, "error", "out of memory for an executor");
    d->cluster->ops->kill(d->cluster, executor);
}

static void on_gone(void *context, trp_executor_id executor, const struct trp_gone *g)
{
    trp_driver *d = context;
    const struct about about = {.gone = g};
    d->now = trp_clock_ns();
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x)
        return;
    x->released |= x->held_back;
    if (g->status == TRP_ETIME)
        x->ended = TRP_LOSS_TIME_LIMIT;
    else if (g->status == TRP_ECANCELLED)
        x->ended = TRP_LOSS_DECOMMISSIONED;
    else if (g->memory && x->ended == TRP_LOSS_EXITED)
        x->ended = TRP_LOSS_MEMORY;
    if (g->status == TRP_ETIME || g->status == TRP_ECANCELLED ||
        g->status == TRP_ENOENT) {
        free(x->cause);
        x->cause = strdup(g->text);
    } else if (g->status == TRP_ESYSTEM && g->cause && !x->cause &&
               asprintf(&x->cause, "its process %s", g->cause) < 0)
        x->cause = NULL;
    d->here -= x->here;
    x->here = false;
    happen(d, x, x->released ? GONE_AS_TOLD : GONE, &about);
}

void trp_record_give_up_late(trp_driver *d, int64_t now)
{
    if (now < d->last_words_due)
        return;
    d->last_words_due = INT64_MAX;
    for (uint32_t i = 0; i < d->nrecords; i++) {
        struct trp_executor_record *x = d->records[i];
        if (!x || x->state != TRP_RECORD_GONE)
            continue;
        if (now < x->last_words_due) {
            d->last_words_due = x->last_words_due < d->last_words_due
                                    ? x->last_words_due
                                    : d->last_words_due;
            continue;
        }
        happen(d, x, WORDS_DUE, &(struct about){0});
    }
}

static void on_unanswered(void *context, trp_executor_id executor)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x)
        return;
    d->now = trp_clock_ns();
    if (x->state == TRP_RECORD_DOWN && !x->cause)
        x->cause = strdup("its node does not answer");
    happen(d, x, UNANSWERED, &(struct about){0});
}

static void on_leaving(void *context, trp_executor_id executor)
{
    trp_driver *d = context;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
                           .decommissioned = {.executor = executor}};
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (!x || !(x->state & TRP_RECORD_JOINED) || x->leaving)
        return;
    d->now = trp_clock_ns();
    x->leaving = true;
    trp_driver_log(d, "warning", "executor %u is to go: %s is being drained",
                   executor.n, x->host);
    trp_driver_going(d, x);
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
    if (!x || x->state == TRP_RECORD_LOST)
        return;
    x->ended = TRP_LOSS_DECOMMISSIONED;
    trp_driver_going(d, x);
    trp_driver_step(d, &ev);
}

static void on_mpi_failed(void *context, const char *text)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    trp_driver_mpi_failed(d, text);
}

/* Launches go out with the descriptions of their stages. */
static void on_delivered(void *context)
{
    trp_driver_flush(context);
}

const struct trp_channel_handler trp_driver_channel_handler = {
    .up = on_up,
    .message = trp_driver_on_message,
    .delivered = on_delivered,
    .down = on_down,
    .silent = on_silent,
    .refused = on_refused,
    .full = trp_driver_on_notice,
    .mpi_failed = on_mpi_failed,
};

const struct trp_cluster_handler trp_driver_cluster_handler = {
    .granted = on_granted,
    .gone = on_gone,
    .gang_room = trp_driver_on_gang_room,
    .gang_ended = trp_driver_on_gang_ended,
    .notice = trp_driver_on_notice,
    .held = trp_driver_on_held,
    .contended = trp_driver_on_contended,
    .batch =
        {
                .leaving = on_leaving,
                .unanswered = on_unanswered,
                .ending = on_ending,
                .shrunk = trp_driver_on_shrunk,
                .outlook = trp_driver_on_outlook,
                .queue_wait = trp_driver_on_queue_wait,
                .ends = trp_driver_ends,
                .executor_ends = trp_driver_executor_ends,
                .needed = trp_driver_needed,
                .moved = trp_driver_moved,
                .nodes = trp_driver_on_nodes,
                .job = trp_driver_on_job,
                .step = trp_driver_on_step,
                },
};
