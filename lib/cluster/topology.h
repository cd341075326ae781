/*
 * The tree that locality uses: racks, hosts, and what a host has. Built by a cluster
 * backend; read by `troupe topo`, `troupe plan` and the driver.
 */
#ifndef TRP_CLUSTER_TOPOLOGY_H
#define TRP_CLUSTER_TOPOLOGY_H

#include <stdint.h>
#include <stdio.h>

#include "core/profile/books.h"

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

struct trp_topology {
    const struct trp_host_view *hosts; /* ordered by rack, then name */
    uint32_t nhosts;
};

/* Text tree, and the JSON of contract.md, "Details": one document and a newline. */
void trp_topology_print(const struct trp_topology *t, FILE *out);
void trp_topology_print_json(const struct trp_topology *t, FILE *out);

#endif
