/*
 * What a task set's record of failures is made of. Internal to sched; health.h is the
 * contract, health.c the design.
 */
#ifndef TRP_CORE_SCHED_HEALTH_RECORD_H
#define TRP_CORE_SCHED_HEALTH_RECORD_H

#include <uthash.h>

#include "core/sched/health.h"

enum trp_health_kind {
    TRP_HEALTH_TASK_EXECUTOR,
    TRP_HEALTH_TASK_NODE,
    TRP_HEALTH_EXECUTOR,
    TRP_HEALTH_NODE,
};

/* No padding: it is hashed and compared as bytes. */
struct trp_health_key {
    uint32_t kind, task, place; /* task TRP_NONE: of no task */
};

struct trp_health_entry {
    struct trp_health_key key;
    uint32_t node;
    uint32_t count;
    uint32_t tasks; /* of an executor or node: tasks excluded there */
    bool excluded;
    int64_t failed_ns;             /* of a task on an executor: the latest failure */
    struct trp_health_entry *next; /* from an executor: its tasks that failed there */
    UT_hash_handle hh;
};

struct trp_health {
    struct trp_health_entry *entries;
    char *why; /* of the latest failure, or NULL */
};

/* Is the node excluded for the whole set? */
bool trp_health_stage_node_out(const struct trp_health *record, uint32_t node);

#endif
