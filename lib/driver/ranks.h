/*
 * The ranks of a static run. Every rank says its host, the rack that Slurm told it, and
 * which devices it may use (rank_devices.h); rank 0 hears all, before the run begins,
 * and shares the devices of each host out among its executors.
 *
 *     struct trp_rank_place *places;                       // of `size` ranks
 *     rc = trp_ranks_gather(rank, size, code, devices, &places, &err); // all ranks
 *     rc = trp_ranks_site(places, size, site, &err);       // rank 0
 *     rc = trp_ranks_share(places, size, profile, where, &err);        // rank 0
 *     rc = trp_ranks_agree(rc);                            // all ranks
 *     trp_ranks_free(places, size);
 */
#ifndef TRP_DRIVER_RANKS_H
#define TRP_DRIVER_RANKS_H

#include <stdint.h>

#include "conf/options.h"
#include "conf/racks.h"
#include "conf/site.h"
#include "core/profile/ledger.h"

struct trp_rank_place {
    char host[TRP_RACKS_NAME_MAX + 1];
    char rack[TRP_RACKS_NAME_MAX + 1];    /* "": not known */
    char *devices;                        /* as trp_rank_devices wrote them */
    struct trp_resource_addresses *share; /* an executor's own: nshare resources */
    uint32_t nshare;
};

/* After MPI_Init; all ranks call it, also one that has failed: `code` is what it failed
 * with and `err` why, 0 otherwise. `devices`: trp_rank_devices' text or NULL. On rank 0
 * *ret_places is to be freed with trp_ranks_free, elsewhere it is NULL. Rank 0 fails
 * when any rank has, with that rank's number, host and text in `err`. */
int trp_ranks_gather(int rank, int size, int code, const char *devices,
                     struct trp_rank_place **ret_places, trp_error *err);
void trp_ranks_free(struct trp_rank_place *places, int size);

/* The racks that a site file names by itself are stronger than Slurm's. */
int trp_ranks_site(struct trp_rank_place *places, int size, const struct trp_site *site,
                   trp_error *err);

/* Gives every rank but the driver's (0) the addresses that `profile` has an executor
 * have: of those that the rank may use, the first in natural order that no rank before
 * it on its host was given. TRP_ENEVER, beginning with where `options` had the amount
 * set, when a rank gets too few. Needs no MPI. */
int trp_ranks_share(struct trp_rank_place *places, int size,
                    const struct trp_resource_profile *profile,
                    const trp_options *options, trp_error *err);

/* Tells all ranks what rank 0 came to; returns it everywhere. */
int trp_ranks_agree(int code);

/* The rack in a value of SLURM_TOPOLOGY_ADDR, "spine.rack2.node7": the switch that
 * `node` hangs on. "" when the value is no path of switches that ends in `node`: it
 * came from elsewhere, or there is no topology. Either may be NULL. */
void trp_rank_rack(const char *path, const char *node, char *ret, size_t size);

#endif
