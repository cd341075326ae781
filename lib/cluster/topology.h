/*
 * The tree that locality uses: racks, hosts, and what a host has. Built by a cluster
 * backend; read by `troupe topo`, `troupe plan` and the driver.
 */
#ifndef TRP_CLUSTER_TOPOLOGY_H
#define TRP_CLUSTER_TOPOLOGY_H

#include <stdint.h>
#include <stdio.h>

#include "core/profile/ledger.h"

struct trp_host_view {
    const char *name;
    const char *rack; /* "" when none */
    uint32_t cores;   /* that executors may use */
    uint32_t sockets;
    uint32_t numa_nodes;
    int64_t memory_mib; /* that executors may use */
    const char *model;  /* processor, "" when unknown */
    const struct trp_resource_addresses *devices;
    uint32_t ndevices;
};

struct trp_racks;

struct trp_topology {
    const struct trp_host_view *hosts; /* ordered by rack, then name */
    uint32_t nhosts;
};

/* A copy of `t` in which each host's rack is what the site says (conf/racks.h), ordered
 * anew; where that is nothing the host keeps the rack it had. Names are borrowed from
 * `t` and racks kept in the copy: free it with trp_topology_free, before `t`. NULL: out
 * of memory. */
struct trp_topology *trp_topology_with_racks(const struct trp_topology *t,
                                             const struct trp_racks *racks);
void trp_topology_free(struct trp_topology *t);

/* Text tree, and the JSON of contract.md, "Details": one document and a newline. */
void trp_topology_print(const struct trp_topology *t, FILE *out);
void trp_topology_print_json(const struct trp_topology *t, FILE *out);

#endif
