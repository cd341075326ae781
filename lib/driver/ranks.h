/*
 * Where the ranks of a static run are. Every rank says its host, and the rack that
 * Slurm told it; rank 0 hears all, before the run begins. Internal to lib/driver.
 *
 *     struct trp_rank_place *places;                       // of `size` ranks
 *     rc = trp_ranks_gather(rank, size, &places, &err);    // all ranks call it
 *     rc = trp_ranks_site(places, size, site, &err);       // rank 0
 */
#ifndef TRP_DRIVER_RANKS_H
#define TRP_DRIVER_RANKS_H

#include <stdint.h>

#include "conf/racks.h"
#include "conf/site.h"

struct trp_rank_place {
    char host[TRP_RACKS_NAME_MAX + 1];
    char rack[TRP_RACKS_NAME_MAX + 1]; /* "": not known */
};

/* After MPI_Init. On rank 0 *ret_places is to be freed, elsewhere it is NULL. */
int trp_ranks_gather(int rank, int size, struct trp_rank_place **ret_places,
                     trp_error *err);

/* The racks that a site file names by itself are stronger than Slurm's. */
int trp_ranks_site(struct trp_rank_place *places, int size, const struct trp_site *site,
                   trp_error *err);

/* The rack in a value of SLURM_TOPOLOGY_ADDR, "spine.rack2.node7": the switch that
 * `node` hangs on. "" when the value is no path of switches that ends in `node`: it
 * came from elsewhere, or there is no topology. Either may be NULL. */
void trp_rank_rack(const char *path, const char *node, char *ret, size_t size);

#endif
