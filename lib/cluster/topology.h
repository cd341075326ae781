/*
 * The tree that locality uses: racks, hosts, and what a host has. Built by a cluster
 * backend; read by `troupe topo`, `troupe plan` and the driver.
 */
#ifndef TRP_CLUSTER_TOPOLOGY_H
#define TRP_CLUSTER_TOPOLOGY_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* What a run may use of all its hosts together, and what of it is free. */
enum { TRP_ROOM_DEVICES = 16 };
struct trp_room {
    uint32_t hosts;
    uint64_t cores, cores_free;
    int64_t memory_mib, memory_free;
    struct {
        const char *name; /* the backend's */
        uint64_t count, free;
    } devices[TRP_ROOM_DEVICES];
    uint32_t ndevices;
};
/* Adds so many of a kind of devices; more kinds than there is place for are left out. */
static inline void trp_room_add(struct trp_room *r, const char *name, uint64_t count,
                                uint64_t free)
{
    uint32_t i = 0;
    while (i < r->ndevices && strcmp(r->devices[i].name, name) != 0)
        i++;
    if (i == TRP_ROOM_DEVICES)
        return;
    if (i == r->ndevices)
        r->devices[r->ndevices++].name = name;
    r->devices[i].count += count;
    r->devices[i].free += free;
}
/* "1 of 4 cores, 2 of 16 GiB, gpu 0 of 2 are free on 1 host". Returns buf. */
char *trp_room_text(const struct trp_room *r, char *buf, size_t size);

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
