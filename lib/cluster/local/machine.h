/*
 * This machine, as far as executors may use it: cores (logical processors that our
 * affinity and cpuset allow, no more than a CPU quota is worth), memory (the machine's,
 * or less where a control group says so), and what `troupe topo` shows.
 */
#ifndef TRP_CLUSTER_LOCAL_MACHINE_H
#define TRP_CLUSTER_LOCAL_MACHINE_H

#include <stdint.h>

#include "core/base/error.h"
#include "os/module.h"

struct trp_machine {
    char host[256];
    char model[128]; /* processor, "" when unknown */
    uint32_t cores;  /* that may be used: at least 1, at most ncpus */
    uint32_t *cpus;  /* numbers of the allowed logical processors; those that */
    uint32_t ncpus;  /* share a core, a cache, a socket stand together */
    uint32_t sockets, numa_nodes;
    int64_t memory_mib;
};

/* TRP_ENEVER when the module of hwloc cannot be used, TRP_ESYSTEM when hwloc cannot look,
 * TRP_ENOMEM. Free with trp_machine_free. */
int trp_machine_look(struct trp_machine *ret, trp_error *err);
void trp_machine_free(struct trp_machine *m);

/* The module that asks hwloc, with which executors should not be linked. */
struct trp_hwloc_calls {
    struct trp_module module;
    /* All but host and cores, and the memory without limits of control groups. Also
     * after an error the caller frees *ret, which is zero before. */
    int (*look)(struct trp_machine *ret, trp_error *err);
};

/* What a quota of `quota` CPUs (0: none) leaves of `cpus`: rounded to the nearest, at
 * least 1. */
uint32_t trp_machine_cores(uint32_t cpus, double quota);

#endif
