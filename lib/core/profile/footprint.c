#include "core/profile/footprint.h"

static struct trp_profile_amount of_task(trp_amount task)
{
    if (task > TRP_ONE)
        return (struct trp_profile_amount){trp_amount_units(task), 1};
    return task > 0 ? (struct trp_profile_amount){1, trp_amount_per_unit(task)}
                    : (struct trp_profile_amount){0, 1};
}

struct trp_profile_footprint trp_profile_footprint(const struct trp_resource_profile *p,
                                                   bool rank)
{
    int64_t slots = rank && p->slots ? p->slots : 1;
    struct trp_profile_footprint need = {
        .cores = rank ? p->task_cpus : p->cores, .memory_mib = {p->total_mib, slots}
    };
    for (uint32_t i = 0; i < p->ncustom; i++)
        need.custom[i] = rank ? of_task(p->custom[i].task)
                              : (struct trp_profile_amount){p->custom[i].executor, 1};
    return need;
}
