/*
 * Who holds idle executors that it cannot use before another one comes, and waits for
 * that one behind somebody who waits for the room of these: each would wait for the
 * other, for the cluster serves first come, first served. Such a class is one whose
 * barrier stage lacks executors, or whose tasks are excluded on all that it has.
 *
 * It gives way: idle executors that were requested before the other one waited go, with
 * the requests for the rest, so that all are asked for anew, behind the other. Where
 * room has been found for an executor though the other waited before it, the other did
 * not want that room, and mostly does not now (it may: by now an additional job could be
 * had for it). So such a one goes only after dynamicAllocation.executorIdleTimeout, and
 * not for a gang: whether that waits or runs is not known, it may be given way to in
 * vain, once.
 *
 * Requests that may have an additional job stay: it may be in the queue already.
 */
#include "core/base/time.h"
#include "core/engine_state.h"

static bool is_stuck(const struct trp_engine *e, const struct trp_class *c)
{
    const struct trp_task_set *s = e->stuck;
    while (s && s->class != c)
        s = s->stuck_next;
    return s;
}

static bool holds_in_vain(const struct trp_engine *e, const struct trp_class *c)
{
    return c->idle && c->first && !c->never && c->granted < c->requested &&
           (c->live < trp_demand_least(e, c) || is_stuck(e, c));
}

static bool waits(const struct trp_executor *x)
{
    return x && x->state == TRP_EXECUTOR_REQUESTED && !x->granted && !x->ahead;
}

/* The first request of the class that has no room; NULL: all have. */
static const struct trp_executor *first_waiting(const struct trp_engine *e,
                                                const struct trp_class *c)
{
    uint32_t i = 0;
    while (i < e->nexecutors &&
           !(waits(e->executors[i]) && e->executors[i]->class == c->profile.n))
        i++;
    return i < e->nexecutors ? e->executors[i] : NULL;
}

/* When the last gang began to wait that is before the request; INT64_MIN: none is. */
static int64_t last_gang(const struct trp_engine *e, const struct trp_executor *before)
{
    int64_t last = INT64_MIN;
    for (const struct trp_task_set *s = e->gangs ? e->sets : NULL; s; s = s->all_next) {
        if (s->class || !s->running)
            continue;
        int64_t asked = e->attempts.v[s->tasks[0].attempt].launched_ns;
        if (asked > last && asked <= before->asked_ns)
            last = asked;
    }
    return last;
}

static void withdraw(struct trp_engine *e, const struct trp_class *c)
{
    for (uint32_t i = e->nexecutors; i-- > 0;) {
        struct trp_executor *x = e->executors[i];
        if (waits(x) && x->class == c->profile.n && !(x->may_add && c->additional))
            trp_wanted_release(e, x);
    }
}

/* Has it been idle for so long, and the request waited? */
static bool is_due(struct trp_engine *e, const struct trp_executor *x, int64_t asked,
                   int64_t so_long)
{
    int64_t since = x->idle.since > asked ? x->idle.since : asked;
    int64_t due = trp_time_after(since, so_long);
    if (e->now < due && due < e->retry_due)
        e->retry_due = due;
    return e->now >= due;
}

/* Does a request of another class wait before this one? */
static bool others_wait(const struct trp_engine *e, const struct trp_executor *first)
{
    for (uint32_t i = 0; i < first->id.n; i++)
        if (waits(e->executors[i]) && e->executors[i]->class != first->class)
            return true;
    return false;
}

/* Executors are numbered as they are requested: behind `first` nobody is of interest. */
static void look_at(struct trp_engine *e, const struct trp_class *c)
{
    const struct trp_executor *first = first_waiting(e, c);
    const int64_t gang = first ? last_gang(e, first) : INT64_MIN;
    const bool before = first && others_wait(e, first);
    bool between = false, any = false;
    for (uint32_t i = first ? first->id.n : 0; i-- > 0;) {
        struct trp_executor *x = e->executors[i];
        between |= waits(x) && x->class != c->profile.n;
        if (!x || x->class != c->profile.n || !trp_executor_is_idle(x))
            continue;
        bool soon = between || gang >= x->asked_ns;
        if (!(soon || before) ||
            !is_due(e, x, first->asked_ns,
                    soon ? e->config.backlog_timeout_ns : e->config.idle_timeout_ns))
            continue;
        trp_wanted_release(e, x);
        any = true;
    }
    if (any)
        withdraw(e, c);
    e->any_dirty |= any;
}

void trp_give_way(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nclasses && !e->draining; i++)
        if (e->classes[i] && holds_in_vain(e, e->classes[i]))
            look_at(e, e->classes[i]);
}
