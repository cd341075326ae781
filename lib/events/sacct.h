/*
 * What sacct prints, read strictly: rows of jobs and steps, called as
 *
 *     SLURM_TIME_FORMAT=%s sacct --parsable2 --noheader --noconvert --duplicates
 *         --format=TRP_SACCT_FORMAT --jobs=12,13
 *
 * A line that is no such row is an error that shows it: another version of Slurm's, or
 * a name with a line feed in it.
 */
#ifndef TRP_EVENTS_SACCT_H
#define TRP_EVENTS_SACCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* The name last: it may have a | in it. */
#define TRP_SACCT_FORMAT                                                               \
    "JobIDRaw,State,ExitCode,AllocCPUS,ElapsedRaw,TotalCPU,MaxRSS,Start,JobName"

enum { TRP_SACCT_NO_STEP = -1 };

struct trp_sacct_row {
    uint32_t job;
    int64_t step; /* TRP_SACCT_NO_STEP: the job itself, its batch step, … */
    bool is_job;  /* the job itself */
    char *state;  /* COMPLETED, without what stands behind it ("by 1000") */
    int exit_status, signal;
    uint64_t cpus;
    int64_t elapsed_s, start_s; /* start: since 1970; 0: it has not begun */
    double cpu_s;               /* user and system */
    int64_t rss_kib;            /* of the largest task; 0: not known */
    char *name;
};

struct trp_sacct {
    struct trp_sacct_row *rows;
    uint32_t n, capacity;
};

/* TRP_EINVAL: "line 3 of sacct's: … in …". After a failure there is nothing to free. */
int trp_sacct_parse(const char *text, struct trp_sacct *ret, trp_error *err);
void trp_sacct_free(struct trp_sacct *s);

/* It is over, however it ended. */
bool trp_sacct_is_over(const struct trp_sacct_row *r);

#endif
