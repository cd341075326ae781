/*
 * Hosts and racks of ranks.
 *
 * Slurm tells each task of a step the way through its switches (topology/tree), so that
 * neither libslurm nor troupe-slurm is needed, which a program that mpirun or srun
 * starts does not find. Telling it in the hello of each executor was rejected: the
 * racks must be known when the first stage begins, and by then not all have come.
 */
#include "driver/ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void trp_rank_rack(const char *path, const char *node, char *ret, size_t size)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    *ret = '\0';
    if (!dot || !node || strcmp(dot + 1, node) != 0)
        return;
    const char *leaf = dot;
    while (leaf > path && leaf[-1] != '.')
        leaf--;
    if (snprintf(ret, size, "%.*s", (int)(dot - leaf), leaf) >= (int)size)
        *ret = '\0';
}

int trp_ranks_gather(int rank, int size, struct trp_rank_place **ret_places,
                     trp_error *err)
{
    struct trp_rank_place own = {0}, *places = NULL;
    gethostname(own.host, sizeof own.host - 1);
    trp_rank_rack(getenv("SLURM_TOPOLOGY_ADDR"), getenv("SLURMD_NODENAME"), own.rack,
                  sizeof own.rack);
    *ret_places = NULL;
    if (rank == 0 && !(places = calloc((size_t)size, sizeof *places)))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %d ranks", size);
    if (MPI_Gather(&own, sizeof own, MPI_BYTE, places, sizeof own, MPI_BYTE, 0,
                   MPI_COMM_WORLD) != MPI_SUCCESS) {
        free(places);
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Gather failed");
    }
    *ret_places = places;
    return 0;
}

int trp_ranks_site(struct trp_rank_place *places, int size, const struct trp_site *site,
                   trp_error *err)
{
    trp_racks *racks;
    if (site->racks != TRP_SITE_RACKS_FILE && site->racks != TRP_SITE_RACKS_PATTERN)
        return 0;
    int rc = trp_racks_open(site, &racks, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < size; i++)
        trp_racks_of(racks, places[i].host, places[i].rack, sizeof places[i].rack);
    trp_racks_close(racks);
    return 0;
}
