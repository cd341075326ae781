/*
 * Exclusion on failure: who is not given tasks because tasks failed there (semantics,
 * section 12).
 *
 * Words. A *failure* here is one that counts (section 9) of a set that is not a zombie.
 * The *record* of a task set excludes, for that set and as long as it lives: a task
 * from an executor, a task from a node, an executor, a node. The *tracker* of the
 * application excludes executors and nodes from everything for a time; it learns of
 * failures only when their set succeeded. Executors, nodes and tasks are numbers.
 *
 *     struct trp_health *record = NULL;                  (of a set; lazily made)
 *     trp_health_failed(&config, &record, now, task, executor, node, "exit 1");
 *     if (trp_health_at(record, executor, node) != TRP_HEALTH_OUT &&
 *         !trp_health_task_out(record, task, executor, node)) launch;
 *     trp_health_succeeded(tracker, now, record);        (all tasks of it succeeded)
 *
 * Costs. All queries are O(1), and a test of a pointer or a count while nothing has
 * failed. Nothing is kept for what has not failed.
 */
#ifndef TRP_CORE_SCHED_HEALTH_H
#define TRP_CORE_SCHED_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Checked where options are read (conf/options_table.c). Times in ns. */
struct trp_health_config {
    bool enabled;
    int64_t timeout_ns; /* how long the application excludes, and a failure counts */
    /* Failures until … is excluded, … */
    uint32_t task_attempts_per_executor; /* a task from an executor */
    uint32_t task_attempts_per_node;     /* a task from a node */
    uint32_t stage_tasks_per_executor;   /* an executor from a set */
    uint32_t stage_executors_per_node; /* a node from a set: executors excluded there */
    uint32_t app_tasks_per_executor;   /* the same from the application */
    uint32_t app_executors_per_node;
    bool fetch_failure;     /* a failed fetch excludes where it came from */
    bool kill;              /* executors that the application excludes are ended … */
    bool kill_decommission; /* … after what runs there */
    int64_t unschedulable_ns; /* how long a set waits that is excluded everywhere */
};

/* ---- the record of a task set ---- */

struct trp_health;

/* Takes in a counted failure; *record is made at the first one. Does nothing when
 * `config` is off. `why` (NULL: unknown) is copied: the latest one is told to people.
 * TRP_ENOMEM: the failure is not (or not wholly) taken in. */
int trp_health_failed(const struct trp_health_config *config,
                      struct trp_health **record, int64_t now_ns, uint32_t task,
                      uint32_t executor, uint32_t node, const char *why);
/* NULL is ignored, here and below: it is a set in which nothing failed. */
void trp_health_free(struct trp_health *record);

/* What an offer of an executor is worth to the set. */
enum trp_health_verdict {
    TRP_HEALTH_IN,   /* no task is excluded there */
    TRP_HEALTH_SOME, /* some may be: ask trp_health_task_out for each */
    TRP_HEALTH_OUT,  /* the executor, or its node, is excluded for the set */
};
enum trp_health_verdict trp_health_look(const struct trp_health *record,
                                        uint32_t executor, uint32_t node);
static inline enum trp_health_verdict trp_health_at(const struct trp_health *record,
                                                    uint32_t executor, uint32_t node)
{
    return record ? trp_health_look(record, executor, node) : TRP_HEALTH_IN;
}

/* Is the task excluded from the executor or its node? (Not: are these excluded for the
 * whole set; trp_health_at tells that.) */
bool trp_health_look_task(const struct trp_health *record, uint32_t task,
                          uint32_t executor, uint32_t node);
static inline bool trp_health_task_out(const struct trp_health *record, uint32_t task,
                                       uint32_t executor, uint32_t node)
{
    return record && trp_health_look_task(record, task, executor, node);
}

/* The latest failure's reason, "" when there is none. The record's. */
const char *trp_health_latest(const struct trp_health *record);

/* One exclusion; what does not apply is TRP_NONE: {task, executor}, {task, node},
 * {executor, its node}, {node}. */
struct trp_exclusion {
    uint32_t task, executor, node;
    bool is_node; /* of the node; else of the executor */
};
/* All exclusions of a set, in the order they were first thought of. *cursor is NULL
 * first. False after the last. */
bool trp_health_each(const struct trp_health *record, const void **cursor,
                     struct trp_exclusion *ret_exclusion);

/* ---- the application's tracker ---- */

typedef struct trp_health_tracker trp_health_tracker;

/* `config` is resolved and copied. NULL: out of memory. */
trp_health_tracker *trp_health_tracker_new(const struct trp_health_config *config);
void trp_health_tracker_free(trp_health_tracker *t);

/* What a call changed: executors and nodes newly excluded, or no longer. The tracker's,
 * until its next call that changes something. With config.kill the newly excluded
 * executors, and all executors of newly excluded nodes, are to be killed (or, with
 * kill_decommission, decommissioned). */
struct trp_health_news {
    const uint32_t *executors, *nodes;
    uint32_t nexecutors, nnodes;
};

/* All tasks of a set have succeeded: its failures count for the application, each until
 * its own time + timeout. TRP_ENOMEM. `ret_news` may be NULL, here and below. */
int trp_health_succeeded(trp_health_tracker *t, int64_t now_ns,
                         const struct trp_health *record,
                         struct trp_health_news *ret_news);

/* An output could not be fetched from there: excludes the executor, or with a shuffle
 * service the whole node, when application.fetchFailure.enabled. `executor` may be
 * TRP_NONE: unknown. TRP_ENOMEM. */
int trp_health_fetch_failed(trp_health_tracker *t, int64_t now_ns, uint32_t executor,
                            uint32_t node, bool service,
                            struct trp_health_news *ret_news);

/* Excludes from outside until now + timeout; for what is excluded already, nothing. An
 * executor counts among the excluded ones of its node when the next one fails there.
 * TRP_ENOMEM. */
int trp_health_exclude_executor(trp_health_tracker *t, int64_t now_ns,
                                uint32_t executor, uint32_t node);
int trp_health_exclude_node(trp_health_tracker *t, int64_t now_ns, uint32_t node);

/* An executor is gone: its failures are forgotten, its exclusion is not. */
void trp_health_executor_gone(trp_health_tracker *t, uint32_t executor);

/* Drops the exclusions that ended before `now` (strictly). */
void trp_health_expire(trp_health_tracker *t, int64_t now_ns,
                       struct trp_health_news *ret_news);
/* The first time at which trp_health_expire will drop something; INT64_MAX: never. */
int64_t trp_health_next_expiry(const trp_health_tracker *t);

/* NULL is a tracker that excludes nothing. */
bool trp_health_executor_excluded(const trp_health_tracker *t, uint32_t executor);
bool trp_health_node_excluded(const trp_health_tracker *t, uint32_t node);

/* Those excluded now, oldest first; *cursor is NULL first. False after the last. */
bool trp_health_each_executor(const trp_health_tracker *t, const void **cursor,
                              uint32_t *ret_executor);
bool trp_health_each_node(const trp_health_tracker *t, const void **cursor,
                          uint32_t *ret_node);

/* ---- for people ---- */

/* Why this task may not run on this executor of `node_name`: the first reason, from the
 * application's down to the task's, with the option behind it; "" when nothing is
 * excluded. Returns buf. */
char *trp_health_why(const struct trp_health_config *config,
                     const trp_health_tracker *t, const struct trp_health *record,
                     uint32_t task, uint32_t executor, uint32_t node,
                     const char *executor_name, const char *node_name, char *buf,
                     size_t size);

/* Why a set is given up of which a task can run nowhere (12.4). Returns buf. */
char *trp_health_nowhere(const struct trp_health *record, uint32_t task, uint32_t stage,
                         uint32_t attempt, char *buf, size_t size);

#endif
