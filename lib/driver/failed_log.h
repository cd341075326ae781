/*
 * What an attempt that failed has printed: where it is, and its last line.
 */
#ifndef TRP_DRIVER_FAILED_LOG_H
#define TRP_DRIVER_FAILED_LOG_H

#include <stdbool.h>

#include "conf/pipeline.h"

/* An attempt of a task, and where its run is; all borrowed. */
struct trp_failed_attempt {
    const char *run_dir;
    const char *shown; /* the run's folder, as messages name it */
    const struct trp_pipeline_stage *stage;
    uint32_t task, stage_attempt, number;
    bool no_rank; /* of a gang: what started it has printed, and no rank ran */
};

/* The path of its log, malloc'ed: what it wrote to stderr, or else to stdout. NULL when
 * it printed nothing (empty logs are removed), or its stage has one log for all. */
char *trp_failed_log(const struct trp_failed_attempt *a);
/* What a message says of it, malloc'ed: "; see LOG: its last line", "; see: troupe logs …"
 * or, when it printed nothing, "". NULL: out of memory. */
char *trp_failed_log_see(const struct trp_failed_attempt *a);

#endif
