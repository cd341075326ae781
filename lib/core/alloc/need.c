/*
 * How many executors the tasks of a class can use, and how many it keeps besides.
 *
 *     work = sum over its running stages of ceil(open tasks / slots), within the
 * stage's, the profile's and the cluster's bounds                    (alloc.grow=need)
 *     work = its target, as far as tasks can use it (targets.h)      (alloc.grow=ramp)
 *     all  = work, or the minimum or initial number, and what stages that are not ready
 *            yet are to find (ahead.c)
 *
 * where open tasks are those that may run now or do (not those that wait for tasks of
 * their parents, whose executors could take the room that the parents need; a least
 * number of executors holds for a stage with such tasks only).
 */
#include "core/engine_state.h"

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- by tasks ---- */

static uint64_t wanted_by_bounded(const struct trp_task_set *s, uint32_t slots)
{
    uint64_t tasks = (uint64_t)s->pending + s->running + s->queued + s->copies;
    if (s->stage->max_running)
        tasks = smaller(tasks, s->stage->max_running);
    uint64_t n = divide_up(tasks, slots);
    if (tasks)
        n = larger(n, s->stage->min_executors);
    return s->stage->max_executors ? smaller(n, s->stage->max_executors) : n;
}

/* Sets of which every executor is excluded for some task: each needs one more than
 * there are. */
static uint32_t stuck_sets(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t n = 0;
    for (const struct trp_task_set *s = e->stuck; s; s = s->stuck_next)
        n += s->class == c;
    return n;
}

static uint64_t by_tasks(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    uint64_t want = divide_up(c->open, slots);
    for (const struct trp_task_set *s = c->bounded; s; s = s->bounded_next)
        want += wanted_by_bounded(s, slots);
    uint64_t more = e->stuck ? divide_up(stuck_sets(e, c), slots) : 0;
    if (more)
        want = larger(want, c->live + more);
    return larger(want, c->spread);
}

/* A copy cannot run where its task does: while one waits and all executors share a host
 * there is to be one more than there are or are needed (decision 10). Once: the next
 * may come to the same host. */
void trp_need_spread(const struct trp_engine *e, struct trp_class *c)
{
    if (!c->copies)
        c->spread = 0;
    else if (c->hosts == 1 && !c->spread)
        c->spread = larger(by_tasks(e, c), c->live) + 1;
}

/* ---- by targets ---- */

static uint64_t target(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t target = trp_targets_of(e->targets, c->profile.n);
    return c->bounded ? smaller(by_tasks(e, c), target) : target;
}

/* ---- both ---- */

uint32_t trp_need_least(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    return c->first && c->first->barrier ? (uint32_t)divide_up(c->first->ntasks, slots)
                                         : 0;
}

uint32_t trp_need_work(const struct trp_engine *e, const struct trp_class *c)
{
    uint64_t work =
        e->targets ? smaller(target(e, c), trp_targets_need(e->targets, c->profile.n))
                   : smaller(by_tasks(e, c), e->config.max_executors);
    work = larger(work, trp_need_least(e, c));
    return (uint32_t)smaller(work, c->fit);
}

/* ---- what is kept ---- */

void trp_need_find_short(struct trp_engine *e)
{
    e->nshort = e->gangs > 0;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (!c)
            continue;
        c->is_short = c->first && !c->never && c->live < trp_need_work(e, c);
        e->nshort += c->is_short;
    }
}

bool trp_need_others_short(const struct trp_engine *e, const struct trp_class *c)
{
    return e->nshort > c->is_short;
}

static uint32_t kept(const struct trp_engine *e, const struct trp_class *c,
                     uint32_t ahead)
{
    uint64_t work = trp_need_work(e, c), all = work;
    if (e->targets)
        all = larger(all, target(e, c));
    else if (work)
        all = larger(all, smaller(e->config.min_executors, e->config.max_executors));
    all = smaller(all + ahead, larger(all, e->config.max_executors));
    /* While others lack what they work with, nothing is asked for without work. */
    if (trp_need_others_short(e, c))
        all = larger(work, smaller(all, (uint64_t)c->live + c->requested));
    return (uint32_t)smaller(all, c->fit);
}

uint32_t trp_need_all(const struct trp_engine *e, const struct trp_class *c)
{
    return kept(e, c, c->ahead);
}

uint32_t trp_need_now(const struct trp_engine *e, const struct trp_class *c)
{
    return kept(e, c, 0);
}
