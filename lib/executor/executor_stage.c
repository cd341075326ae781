/*
 * Stages an executor knows, and queues of tasks.
 *
 * A stage's function is opened once, when its description comes; that it cannot be is
 * told by each of its tasks, since only a task has an answer to send. A forgotten stage
 * stays until its last task has ended: a killed function may take its time.
 *
 * Queues are rings of small entries that own at most two things (a share in the bytes
 * of a message, a text of resources), moved from one place to the next by copying.
 */
#include <stdlib.h>
#include <string.h>

#include "executor/executor_internal.h"

bool trp_task_ring_push(struct trp_task_ring *r, const struct trp_task_entry *t)
{
    if (r->count == r->room) {
        uint32_t room = r->room ? 2 * r->room : 16;
        struct trp_task_entry *items = calloc(room, sizeof *items);
        if (!items)
            return false;
        for (uint32_t i = 0; i < r->count; i++)
            items[i] = r->items[(r->head + i) & (r->room - 1)];
        free(r->items);
        *r = (struct trp_task_ring){.items = items, .count = r->count, .room = room};
    }
    r->items[(r->head + r->count++) & (r->room - 1)] = *t;
    return true;
}

bool trp_task_ring_pop(struct trp_task_ring *r, struct trp_task_entry *ret)
{
    if (r->count == 0)
        return false;
    *ret = r->items[r->head];
    r->head = (r->head + 1) & (r->room - 1);
    r->count--;
    return true;
}

bool trp_task_ring_take(struct trp_task_ring *r, trp_attempt_id attempt,
                        struct trp_task_entry *ret)
{
    uint32_t mask = r->room - 1, i = r->count;
    while (i > 0 && r->items[(r->head + i - 1) & mask].attempt.n != attempt.n)
        i--;
    if (i == 0)
        return false;
    *ret = r->items[(r->head + i - 1) & mask];
    for (; i < r->count; i++)
        r->items[(r->head + i - 1) & mask] = r->items[(r->head + i) & mask];
    r->count--;
    return true;
}

void trp_task_ring_free(struct trp_task_ring *r)
{
    struct trp_task_entry t;
    while (trp_task_ring_pop(r, &t))
        trp_task_entry_free(&t);
    free(r->items);
    *r = (struct trp_task_ring){0};
}

void trp_task_entry_free(struct trp_task_entry *t)
{
    if (t->bytes && --t->bytes->users == 0)
        free(t->bytes);
    free(t->resources);
    t->bytes = NULL;
    t->resources = NULL;
}

/* ---- stages
 * --------------------------------------------------------------------------
 */

static void stage_free(trp_executor *e, struct trp_executor_stage *s)
{
    if (e->last_stage == s)
        e->last_stage = NULL;
    if (s->function)
        e->runner->stage_close(s->function);
    trp_task_ring_free(&s->queued);
    trp_task_ring_free(&s->vacant);
    trp_stage_message_free(&s->message);
    free(s->failure);
    free(s);
}

static struct trp_estimate *estimate_of(trp_executor *e, uint64_t key)
{
    struct trp_estimate *found;
    HASH_FIND(hh, e->estimates, &key, sizeof key, found);
    if (found)
        return found;
    found = calloc(1, sizeof *found);
    if (!found)
        return NULL;
    found->key = key;
    HASH_ADD(hh, e->estimates, key, sizeof key, found);
    return found;
}

static int open_function(trp_executor *e, struct trp_executor_stage *s)
{
    trp_error err = {0};
    if (trp_functions_prepare(e) < 0)
        return TRP_ESYSTEM;
    if (e->runner)
        s->function =
            e->runner->stage_open(s->message.body, s->message.body_size, &err);
    if (!s->function) {
        s->failure = strdup(err.text[0] ? err.text : "its functions cannot be found");
        return s->failure ? TRP_OK : TRP_ENOMEM;
    }
    s->estimate = estimate_of(e, e->runner->stage_key(s->function));
    return s->estimate ? TRP_OK : TRP_ENOMEM;
}

static int open_command(trp_executor *e, struct trp_executor_stage *s,
                        const uint8_t *message, size_t size)
{
    trp_error err = {0};
    if (trp_executor_need_spawner(e, &err) < 0) {
        s->failure = strdup(err.text);
        return s->failure ? TRP_OK : TRP_ENOMEM;
    }
    return trp_spawner_stage(e->spawner, message, size);
}

int trp_executor_stage_add(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_executor_stage *s = calloc(1, sizeof *s);
    if (!s)
        return TRP_ENOMEM;
    int r = trp_stage_message_get(message, size, &s->message);
    s->id = s->message.stage.n;
    if (r == TRP_OK && trp_executor_stage_find(e, s->id))
        r = TRP_EPROTO;
    if (r == TRP_OK)
        r = s->message.work == TRP_WORK_COMMAND ? open_command(e, s, message, size)
                                                : open_function(e, s);
    if (r == TRP_OK) {
        HASH_ADD(hh, e->stages, id, sizeof s->id, s);
        if (trp_executor_stage_find(e, s->id))
            return TRP_OK;
        r = TRP_ENOMEM;
    }
    stage_free(e, s);
    return r;
}

struct trp_executor_stage *trp_executor_stage_find(trp_executor *e, uint32_t id)
{
    if (!e->last_stage || e->last_stage->id != id)
        HASH_FIND(hh, e->stages, &id, sizeof id, e->last_stage);
    return e->last_stage;
}

void trp_executor_stage_forget(trp_executor *e, uint32_t id)
{
    struct trp_executor_stage *s = trp_executor_stage_find(e, id);
    if (!s)
        return;
    s->forgotten = true;
    if (s->message.work == TRP_WORK_COMMAND && e->spawner)
        trp_spawner_forget(e->spawner, s->message.stage);
    trp_executor_stage_settle(e, s);
}

void trp_executor_stage_settle(trp_executor *e, struct trp_executor_stage *s)
{
    if (!s->forgotten || s->running > 0)
        return;
    HASH_DEL(e->stages, s);
    stage_free(e, s);
}

void trp_executor_stages_free(trp_executor *e)
{
    struct trp_executor_stage *s, *next;
    HASH_ITER(hh, e->stages, s, next)
    {
        HASH_DEL(e->stages, s);
        stage_free(e, s);
    }
    struct trp_estimate *m, *other;
    HASH_ITER(hh, e->estimates, m, other)
    {
        HASH_DEL(e->estimates, m);
        free(m);
    }
}
