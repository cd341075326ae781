/*
 * What executors there are, as the allocation sees them: what they take of the limits
 * over all profiles, since when they are idle and what they hold, on how many hosts
 * those of a class are.
 */
#include <string.h>

#include "core/engine_state.h"

static void count_cost(struct trp_engine *e, const struct trp_executor *x, int by)
{
    int64_t cost[TRP_CAPS];
    if (!e->caps.n)
        return;
    trp_caps_cost(&e->caps, trp_profiles_get(e->profiles, x->shape), cost);
    trp_caps_add(&e->caps, e->caps_used, cost, by);
}

static bool host_room(struct trp_class *c, uint32_t host)
{
    uint32_t old = c->on_host_cap;
    if (!TRP_ARRAY_GROW(c->on_host, host, c->on_host_cap))
        return false;
    memset(c->on_host + old, 0, (c->on_host_cap - old) * sizeof(*c->on_host));
    return true;
}

/* One live executor of the class more, or less. */
static void count_live(struct trp_engine *e, struct trp_class *c,
                       const struct trp_executor *x, int by)
{
    uint32_t edge = by > 0 ? 1 : 0;
    if (!host_room(c, x->host)) {
        e->out_of_memory = true;
        return;
    }
    c->on_host[x->host] += (uint32_t)by;
    if (c->on_host[x->host] == edge)
        c->hosts += (uint32_t)by;
    if (e->targets) /* who asks for copies is wanted.c, whatever grows otherwise */
        trp_targets_registered(e->targets, c->profile.n, by);
}

void trp_supply_asked(struct trp_engine *e, struct trp_executor *x)
{
    x->idle.id = x->id.n;
    count_cost(e, x, 1);
}

void trp_supply_live(struct trp_engine *e, struct trp_executor *x)
{
    count_live(e, e->classes[x->class], x, 1);
    if (e->idle && trp_idle_added(e->idle, &x->idle, e->now) < 0)
        e->out_of_memory = true;
}

void trp_supply_leaving(struct trp_engine *e, struct trp_executor *x)
{
    count_live(e, e->classes[x->class], x, -1);
    if (e->idle)
        trp_idle_leaving(e->idle, &x->idle);
}

void trp_supply_gone(struct trp_engine *e, struct trp_executor *x)
{
    count_cost(e, x, -1);
    if (e->idle)
        trp_idle_gone(e->idle, &x->idle);
}

void trp_supply_moved(struct trp_engine *e, struct trp_executor *x,
                      struct trp_class *from)
{
    count_live(e, from, x, -1);
    count_live(e, e->classes[x->class], x, 1);
}

/* ---- what they hold ---- */

static void note_memory(struct trp_engine *e, int code)
{
    if (code < 0)
        e->out_of_memory = true;
}

void trp_supply_output(struct trp_engine *e, uint32_t executor, uint32_t shuffle)
{
    struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executor});
    if (e->idle && x && x->came && !e->config.host_files)
        note_memory(e, trp_idle_shuffle_data(e->idle, &x->idle, shuffle));
}

void trp_supply_shuffle(struct trp_engine *e, uint32_t shuffle, bool in_use)
{
    if (!e->idle)
        return;
    note_memory(e, trp_idle_shuffle_use(e->idle, shuffle, in_use));
    e->any_dirty = true;
}

void trp_supply_shuffle_gone(struct trp_engine *e, uint32_t shuffle)
{
    if (!e->idle)
        return;
    note_memory(e, trp_idle_shuffle_gone(e->idle, shuffle));
    e->any_dirty = true;
}

void trp_supply_cached(struct trp_engine *e, uint32_t executor)
{
    struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executor});
    if (e->idle && x && x->came)
        note_memory(e, trp_idle_cached(e->idle, &x->idle,
                                       trp_graph_cached_on(&e->dag.graph, executor)));
}
