/*
 * Nodes that are given back while their job goes on, by shrinking it: of the driver's
 * own job those that nothing that may still run needs, of additional jobs those on
 * which nothing runs.
 *
 * Which nodes of the driver's own job are needed is found anew when other stages may
 * run than before: the ledger plays what may run at once (core/alloc/outlook.h) on the
 * empty job (trp_slurm_ledger_keep). The driver's node and the batch host are needed
 * always, and so is a node on which nothing was ever placed: whoever asked for it has a
 * reason that is not ours, such as a task's own srun. The others are *spare*: they are
 * held, and what is new goes elsewhere; but who waits when nothing is going away any
 * more may have one.
 *
 * Slurm never frees the cores of a step that lives while its job shrinks. So the
 * driver's job is shrunk when it is *quiet*, with no step in it: between stages, whose
 * executors are held back until it is done, a few seconds at most. While steps run it
 * is shrunk when no stage to come needs another one; nothing new is placed there then,
 * as in additional jobs that were shrunk.
 *
 * A call that does not arrive is made again, later and later, and so is one that has to
 * wait for a step. What Slurm refuses is told once, and not asked for again.
 */
#ifndef TRP_CLUSTER_SLURM_JOBS_SHRINK_H
#define TRP_CLUSTER_SLURM_JOBS_SHRINK_H

#include "cluster/slurm/shared/slurm_config.h"
#include "cluster/slurm/shared/slurm_state.h"

/* TRP_ENOMEM. */
int trp_slurm_shrink_open(struct trp_slurm *s, const struct trp_slurm_config *config);
void trp_slurm_shrink_free(struct trp_slurm *s);

/* Before the queue is served: holds what is spare, and all while the job gets quiet. */
void trp_slurm_shrink_hold(struct trp_slurm *s);
/* After that: true: somebody waits who may have a held node; the queue is to be served
 * again, and then trp_slurm_shrink_hold_again called. */
bool trp_slurm_shrink_lift(struct trp_slurm *s);
void trp_slurm_shrink_hold_again(struct trp_slurm *s);
/* Then: gives back what is spare and empty. */
void trp_slurm_shrink_own(struct trp_slurm *s);
/* The job gets quiet: nothing new is placed in it for a while. */
bool trp_slurm_shrink_settling(const struct trp_slurm *s);
/* When to look again: INT64_MAX: when something happens. */
int64_t trp_slurm_shrink_due(const struct trp_slurm *s);

/* Gives the nodes of a job back for which `going` is true, unless it cannot be now.
 * `live`: steps run in it, and nothing new is placed there afterwards. */
void trp_slurm_shrink_job(struct trp_slurm_shrinking *x, const bool *going, bool live);

#endif
