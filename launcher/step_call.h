/*
 * Asking a run whose driver is on another node of its Slurm job: one step of that job,
 * `srun --overlap`, which takes nothing from executors, asks the driver there and hands
 * on what is said, line by line, for as long as it is needed.
 *
 *     struct trp_step_call c;
 *     if (trp_step_open(folder, host, &c, &err) == 0)
 *         trp_step_ask(&c, &q, &answer, &err);
 *     trp_step_close(&c);
 */
#ifndef TRP_LAUNCHER_STEP_CALL_H
#define TRP_LAUNCHER_STEP_CALL_H

#include <sys/types.h>

#include "driver/ask.h"

struct trp_step_call {
    pid_t pid; /* of srun; 0: there is none */
    int ends[3];
};

/* `host`: the driver's. TRP_ENOENT: the run is in no Slurm job; TRP_ESYSTEM: srun cannot
 * be had here. */
int trp_step_open(const char *run_dir, const char *host, struct trp_step_call *ret,
                  trp_error *err);
/* *ret_answer: as trp_ask_call has it. TRP_EWAIT: nothing came in time; TRP_ENOENT with
 * the words of the driver's node, or of srun. */
int trp_step_ask(struct trp_step_call *c, const struct trp_ask *q, char **ret_answer,
                 trp_error *err);
void trp_step_close(struct trp_step_call *c);

/* Sends a signal to process `pid`, a `troupe`, on the driver's host, by a step of its own.
 * TRP_ENOENT as trp_step_open; TRP_ESYSTEM: it did not come there, as far as is known. */
int trp_step_signal(const char *run_dir, const char *host, int pid, int signal_number,
                    trp_error *err);

#endif
