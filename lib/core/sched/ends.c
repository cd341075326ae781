/*
 * Executors live no longer than their allocation, which ends at a known time, and the
 * run ends with the driver's allocation. A task that would not finish before that time
 * is not started. How long a task will take is estimated by the median of the tasks of
 * its stage that succeeded; before the first has succeeded there is no estimate, and
 * nothing is held back.
 *
 * An executor that runs nothing, and was refused a task because of its own end, is
 * decommissioned, so that another can replace it. The driver is told why, so that the
 * replacement does not come from the same allocation. An attempt that is killed by the
 * end of its allocation counts no failure the first time, since the allocation may have
 * been old. From the second time of its task on it counts, or a task that takes longer
 * than any allocation would be repeated for ever. The end of the run holds for all
 * executors: if nothing runs, and no pending task would finish before it, the run is
 * out of time, which is reported once.
 *
 * Cost: one comparison an offer if no end is known. Else a heap of durations per set
 * (speculation.h), O(log tasks) a success; refusals are looked into once a step,
 * O(sets).
 */
#include "core/engine_state.h"

void trp_ends_event(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->ends.executor);
    if (!x && ev->ends.executor.n != TRP_NONE) {
        e->ignored++;
        return;
    }
    if (x) {
        x->ends_ns = ev->ends.at_ns;
        x->outlived_ns = 0;
    } else {
        e->ends_ns = ev->ends.at_ns;
    }
    e->has_ends = true;
    e->told_out_of_time = false;
    e->offer_all = true; /* it may be later than it was */
}

int64_t trp_ends_estimate(const struct trp_task_set *s)
{
    return s->durations_for_end ? trp_speculation_median(s->durations_for_end) : 0;
}

void trp_ends_succeeded(struct trp_engine *e, struct trp_task_set *s,
                        const struct trp_task_end *end)
{
    int64_t before = trp_ends_estimate(s);
    if (!s->durations_for_end)
        s->durations_for_end = trp_speculation_new();
    if (!s->durations_for_end ||
        trp_speculation_succeeded(s->durations_for_end, end->duration_ns, 0) < 0)
        e->out_of_memory = true;
    if (s->refused_by_end && trp_ends_estimate(s) < before) {
        s->refused_by_end = false;
        e->offer_all = true; /* executors that were refused a task may get it */
    }
}

static bool outlives(const struct trp_engine *e, const struct trp_task_set *s,
                     int64_t ends_ns)
{
    return ends_ns != INT64_MAX && trp_ends_estimate(s) > ends_ns - e->now;
}

bool trp_ends_outlive_run(const struct trp_engine *e, const struct trp_task_set *s)
{
    return e->has_ends && outlives(e, s, e->ends_ns);
}

bool trp_ends_outlive(const struct trp_engine *e, const struct trp_task_set *s,
                      const struct trp_executor *x)
{
    return outlives(e, s, e->ends_ns) || outlives(e, s, x->ends_ns);
}

bool trp_ends_refuse(struct trp_engine *e, struct trp_task_set *s,
                     struct trp_executor *x)
{
    bool run = outlives(e, s, e->ends_ns), own = outlives(e, s, x->ends_ns);
    if (own && !trp_stack_push(&e->outlived, x->id.n))
        e->out_of_memory = true;
    if (own && !run && (!x->outlived_ns || trp_ends_estimate(s) < x->outlived_ns))
        x->outlived_ns = trp_ends_estimate(s);
    if (!run && !own)
        return false;
    s->refused_by_end = e->refused_by_end = true;
    return true;
}

/* The first set with pending tasks, when nothing can be started before the end. */
static const struct trp_task_set *out_of_time(const struct trp_engine *e)
{
    const struct trp_task_set *first = NULL;
    if (e->gangs || e->launches != e->ends || e->draining)
        return NULL;
    for (const struct trp_task_set *s = e->sets; s; s = trp_set_after(e, s)) {
        if (s->zombie || !s->pending)
            continue;
        if (!trp_ends_outlive_run(e, s))
            return NULL;
        first = !first || s->arrival < first->arrival ? s : first;
    }
    return first;
}

/* Not of the run's own end, behind which no executor lives longer. */
static void tell_outlived(struct trp_engine *e, const struct trp_executor *x)
{
    if (!x->outlived_ns)
        return;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_OUTLIVED);
    act->outlived.executor = x->id;
    act->outlived.takes_ns = x->outlived_ns;
}

void trp_ends_settle(struct trp_engine *e)
{
    e->refused_by_end = false;
    while (e->outlived.n) {
        struct trp_executor *x = e->executors[e->outlived.v[--e->outlived.n]];
        if (x && trp_executor_is_idle(x) && !e->sched_alone) {
            tell_outlived(e, x);
            trp_executor_decommission(e, x);
            e->any_dirty = true;
        }
    }
    const struct trp_task_set *s = e->told_out_of_time ? NULL : out_of_time(e);
    if (!s || e->sched_alone)
        return;
    e->told_out_of_time = true;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_OUT_OF_TIME);
    act->out_of_time.stage = s->stage->id;
    act->out_of_time.takes_ns = trp_ends_estimate(s);
    act->out_of_time.left_ns = e->ends_ns > e->now ? e->ends_ns - e->now : 0;
}
