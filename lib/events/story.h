/*
 * What became of the tasks of a stage, from the event log: where they ran and how near
 * to what they prefer, which were tried again and why, which were skipped, and what was
 * told while the stage waited. For `troupe explain`.
 *
 * Of tasks that succeeded at the first try only their number by place is kept.
 *
 *     json_t *story;
 *     trp_story_read("troupe-runs/last/events.jsonl", "align", false, &story, &err);
 */
#ifndef TRP_EVENTS_STORY_H
#define TRP_EVENTS_STORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { TRP_STORY_MAX = 200 }; /* entries of a list, where not all are asked for */

/* *ret: an object by stage name, in the order in which they were first heard of:
 *
 *     {"NAME": {"tasks", "state": running, or how it ended, "reason": text or null,
 *               "submitted", "first", "ended": ms; null: not,
 *               "places": [{"host", "executor", "level", "tasks"}],
 *               "tries": [{"task", "name": text or null, "attempt", "stage_attempt", "host", "executor",
 *                          "level", "copy": bool, "ran": ms, "end": text, null: well}],
 *               "given_up": [{"task", "name", "failures", "reason", "log"}],
 *               "skipped": [{"task", "name", "after": stage, "after_name"}],
 *               "told": [{"at": ms, "text"}], "left_out": entries}}
 *
 * of all starts of the run; given up and skipped by the last one that had the stage.
 * `stage` NULL: all stages. `all`: without TRP_STORY_MAX.
 * TRP_EINVAL: no event log. */
int trp_story_read(const char *file, const char *stage, bool all, json_t **ret,
                   trp_error *err);

/* Adds a stage of which nothing is known but that. NULL: out of memory; else borrowed. */
json_t *trp_story_add(json_t *stories, const char *name, const char *state,
                      int64_t tasks);

#endif
