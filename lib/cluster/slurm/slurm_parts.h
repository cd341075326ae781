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
#include "cluster/slurm/shared/slurm_config.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/ghosts.h"

/* Copies what it needs but `site`; `loop`, `command` and `handler` as of
 * trp_cluster_local_new. Asks Slurm
 * nothing. TRP_ENOENT: it is no running job of this user; TRP_ESYSTEM: troupe-slurm
 * cannot be started. */
int trp_cluster_slurm_new(uv_loop_t *loop, const struct trp_slurm_config *config,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err);

/* slurm.c: what the cluster can do, and its pump. */
extern const struct trp_cluster_ops trp_slurm_ops;
void trp_slurm_on_pump(uv_timer_t *timer);

#endif
