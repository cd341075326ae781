/*
 * The queue of actions: one growing array, handed out from its head and started again
 * when it is empty. Grants and texts of queued actions live beside it until then, so an
 * action stays valid whatever happens to the attempt or stage it speaks of.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

/* When all were handed out: what they pointed to goes. */
static void start_again(struct trp_action_queue *q)
{
    if (q->head < q->n || !q->n)
        return;
    q->n = q->head = q->ngrants = 0;
    for (uint32_t i = 0; i < q->nkept; i++)
        free(q->kept[i]);
    q->nkept = 0;
}

struct trp_action *trp_action_add(struct trp_engine *e, enum trp_action_kind kind)
{
    static struct trp_action scratch;
    struct trp_action_queue *q = &e->actions;
    start_again(q);
    if (!trp_array_room((void **)&q->v, &q->cap, (uint64_t)q->n + 1, sizeof(*q->v))) {
        e->out_of_memory = true;
        return &scratch;
    }
    struct trp_action *a = &q->v[q->n++];
    a->kind = kind;
    return a;
}

void *trp_action_bytes(struct trp_engine *e, size_t size)
{
    struct trp_action_queue *q = &e->actions;
    void *bytes = NULL;
    start_again(q);
    if (trp_array_room((void **)&q->kept, &q->kept_cap, (uint64_t)q->nkept + 1,
                       sizeof(*q->kept)))
        bytes = malloc(size ? size : 1);
    if (!bytes) {
        e->out_of_memory = true;
        return NULL;
    }
    return q->kept[q->nkept++] = bytes;
}

const char *trp_action_text(struct trp_engine *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n >= 0 ? trp_action_bytes(e, (size_t)n + 1) : NULL;
    if (!text)
        return "";
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

void trp_action_launch(struct trp_engine *e, const struct trp_attempt *a, uint32_t slot)
{
    struct trp_action *act = trp_action_add(e, TRP_ACTION_LAUNCH);
    struct trp_action_queue *q = &e->actions;
    act->launch.attempt = trp_attempt_id_of(e, slot);
    act->launch.stage = a->set->stage->id;
    act->launch.task = a->task;
    act->launch.number = a->number;
    act->launch.executor.n = a->executor;
    act->launch.level = a->level;
    act->launch.queued = a->state == TRP_ATTEMPT_QUEUED;
    act->launch.speculative = a->flags & TRP_ATTEMPT_COPY;
    act->launch.stage_attempt = a->set->number;
    act->launch.grants = NULL;
    act->launch.ngrants = a->ngrants;
    if (!a->ngrants)
        return;
    if (!trp_array_room((void **)&q->grants, &q->grants_cap,
                        (uint64_t)q->ngrants + a->ngrants, sizeof(*q->grants))) {
        e->out_of_memory = true;
        act->launch.ngrants = 0;
        return;
    }
    /* An offset for now: the array may still move. */
    act->launch.grants = (const struct trp_grant *)(uintptr_t)q->ngrants;
    memcpy(q->grants + q->ngrants, a->grants, a->ngrants * sizeof(*q->grants));
    q->ngrants += a->ngrants;
}

const struct trp_action *trp_engine_next(trp_engine *e)
{
    struct trp_action_queue *q = &e->actions;
    if (q->head == q->n)
        return NULL;
    struct trp_action *a = &q->v[q->head++];
    if (a->kind == TRP_ACTION_LAUNCH && a->launch.ngrants)
        a->launch.grants = q->grants + (uintptr_t)a->launch.grants;
    return a;
}

void trp_actions_free(struct trp_action_queue *q)
{
    q->head = q->n;
    start_again(q);
    free(q->v);
    free(q->grants);
    free(q->kept);
}
