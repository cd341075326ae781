/*
 * The folders of executors whose steps went without a word.
 *
 * An executor's step removes its folder at its end (step.h). It cannot where it is
 * killed without warning: with its srun, whose death Slurm answers with SIGKILL, or
 * itself. Then another step is sent to the node at once, which shares what others have
 * (srun --overlap) and waits until the killed one is gone. Its job, or its node, is not
 * given back before that, and the run does not end, for TRP_SLURM_TIDY_NS at most. What
 * is there then, since the node or the job was lost as well, goes with the next
 * executor of the same user there.
 *
 * Before the run's folder is removed the driver is asked what of it is needed elsewhere
 * (handler.batch.needed): a step before that one copies it to the run's folder.
 */
#ifndef TRP_CLUSTER_SLURM_JOBS_TIDY_H
#define TRP_CLUSTER_SLURM_JOBS_TIDY_H

#include "cluster/slurm/shared/slurm_state.h"

#define TRP_SLURM_TIDY_NS INT64_C(10000000000)

/* An executor that was started there has left its folder. */
void trp_slurm_tidy_owe(struct trp_slurm *s, uint32_t node, uint32_t executor);
/* The run's folder, which its executors there share, is there or not any more. */
void trp_slurm_tidy_files(struct trp_slurm *s, const char *node, bool there);
/* It is to be removed on a node (TRP_NONE: on all), where it is: nobody comes there. */
void trp_slurm_tidy_owe_files(struct trp_slurm *s, uint32_t node);
/* What the driver needs of that node is to be moved; its folder stays. */
void trp_slurm_tidy_move(struct trp_slurm *s, const char *node);
/* Starts steps, and looks after those that run; when to look again, INT64_MAX: when
 * something happens. */
int64_t trp_slurm_tidy_look(struct trp_slurm *s);
/* Something is to be removed on the node; on some node of the part. */
bool trp_slurm_tidy_on(const struct trp_slurm *s, uint32_t node);
bool trp_slurm_tidy_in(const struct trp_slurm *s, uint32_t part);
/* At close, when no executor is left: waits until all is removed, or was given up. */
void trp_slurm_tidy_close(struct trp_slurm *s);
/* `troupe-rank tidy OWNER…`, the one task of such a step. Its exit status. */
int trp_slurm_tidy_main(int argc, char **argv);

#endif
