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
 * 1970; 0: not told.
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

struct trp_run_try {
    UT_hash_handle hh;
    struct trp_run_try_key {
        uint32_t stage, attempt;
    } key;
    uint32_t ntasks;
    int64_t submitted, ended;
    char *reason;        /* it failed, or came to nothing; NULL: it did not */
    char *pool;          /* NULL: it names none */
    json_t *accumulated; /* [{"id", "name", "value"}], NULL: none */
    struct trp_run_counts counts;
};

struct trp_run_executor {
    UT_hash_handle hh;
    uint32_t id;
    char *host;
    uint32_t profile;
    int64_t cores;
    int64_t added, removed;
    char *reason;      /* why it went; NULL: it has not */
    json_t *resources; /* {NAME: [ADDRESS]} */
    struct trp_run_counts counts;
};

struct trp_run_action {
    uint32_t id;
    char *name, *pool; /* NULL: none */
    int64_t submitted, ended;
    char *outcome; /* NULL: it has not ended */
    uint32_t *stages;
    uint32_t nstages;
};

/* Of one start. Tries and executors are also in hash tables, in the order in which they
 * were heard of. */
struct trp_run_part {
    char *app_id; /* NULL: not told */
    struct trp_run_try *tries;
    struct trp_run_executor *executors;
    struct trp_run_action *actions;
    uint32_t nactions, actions_capacity;
    json_t
        *profiles; /* [{"id", "name", "slots", "executor": {NAME: amount}, "task"}] */
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

/* "cpu_ns": its name in documents. */
const char *trp_run_flow_name(enum trp_flow f);

#endif
