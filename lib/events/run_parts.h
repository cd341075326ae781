/*
 * What a run was made of, as its event log tells it and as Spark's History Server counts
 * it: actions (its jobs), attempts of stages, executors, profiles. Gathered in the same
 * pass over the log as the records (run_record.h).
 *
 *     struct trp_run_parts parts;
 *     if (trp_run_parts_read("RUN/events.jsonl", NULL, &records, &parts, &err) == 0) {
 *         … parts.v[i] belongs to records.v[i] …
 *         trp_run_parts_free(&parts);
 *         trp_run_records_free(&records);
 *     }
 *
 * Numbers are those of the log, where all starts of a run number on. Times are ms since
 * 1970; null: not told.
 */
#ifndef TRP_EVENTS_RUN_PARTS_H
#define TRP_EVENTS_RUN_PARTS_H

#include <jansson.h>
#include <uthash.h>

#include "events/run_record.h"

/* Of each flow up to this one there are sums. */
enum { TRP_RUN_FLOWS = TRP_FLOW_SPILLED + 1 };

/* Attempts of tasks that have ended. */
struct trp_run_counts {
    uint64_t succeeded;
    uint64_t failed;
    uint64_t killed;     /* by the run itself, or not let name what they wrote */
    uint64_t summarised; /* of those: they have no lines of their own in the log */
    int64_t task_ms;     /* from launch to end; not of those that were summarised */
    int64_t flow[TRP_RUN_FLOWS];
};

/* An attempt of a stage, or an executor: what is told of it, in the words of
 * `troupe report --json`, its counts among them. */
struct trp_run_counted {
    UT_hash_handle hh;
    struct trp_run_key {
        uint32_t id, attempt; /* of a stage; of an executor: its number, 0 */
    } key;
    json_t *told;
    struct trp_run_counts counts;
};

/* Of one start. Tries and executors are hash tables, in the order in which they were
 * heard of. */
struct trp_run_part {
    json_t *told; /* {"app_id", "actions", "executors", "profiles"} */
    struct trp_run_counted *tries, *executors;
};

struct trp_run_parts {
    struct trp_run_part **v;
    uint32_t n, capacity;
};

/* As trp_run_records_read, which it calls. After a failure there is nothing to free.
 * `also` listens in the same pass; NULL: nobody does. */
int trp_run_parts_read(const char *file, const struct trp_log_reader *also,
                       struct trp_run_records *ret_records, struct trp_run_parts *ret,
                       trp_error *err);
void trp_run_parts_free(struct trp_run_parts *p);

#endif
