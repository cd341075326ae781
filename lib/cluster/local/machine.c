/*
 * Processors are listed so that neighbours in the list are near in the machine too: the
 * room gives out runs.
 *
 * A quota of 1.5 CPUs counts as 2 cores: rounding down would leave a third idle,
 * rounding up would slow each by as much; rounded to the nearest.
 */
#include "cluster/local/machine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroup.h"
#include "os/processors.h"

uint32_t trp_machine_cores(uint32_t cpus, double quota)
{
    if (quota <= 0 || quota + 0.5 >= cpus)
        return cpus;
    return quota < 1.5 ? 1 : (uint32_t)(quota + 0.5);
}

/* Sockets come in order. */
static uint32_t count_sockets(const struct trp_processor *list, uint32_t n)
{
    uint32_t count = 1;
    for (uint32_t i = 1; i < n; i++)
        count += list[i].socket != list[i - 1].socket;
    return count;
}

static uint32_t count_nodes(const struct trp_processor *list, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < i && list[k].node != list[i].node)
            k++;
        count += k == i;
    }
    return count;
}

static int take_processors(struct trp_machine *m, trp_error *err)
{
    struct trp_processor *list;
    if (!trp_processors_own(&list, &m->ncpus))
        return trp_error_set(err, TRP_ESYSTEM,
                             "cannot tell which processors this process may use: %m");
    m->cpus = calloc((size_t)m->ncpus + 1, sizeof *m->cpus);
    for (uint32_t i = 0; m->cpus && i < m->ncpus; i++)
        m->cpus[i] = list[i].number;
    m->sockets = count_sockets(list, m->ncpus);
    m->numa_nodes = count_nodes(list, m->ncpus);
    free(list);
    return m->cpus ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Of the nodes that this process may use. Of all nodes the kernel's own total: a
 * virtual machine that is given memory as it is touched has less in its nodes, for now.
 */
static int64_t memory_mib(void)
{
    int64_t part = trp_processors_memory_mib("");
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1 << 20);
    return part > 0 ? part : all;
}

int trp_machine_look(struct trp_machine *ret, trp_error *err)
{
    struct trp_machine m = {0};
    int code = take_processors(&m, err);
    if (code < 0) {
        trp_machine_free(&m);
        return code;
    }
    m.memory_mib = memory_mib();
    trp_processors_model("", m.model, sizeof m.model);
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
