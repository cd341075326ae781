/*
 * Who holds idle executors that it cannot use before another one comes, and waits for
 * that one behind somebody who waits for the room of these: each would wait for the
 * other, for the cluster serves first come, first served. Such a class is one whose
 * barrier stage lacks executors, or whose tasks are excluded on all that it has.
 *
 * It gives way: the idle ones go, and are asked for anew, behind the other. Requests
 * that wait already are behind the other as they are. Executors are numbered as they are
 * requested, so numbers tell who was before whom.
 *
 * - What was requested before the other may have the room that the other waits for: it
 *   goes after dynamicAllocation.schedulerBacklogTimeout.
 * - What was requested later got room that the other could not have then, and may have
 *   by now: an additional job has come for it, or could be had. It goes, with all that is
 *   idle, when one has been idle for dynamicAllocation.executorIdleTimeout. The next time
 *   that takes twice as long, until a stage of the class has ended: else two classes
 *   could exchange executors for ever.
 *
 * Whether a gang waits or runs is not known: one that runs is given way to in vain.
 */
#include "core/base/time.h"
#include "core/engine_state.h"

static bool holds_in_vain(const struct trp_engine *e, const struct trp_class *c)
{
    return c->idle.n && c->first && !c->never && c->granted < c->requested.n &&
           (c->live < trp_demand_least(e, c) || trp_exclusion_any_stuck(e, c));
}

/* The first request of a class that waits, and whether others wait before it. */
struct queue {
    const struct trp_executor *own; /* NULL: none waits */
    bool others;
    uint32_t last; /* who has a lower number was requested before one of them */
};

static const struct trp_executor *
last_waiting(const struct trp_engine *e, const struct trp_class *c, uint32_t below)
{
    const struct trp_executor *x;
    while ((x = trp_executor_last(e, &c->requested, &below)) && !trp_executor_waits(x))
        ;
    return x;
}

static struct queue look_at_queue(const struct trp_engine *e, const struct trp_class *c)
{
    struct queue q = {.own = trp_executor_first_waiting(e, c)};
    for (uint32_t i = 0; q.own && i < e->nclasses; i++) {
        const struct trp_executor *x = e->classes[i] && e->classes[i] != c
                                           ? last_waiting(e, e->classes[i], q.own->id.n)
                                           : NULL;
        q.others |= x != NULL;
        if (x && x->id.n > q.last)
            q.last = x->id.n;
    }
    for (const struct trp_task_set *s = e->gangs && q.own ? e->sets : NULL; s;
         s = trp_set_after(e, s)) {
        if (s->class || !s->running || s->requested_before > q.own->id.n)
            continue;
        q.others = true;
        if (s->requested_before > q.last)
            q.last = s->requested_before;
    }
    return q;
}

/* Has it been idle for so long, and the request waited? */
static bool is_due(struct trp_engine *e, const struct trp_executor *x,
                   const struct trp_executor *request, int64_t so_long)
{
    int64_t since =
        x->idle.since > request->asked_ns ? x->idle.since : request->asked_ns;
    int64_t due = trp_time_after(since, so_long);
    if (e->now < due)
        e->retry_due = trp_earlier(e->retry_due, due);
    return e->now >= due;
}

static bool is_any_due(struct trp_engine *e, const struct trp_class *c,
                       const struct trp_executor *request, int64_t so_long)
{
    bool any = false;
    const struct trp_executor *x;
    for (uint32_t i = 0; (x = trp_executor_next(e, &c->idle, &i));)
        any |= is_due(e, x, request, so_long);
    return any;
}

/* Idle ones with a number below go. */
static void let_go(struct trp_engine *e, const struct trp_class *c, uint32_t below,
                   const struct trp_executor *request, int64_t so_long)
{
    struct trp_executor *x;
    for (uint32_t i = 0; (x = trp_executor_next(e, &c->idle, &i)) && x->id.n < below;) {
        if (!is_due(e, x, request, so_long))
            continue;
        trp_wanted_release(e, x);
        e->any_dirty = true;
    }
}

static int64_t late_after(const struct trp_engine *e, const struct trp_class *c)
{
    int64_t so_long = e->config.idle_timeout_ns; /* may be 0 */
    if (so_long < e->config.backlog_timeout_ns)
        so_long = e->config.backlog_timeout_ns;
    for (uint32_t i = 0; i < c->late; i++)
        so_long = trp_time_after(so_long, so_long);
    return so_long;
}

static void give_way(struct trp_engine *e, struct trp_class *c)
{
    const struct queue q = look_at_queue(e, c);
    if (!q.own || !q.others)
        return;
    if (is_any_due(e, c, q.own, late_after(e, c))) {
        c->late++;
        let_go(e, c, UINT32_MAX, q.own, 0);
    } else {
        let_go(e, c, q.last, q.own, e->config.backlog_timeout_ns);
    }
}

void trp_give_way(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nclasses && !e->draining; i++)
        if (e->classes[i] && holds_in_vain(e, e->classes[i]))
            give_way(e, e->classes[i]);
}
