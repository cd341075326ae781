/*
 * What executors and gangs tell of the attempts that they run.
 */
#include <string.h>

#include "driver/driver_state.h"
#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/map_outputs.h"
#include "driver/moving.h"
#include "driver/perform.h"
#include "os/clock.h"

/* Its attempt begins now, not when it was told to wait for its room. */
void trp_driver_on_gang_room(void *context, trp_stage_id stage, bool has)
{
    trp_driver *d = context;
    struct trp_driver_stage *s = trp_driver_stage_of(d, stage);
    d->now = trp_clock_ns();
    d->waits.late = 0;
    s->has_room = has;
    if (!has || s->room_since)
        return;
    s->room_since = d->now;
    trp_event_task_started(d->log, stage, &s->launch, "", trp_driver_wall(d, d->now));
}

/* One that ended well may have failed all the same; `why` is then what `end` says. */
static void check_end(trp_driver *d, trp_attempt_id attempt, struct trp_end *end,
                      char *why, size_t size)
{
    struct trp_attempt_view a;
    if (end->status != TRP_END_SUCCESS || !trp_engine_attempt(d->engine, attempt, &a))
        return;
    const struct trp_driver_stage *s = trp_driver_stage_of(d, a.stage);
    const struct trp_work *w = s ? &s->job->work : NULL;
    if (!w || !w->attempt_check ||
        w->attempt_check(w->context, s->index, a.task, why, size))
        return;
    end->status = TRP_END_OUTPUT;
    end->extra = (const uint8_t *)why;
    end->extra_size = (uint32_t)strlen(why);
}

void trp_driver_on_gang_ended(void *context, trp_attempt_id attempt,
                              const struct trp_end *told)
{
    trp_driver *d = context;
    char why[TRP_ERROR_TEXT];
    struct trp_end judged = *told, *end = &judged;
    d->now = trp_clock_ns();
    check_end(d, attempt, end, why, sizeof why);
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

/* The attempt is one that the executor has. */
static bool is_its_own(const trp_driver *d, const struct trp_executor_record *x,
                       trp_attempt_id attempt, struct trp_attempt_view *ret)
{
    return trp_engine_attempt(d->engine, attempt, ret) && ret->executor.n == x->id.n;
}

/* What it tells of an end can be: what it gives back has not begun, and nothing that ran
 * there began before it was asked for (clocks of two hosts differ by little). */
static bool can_be(const trp_driver *d, const struct trp_executor_record *x,
                   const struct trp_end *end)
{
    struct trp_attempt_view a;
    int64_t age = d->now - x->requested;
    return is_its_own(d, x, end->attempt, &a) &&
           (end->status != TRP_END_RECALLED || a.queued) &&
           end->duration_ns <= age + age / 8 + TRP_SECOND;
}

static int on_ends(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                   size_t size)
{
    struct trp_view v;
    struct trp_end end;
    uint32_t count;
    int rc = trp_ends_open(data, size, &v, &count);
    struct trp_event ev = {.kind = TRP_EVENT_TASK_ENDED};
    char why[TRP_ERROR_TEXT];
    while (rc == 0 && (rc = trp_ends_next(&v, &end)) > 0) {
        check_end(d, end.attempt, &end, why, sizeof why);
        ev.ended.attempt = end.attempt;
        ev.ended.status = end.status;
        ev.ended.code = end.code;
        ev.ended.duration_ns = end.duration_ns;
        ev.ended.records = end.records_in + end.data.read_records;
        if (!can_be(d, x, &end) || !trp_driver_take_outputs(d, &end, &ev.ended))
            return TRP_EPROTO;
        ev.ended.result_bytes = trp_end_result_size(&end);
        d->ended = &end;
        x->ends++;
        trp_driver_step(d, &ev);
        d->ended = NULL;
        trp_driver_outputs_done(&ev.ended);
        rc = 0;
    }
    return rc;
}

static int on_sync(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                   size_t size)
{
    struct trp_sync s;
    struct trp_attempt_view a;
    struct trp_event ev = {.kind = TRP_EVENT_SYNC};
    int rc = trp_sync_get(data, size, &s);
    if (rc == 0 && !is_its_own(d, x, s.attempt, &a))
        rc = TRP_EPROTO;
    if (rc < 0)
        return rc;
    if (s.kind == TRP_SYNC_COPY)
        return trp_driver_on_copy(d, x, &s);
    ev.sync.attempt = s.attempt;
    ev.sync.epoch = s.epoch;
    ev.sync.kind = s.kind;
    ev.sync.data = s.message;
    ev.sync.size = s.size;
    trp_driver_step(d, &ev);
    return 0;
}

static int on_records(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                      size_t size)
{
    struct trp_view v;
    struct trp_event ev = {.kind = TRP_EVENT_TASK_PROGRESS};
    (void)x;
    if (trp_records_open(data, size, &v) < 0)
        return TRP_EPROTO;
    while (trp_records_next(&v, &ev.progress.attempt, &ev.progress.records))
        trp_driver_step(d, &ev);
    return 0;
}

static const struct {
    enum trp_message_kind kind;
    const char *about;
    int (*take)(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                size_t size);
} messages[] = {
    {TRP_MSG_ENDS,     "tasks that ended",  on_ends               },
    {TRP_MSG_SYNC,     "a task that waits", on_sync               },
    {TRP_MSG_RECORDS,  "tasks that run",    on_records            },
    {TRP_MSG_LOCATION, "its map outputs",   trp_driver_on_location},
    {TRP_MSG_MOVED,    "moved map outputs", trp_driver_on_moved   },
    {TRP_MSG_BLOCKS,   "kept partitions",   trp_driver_on_blocks  },
};

void trp_driver_on_message(void *context, uint32_t peer, const uint8_t *data,
                           size_t size)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, peer);
    const char *about = "nothing that is known";
    int rc = TRP_EPROTO;
    if (!x || !(x->state & TRP_RECORD_JOINED))
        return;
    d->now = trp_clock_ns();
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].kind == trp_message_kind_of(data, size)) {
            about = messages[i].about;
            rc = messages[i].take(d, x, data, size);
            break;
        }
    if (rc == TRP_ENOMEM)
        trp_perform_out_of_memory(d);
    else if (rc < 0)
        trp_record_give_up(d, x, about);
}
