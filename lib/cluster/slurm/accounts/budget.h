/*
 * How often Slurm may be called: a token bucket, filled by slurm.max_rpcs_per_minute or
 * below the limit that the site has set for each user, and a pause after Slurm itself
 * has said that it was too often.
 *
 *     trp_slurm_budget_open(&b, 300);
 *     at = trp_slurm_budget_when(&b, now, 3);
 *     if (at <= now) { … start an srun …; trp_slurm_budget_take(&b, now, 3); }
 *
 * A quarter of the limit may be spent at once, the rest comes evenly over a minute: so
 * no minute has more than the limit. What cannot wait is taken all the same and paid
 * back before anything else starts. Times are nanoseconds of any clock that does not
 * go back. Pure.
 */
#ifndef TRP_CLUSTER_SLURM_ACCOUNTS_BUDGET_H
#define TRP_CLUSTER_SLURM_ACCOUNTS_BUDGET_H

#include <stdint.h>

struct trp_slurm_budget {
    int64_t each_ns;  /* a call is earned in this time; 0: no limit */
    int64_t most_ns;  /* the time in which an empty bucket is full */
    int64_t full_at;  /* when it is full again */
    int64_t pause_ns; /* the last pause; 0: none since a start went well */
    int64_t pause_end;
};

/* `limit` calls a minute; 0: no limit. */
void trp_slurm_budget_open(struct trp_slurm_budget *b, int64_t limit);
/* Below Slurm's own limit, `calls` at once and another each `call_ms`: half of the
 * first and three quarters of the second, the rest is for what else the user does. */
void trp_slurm_budget_share(struct trp_slurm_budget *b, int64_t calls, int64_t call_ms);
/* From when on `n` calls may be made: not after `now` when that is at once. More than
 * the bucket holds may be made when it is full. */
int64_t trp_slurm_budget_when(const struct trp_slurm_budget *b, int64_t now,
                              uint64_t n);
/* They are made. */
void trp_slurm_budget_take(struct trp_slurm_budget *b, int64_t now, uint64_t n);
/* Slurm has refused a call because there were too many: nothing for 1 s, 2 s, 4 s … 60
 * s. What is refused within a pause belongs to it. */
void trp_slurm_budget_refused(struct trp_slurm_budget *b, int64_t now);
/* It took one: the next pause is short again. */
void trp_slurm_budget_accepted(struct trp_slurm_budget *b);

#endif
