/*
 * What hwloc knows (lib/modules/hwloc.c), and what control groups leave of it.
 *
 * A quota of 1.5 CPUs counts as 2 cores: rounding down would leave a third idle,
 * rounding up would slow each by as much; rounded to the nearest.
 */
#include "cluster/local/machine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroup.h"

uint32_t trp_machine_cores(uint32_t cpus, double quota)
{
    if (quota <= 0 || quota + 0.5 >= cpus)
        return cpus;
    return quota < 1.5 ? 1 : (uint32_t)(quota + 0.5);
}

int trp_machine_look(struct trp_machine *ret, trp_error *err)
{
    const struct trp_hwloc_calls *hwloc;
    struct trp_machine m = {0};
    int code = trp_module_get("hwloc", (const void **)&hwloc, err);
    if (code == 0)
        code = hwloc->look(&m, err);
    if (code < 0) {
        trp_machine_free(&m);
        return code;
    }
    if (gethostname(m.host, sizeof m.host - 1) < 0)
        strcpy(m.host, "localhost");
    struct trp_cgroup_limits limits;
    trp_cgroup_limits("", &limits);
    if (limits.memory_mib && limits.memory_mib < m.memory_mib)
        m.memory_mib = limits.memory_mib;
    m.cores = trp_machine_cores(m.ncpus, limits.cpus);
    *ret = m;
    return 0;
}

void trp_machine_free(struct trp_machine *m)
{
    free(m->cpus);
    memset(m, 0, sizeof *m);
}
