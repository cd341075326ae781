/*
 * hwloc is asked once, without I/O devices (which take it long to find and belong to
 * the site file here). Processors are listed in hwloc's logical order, so that a run of
 * neighbours in the list is near in the machine too: the ledger gives out runs.
 */
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cluster/local/machine.h"
#include "os/quick_hwloc.h"

static uint32_t count_used(hwloc_topology_t topology, hwloc_obj_type_t type,
                           hwloc_const_cpuset_t allowed)
{
    uint32_t n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
        n += hwloc_bitmap_intersects(o->cpuset, allowed) ? 1 : 0;
    return n ? n : 1;
}

static int list_cpus(hwloc_topology_t topology, hwloc_const_cpuset_t allowed,
                     struct trp_machine *m, trp_error *err)
{
    int total = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    m->cpus = calloc(total > 0 ? (size_t)total : 1, sizeof *m->cpus);
    if (!m->cpus)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (hwloc_obj_t o = NULL;
         (o = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, o));) {
        if (hwloc_bitmap_isset(allowed, o->os_index))
            m->cpus[m->ncpus++] = o->os_index;
    }
    if (!m->ncpus)
        return trp_error_set(err, TRP_ESYSTEM,
                             "hwloc finds no processor that this process may use");
    return 0;
}

static void read_model(hwloc_topology_t topology, struct trp_machine *m)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model =
        package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(m->model, sizeof m->model, "%s", model ? model : "");
}

/* Of the nodes that this process may use. Of all nodes the kernel's own total: a
 * virtual machine that is given memory as it is touched has less in its nodes, for now.
 */
static int64_t memory_mib(hwloc_topology_t topology)
{
    int64_t nodes = (int64_t)(hwloc_get_root_obj(topology)->total_memory >> 20);
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1 << 20);
    bool part = !hwloc_bitmap_isequal(hwloc_topology_get_allowed_nodeset(topology),
                                      hwloc_topology_get_complete_nodeset(topology));
    return part && nodes > 0 ? nodes : all;
}

static int read_topology(hwloc_topology_t topology, hwloc_cpuset_t allowed,
                         struct trp_machine *m, trp_error *err)
{
    if (hwloc_topology_load(topology) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "hwloc cannot read this machine: %m");
    if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) < 0)
        hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_cpuset(topology));
    int code = list_cpus(topology, allowed, m, err);
    if (code < 0)
        return code;
    m->sockets = count_used(topology, HWLOC_OBJ_PACKAGE, allowed);
    m->numa_nodes = count_used(topology, HWLOC_OBJ_NUMANODE, allowed);
    m->memory_mib = memory_mib(topology);
    read_model(topology, m);
    return 0;
}

/* With the plugins that it may find, X11 and OpenCL among them, it takes 9 ms more. */
static int init_topology(hwloc_topology_t *ret)
{
    bool ours[TRP_QUICK_HWLOC];
    trp_quick_hwloc_begin(ours);
    int rc = hwloc_topology_init(ret);
    trp_quick_hwloc_end(ours);
    return rc;
}

static int look(struct trp_machine *ret, trp_error *err)
{
    hwloc_topology_t topology;
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    if (!allowed || init_topology(&topology) < 0) {
        hwloc_bitmap_free(allowed);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    int code = read_topology(topology, allowed, ret, err);
    hwloc_topology_destroy(topology);
    hwloc_bitmap_free(allowed);
    return code;
}

extern const struct trp_hwloc_calls trp_module;
TRP_MODULE_TABLE const struct trp_hwloc_calls trp_module = {
    .module = {TROUPE_VERSION},
    .look = look,
};
