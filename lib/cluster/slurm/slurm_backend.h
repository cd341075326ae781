/*
 * Slurm, as one of the backends.
 */
#ifndef TRP_CLUSTER_SLURM_SLURM_BACKEND_H
#define TRP_CLUSTER_SLURM_SLURM_BACKEND_H

#include "cluster/backend.h"

extern const struct trp_backend trp_slurm_backend;

#endif
