/*
 * Exclusion: executors and hosts where too much failed (semantics, section 12).
 */
#ifndef TRP_CORE_SCHED_EXCLUSION_H
#define TRP_CORE_SCHED_EXCLUSION_H

#include "core/engine_state.h"

int trp_exclusion_init(struct trp_engine *e, trp_error *err);
/* A counted failure at an executor. */
void trp_exclusion_failed(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                          uint32_t executor, const char *why);
/* All tasks of a set succeeded and nothing of it runs any more. */
void trp_exclusion_set_succeeded(struct trp_engine *e, struct trp_task_set *s);
void trp_exclusion_fetch_failed(struct trp_engine *e, uint32_t executor);
void trp_exclusion_executor_came(struct trp_engine *e, struct trp_executor *x);
void trp_exclusion_refresh(struct trp_engine *e); /* excluded from outside */
void trp_exclusion_expire(struct trp_engine *e);
/* The pending task that would be next; TRP_NONE: none is pending. */
uint32_t trp_exclusion_next(const struct trp_task_set *s);
/* A round launched nothing of `s`: can its next task run anywhere? (12.4) `x`: a live
 * executor of its class that was offered, looked at first; or NULL. */
void trp_exclusion_check_stuck(struct trp_engine *e, struct trp_task_set *s,
                               const struct trp_executor *x);
/* Can its next task run nowhere, as things are? One that came meanwhile may have to
 * wait for a launch there. O(executors). */
bool trp_exclusion_is_stuck(const struct trp_engine *e, const struct trp_task_set *s);
/* Is any set of the class to be given up, as things were when it was last looked at? */
bool trp_exclusion_any_stuck(const struct trp_engine *e, const struct trp_class *c);
/* Something was launched: nobody is stuck. */
void trp_exclusion_none_stuck(struct trp_engine *e);
void trp_exclusion_not_stuck(struct trp_engine *e, struct trp_task_set *s);
/* Of a set that can run nowhere: another executor is requested, and none has come since.
 * It is not given up: that there is no room now is no failure. */
bool trp_exclusion_awaits(const struct trp_engine *e, const struct trp_task_set *s);
int64_t trp_exclusion_due(const struct trp_engine *e);
void trp_exclusion_time(struct trp_engine *e); /* timers that are due */

#endif
