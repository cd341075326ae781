/*
 * What the engine decided of attempts: launches, gangs, kills, ends, and what tasks of
 * a barrier stage tell each other.
 *
 * Launches are gathered per executor and sent once a turn of the loop, or when a
 * message has grown to 16 KiB; a stage's description goes out before its first launch
 * there. That a stage is over is told with the description of the next: nobody is woken
 * to forget something.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/map_outputs.h"
#include "driver/perform.h"
#include "events/task_names.h"

enum { BATCH_BYTES = 16384 };

/* A peer that is gone by now is none: its end is about to be told. */
static bool is_sent(int code)
{
    return code == 0 || code == TRP_ENOENT;
}

int trp_driver_send(const trp_driver *d, trp_executor_id executor,
                    struct trp_buf *take_message)
{
    int code = take_message->failed
                   ? TRP_ENOMEM
                   : trp_channel_send(d->channel, executor.n, take_message->data,
                                      take_message->size);
    trp_buf_free(take_message);
    return code;
}

static void send_to(trp_driver *d, uint32_t executor, const struct trp_buf *b)
{
    if (b->failed || !is_sent(trp_channel_send(d->channel, executor, b->data, b->size)))
        trp_perform_out_of_memory(d);
}

static void send_over(trp_driver *d, struct trp_executor_record *x)
{
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < x->nover; i++) {
        trp_buf_clear(&b);
        trp_number_put(&b, TRP_MSG_FORGET, x->over[i].n);
        send_to(d, x->id.n, &b);
    }
    x->nover = 0;
    trp_buf_free(&b);
}

void trp_perform_over(trp_driver *d, struct trp_executor_record *x, trp_stage_id stage)
{
    x->over[x->nover++] = stage;
    if (x->nover == TRP_OVER_MAX)
        send_over(d, x);
}

/* Sends the stage to an executor that has not got it yet. */
static bool stage_send(trp_driver *d, struct trp_driver_stage *s,
                       struct trp_executor_record *x, trp_error *err)
{
    uint32_t executor = x->id.n, has = executor < s->nsent ? s->sent[executor] : 0;
    if (has == s->attempt + 1 || (has && !s->inputs.size))
        return true;
    if (!has) {
        send_over(d, x);
        const struct trp_buf *b = trp_driver_message(d, s, err);
        if (!b || !is_sent(trp_channel_send(d->channel, executor, b->data, b->size)) ||
            !TRP_ARRAY_RESERVE_ZEROED(s->sent, s->nsent, (uint64_t)executor + 1))
            return false;
    }
    err->code = 0;
    const struct trp_buf *in = trp_driver_inputs(d, s, err);
    if (err->code || (in && !trp_driver_tell_servers(d, x)) ||
        (in && !is_sent(trp_channel_send(d->channel, executor, in->data, in->size))))
        return false;
    x->reads |= in != NULL;
    s->sent[executor] = s->attempt + 1;
    return true;
}

/* "gpu=0,1\n" lines of what was granted. */
static void put_resources(struct trp_buf *b, const trp_ledger *ledger,
                          const struct trp_grant *grants, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool again = i && grants[i].resource == grants[i - 1].resource;
        const char *address =
            trp_ledger_address(ledger, grants[i].resource, grants[i].address);
        if (again) {
            b->data[b->size - 1] = ',';
        } else {
            const char *name = trp_ledger_resource_name(ledger, grants[i].resource);
            trp_put_raw(b, name, strlen(name));
            trp_put_raw(b, "=", 1);
        }
        trp_put_raw(b, address, strlen(address));
        trp_put_raw(b, "\n", 1);
        if (b->failed)
            return;
    }
}

static void flush_one(trp_driver *d, struct trp_executor_record *x)
{
    if (!x->launching)
        return;
    trp_batch_finish(&x->launches);
    if (x->state & TRP_RECORD_JOINED)
        send_to(d, x->id.n, &x->launches);
    trp_buf_clear(&x->launches);
    x->launching = false;
}

void trp_driver_flush(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nflush; i++) {
        struct trp_executor_record *x = trp_record_of(d, d->to_flush[i]);
        if (x)
            flush_one(d, x);
    }
    d->nflush = 0;
}

static bool begin_batch(trp_driver *d, struct trp_executor_record *x)
{
    if (x->launching)
        return true;
    if (!TRP_ARRAY_GROW(d->to_flush, d->nflush, d->flush_cap))
        return false;
    d->to_flush[d->nflush++] = x->id.n;
    trp_launch_begin(&x->launches);
    x->launching = true;
    return true;
}

/* The attempt cannot even be sent: it has ended. */
static void launch_failed(trp_driver *d, trp_attempt_id attempt,
                          enum trp_end_status status, const char *text)
{
    struct trp_end end = {.attempt = attempt,
                          .status = (uint8_t)status,
                          .extra = (const uint8_t *)text,
                          .extra_size = (uint32_t)strlen(text)};
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED, .ended = {.attempt = attempt, .status = status}
    };
    const struct trp_end *before = d->ended;
    /* The verdict is performed later, when `end` is no more. */
    trp_progress_line(d->progress, d->now, text);
    trp_driver_log(d, "error", "%s", text);
    d->ended = &end;
    trp_driver_try_step(d, &ev, NULL);
    d->ended = before;
}

/* Numbers of a task's attempts go on over the attempts of a stage that runs again as a
 * whole: each has logs of its own. (A task of such a stage, a barrier stage, has one
 * attempt in each.) */
static const struct trp_action *numbered(const struct trp_action *a, bool whole,
                                         struct trp_action *own)
{
    bool launch = a->kind == TRP_ACTION_LAUNCH;
    uint32_t earlier = launch ? a->launch.stage_attempt : a->task_end.stage_attempt;
    if (!earlier || !whole)
        return a;
    *own = *a;
    if (launch)
        own->launch.number += earlier;
    else
        own->task_end.number += earlier;
    return own;
}

void trp_perform_launch(trp_driver *d, const struct trp_action *action)
{
    struct trp_action own;
    struct trp_driver_stage *s = trp_driver_stage_of(d, action->launch.stage);
    const struct trp_action *a = numbered(action, s->whole, &own);
    struct trp_executor_record *x = trp_record_of(d, a->launch.executor.n);
    trp_error err;
    err.text[0] = '\0';
    s->live++;
    d->attempts++;
    d->functions += s->function;
    if (!x || !(x->state &
                TRP_RECORD_JOINED)) /* it is being lost: the engine will hear of it */
        return;
    if (!stage_send(d, s, x, &err) || !begin_batch(d, x)) {
        launch_failed(d, a->launch.attempt, TRP_END_START, err.text);
        return;
    }
    struct trp_launch l = {.attempt = a->launch.attempt,
                           .stage = a->launch.stage,
                           .task = a->launch.task,
                           .number = (uint16_t)a->launch.number,
                           .queued = a->launch.queued,
                           .seen = x->ends};
    struct trp_buf resources = {0};
    if (a->launch.ngrants) {
        put_resources(&resources, trp_engine_ledger(d->engine, x->id), a->launch.grants,
                      a->launch.ngrants);
        l.resources = resources.data;
        l.resources_size = (uint32_t)resources.size;
    }
    /* Of one that is over, too: another job may need its stage. */
    if (s->job->work.launch && (!s->job->over || s->job->work.gone))
        s->job->work.launch(s->job->work.context, s->index, a->launch.task,
                            a->launch.number, &l);
    trp_launch_put(&x->launches, &l);
    if (resources.failed || x->launches.failed)
        trp_perform_out_of_memory(d);
    trp_buf_free(&resources);
    trp_event_task_started(d->log, a->launch.stage, a, x->host,
                           trp_driver_wall(d, d->now));
    if (x->launches.size > BATCH_BYTES)
        flush_one(d, x);
}

void trp_perform_gang(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, a->gang.stage);
    trp_error err = {.text = "a static run has no place for the ranks of a gang"};
    struct trp_launch l = {.attempt = a->gang.attempt, .stage = a->gang.stage};
    s->live++;
    s->launch = *a;
    s->has_room = false;
    s->room_since = 0;
    d->attempts++;
    d->functions += s->function;
    const struct trp_buf *b = d->cluster ? trp_driver_message(d, s, &err) : NULL;
    if (b && s->job->work.launch)
        s->job->work.launch(s->job->work.context, s->index, 0, a->gang.number, &l);
    struct trp_gang g = {.attempt = a->gang.attempt,
                         .profile = trp_profiles_get(d->profiles, a->gang.profile),
                         .ranks = a->gang.ranks,
                         .number = a->gang.number,
                         .stage = s->name,
                         .stage_message = b ? b->data : NULL,
                         .stage_message_size = b ? b->size : 0,
                         .timeout_ns = s->timeout_ns,
                         .item = l.extra,
                         .item_size = l.extra_size,
                         .has_item = l.has_item};
    int code = b ? d->cluster->ops->gang_start(d->cluster, &g, &err) : TRP_ENOMEM;
    if (code < 0)
        launch_failed(d, a->gang.attempt,
                      code == TRP_ENEVER ? TRP_END_NEVER : TRP_END_START, err.text);
}

void trp_perform_synced(trp_driver *d, const struct trp_action *a)
{
    struct trp_buf b = {0};
    struct trp_synced s = {.attempt = a->synced.attempt,
                           .epoch = a->synced.epoch,
                           .status = a->synced.code,
                           .count = a->synced.nmessages,
                           .text = (const uint8_t *)a->synced.text,
                           .text_size = (uint32_t)strlen(a->synced.text)};
    trp_synced_put(&b, &s);
    for (uint32_t i = 0; i < a->synced.nmessages; i++)
        trp_put_bytes(&b, a->synced.messages[i].data, a->synced.messages[i].size);
    send_to(d, a->synced.executor.n, &b);
    trp_buf_free(&b);
}

void trp_perform_kill(trp_driver *d, const struct trp_action *a)
{
    if (a->kill.executor.n == TRP_NONE) {
        if (d->cluster)
            d->cluster->ops->gang_kill(d->cluster, a->kill.attempt, d->soft);
        return;
    }
    struct trp_executor_record *x = trp_record_of(d, a->kill.executor.n);
    if (!x || !(x->state & TRP_RECORD_JOINED))
        return;
    flush_one(d, x); /* the launch goes first */
    struct trp_buf b = {0};
    enum trp_kill_mode mode = d->soft ? TRP_KILL_SOFT : TRP_KILL_NOW;
    trp_kill_put(&b, a->kill.attempt, a->kill.recall ? TRP_KILL_RECALL : mode);
    send_to(d, x->id.n, &b);
    trp_buf_free(&b);
}

/* How it goes on after a failure that counts: "; it is run again with 1536 MiB". */
static void put_retry(const trp_driver *d, const struct trp_driver_stage *s,
                      const struct trp_action *v, char *buf, size_t size)
{
    trp_profile_id id =
        trp_engine_task_profile(d->engine, v->task_end.stage, v->task_end.task);
    char memory[32];
    buf[0] = '\0';
    if (!v->task_end.retried)
        return;
    snprintf(buf, size, "; it is run again");
    if (id.n == s->profile.n)
        return;
    trp_memory_format(trp_profiles_get(d->profiles, id)->total_mib, memory,
                      sizeof(memory));
    snprintf(buf, size, "; it is run again with %s", memory);
}

static void note_task_failure(trp_driver *d, struct trp_driver_stage *s,
                              const struct trp_action *v, const char *reason)
{
    char line[1300], retry[64], task[TRP_TASK_WORD];
    s->failures++;
    d->failures++;
    s->failed.task = v->task_end.task;
    s->failed.times = v->task_end.failures;
    snprintf(s->failed.reason, sizeof(s->failed.reason), "%s", reason);
    put_retry(d, s, v, retry, sizeof(retry));
    snprintf(line, sizeof(line), "stage %s: task %s, attempt %u: %s%s", s->name,
             trp_driver_task_word(s, v->task_end.task, task), v->task_end.number,
             reason, retry);
    if (d->failures <= 100)
        trp_progress_line(d->progress, d->now, line);
}

void trp_perform_task_end(trp_driver *d, const struct trp_action *action)
{
    struct trp_action own;
    struct trp_driver_stage *s = trp_driver_stage_of(d, action->task_end.stage);
    const struct trp_action *v = numbered(action, s->whole, &own);
    struct trp_executor_record *x = trp_record_of(d, v->task_end.executor.n);
    const struct trp_end *end = d->ended;
    char reason[sizeof(s->failed.reason)];
    const struct trp_event_update *updates = NULL;
    int nupdates = 0;
    if (end && end->attempt.n != v->task_end.attempt.n)
        end = NULL;
    if (end && end->nadded && v->task_end.status == TRP_END_SUCCESS)
        nupdates =
            trp_accumulators_take(d->accumulators, end->added, end->nadded, &updates);
    if (nupdates < 0)
        trp_perform_out_of_memory(d);
    if (--s->live == 0)
        s->idle_since = d->now;
    d->attempts--;
    d->functions -= s->function;
    int64_t now = trp_driver_wall(d, d->now);
    int64_t launched = s->gang ? s->room_since : v->task_end.launched_ns;
    struct trp_event_task t = {
        .verdict = v,
        .end = end,
        .launched = launched ? trp_driver_wall(d, launched) : now,
        .ended = now,
        .host = x && x->host ? x->host : "",
        .profile = trp_profiles_get(d->profiles, s->profile),
        .ranks = s->ranks,
        .reason = trp_end_reason(v, end, s->timeout_ns, reason, sizeof(reason)),
        .fetch = end && v->task_end.status == TRP_END_FETCH ? &d->fetch : NULL,
        .updates = updates,
        .nupdates = nupdates > 0 ? (uint32_t)nupdates : 0,
    };
    if (x && x->nblocks)
        t.blocks = trp_driver_blocks_of(x, v->task_end.attempt, &t.nblocks);
    trp_event_task_ended(d->log, &t);
    if (v->task_end.status == TRP_END_SUCCESS && s->map && s->dataset != TRP_NONE)
        trp_driver_note_output(d, s->dataset, v->task_end.task, v->task_end.attempt, x,
                               end);
    if (v->task_end.status == TRP_END_SUCCESS)
        trp_driver_count_done(d, s, s->done + 1);
    else if (v->task_end.counted)
        note_task_failure(d, s, v, reason);
    if (s->job->work.task_ended && (!s->job->over || s->job->work.lasts))
        s->job->work.task_ended(s->job->work.context, s->index, v, end);
    trp_perform_settle(d, v->task_end.stage);
}

/* Of the whole application, by its tasks' failures. */
void trp_perform_excluded(trp_driver *d, const struct trp_action *a)
{
    const char *how =
        a->excluded.excluded ? "is excluded for its failures" : "is no longer excluded";
    if (a->excluded.executor.n == TRP_NONE)
        trp_driver_log(d, "warning", "host %s %s", a->excluded.host, how);
    else
        trp_driver_log(d, "warning", "executor %u %s", a->excluded.executor.n, how);
}

void trp_perform_task_given_up(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, a->given_up.stage);
    bool skipped = a->given_up.parent.n != TRP_NONE;
    uint32_t after = skipped ? a->given_up.parent.n - s->job->first : TRP_NONE;
    struct trp_event_given_up t = {.stage = a->given_up.stage,
                                   .task = a->given_up.task,
                                   .parent = a->given_up.parent,
                                   .parent_task = a->given_up.parent_task};
    s->given_up += !skipped;
    s->skipped += skipped;
    if (!skipped && s->failed.task == t.task) {
        t.failures = s->failed.times;
        t.reason = s->failed.reason;
    }
    if (s->job->work.task_given_up && !s->job->over)
        s->job->work.task_given_up(s->job->work.context, s->index, after, &t);
    trp_event_task_given_up(d->log, &t, trp_driver_wall(d, d->now));
}
