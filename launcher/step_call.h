/*
 * What `troupe` wants of a run whose driver is on another host of its Slurm job: one step
 * of that job, `srun --overlap`, which takes nothing from executors, asks the driver there
 * and hands on what is said, line by line, for as long as it is needed; or it sends one
 * signal.
 *
 *     struct trp_step_call c;
 *     if (trp_step_open(folder, host, &c, &err) == 0)
 *         trp_step_ask(&c, &q, &answer, &err);
 *     trp_step_close(&c);
 *
 * `run_dir` is the run's folder, absolute, `host` where its driver is. A step is waited
 * for 20 s, to start and to answer. SIGPIPE is ignored from the first step on. Threads:
 * one.
 */
#ifndef TRP_LAUNCHER_STEP_CALL_H
#define TRP_LAUNCHER_STEP_CALL_H

#include <sys/types.h>

#include "driver/ask.h"

struct trp_step_call {
    pid_t pid; /* of srun; 0: there is none */
    int ends[3];
};

/* Starts a step that asks, without waiting for it. TRP_ENOENT: the run is in no Slurm job;
 * TRP_ESYSTEM: srun cannot be started here; what else reading the run's specification
 * returns. *ret may be closed whatever is returned. */
int trp_step_open(const char *run_dir, const char *host, struct trp_step_call *ret,
                  trp_error *err);
/* Asks it. *ret_answer, malloc'ed, as trp_ask_call has it; else NULL. TRP_EWAIT: nothing
 * came in time; TRP_ENOENT with the words of the driver's host, or of srun; TRP_ELIMIT: no
 * whole answer. After a failure only trp_step_close is allowed: what comes late would be
 * taken for the next answer. */
int trp_step_ask(struct trp_step_call *c, const struct trp_ask *q, char **ret_answer,
                 trp_error *err);
/* Ends the step, if there is one; that takes 2 s at most. */
void trp_step_close(struct trp_step_call *c);

/* Sends a signal to process `pid`, a `troupe`, on that host, by a step of its own, and
 * waits for that. TRP_ENOENT as trp_step_open; TRP_ESTATE: no `troupe` has that number
 * there any more; TRP_EWAIT: it was not said in time, and is not known, whether the signal
 * was sent; TRP_ESYSTEM with the words of srun: it was not, as far as is known. */
int trp_step_signal(const char *run_dir, const char *host, int pid, int signal_number,
                    trp_error *err);

#endif
