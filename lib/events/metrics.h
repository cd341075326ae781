/*
 * A run as metrics in Prometheus' text format (version 0.0.4): counts and seconds of the
 * run, of its stages, executors and jobs, as the status document has them (run_status.h), and
 * sums of its statistics. Names begin with troupe_, units are seconds and bytes, counters
 * end in _total, and each line has the run's name as a label.
 *
 * How many lines there are is bounded: of more than TRP_METRICS_STAGES stages those that
 * have not ended are told, then the last that have; troupe_run_stages_left_out says how
 * many are not, and what is of the whole run counts them all.
 *
 *     struct trp_buf b = {0};
 *     trp_metrics_put(&b, &metrics);
 */
#ifndef TRP_EVENTS_METRICS_H
#define TRP_EVENTS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bytes.h"
#include "events/run_status.h"
#include "events/statistics.h"

enum { TRP_METRICS_STAGES = 200 };

/* Everything is borrowed. Times are wall clock, ns. */
struct trp_metrics {
    const char *run, *name;
    int64_t started, ended;                /* ended 0: it has not */
    double driver_cpu;                     /* seconds */
    const struct trp_statistics *all;      /* NULL: there are none */
    const struct trp_status_stage *stages; /* all of them, in their order */
    uint32_t nstages;
    const struct trp_status_profile *profiles;
    uint32_t nprofiles;
    const struct trp_status_job *jobs;
    uint32_t njobs;
};

void trp_metrics_put(struct trp_buf *b, const struct trp_metrics *m);

#endif
