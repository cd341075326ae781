/*
 * Stages an executor knows, and queues of tasks.
 *
 * A stage's function is opened once, when its description comes; that it cannot be is
 * told by each of its tasks, since only a task has an answer to send. A forgotten stage
 * stays until its last task has ended: a killed function may take its time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "executor/executor_internal.h"

static void stage_free(trp_executor *e, struct trp_executor_stage *s)
{
    if (e->last_stage == s)
        e->last_stage = NULL;
    if (s->function)
        e->runner->stage_close(s->function);
    trp_places_free(&s->places);
    trp_stage_inputs_leave(s->inputs);
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
    trp_functions_prepare(e);
    if (e->runner)
        s->function =
            e->runner->stage_open(s->message.body, s->message.body_size, &err);
    if (!s->function) {
        s->failure = strdup(err.text[0] ? err.text : "its functions cannot be found");
        return s->failure ? TRP_OK : TRP_ENOMEM;
    }
    s->estimate = estimate_of(e, e->runner->stage_key(s->function));
    trp_block_store_pool(e->blocks, s->message.memory * e->shape.slots);
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
    if (!e->adopts)
        e->adopts = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    int r = trp_spawner_stage(e->spawner, message, size);
    if (r == TRP_ESYSTEM)
        trp_executor_lose_spawner(e);
    return r == TRP_ESYSTEM ? TRP_OK : r;
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

int trp_executor_inputs(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_stage_inputs *in;
    int r = trp_stage_inputs_get(message, size, &in);
    if (r < 0)
        return r;
    struct trp_executor_stage *s = trp_executor_stage_find(e, in->stage.n);
    if (!s) {
        trp_stage_inputs_free(in);
        return TRP_EPROTO;
    }
    trp_stage_inputs_leave(s->inputs); /* tasks that run keep what they began with */
    s->inputs = in;
    return TRP_OK;
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
    HASH_ITER(hh, e->stages, s, next) {
        HASH_DEL(e->stages, s);
        stage_free(e, s);
    }
    struct trp_estimate *m, *other;
    HASH_ITER(hh, e->estimates, m, other) {
        HASH_DEL(e->estimates, m);
        free(m);
    }
}
