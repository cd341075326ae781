/*
 * Durations of tasks as they were measured: a stage of an event log, ours or Spark's.
 *
 * Taken are attempts that succeeded (SparkListenerTaskEnd): how long the slot was
 * taken, in ns where the log has it, else from launch to finish in ms. Of a stage whose
 * tasks were only summarised (TroupeTaskSummary) the quantiles are taken, with straight
 * lines between them.
 *
 * A log is read once, whatever the number of stages that refer to it. A line of such an
 * event that is not JSON, or no line of an event log at all, is an error with its
 * number; a last line without its end, left by a crash, is not.
 */
#ifndef TRP_SIM_RUN_EMPIRICAL_H
#define TRP_SIM_RUN_EMPIRICAL_H

#include <stdint.h>

#include "core/base/error.h"

enum { TRP_EMPIRICAL_QUANTILES = 8 };

struct trp_empirical {
    uint32_t stage; /* its id in the log */
    char *name;
    uint32_t ntasks; /* as the log says */
    int64_t *values; /* ns, in order of the log */
    uint32_t n, cap;
    int64_t quantiles[TRP_EMPIRICAL_QUANTILES]; /* ns */
    uint64_t summarised;                        /* tasks behind them */
};

/* A duration for a number in (0, 1), ns; from 0 to 2^63. */
double trp_empirical_draw(const struct trp_empirical *e, double unit);
double trp_empirical_mean(const struct trp_empirical *e);

typedef struct trp_duration_log trp_duration_log;

/* Reads a whole log. TRP_EINVAL with "FILE:LINE: …"; TRP_ESYSTEM. */
int trp_duration_log_load(const char *file, trp_duration_log **ret, trp_error *err);
void trp_duration_log_free(trp_duration_log *l);
const char *trp_duration_log_file(const trp_duration_log *l);
/* The stage of this name, the newest with durations; else the one of this id. NULL:
 * none. */
const struct trp_empirical *trp_duration_log_stage(const trp_duration_log *l,
                                                   const char *name);

#endif
