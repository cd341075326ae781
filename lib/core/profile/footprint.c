#include "core/profile/footprint.h"

#include <stdio.h>

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

/* "4 cores, 2 GiB"; returns how long that is. */
static int put_cores(const struct trp_profile_footprint *f, uint64_t units, char *buf,
                     size_t size)
{
    const long long cores = f->cores * (long long)units;
    char memory[32];
    trp_memory_format(trp_profile_amount_of(f->memory_mib, units), memory,
                      sizeof memory);
    return snprintf(buf, size, "%lld core%s, %s", cores, cores == 1 ? "" : "s", memory);
}

char *trp_profile_text(const struct trp_resource_profile *p, uint32_t ranks, char *buf,
                       size_t size)
{
    const struct trp_profile_footprint f = trp_profile_footprint(p, ranks > 0);
    const uint64_t units = ranks ? ranks : 1;
    int n = put_cores(&f, units, buf, size);
    for (uint32_t i = 0; i < p->ncustom && (size_t)n < size; i++) {
        const struct trp_profile_amount a = f.custom[i];
        if (a.n)
            n += snprintf(buf + n, size - (size_t)n, ", %s %lld", p->custom[i].name,
                          (long long)trp_profile_amount_of(a, units));
    }
    return buf;
}

char *trp_profile_text_of_task(const struct trp_resource_profile *p, char *buf,
                               size_t size)
{
    const struct trp_profile_footprint f = trp_profile_footprint(p, true);
    int n = put_cores(&f, 1, buf, size);
    for (uint32_t i = 0; i < p->ncustom && (size_t)n < size; i++) {
        char amount[32];
        if (p->custom[i].task > 0)
            n += snprintf(buf + n, size - (size_t)n, ", %s %s", p->custom[i].name,
                          trp_amount_format(p->custom[i].task, amount, sizeof amount));
    }
    return buf;
}
