/*
 * A run's own figures beside Slurm's, step by step: core-seconds (of ours, from when an
 * executor was there until it was gone; of Slurm's, elapsed time × CPUs), CPU time,
 * memory, and how they ended.
 *
 * A step of ours and a row of sacct belong together by job and name. When a job was
 * requeued, or had the run a second time, there are several rows of a name: it is the
 * last that had begun when ours ended.
 *
 *     struct trp_account a;
 *     trp_account_make(record, &sacct, &a);
 *     … a.profiles[0 … a.nprofiles - 1], a.total, a.steps …
 *     trp_account_free(&a);
 */
#ifndef TRP_EVENTS_ACCOUNT_H
#define TRP_EVENTS_ACCOUNT_H

#include "events/run_record.h"
#include "events/sacct.h"

struct trp_account_step {
    const struct trp_run_step *ours;
    const struct trp_sacct_row *slurm; /* NULL: it has none, or none that is over */
    double held;                       /* ours, core-seconds */
    bool agree;                        /* on how it ended: well or not */
};

/* Steps with a row, together. */
struct trp_account_sum {
    const char *profile; /* NULL: the total */
    uint32_t steps;
    double held, slurm_held, cpu, slurm_cpu;
    int64_t peak_kib, slurm_peak_kib; /* the largest */
    uint32_t completed;               /* by Slurm's word */
    uint32_t disagree;
};

struct trp_account {
    struct trp_account_step *steps;
    uint32_t nsteps, capacity;
    struct trp_account_sum *profiles; /* in the order of their first steps */
    uint32_t nprofiles, profiles_capacity;
    struct trp_account_sum total;
    double job_held;  /* Slurm's core-seconds of the jobs as a whole */
    uint32_t open;    /* steps left out: the log does not tell their end */
    uint32_t never;   /* … they never came to run anything */
    uint32_t lacking; /* steps without a row */
};

/* TRP_ENOMEM. Keeps pointers into both. */
int trp_account_make(const struct trp_run_record *ours, const struct trp_sacct *slurm,
                     struct trp_account *ret);
void trp_account_free(struct trp_account *a);

#endif
