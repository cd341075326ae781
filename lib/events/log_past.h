/*
 * What an event log says of the earlier starts of a run that is resumed: for Spark's
 * readers all of them are one application, whose jobs, stage attempts, executors and
 * tasks are numbered on from start to start. A start that died has left jobs, stages,
 * tasks and executors without an end; they get one.
 *
 *     struct trp_log_past past;
 *     struct trp_buf ends = {0};
 *     trp_log_past_read("troupe-runs/r/events.jsonl", &past, &ends);
 *     // append `ends` to the log, then number from past.next on
 */
#ifndef TRP_EVENTS_LOG_PAST_H
#define TRP_EVENTS_LOG_PAST_H

#include <stdint.h>

#include "core/base/bytes.h"

enum { TRP_APP_ID_MAX = 64 };

/* The first number that no start has used. */
struct trp_log_next {
    uint32_t job, executor, task, stage_attempt;
};

struct trp_log_past {
    char app_id[TRP_APP_ID_MAX]; /* of all starts; "": there was none */
    int64_t started;             /* the first of them, wall clock, ns */
    struct trp_log_next next;
};

/* Reads the end of a log whose last start ended in order, and the whole of one whose
 * last start died. `ret_ends` (may be NULL) gets the ends that are missing, as lines,
 * at the time of the last event. A log that is not there, or that breaks off in
 * something that is no event, tells what it tells up to there. TRP_ENOMEM. */
int trp_log_past_read(const char *file, struct trp_log_past *ret,
                      struct trp_buf *ret_ends);

/* What the last line of a start says of its past and itself, for the next one:
 * `"Troupe Next":{…}`. */
void trp_log_past_put(struct trp_buf *b, const struct trp_log_past *past);

#endif
