/*
 * What the making of a Slurm cluster (slurm_make.c) and its interface (slurm.c) share,
 * and all parts of it.
 */
#ifndef TRP_CLUSTER_SLURM_PARTS_H
#define TRP_CLUSTER_SLURM_PARTS_H

#include "cluster/slurm/jobs/additional.h"
#include "cluster/slurm/jobs/node_watch.h"
#include "cluster/slurm/jobs/shrink.h"
#include "cluster/slurm/jobs/tidy.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/ghosts.h"

/* slurm.c: what the cluster can do, and its pump. */
extern const struct trp_cluster_ops trp_slurm_ops;
void trp_slurm_on_pump(uv_timer_t *timer);

#endif
