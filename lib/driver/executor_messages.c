/*
 * What executors and gangs tell of the attempts that they run.
 */
#include <string.h>

#include "driver/driver_state.h"
#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/map_outputs.h"
#include "driver/moving.h"
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
    uint32_t task;
    trp_stage_id id = {TRP_NONE};
    if (end->status == TRP_END_SUCCESS)
        id = trp_engine_stage_of(d->engine, attempt, &task);
    const struct trp_driver_stage *s =
        id.n == TRP_NONE ? NULL : trp_driver_stage_of(d, id);
    const struct trp_work *w = s ? &s->job->work : NULL;
    if (!w || !w->attempt_check ||
        w->attempt_check(w->context, s->index, task, why, size))
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

static void on_ends(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
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
        if (!trp_driver_take_outputs(d, &end, &ev.ended)) {
            rc = TRP_EPROTO;
            break;
        }
        ev.ended.result_bytes = trp_end_result_size(&end);
        d->ended = &end;
        x->ends++;
        trp_driver_step(d, &ev);
        d->ended = NULL;
        trp_driver_outputs_done(&ev.ended);
        rc = 0;
    }
    if (rc < 0)
        trp_driver_log(d, "error", "a garbled message about ended tasks");
}

static void on_sync(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                    size_t size)
{
    struct trp_sync s;
    struct trp_event ev = {.kind = TRP_EVENT_SYNC};
    int rc = trp_sync_get(data, size, &s);
    const bool copy = rc == 0 && s.kind == TRP_SYNC_COPY;
    if (copy)
        rc = trp_driver_on_copy(d, x, &s);
    if (rc < 0)
        trp_driver_log(d, "error", "a garbled message of a waiting task");
    if (rc < 0 || copy)
        return;
    ev.sync.attempt = s.attempt;
    ev.sync.epoch = s.epoch;
    ev.sync.kind = s.kind;
    ev.sync.data = s.message;
    ev.sync.size = s.size;
    trp_driver_step(d, &ev);
}

static void on_records(trp_driver *d, const uint8_t *data, size_t size)
{
    struct trp_view v;
    struct trp_event ev = {.kind = TRP_EVENT_TASK_PROGRESS};
    if (trp_records_open(data, size, &v) < 0) {
        trp_driver_log(d, "error", "a garbled message about running tasks");
        return;
    }
    while (trp_records_next(&v, &ev.progress.attempt, &ev.progress.records))
        trp_driver_step(d, &ev);
}

static void on_blocks(trp_driver *d, struct trp_executor_record *x, const uint8_t *data,
                      size_t size)
{
    if (trp_driver_on_blocks(d, x, data, size) < 0)
        trp_driver_log(d, "error", "a garbled message about kept partitions");
}

void trp_driver_on_message(void *context, uint32_t peer, const uint8_t *data,
                           size_t size)
{
    trp_driver *d = context;
    struct trp_executor_record *x = trp_record_of(d, peer);
    if (!x)
        return;
    d->now = trp_clock_ns();
    if (trp_message_kind_of(data, size) == TRP_MSG_ENDS)
        on_ends(d, x, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_SYNC)
        on_sync(d, x, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_RECORDS)
        on_records(d, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_LOCATION)
        trp_driver_on_location(d, x, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_MOVED)
        trp_driver_on_moved(d, x, data, size);
    else if (trp_message_kind_of(data, size) == TRP_MSG_BLOCKS)
        on_blocks(d, x, data, size);
    else
        trp_driver_log(d, "error", "a message of unknown kind was dropped");
}
