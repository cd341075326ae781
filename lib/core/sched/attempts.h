/*
 * Attempts: their slots, and what their ends and losses mean.
 */
#ifndef TRP_CORE_SCHED_ATTEMPTS_H
#define TRP_CORE_SCHED_ATTEMPTS_H

#include "core/engine_state.h"

uint32_t trp_attempt_new(struct trp_engine *e); /* slot, TRP_NONE: out of memory */
void trp_attempt_free(struct trp_engine *e, uint32_t slot);
static inline trp_attempt_id trp_attempt_id_of(const struct trp_engine *e,
                                               uint32_t slot)
{
    return (trp_attempt_id){(uint64_t)e->attempts.v[slot].serial << 32 | slot};
}
/* The slot of a live attempt, TRP_NONE for a stale or made-up id. */
static inline uint32_t trp_attempt_find(const struct trp_engine *e, trp_attempt_id id)
{
    uint32_t slot = (uint32_t)id.n;
    bool is_it = slot < e->attempts.n &&
                 e->attempts.v[slot].state != TRP_ATTEMPT_FREE &&
                 e->attempts.v[slot].serial == (uint32_t)(id.n >> 32);
    return is_it ? slot : TRP_NONE;
}

/* ---- outcomes.c ---- */

/* The attempt in `slot` ended so. With `uncounted` that is no failure of its task,
 * whatever the status says. */
void trp_attempt_ended(struct trp_engine *e, uint32_t slot,
                       const struct trp_task_end *end, bool uncounted);
/* "task 3 failed 4 times" */
void trp_task_failed_text(uint32_t task, uint32_t failures, char *buf, size_t size);
/* A finished task is to be done again: its output is gone. */
void trp_task_undo(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s);

/* ---- executor_losses.c ---- */

void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       const struct trp_event *lost);
/* Kills an attempt, running or queued: once. */
void trp_attempt_kill(struct trp_engine *e, uint32_t slot);
/* All of a task, which are beaten: what they still do is of no use. */
TRP_RARE void trp_task_kill_attempts(struct trp_engine *e, const struct trp_task *t);
/* Asks for a queued attempt back: once, counted in its class. It may begin before that
 * comes to its executor; then it runs, and may be killed later. */
void trp_attempt_recall(struct trp_engine *e, uint32_t slot);
void trp_attempts_recall(struct trp_engine *e, const struct trp_executor *x);
/* It has left the queue: whatever comes of a recall is of no interest any more. */
void trp_attempt_forget_recall(struct trp_engine *e, struct trp_attempt *a);
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s);
/* Is it nobody's failure that a gang was lost so (end->code)? Told once an attempt. */
bool trp_gang_blameless(struct trp_engine *e, uint32_t slot,
                        const struct trp_task_end *end);

#endif
