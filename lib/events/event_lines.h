/*
 * Reading an event log: line by line, only the events that somebody wants. A last line
 * that a crash has left unfinished is skipped.
 *
 *     static const struct trp_event_line_kind kinds[] = {
 *         {"SparkListenerTaskEnd", take_end}};
 *     trp_event_lines_read("troupe-runs/last/events.jsonl", kinds, 1, &mine, &err);
 */
#ifndef TRP_EVENTS_EVENT_LINES_H
#define TRP_EVENTS_EVENT_LINES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct trp_event_line_kind {
    const char *word; /* what "Event" is */
    /* 0, TRP_ENOMEM, or TRP_EINVAL: it is not what such an event looks like. */
    int (*take)(void *context, const json_t *event);
};

/* TRP_EINVAL: the file cannot be read, or a line (named) is no event. */
int trp_event_lines_read(const char *file, const struct trp_event_line_kind *kinds,
                         size_t nkinds, void *context, trp_error *err);

/* A number of the event in milliseconds as nanoseconds; 0 when it is none that can be.
 */
int64_t trp_event_ms(const json_t *number);

#endif
