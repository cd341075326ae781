/*
 * What runs on a node in front of an executor: `troupe-rank step own|additional DEVICES
 * … SCRIPTS … -- mpirun …`, the one task of the executor's srun step. A script is
 * RESOURCE=COUNT=VARIABLE=PATH: a discovery script, run where the variable is empty.
 *
 * It makes a folder of the node's own for mpirun's files, tells the driver through srun
 * what the step was given (the variables DEVICES, its memory group), waits for the
 * driver's word, starts mpirun with the executor's log as output, and ends it when the
 * driver closes the pipe or Slurm says so. So nothing of an executor stays on its node,
 * although the driver is elsewhere.
 *
 * On stdout, lines of cluster/slurm/helper/line.h with number 0:
 *
 *     0 started step=3 pid=71 host=node2 CUDA_VISIBLE_DEVICES=0,1 discovered.fpga=a,b
 *     0 leaving                       Slurm ends it
 *     0 failed text=…                 it will not start anything
 *     0 ending                        it is about to end, told to or not
 *     0 ended status=0 signal=0 kills=0 peak=212
 *
 * Its folder is made after "go" and removed before "ended": where a step goes without
 * that word its folder is left, and another step is sent for it (tidy.h).
 *
 * On stdin a line "go"; then the end of it, which means: end now. A line "end" before
 * that says that the driver wants it so, and is not gone.
 */
#ifndef TRP_CLUSTER_SLURM_STEPS_STEP_H
#define TRP_CLUSTER_SLURM_STEPS_STEP_H

#include <stdint.h>

#include "os/private_folder.h"

#define TRP_SLURM_DISCOVERED "discovered." /* in front of the resource */

/* Returns the exit status. */
int trp_slurm_step_main(int argc, char **argv);
/* rank_keep.c: a rank of a gang in a Slurm step, with a process in front of it; called
 * as trp_gang_rank_main is. */
int trp_slurm_rank_main(int argc, char **argv);

/* The driver of the additional job that this process runs in is gone: cancels the job,
 * however long slurmctld is away. A job in which nothing runs would live on to its time
 * limit. */
void trp_slurm_end_own_job(void);

#endif
