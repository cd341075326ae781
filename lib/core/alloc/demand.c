/*
 * How many executors the tasks of a class (a profile) can use: work; and how many the
 * class should have: all.
 *
 * - work (alloc.grow=need): the sum over its running stages, and those that run again
 *   soon, of ceil(open tasks / slots), within the stage's, the profile's and the
 *   cluster's bounds;
 * - work (alloc.grow=ramp): its target, as far as tasks can use it (targets.h);
 * - all: the larger of work and the minimum or initial number; plus what is requested
 *   ahead for stages that are not ready yet (ahead.c); plus one for copies that can run
 *   nowhere else;
 *
 * where open tasks are those that run or may run now. Tasks that wait for tasks of
 * their parents are not open: executors for them could take resources that the parents
 * need. The least number of executors of a stage holds only while it has open tasks.
 *
 * A copy (of a slow task) cannot run on a host where its task ran. Executors that no
 * waiting copy can use are not kept for copies. When the copies can use no executor
 * that there is, and the cluster has a host without an executor of the class, one more
 * executor is requested; once, since it may start on the same host again.
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

static uint64_t wanted_by_bounded(const struct trp_task_set *s, uint32_t slots,
                                  bool copies)
{
    uint64_t tasks = (uint64_t)s->pending + s->running + s->queued;
    if (copies)
        tasks += s->copies;
    if (s->stage->max_running)
        tasks = smaller(tasks, s->stage->max_running);
    uint64_t n = divide_up(tasks, slots);
    if (tasks)
        n = larger(n, s->stage->min_executors);
    return s->stage->max_executors ? smaller(n, s->stage->max_executors) : n;
}

/* Sets that are excluded on all executors: each needs one more than there are. When that
 * one has come, and as long as nothing was launched on it, they need all that there are,
 * and no more. */
static uint64_t wanted_by_stuck(const struct trp_engine *e, const struct trp_class *c,
                                uint32_t slots)
{
    uint32_t listed = 0, stuck = 0;
    for (const struct trp_task_set *s = e->stuck; s; s = s->stuck_next) {
        listed += s->class == c;
        stuck += s->class == c && trp_exclusion_is_stuck(e, s);
    }
    return listed ? c->live + divide_up(stuck, slots) : 0;
}

/* Tasks that a stage will run when it runs again. */
static uint64_t tasks_again(const struct trp_engine *e, const struct trp_stage *s)
{
    uint64_t n = s->ntasks;
    if (s->barrier)
        return n;
    if (s->is_map && !s->indeterminate)
        n = trp_map_outputs_missing(e->dag.outputs, s->shuffle);
    else if (!s->is_map)
        n -= (uint64_t)s->succeeded + s->given_up + s->unasked;
    return s->max_running ? smaller(n, s->max_running) : n;
}

/* It has to wait for a parent that runs again; *ret_same: for such of its profile alone.
 */
static bool runs_later(const struct trp_stage *s, bool *ret_same)
{
    bool later = false;
    *ret_same = true;
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].parent;
        later |= p->failed;
        *ret_same &= !p->failed || p->profile.n == s->profile.n;
    }
    return later;
}

/* What stages that are about to run again will need, beside `open` executors that others
 * need. Of those that have to wait for others no more than there are, and only where
 * these have the same executors: else they would be in the way. */
static uint64_t with_retries(const struct trp_engine *e, const struct trp_class *c,
                             uint32_t slots, uint64_t open)
{
    uint64_t at_once = open, later = 0;
    for (uint32_t i = 0; i < e->dag.failed.n; i++) {
        const struct trp_stage *s = e->stages[e->dag.failed.v[i]];
        bool same;
        if (!s || !s->failed || s->profile.n != c->profile.n)
            continue;
        uint64_t n = divide_up(tasks_again(e, s), slots);
        n = s->max_executors ? smaller(n, s->max_executors) : n;
        if (s->barrier || !runs_later(s, &same))
            at_once += n;
        else if (same)
            later = larger(later, n);
    }
    return larger(at_once, smaller(open + later, c->live));
}

/* Without `copies`: as if none waited. */
static uint64_t for_tasks(const struct trp_engine *e, const struct trp_class *c,
                          bool copies)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    uint64_t open = c->open, want = 0;
    for (const struct trp_task_set *s = c->bounded; s; s = s->bounded_next)
        want += wanted_by_bounded(s, slots, copies);
    if (!copies) {
        uint64_t waiting = c->copies;
        for (const struct trp_task_set *s = c->bounded; s; s = s->bounded_next)
            waiting -= s->copies;
        open -= waiting;
    }
    want = with_retries(e, c, slots, want + divide_up(open, slots));
    return larger(want, wanted_by_stuck(e, c, slots));
}

/* Executors that can run none of the copies that wait are not needed for them: what of
 * `want` is left, where it would be `without` if no copy waited. */
static uint64_t of_use(const struct trp_class *c, uint64_t want, uint64_t without)
{
    without = smaller(without, want);
    if (c->live && c->copying.useless == c->live)
        return without;
    if (!c->copying.idle)
        return want;
    uint64_t some = (uint64_t)c->live + c->requested.n - c->copying.idle;
    return want <= some ? want : larger(without, some);
}

static uint64_t by_tasks(const struct trp_engine *e, const struct trp_class *c)
{
    return c->copies ? of_use(c, for_tasks(e, c, true), for_tasks(e, c, false))
                     : for_tasks(e, c, true);
}

static uint32_t idle_on(const struct trp_engine *e, const struct trp_class *c,
                        uint32_t host)
{
    uint32_t n = 0;
    const struct trp_executor *x;
    for (uint32_t i = 0; (x = trp_executor_next(e, &c->idle, &i));)
        n += x->host == host;
    return n;
}

void trp_demand_copies(const struct trp_engine *e, struct trp_class *c)
{
    uint32_t hosts[TRP_COPY_HOSTS], n = 0, useless = 0, idle = 0;
    const struct trp_executor *apart = trp_executor_find(e, c->copying.apart);
    if (!c->copies) {
        c->copying.asked = false;
        c->copying.useless = c->copying.idle = 0;
        c->copying.apart.n = TRP_NONE;
        return;
    }
    n = trp_copies_useless_hosts(e, c, hosts);
    for (uint32_t i = 0; i < n; i++) {
        useless += hosts[i] < c->on_host_cap ? c->on_host[hosts[i]] : 0;
        idle += c->idle.n ? idle_on(e, c, hosts[i]) : 0;
        if (apart && apart->came && apart->host == hosts[i])
            apart = NULL; /* it came to where the task is */
    }
    if (!apart || apart->class != c->profile.n)
        c->copying.apart.n = TRP_NONE;
    c->copying.useless = useless;
    c->copying.idle = idle;
}

bool trp_demand_apart(const struct trp_class *c)
{
    bool in_vain = c->copying.idle || c->copying.useless == c->live;
    return c->copies && c->live && in_vain && !c->copying.asked &&
           (!c->fit_hosts || c->hosts < c->fit_hosts);
}

/* ---- by targets ---- */

static uint64_t target(const struct trp_engine *e, const struct trp_class *c)
{
    uint64_t target = trp_targets_of(e->targets, c->profile.n);
    uint32_t tasks = trp_targets_demand_of_tasks(e->targets, c->profile.n);
    if (c->copies)
        target = of_use(c, target, larger(tasks, e->config.min_executors));
    return c->bounded ? smaller(by_tasks(e, c), target) : target;
}

/* ---- both ---- */

uint32_t trp_demand_least(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    return c->first && c->first->barrier ? (uint32_t)divide_up(c->first->ntasks, slots)
                                         : 0;
}

uint32_t trp_demand_work(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    uint64_t work =
        e->targets ? smaller(target(e, c), trp_targets_demand(e->targets, c->profile.n))
                   : smaller(by_tasks(e, c), e->config.max_executors);
    if (e->targets)
        work = larger(work,
                      smaller(with_retries(e, c, slots, 0), e->config.max_executors));
    work = larger(work, trp_demand_least(e, c));
    return (uint32_t)smaller(work, c->fit);
}

/* ---- what is kept ---- */

void trp_demand_find_short(struct trp_engine *e)
{
    e->nshort = e->gangs > 0;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (!c)
            continue;
        c->is_short = c->first && !c->never && c->live < trp_demand_work(e, c);
        e->nshort += c->is_short;
    }
}

bool trp_demand_others_short(const struct trp_engine *e, const struct trp_class *c)
{
    return e->contended || e->nshort > c->is_short;
}

static uint32_t kept(const struct trp_engine *e, const struct trp_class *c,
                     uint32_t ahead)
{
    uint64_t work = trp_demand_work(e, c), all = work;
    if (e->targets)
        all = larger(all, target(e, c));
    else if (work)
        all = larger(all, smaller(e->config.min_executors, e->config.max_executors));
    ahead += c->copying.apart.n != TRP_NONE;
    all = smaller(all + ahead, larger(all, e->config.max_executors));
    /* While others lack what they work with, nothing is requested without work. */
    if (trp_demand_others_short(e, c))
        all = larger(work, smaller(all, (uint64_t)c->live + c->requested.n));
    return (uint32_t)smaller(all, c->fit);
}

uint32_t trp_demand_all(const struct trp_engine *e, const struct trp_class *c)
{
    return kept(e, c, c->ahead);
}

uint32_t trp_demand_now(const struct trp_engine *e, const struct trp_class *c)
{
    return kept(e, c, 0);
}
