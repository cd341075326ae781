/*
 * The queue of actions: one growing array, handed out from its head and started again
 * when it is empty. Grants and texts of queued actions live beside it until then, so an
 * action stays valid whatever happens to the attempt or stage it speaks of.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

/* What actions pointed to goes when all were handed out. */
TRP_RARE static void free_kept(struct trp_action_queue *q)
{
    for (uint32_t i = 0; i < q->nkept; i++)
        free(q->kept[i]);
    q->nkept = 0;
}

TRP_RARE static bool grow(struct trp_action_queue *q)
{
    size_t n = (size_t)(q->end - q->v), cap = n ? 2 * n : 64;
    struct trp_action *v = malloc(cap * sizeof(*v));
    if (!v)
        return false;
    if (n)
        memcpy(v, q->v, n * sizeof(*v));
    q->head = v + (q->head - q->v);
    q->end = v + n;
    q->limit = v + cap;
    free(q->v);
    q->v = v;
    return true;
}

struct trp_action *trp_action_add(struct trp_engine *e, enum trp_action_kind kind)
{
    static struct trp_action scratch;
    struct trp_action_queue *q = &e->actions;
    if (q->end == q->limit && !grow(q)) {
        e->out_of_memory = true;
        return &scratch;
    }
    q->end->kind = kind;
    return q->end++;
}

void *trp_action_bytes(struct trp_engine *e, size_t size)
{
    struct trp_action_queue *q = &e->actions;
    void *bytes = NULL;
    if (TRP_ARRAY_GROW(q->kept, q->nkept, q->kept_cap))
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
    act->launch.stage_attempt = a->set->stage_attempt;
    act->launch.grants = NULL;
    act->launch.ngrants = a->ngrants;
    if (!a->ngrants)
        return;
    if (!TRP_ARRAY_RESERVE(q->grants, q->grants_cap,
                           (uint64_t)q->ngrants + a->ngrants)) {
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
    if (q->head == q->end) {
        q->head = q->end = q->v;
        q->ngrants = 0;
        if (q->nkept)
            free_kept(q);
        return NULL;
    }
    struct trp_action *a = q->head++;
    if (a->kind == TRP_ACTION_LAUNCH && a->launch.ngrants)
        a->launch.grants = q->grants + (uintptr_t)a->launch.grants;
    return a;
}

void trp_actions_free(struct trp_action_queue *q)
{
    free_kept(q);
    free(q->v);
    free(q->grants);
    free(q->kept);
}
