/*
 * Nodes that Slurm says are taken though the ledger says they are free, and ghosts:
 * steps of this run whose sruns are gone, and that Slurm lists all the same.
 *
 * After slurmctld was away it counts steps that ended meanwhile until their nodes have
 * told it, and after a crash for as long as nobody ends them. A step that it refuses
 * for want of room is believed for that node: nothing new there until the steps of the
 * job were compared with those that this run has ended, by their numbers. A ghost is
 * cancelled; a node without one is used again.
 */
#ifndef TRP_CLUSTER_SLURM_STEPS_GHOSTS_H
#define TRP_CLUSTER_SLURM_STEPS_GHOSTS_H

#include "cluster/slurm/steps/executor_state.h"

/* Its timer is closed by the caller, the rest is freed with the cluster. */
void trp_slurm_ghosts_open(struct trp_slurm *s);

/* The srun of one that is placed was refused, not for good, or is gone without a word:
 * nothing new on its nodes until that was looked into. */
void trp_slurm_ghosts_refused(struct trp_slurm *s, const struct trp_slurm_request *r,
                              const char *refusal);
/* Slurm has started it: what it says of nodes is true again. */
void trp_slurm_ghosts_started(struct trp_slurm *s);
/* Its srun is gone, and so is its step to be. */
void trp_slurm_ghosts_over(const struct trp_slurm_executor *e);

#endif
