/*
 * Hosts and racks of a run, by dense number, and how many executors live on each.
 * Racks come from the topology that a run begins with, and from what executors bring
 * along (semantics, section 7.1).
 */
#ifndef TRP_CORE_TOPO_HOSTS_H
#define TRP_CORE_TOPO_HOSTS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/ids.h"

struct trp_host {
    char *name;
    trp_rack_id rack;   /* n == TRP_NONE: no rack */
    uint32_t executors; /* live ones */
};

struct trp_rack {
    char *name;
    uint32_t executors; /* live ones on its hosts */
};

/* Of the cluster's topology: where a host stands. One with a NULL says nothing. */
struct trp_host_rack {
    const char *host, *rack;
};

struct trp_name_entry;

struct trp_hosts {
    struct trp_host *hosts;
    uint32_t nhosts, hosts_cap;
    struct trp_rack *racks;
    uint32_t nracks, racks_cap;
    struct trp_name_entry *host_names, *rack_names; /* name → number */
    struct trp_name_entry *known; /* host of the topology → number of its rack */
};

void trp_hosts_free(struct trp_hosts *h);

/* The racks of hosts that may be named later; the first word on a host counts. Hosts
 * get no numbers by this: what is kept by host number stays small. TRP_ENOMEM. */
int trp_hosts_know(struct trp_hosts *h, const struct trp_host_rack *v, uint32_t n);

/* The number of a host, which is added when it is new, with its rack as it is known.
 * `rack` (NULL: nothing new) is noted when the host has none yet. Returns TRP_NONE when
 * out of memory. */
uint32_t trp_hosts_intern(struct trp_hosts *h, const char *name, const char *rack);

#endif
