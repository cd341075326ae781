/*
 * The vectors: limits that are not set have no place in them, so with none set every
 * call is a loop over nothing.
 */
#include "core/alloc/caps.h"

#include <string.h>

static void add_limit(struct trp_caps *caps, const char *name, int64_t most)
{
    memcpy(caps->name[caps->n], name, strlen(name) + 1);
    caps->most[caps->n++] = most;
}

void trp_caps_init(struct trp_caps *caps, const struct trp_alloc_caps *limits,
                   uint32_t executors)
{
    caps->n = 0;
    if (executors != UINT32_MAX)
        add_limit(caps, "executors", executors);
    if (limits->cores)
        add_limit(caps, "cores", limits->cores);
    if (limits->memory_mib)
        add_limit(caps, "memory", limits->memory_mib);
    for (uint32_t i = 0; i < limits->ncustom; i++)
        add_limit(caps, limits->custom[i].name, limits->custom[i].most);
}

static int64_t cost_of(const struct trp_resource_profile *p, const char *name)
{
    if (!strcmp(name, "executors"))
        return 1;
    if (!strcmp(name, "cores"))
        return p->cores;
    if (!strcmp(name, "memory"))
        return p->total_mib;
    const struct trp_custom *c = trp_profile_custom(p, name);
    return c ? c->executor : 0;
}

void trp_caps_cost(const struct trp_caps *caps, const struct trp_resource_profile *p,
                   int64_t *ret_cost)
{
    for (uint32_t i = 0; i < caps->n; i++)
        ret_cost[i] = cost_of(p, caps->name[i]);
}

uint32_t trp_caps_left(const struct trp_caps *caps, const int64_t *used,
                       const int64_t *cost, uint32_t *ret_short)
{
    uint32_t room = UINT32_MAX;
    for (uint32_t i = 0; i < caps->n; i++) {
        int64_t left = caps->most[i] - used[i];
        if (!cost[i])
            continue;
        uint64_t fit = left > 0 ? (uint64_t)left / (uint64_t)cost[i] : 0;
        if (fit >= room)
            continue;
        room = (uint32_t)fit;
        if (ret_short)
            *ret_short = i;
    }
    return room;
}

void trp_caps_add(const struct trp_caps *caps, int64_t *used, const int64_t *cost,
                  int64_t by)
{
    for (uint32_t i = 0; i < caps->n; i++)
        used[i] += by * cost[i];
}
