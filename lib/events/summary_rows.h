/*
 * The rows of the closing summary: one a stage, unless there are many. Then stages
 * whose names differ in the number at their end, at most, are one row, and when that is
 * not enough, the rows with the fewest core-seconds held are one, the rest.
 *
 *     struct trp_summary_rows rows;
 *     trp_summary_rows_make(statistics, false, &rows);
 *     … rows.v[0 … rows.n - 1], then rows.rest when it has stages …
 *     trp_summary_rows_free(&rows);
 */
#ifndef TRP_EVENTS_SUMMARY_ROWS_H
#define TRP_EVENTS_SUMMARY_ROWS_H

#include "events/statistics.h"

enum {
    TRP_SUMMARY_ROWS = 40,      /* above that, stages are put together … */
    TRP_SUMMARY_ROWS_KEPT = 30, /* … and above that again, so many and the rest */
};

/* One stage, or several together. */
struct trp_summary_row {
    const struct trp_stage_statistics *first; /* NULL: no stage */
    const struct trp_stage_statistics *worst; /* the one to tell how they ended */
    uint32_t nstages;
    const char *name;  /* theirs, or what they have in common; NULL: none */
    bool submitted;    /* one of them at least */
    bool same_profile; /* all have that of `first` */
    uint64_t tasks, attempts, failures, given_up, skipped;
    int64_t wall_ns; /* in which one of them at least was under way … */
    int64_t until;   /* … counted up to here; the total has none */
    struct trp_durations durations; /* of all their tasks */
    struct trp_seconds held, used;
    double nodes; /* node-seconds */
    double cpu;
    uint64_t flow[TRP_FLOWS];
};

struct trp_summary_rows {
    struct trp_summary_row **v; /* in the order of their first stages */
    uint32_t n;
    struct trp_summary_row rest;
    struct trp_summary_row total; /* with what no stage held; has no durations */
};

/* `all`: one a stage, however many. Cannot fail: what there is no memory for is in the
 * rest. */
void trp_summary_rows_make(const struct trp_statistics *s, bool all,
                           struct trp_summary_rows *ret);
void trp_summary_rows_free(struct trp_summary_rows *r);

/* How bad it is that a stage ended so; 0: it is not. */
int trp_outcome_badness(enum trp_outcome outcome);

#endif
