/*
 * What targets should be. Sums are kept for each profile (targets_counts.c), so an
 * evaluation is O(profiles).
 *
 * Deadlines are the profile's own (semantics, difference 11). Spark has one for all, so
 * that a backlog of one profile delays or hurries another.
 *
 * A tick is worth its while only after a count changed or a deadline passed: between,
 * the same numbers would give the same targets, so `due` asks for none.
 */
#include <string.h>

#include "core/alloc/targets_state.h"

#define MILLION UINT64_C(1000000)

int trp_targets_new(const struct trp_targets_config *config, trp_targets **ret_targets)
{
    struct trp_targets *t = calloc(1, sizeof(*t));
    if (!t)
        return TRP_ENOMEM;
    t->config = *config;
    t->free = TRP_NONE;
    t->initializing = true;
    t->last_tick = INT64_MIN / 2;
    *ret_targets = t;
    return 0;
}

void trp_targets_free(trp_targets *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->nstages; i++) {
        trp_bits_free(&t->stages[i].started);
        trp_bits_free(&t->stages[i].copies);
    }
    free(t->stages);
    free(t->profiles);
    free(t);
}

void trp_targets_begin_use(trp_targets *t, struct trp_targets_profile *p)
{
    uint32_t initial = t->config.initial;
    p->in_use = true;
    p->target = initial < t->config.min ? t->config.min : initial;
    p->before = p->target;
    t->changed = true;
}

int trp_targets_profile(trp_targets *t, uint32_t profile, uint32_t slots, bool now)
{
    uint32_t old = t->nprofiles;
    if (profile < old && t->profiles[profile].known)
        return 0;
    if (!TRP_ARRAY_GROW(t->profiles, profile, t->profiles_cap))
        return TRP_ENOMEM;
    if (profile >= old) {
        memset(t->profiles + old, 0, (profile + 1 - old) * sizeof(*t->profiles));
        t->nprofiles = profile + 1;
    }
    struct trp_targets_profile *p = &t->profiles[profile];
    p->known = true;
    p->slots = slots;
    p->to_add = 1;
    p->deadline = INT64_MAX;
    if (now)
        trp_targets_begin_use(t, p);
    return 0;
}

void trp_targets_registered(trp_targets *t, uint32_t profile, int by)
{
    trp_targets_profile_of(t, profile)->registered += (uint32_t)by;
    t->changed = true;
}

void trp_targets_leaving(trp_targets *t, uint32_t profile, int by)
{
    trp_targets_profile_of(t, profile)->leaving += (uint32_t)by;
}

void trp_targets_one_host(trp_targets *t, uint32_t profile, bool is)
{
    struct trp_targets_profile *p = trp_targets_profile_of(t, profile);
    t->changed |= p->one_host != is;
    p->one_host = is;
}

void trp_targets_initialized(trp_targets *t)
{
    t->initializing = false;
}

/* ---- what is needed ---- */

/* ceil((tasks * ratio + whole) / slots), exactly: the product is split by millions, for
 * it may have 74 bits. */
static uint32_t executors_for(const trp_targets *t, uint64_t tasks, uint64_t whole,
                              uint32_t slots)
{
    uint64_t ratio = (uint64_t)t->config.ratio, by = slots * MILLION;
    uint64_t low = tasks * (ratio % MILLION);
    uint64_t high = tasks * (ratio / MILLION) + low / MILLION + whole * MILLION;
    uint64_t n = high / by + (high % by || low % MILLION);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static uint32_t need_with(const trp_targets *t, const struct trp_targets_profile *p,
                          uint64_t copies)
{
    uint32_t demand = executors_for(t, p->pending + copies + p->running - p->at_once,
                                    p->at_once, p->slots);
    /* The copy of a task cannot run beside it, whatever else has room there. */
    if (p->slots > 1 && demand == 1 && copies)
        demand = 2;
    if (!p->unschedulable)
        return demand;
    uint32_t more = executors_for(t, p->unschedulable, 0, p->slots);
    return demand > p->registered + more ? demand : p->registered + more;
}

static uint32_t demand_of(const trp_targets *t, const struct trp_targets_profile *p)
{
    return need_with(t, p, p->copies);
}

/* What the target goes for. */
static uint32_t wanted_of(const trp_targets *t, const struct trp_targets_profile *p)
{
    uint32_t demand = demand_of(t, p);
    return demand > p->spread ? demand : p->spread;
}

/* While a copy waits and all executors share a host there is to be one more than there
 * are or are needed (semantics, difference 10). Once: the next may come to the same
 * host. */
static void spread(const trp_targets *t, struct trp_targets_profile *p)
{
    if (!p->copies) {
        p->spread = 0;
    } else if (p->one_host && !p->spread) {
        uint32_t demand = demand_of(t, p);
        p->spread = (demand > p->registered ? demand : p->registered) + 1;
    }
}

/* ---- ticks ---- */

static uint32_t within(const trp_targets *t, uint32_t n)
{
    if (n > t->config.max)
        n = t->config.max;
    return n < t->config.min ? t->config.min : n;
}

static void grow_target(trp_targets *t, struct trp_targets_profile *p)
{
    if (p->target >= t->config.max) {
        p->to_add = 1;
        return;
    }
    /* No time is lost on those that are there already. */
    uint32_t from = p->registered > p->target ? p->registered : p->target;
    uint32_t demand = wanted_of(t, p);
    uint64_t to = (uint64_t)from + p->to_add;
    p->target = within(t, to < demand ? (uint32_t)to : demand);
    if (p->target == p->before)
        p->to_add = 1;
    p->stepped = true;
}

/* A gang's executors are one target, at once (semantics, difference 6). */
static void step_gang(trp_targets *t, struct trp_targets_profile *p)
{
    uint32_t to = executors_for(t, 0, p->at_once, p->slots);
    if (p->target < to)
        p->target = within(t, to);
}

static void evaluation_begins(trp_targets *t)
{
    for (uint32_t i = 0; i < t->nprofiles; i++) {
        t->profiles[i].before = t->profiles[i].target;
        t->profiles[i].stepped = false;
        spread(t, &t->profiles[i]);
    }
}

static void evaluate(trp_targets *t, struct trp_targets_profile *p, int64_t now_ns)
{
    uint32_t demand = wanted_of(t, p);
    if (demand < p->target) {
        if (p->target > t->config.min)
            p->target = demand > t->config.min ? demand : t->config.min;
        p->to_add = 1;
        return;
    }
    if (p->deadline <= now_ns)
        grow_target(t, p);
    step_gang(t, p);
}

bool trp_targets_tick(trp_targets *t, int64_t now_ns)
{
    bool any = false;
    evaluation_begins(t);
    if (t->initializing)
        return false;
    t->last_tick = now_ns;
    t->changed = false;
    for (uint32_t i = 0; i < t->nprofiles; i++) {
        struct trp_targets_profile *p = &t->profiles[i];
        if (p->in_use)
            evaluate(t, p, now_ns);
        any |= p->target != p->before;
    }
    return any;
}

bool trp_targets_step(trp_targets *t, uint32_t profile)
{
    struct trp_targets_profile *p = trp_targets_profile_of(t, profile);
    evaluation_begins(t);
    grow_target(t, p);
    return p->target != p->before;
}

void trp_targets_answer(trp_targets *t, bool acknowledged, int64_t now_ns)
{
    for (uint32_t i = 0; i < t->nprofiles; i++) {
        struct trp_targets_profile *p = &t->profiles[i];
        if (p->target == p->before)
            continue;
        if (!acknowledged) {
            p->target = p->before;
            t->changed = true;
        } else if (p->stepped && p->target > p->before) {
            bool all = p->target - p->before == p->to_add;
            p->to_add = !all ? 1 : p->to_add <= UINT32_MAX / 2 ? p->to_add * 2 : 1;
            p->deadline = now_ns + t->config.sustained_ns;
        }
    }
}

int64_t trp_targets_due(const trp_targets *t)
{
    int64_t next = t->last_tick + TRP_TARGETS_TICK_NS, due = INT64_MAX;
    if (t->initializing)
        return INT64_MAX;
    if (t->changed)
        return next;
    for (uint32_t i = 0; i < t->nprofiles; i++) {
        const struct trp_targets_profile *p = &t->profiles[i];
        if (p->in_use && p->deadline > t->last_tick && p->deadline < due)
            due = p->deadline;
    }
    return due < next ? next : due;
}

/* ---- views ---- */

uint32_t trp_targets_of(const trp_targets *t, uint32_t profile)
{
    return trp_targets_profile_of(t, profile)->target;
}

uint32_t trp_targets_to_add(const trp_targets *t, uint32_t profile)
{
    return trp_targets_profile_of(t, profile)->to_add;
}

uint32_t trp_targets_demand(const trp_targets *t, uint32_t profile)
{
    return demand_of(t, trp_targets_profile_of(t, profile));
}

uint32_t trp_targets_demand_of_tasks(const trp_targets *t, uint32_t profile)
{
    return need_with(t, trp_targets_profile_of(t, profile), 0);
}

uint64_t trp_targets_tasks_of(const trp_targets *t, uint32_t profile)
{
    const struct trp_targets_profile *p = trp_targets_profile_of(t, profile);
    return p->pending + p->copies + p->running;
}

uint32_t trp_targets_spare(const trp_targets *t, uint32_t profile)
{
    const struct trp_targets_profile *p = trp_targets_profile_of(t, profile);
    uint32_t stay = p->target > t->config.min ? p->target : t->config.min;
    uint32_t all = p->registered > p->leaving ? p->registered - p->leaving : 0;
    return all > stay ? all - stay : 0;
}
