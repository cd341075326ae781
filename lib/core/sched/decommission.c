/*
 * Executors that are released in good order. Semantics, sections 10 and 16.
 *
 * A decommissioned executor gets nothing new and makes no locality level. What runs
 * there continues, what is queued there is recalled, and when nothing runs any more it
 * is released. With executor.decommission.forceKillTimeout it is released after that
 * time even if attempts still run; these end as lost, and count as no failure. The time
 * is the same for all executors, so those that wait for it are a list, the earliest
 * first, and only its head is looked at.
 *
 * Executors of a fixed set are not released; scenarios are told only of a release by
 * force.
 */
#include <utlist.h>

#include "core/engine_state.h"

/* ---- release ---- */

void trp_executor_release(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_action *act = trp_action_add(e, TRP_ACTION_RELEASE_EXECUTOR);
    act->executor.executor = x->id;
    act->executor.profile.n = x->class;
    trp_executor_unforce(e, x);
    if (!e->sched_alone)
        trp_executor_retire(e, x);
}

void trp_executor_drained(struct trp_engine *e, struct trp_executor *x)
{
    if (x->state == TRP_EXECUTOR_DECOMMISSIONED && !x->nrunning && !x->nqueued &&
        !e->config.fixed)
        trp_executor_release(e, x);
}

/* ---- those that are forced to go in the end ---- */

static void force_later(struct trp_engine *e, struct trp_executor *x)
{
    if (!e->config.decommission.force_kill_ns || (e->config.fixed && !e->sched_alone))
        return;
    x->forced = true;
    DL_APPEND2(e->force_first, x, force_prev, force_next);
}

void trp_executor_unforce(struct trp_engine *e, struct trp_executor *x)
{
    if (!x->forced)
        return;
    DL_DELETE2(e->force_first, x, force_prev, force_next);
    x->forced = false;
}

int64_t trp_decommission_due(const struct trp_engine *e)
{
    int64_t due;
    if (!e->force_first ||
        __builtin_add_overflow(e->force_first->decommissioned_ns,
                               e->config.decommission.force_kill_ns, &due))
        return INT64_MAX;
    return due;
}

void trp_decommission_time(struct trp_engine *e)
{
    while (e->force_first && trp_decommission_due(e) <= e->now) {
        trp_executor_release(e, e->force_first);
        e->any_dirty = true;
    }
}

/* ---- decommission ---- */

void trp_executor_decommission(struct trp_engine *e, struct trp_executor *x)
{
    if (x->state != TRP_EXECUTOR_LIVE)
        return;
    trp_attempts_recall(e, x);
    trp_executor_drain(e, x);
    trp_dag_executor_decommissioned(e, x->id.n, false);
    e->offer_all |= e->preferring != NULL; /* nobody waits for it any more */
    force_later(e, x);
    trp_executor_drained(e, x);
}
