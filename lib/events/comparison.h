/*
 * Two runs side by side, stage by stage: what each took of time, attempts, seconds held
 * and used, and bytes; and by how much they differ.
 *
 * Stages belong together by name: those of one name in a run count as one. Of more than
 * TRP_SUMMARY_ROWS names, those that differ in the number at their end are one, too, and
 * when that is not enough, the rows that differ least are one, the rest. All starts of a
 * run that was resumed count together, since what an earlier one has done, a later one
 * does not do again: times, attempts and seconds are added up, tasks are counted once,
 * and what was given up or skipped is what the last of them left so.
 *
 *     struct trp_comparison c;
 *     if (trp_comparison_make(&a, &b, false, &c) == 0) {
 *         … c.rows[0 … c.n - 1]->of[0], ->of[1] …
 *         trp_comparison_free(&c);
 *     }
 */
#ifndef TRP_EVENTS_COMPARISON_H
#define TRP_EVENTS_COMPARISON_H

#include "events/run_record.h"

/* A row in one of the two runs. */
struct trp_compared {
    uint32_t nstages;         /* 0: it has none of that name */
    bool submitted;           /* one of them at least */
    enum trp_outcome outcome; /* of the one that ended worst; RUNNING of one that was
                               * never submitted only when none was */
    bool waited;              /* `outcome` is of one that was never submitted */
    uint64_t tasks, attempts, failures, given_up, skipped;
    int64_t wall_ns; /* from submission to end, of all of them */
    struct trp_durations durations;
    struct trp_seconds held, used; /* devices by place in the comparison's */
    double cpu, nodes;             /* seconds of CPU time; node-seconds */
    uint64_t flow[TRP_FLOWS];
    /* Of executors: */
    const char *profile; /* NULL: it is not known, or they have several */
    double cores;        /* of one; 0 without a profile */

    uint32_t start; /* the last that had it, and what that had of … */
    uint64_t tasks_then;
};

struct trp_comparison_row {
    const char *name;
    struct trp_compared of[2];
    /* Its part in what changed: of the wall time of the slower run and of the
     * core-seconds of the one that held more. They are sorted by it. */
    double weight;
    uint32_t first; /* where its first stage stood */
};

struct trp_comparison {
    struct trp_comparison_row **rows;
    uint32_t n;
    struct trp_comparison_row rest, total; /* without durations; total: with what no
                                            * stage held */
    uint32_t more, in_both; /* rows in the rest; of all, those that both runs have */
    char device[TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX];
    uint32_t ndevices;
};

/* `all`: a row for each name, however many there are. Both are settled. TRP_ENOMEM. */
int trp_comparison_make(struct trp_run_records *a, struct trp_run_records *b, bool all,
                        struct trp_comparison *ret);
void trp_comparison_free(struct trp_comparison *c);

/* By how much `b` is more than `a`, in parts of `a`: 0.5 is half as much again. NAN: of
 * nothing. */
double trp_comparison_part(double a, double b);

#endif
