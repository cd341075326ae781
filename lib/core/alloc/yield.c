/*
 * Limits over all profiles that are short: which class may have how many executors
 * (shares.h), and which executors make room for others. Decision 4;
 * docs/decisions/0014.
 *
 * A class is *blocked* if its tasks wait and the limits leave no room for its share.
 * Then executors of classes above their share make room. Idle ones are released and
 * requests withdrawn at once (wanted.c). Busy ones *yield*: they start nothing more,
 * finish what runs and is queued there, and are released when they are idle. The
 * youngest yield first. When no class is blocked any more, those that still work take
 * new tasks again.
 *
 * A relabelled executor may take more of the limits than its class requests; if it is
 * idle and its class is blocked, it is released too.
 *
 * Cost: O(profiles) a change, and an event while any executor yields; nothing without
 * limits. Executors are looked through only when the number of those that yield
 * changes.
 */
#include "core/engine_state.h"

/* ---- shares ---- */

static struct trp_share claim(const struct trp_engine *e, const struct trp_class *c)
{
    struct trp_share s = {
        .profile = c->profile.n, .cost = c->cost, .order = UINT64_MAX};
    const struct trp_task_set *first = c->first;
    uint32_t have = c->live + c->requested.n;
    if (c->never)
        return s;
    s.work = trp_demand_work(e, c);
    s.all = trp_demand_all(e, c);
    if (first)
        s.order = (uint64_t)first->priority << 32 | first->stage->id.n;
    /* Where nothing is requested before a while nobody is to make room for more. */
    if (e->now < c->retry_at && have < s.work)
        s.work = have;
    s.least = trp_demand_least(e, c);
    return s;
}

bool trp_yield_shares(struct trp_engine *e)
{
    uint32_t n = 0;
    if (!TRP_ARRAY_RESERVE(e->shares, e->shares_cap, e->nclasses)) {
        e->out_of_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            e->shares[n++] =
                e->caps.n ? claim(e, e->classes[i]) : (struct trp_share){.profile = i};
    e->nshares = n;
    if (!e->caps.n)
        return true;
    trp_shares_divide(&e->caps, e->shares, n);
    for (uint32_t i = 0; i < n; i++)
        e->classes[e->shares[i].profile]->share = e->shares[i].share;
    return true;
}

/* ---- who yields ---- */

static bool is_blocked(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t work = trp_demand_work(e, c), have = c->live + c->requested.n;
    return c->first && !c->never && e->now >= c->retry_at && work > have &&
           c->share > have;
}

static void yield(struct trp_engine *e, struct trp_executor *x, bool yields)
{
    x->yields = yields;
    e->classes[x->class]->yielding += yields ? 1 : UINT32_MAX;
    e->nyielding += yields ? 1 : UINT32_MAX;
    trp_executor_set_free(e, x);
}

/* So many of the class yield, the youngest. */
static void set_yielding(struct trp_engine *e, struct trp_class *c, uint32_t n)
{
    bool revive = c->yielding > n;
    for (uint32_t i = e->nexecutors; i-- > 0 && c->yielding < n;) {
        struct trp_executor *x = trp_executor_at(e, i);
        if (x && x->class == c->profile.n && x->state == TRP_EXECUTOR_LIVE &&
            !x->yields)
            yield(e, x, true);
    }
    for (uint32_t i = 0; i < e->nexecutors && c->yielding > n; i++) {
        struct trp_executor *x = trp_executor_at(e, i);
        if (x && x->class == c->profile.n && x->yields)
            yield(e, x, false);
    }
    if (revive)
        trp_round_full(e, c);
}

/* Idle ones of a blocked class that take more of the limits than those it asks for. */
static void release_oversized(struct trp_engine *e, struct trp_class *c)
{
    int64_t cost[TRP_CAPS];
    struct trp_executor *x;
    for (uint32_t i = 0; (x = trp_executor_next(e, &c->idle, &i));) {
        bool more = false;
        if (x->shape.n == x->class)
            continue;
        trp_caps_cost(&e->caps, trp_profiles_get(e->profiles, x->shape), cost);
        for (uint32_t k = 0; k < e->caps.n; k++)
            more |= cost[k] > c->cost[k];
        if (more && !trp_caps_left(&e->caps, e->caps_used, c->cost, NULL))
            trp_wanted_release(e, x);
    }
}

void trp_yield_ask(struct trp_engine *e)
{
    bool blocked = false;
    if (!e->caps.n)
        return;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (!c || !is_blocked(e, c))
            continue;
        blocked = !e->draining;
        if (c->idle.n)
            release_oversized(e, c);
    }
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        uint32_t n = c && blocked ? trp_wanted_surplus(e, c) : 0;
        if (c && c->yielding != n)
            set_yielding(e, c, n);
    }
}
