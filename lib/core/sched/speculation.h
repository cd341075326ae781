/*
 * Speculation: which running attempt is so slow that its task gets a second one
 * (semantics, section 11).
 *
 * Words. The *record* of a task set has the durations of its own successful attempts.
 * An attempt is *slow* when it has run longer than a threshold: a multiple of their
 * median once a quantile of the tasks is done (*by median*), or, before that, a fixed
 * duration if one is set and the set fits on one executor (*by duration*). A slow one
 * by median must also be *inefficient*, unless that check is off: far over the
 * threshold, or reading fewer records a second than the successful ones did.
 *
 *     trp_speculation_succeeded(record, duration_ns, records);
 *     if (trp_speculation_gate(&config, record, &set, &gate))
 *         for (each running attempt that is the only one of its task, not marked)
 *             if (trp_speculation_judge(&config, record, &gate, &facts, now))
 *                 mark its task;
 *
 * Costs. A success is O(log n), a gate and a judgement O(1). Without a record (the
 * option is off) there is nothing to ask.
 */
#ifndef TRP_CORE_SCHED_SPECULATION_H
#define TRP_CORE_SCHED_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

#define TRP_SPECULATION_NEVER INT64_MAX

/* Checked where options are read (conf/options_table.c). Times in ns. */
struct trp_speculation_config {
    bool enabled;
    int64_t interval_ns;
    double quantile;   /* the part of a set's tasks that must be done … */
    double multiplier; /* … before so many times their median is slow */
    int64_t min_runtime_ns;
    int64_t duration_threshold_ns; /* what is slow before that; 0: nothing */
    bool efficiency;
    double rate_multiplier;   /* inefficient below this part of the mean rate */
    double long_run_factor;   /* or above so many times the threshold */
    int64_t kill_interval_ns; /* from an executor's notice to its end; 0: not known */
};

/* ---- the record of a task set ---- */

typedef struct trp_speculation trp_speculation;

trp_speculation *trp_speculation_new(void); /* NULL: out of memory */
void trp_speculation_free(trp_speculation *s);

/* An attempt of this set was the first of its task to succeed. `records`: read in all,
 * 0 when not known. TRP_ENOMEM: not taken in. */
int trp_speculation_succeeded(trp_speculation *s, int64_t duration_ns,
                              uint64_t records);

/* The upper median of the durations, 0 when there are none. */
int64_t trp_speculation_median(const trp_speculation *s);

/* ---- is anything slow? ---- */

/* Of a task set. */
struct trp_speculation_set {
    uint32_t ntasks;
    uint32_t slots; /* of one executor of its profile; 1: cores not known */
    bool barrier, zombie;
};

/* How slow an attempt must be for now. */
struct trp_speculation_gate {
    int64_t threshold_ns; /* an attempt that has run longer is slow */
    bool by_median;
};

/* False: nothing in this set can be slow now. The gate holds until the next success. */
bool trp_speculation_gate(const struct trp_speculation_config *c,
                          const trp_speculation *s,
                          const struct trp_speculation_set *set,
                          struct trp_speculation_gate *ret_gate);

/* Of a running attempt that is the only one of its task. */
struct trp_speculation_facts {
    int64_t launched_ns;
    double rate;               /* trp_speculation_rate when last heard of; 0: never */
    int64_t decommissioned_ns; /* its executor's, TRP_SPECULATION_NEVER: not */
};

/* Records a second; 0 when nothing was read or no time has passed. */
double trp_speculation_rate(uint64_t records, int64_t run_ns);

/* Is it to be copied? */
bool trp_speculation_judge(const struct trp_speculation_config *c,
                           const trp_speculation *s,
                           const struct trp_speculation_gate *gate,
                           const struct trp_speculation_facts *facts, int64_t now_ns);

#endif
