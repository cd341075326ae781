/*
 * What becomes of the nodes of all jobs, and of their ends, while the run goes on:
 * Slurm is asked every `slurm.poll`, and less often while there is no news.
 *
 * A node that its admin drains gets nothing new, and its executors are told to the
 * driver as leaving. A node that the job has lost counts no more. A host on which an
 * executor has vanished, or has not started, is doubtful until something answers there,
 * or Slurm has not missed it for longer than it takes to. When a start there fails for
 * want of an answer, the next one is when Slurm was asked again.
 */
#ifndef TRP_CLUSTER_SLURM_JOBS_NODE_WATCH_H
#define TRP_CLUSTER_SLURM_JOBS_NODE_WATCH_H

#include "cluster/slurm/shared/slurm_state.h"

/* Begins, in a cluster that runs things. Its timer is closed by the caller, the rest is
 * freed with the cluster. TRP_ENOMEM. */
int trp_slurm_watch_open(struct trp_slurm *s, uint64_t poll_ms);

/* Nothing is known to be well there: others first, and Slurm is asked soon. `how`: one
 * of refused, doubtful and silent. It holds for the host, in all jobs. */
void trp_slurm_watch_doubt(struct trp_slurm *s, uint32_t node,
                           enum trp_slurm_standing how);
/* It is well, if it was doubtful. */
void trp_slurm_watch_trust(struct trp_slurm *s, uint32_t node);
/* A part was added: what is known of its hosts holds there. */
void trp_slurm_watch_part(struct trp_slurm *s, uint32_t part);
bool trp_slurm_watch_has_doubts(const struct trp_slurm *s);

#endif
