/*
 * Kept as one time, that at which the bucket will be full: a call moves it on by the
 * time in which a call is earned. No counting, no rounding, nothing to do while time
 * passes.
 */
#include "cluster/slurm/accounts/budget.h"

#include <string.h>

static const int64_t SECOND = INT64_C(1000000000);
enum { MINUTE_S = 60, PAUSE_MAX_S = 60 };

void trp_slurm_budget_open(struct trp_slurm_budget *b, int64_t limit)
{
    memset(b, 0, sizeof *b);
    if (limit <= 0)
        return;
    b->each_ns = MINUTE_S * SECOND * 4 / (3 * limit);
    b->most_ns = MINUTE_S * SECOND / 3; /* limit / 4 calls */
}

void trp_slurm_budget_share(struct trp_slurm_budget *b, int64_t calls, int64_t call_ms)
{
    memset(b, 0, sizeof *b);
    b->each_ns = call_ms * (SECOND / 1000) * 4 / 3;
    b->most_ns = b->each_ns * calls / 2;
}

int64_t trp_slurm_budget_when(const struct trp_slurm_budget *b, int64_t now, uint64_t n)
{
    int64_t at = b->pause_end;
    if (b->each_ns) {
        int64_t most = b->most_ns / b->each_ns;
        int64_t take = n < (uint64_t)most ? (int64_t)n * b->each_ns : b->most_ns;
        int64_t earned = b->full_at + take - b->most_ns;
        at = earned > at ? earned : at;
    }
    return at > now ? at : now;
}

void trp_slurm_budget_take(struct trp_slurm_budget *b, int64_t now, uint64_t n)
{
    if (b->full_at < now)
        b->full_at = now;
    b->full_at += (int64_t)n * b->each_ns;
}

void trp_slurm_budget_refused(struct trp_slurm_budget *b, int64_t now)
{
    if (now < b->pause_end)
        return;
    b->pause_ns = b->pause_ns ? 2 * b->pause_ns : SECOND;
    if (b->pause_ns > PAUSE_MAX_S * SECOND)
        b->pause_ns = PAUSE_MAX_S * SECOND;
    b->pause_end = now + b->pause_ns;
}

void trp_slurm_budget_accepted(struct trp_slurm_budget *b)
{
    b->pause_ns = 0;
}
