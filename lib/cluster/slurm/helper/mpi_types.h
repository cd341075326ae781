/*
 * By what the ranks of a gang find each other: the types of srun --mpi=….
 *
 *     trp_slurm_mpi_types(said, types, sizeof types);    // what srun --mpi=list said
 *     code = trp_slurm_mpi_choose(site, types, TRP_LINKED_MPICH, type, &err);
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_MPI_TYPES_H
#define TRP_CLUSTER_SLURM_HELPER_MPI_TYPES_H

#include "cluster/slurm/accounts/inventory.h"
#include "conf/site.h"

/* The types in what `srun --mpi=list` printed: "none pmi2 pmix"; "": there are none. As
 * many as `ret` has room for. */
void trp_slurm_mpi_types(const char *said, char *ret, size_t size);

/* Whether the type is one of them. */
bool trp_slurm_mpi_has(const char *types, const char *type);

/* The type for a gang whose program is linked with `linked`: what the site file says,
 * else what serves that MPI and is one of `types`. With "", which means that they are not
 * known, it is the usual one. A program of which nothing is known gets the best there is.
 * TRP_ENEVER: no type serves its MPI. */
int trp_slurm_mpi_choose(const trp_site *site, const char *types,
                         enum trp_linked_mpi linked, char ret[TRP_SITE_WORD_MAX + 1],
                         trp_error *err);

#endif
