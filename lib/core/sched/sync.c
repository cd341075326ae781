/*
 * What tasks ask and wait for. Commits are commits.c's.
 *
 * barrier and allGather of barrier stages (semantics, section 13): a call comes as an
 * event with its attempt, goes to the coordinator of barrier_sync.h, and each answer
 * leaves as an action. Calls of attempts that are not (any more) running tasks of the
 * stage's present attempt are ignored: they are being killed.
 */
#include <string.h>

#include "core/engine_state.h"

/* The messages, copied once for all answers that bring them. */
static const struct trp_sync_message *keep_messages(struct trp_engine *e,
                                                    const struct trp_sync_answer *a)
{
    size_t size = a->nmessages * sizeof(*a->messages);
    for (uint32_t i = 0; i < a->nmessages; i++)
        size += a->messages[i].size;
    if (!size)
        return NULL;
    struct trp_sync_message *m = trp_action_bytes(e, size);
    if (!m)
        return NULL;
    uint8_t *at = (uint8_t *)(m + a->nmessages);
    for (uint32_t i = 0; i < a->nmessages; i++) {
        m[i] = (struct trp_sync_message){at, a->messages[i].size};
        if (m[i].size)
            memcpy(at, a->messages[i].data, m[i].size);
        at += m[i].size;
    }
    return m;
}

static void answer(struct trp_engine *e, const struct trp_sync_answer *a)
{
    if (!a->n)
        return;
    const struct trp_sync_message *messages = keep_messages(e, a);
    const char *text = *a->text ? trp_action_text(e, "%s", a->text) : "";
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t slot = trp_attempt_find(e, (trp_attempt_id){a->who[i]});
        if (slot == TRP_NONE)
            continue;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_SYNCED);
        act->synced.attempt.n = a->who[i];
        act->synced.executor.n = e->attempts.v[slot].executor;
        act->synced.epoch = a->epoch;
        act->synced.code = a->code;
        act->synced.text = text;
        act->synced.messages = messages;
        act->synced.nmessages = messages ? a->nmessages : 0;
    }
}

static struct trp_barrier_sync *coordinator(struct trp_engine *e)
{
    if (!e->sync)
        e->sync = trp_barrier_sync_new(e->config.barrier.sync_timeout_ns);
    e->out_of_memory |= !e->sync;
    return e->sync;
}

void trp_sync_called(struct trp_engine *e, const struct trp_event *ev)
{
    uint32_t slot = trp_attempt_find(e, ev->sync.attempt);
    const struct trp_attempt *a = slot == TRP_NONE ? NULL : &e->attempts.v[slot];
    if (a &&
        ev->sync.kind == TRP_SYNC_COMMIT) { /* queued: the end before it comes later */
        trp_commit_asked(e, slot, ev->sync.epoch);
        return;
    }
    if (!a || a->state != TRP_ATTEMPT_RUNNING || a->set->zombie || !coordinator(e)) {
        e->ignored++;
        return;
    }
    struct trp_sync_answer got = {.text = ""};
    struct trp_sync_call call = {
        .stage = a->set->stage->id.n,
        .attempt = a->set->stage_attempt,
        .epoch = ev->sync.epoch,
        .ntasks = a->set->ntasks,
        .partition = a->task,
        .kind = ev->sync.kind,
        .who = ev->sync.attempt.n,
        .message = {ev->sync.data, ev->sync.size}
    };
    trp_error err = {.text = ""};
    if (!a->set->barrier) {
        got = (struct trp_sync_answer){
            .who = &call.who,
            .n = 1,
            .epoch = call.epoch,
            .code = TRP_ESTATE,
            .text = "its stage is no barrier stage (trp_barrier)"};
    } else if (trp_barrier_sync_call(e->sync, e->now, &call, &got, &err) < 0) {
        got = (struct trp_sync_answer){.who = &call.who,
                                       .n = 1,
                                       .epoch = call.epoch,
                                       .code = err.code,
                                       .text = err.text};
    }
    answer(e, &got);
}

void trp_sync_set_over(struct trp_engine *e, const struct trp_task_set *s)
{
    if (e->sync && s->barrier)
        trp_barrier_sync_end(e->sync, s->stage->id.n, s->stage_attempt);
}

int64_t trp_sync_due(const struct trp_engine *e)
{
    return e->sync ? trp_barrier_sync_next_timer(e->sync) : INT64_MAX;
}

void trp_sync_time(struct trp_engine *e)
{
    struct trp_sync_answer got = {.n = 1};
    while (e->sync && got.n) {
        trp_barrier_sync_expire(e->sync, e->now, &got);
        answer(e, &got);
    }
}
