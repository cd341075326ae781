/*
 * A batch job that Slurm starts again (scontrol requeue, a node that failed) runs its
 * script from the beginning: `troupe run` in it goes on with the run that it had begun.
 */
#ifndef TRP_LAUNCHER_REQUEUE_H
#define TRP_LAUNCHER_REQUEUE_H

#include "run_call.h"

/* In such a job: a pipeline's call becomes that of --resume with the job's own run of
 * it, which is told on stderr; a program's run, which cannot go on, is named RUN-rN the
 * N-th time where RUN is given. `ret_name` holds the name that `c` then borrows; free
 * it. `runs`: the folder of runs. */
int trp_requeue_settle(struct trp_run_call *c, const char *runs, char **ret_name,
                       trp_error *err);

#endif
