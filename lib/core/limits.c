/*
 * The limits as a vector (caps.h) against what one executor, or one gang, takes of
 * each. A rank takes the task side of its profile and its part of an executor's memory;
 * ranks share a device of which each takes a fraction (as the clusters count them).
 */
#include "core/limits.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc/caps.h"

static int64_t divide_up(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* INT64_MAX when it is more: above every limit. */
static int64_t times(int64_t n, uint32_t by)
{
    int64_t product;
    return __builtin_mul_overflow(n, (int64_t)by, &product) ? INT64_MAX : product;
}

static int64_t custom_of_gang(const struct trp_custom *c, uint32_t ranks)
{
    if (!c || c->task <= 0)
        return 0;
    return c->task > TRP_ONE ? times(trp_amount_units(c->task), ranks)
                             : divide_up(ranks, trp_amount_per_unit(c->task));
}

static int64_t cost_of_gang(const struct trp_resource_profile *p, uint32_t ranks,
                            const char *name)
{
    if (!strcmp(name, "executors")) /* it has none */
        return 0;
    if (!strcmp(name, "cores"))
        return times(p->task_cpus, ranks);
    if (!strcmp(name, "memory"))
        return divide_up(times(p->total_mib, ranks), p->slots ? p->slots : 1);
    return custom_of_gang(trp_profile_custom(p, name), ranks);
}

static void limit_error(const char *name, int64_t cost, int64_t most, uint32_t ranks,
                        trp_error *err)
{
    char who[32] = "an executor takes";
    struct trp_memory_pair m = trp_memory_pair(cost, most);
    if (ranks)
        snprintf(who, sizeof(who), "%u ranks take", ranks);
    if (strcmp(name, "memory") != 0) {
        snprintf(m.a, sizeof m.a, "%lld", (long long)cost);
        snprintf(m.b, sizeof m.b, "%lld", (long long)most);
    }
    trp_error_set(err, TRP_ENEVER,
                  "%s %s %s, and alloc.max_%s is %s; raise it or ask for less", who,
                  name, m.a, name, m.b);
}

uint32_t trp_limits_most(const struct trp_engine_config *c,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         trp_error *err)
{
    const int64_t none[TRP_CAPS] = {0};
    int64_t cost[TRP_CAPS];
    struct trp_caps caps;
    uint32_t at = 0;
    trp_caps_init(&caps, &c->caps, c->alloc_max_executors);
    trp_caps_cost(&caps, p, cost);
    for (uint32_t i = 0; ranks && i < caps.n; i++)
        cost[i] = cost_of_gang(p, ranks, caps.name[i]);
    uint32_t room = trp_caps_left(&caps, none, cost, &at);
    if (!room)
        limit_error(caps.name[at], cost[at], caps.most[at], ranks, err);
    return !ranks && room > c->max_executors ? c->max_executors : room;
}

int trp_limits_barrier(uint32_t ntasks, uint64_t slots,
                       const struct trp_resource_profile *p, trp_error *err)
{
    return trp_error_set(err, TRP_ENEVER,
                         "a barrier stage of %u tasks needs as many slots at once; at "
                         "most %llu of profile %s can be had",
                         ntasks, (unsigned long long)slots, p->name);
}
