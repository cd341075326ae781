/*
 * Executors: how they come, what is free on them, how they go, and when their time is
 * over.
 */
#ifndef TRP_CORE_SCHED_EXECUTORS_H
#define TRP_CORE_SCHED_EXECUTORS_H

#include "core/engine_state.h"

struct trp_class *trp_class_of(struct trp_engine *e, trp_profile_id profile);
struct trp_executor *trp_executor_new(struct trp_engine *e, struct trp_class *c);
struct trp_executor *trp_executor_new_as(struct trp_engine *e, struct trp_class *c,
                                         uint32_t number);
struct trp_executor *trp_executor_find(const struct trp_engine *e, trp_executor_id id);
int trp_executor_live(struct trp_engine *e, struct trp_executor *x,
                      const struct trp_event *added, trp_error *err);
void trp_executor_retire(struct trp_engine *e, struct trp_executor *x);
void trp_executor_drain(struct trp_engine *e, struct trp_executor *x);
void trp_executor_remove(struct trp_engine *e, struct trp_executor *x);
void trp_executor_relabel(struct trp_engine *e, struct trp_executor *x,
                          struct trp_class *to);
void trp_executor_set_free(struct trp_engine *e, struct trp_executor *x);
void trp_executor_attach(struct trp_engine *e, struct trp_executor *x, uint32_t slot,
                         bool queued);
void trp_executor_detach(struct trp_engine *e, struct trp_executor *x, uint32_t slot);

/* ---- decommission.c ---- */

void trp_executor_decommission(struct trp_engine *e, struct trp_executor *x);
/* Tells to release it; it gets nothing new. What runs there ends with it. */
void trp_executor_release(struct trp_engine *e, struct trp_executor *x);
/* An attempt there has ended: released, if it was the last of a decommissioned one. */
void trp_executor_drained(struct trp_engine *e, struct trp_executor *x);
/* It goes, or is gone: nothing forces it any more. */
void trp_executor_unforce(struct trp_engine *e, struct trp_executor *x);
int64_t trp_decommission_due(const struct trp_engine *e);
void trp_decommission_time(struct trp_engine *e);

/* ---- ends.c: allocations that end ---- */

void trp_ends_event(struct trp_engine *e, const struct trp_event *ev);
/* With ends: how long a task of the set took. */
void trp_ends_succeeded(struct trp_engine *e, struct trp_task_set *s,
                        const struct trp_task_end *end);
int64_t trp_ends_estimate(const struct trp_task_set *s); /* 0: none yet */
bool trp_ends_outlive_run(const struct trp_engine *e, const struct trp_task_set *s);
/* Would a task of `s` that begins now outlive `x`, or the run? */
bool trp_ends_outlive(const struct trp_engine *e, const struct trp_task_set *s,
                      const struct trp_executor *x);
/* With ends: the same; what outlives is noted for the end of the step. */
bool trp_ends_refuse(struct trp_engine *e, struct trp_task_set *s,
                     struct trp_executor *x);
void trp_ends_settle(struct trp_engine *e);

/* ---- walks, whose visits are counted ---- */

static inline struct trp_executor *trp_executor_at(const struct trp_engine *e,
                                                   uint32_t i)
{
    ++*e->visited;
    return e->executors[i];
}
/* Of a class's requested or idle ones the next from *i on; NULL: none is left. */
static inline struct trp_executor *
trp_executor_next(const struct trp_engine *e, const struct trp_bits *of, uint32_t *i)
{
    uint32_t at = trp_bits_next(of, *i);
    *i = at + 1;
    return at == TRP_NONE ? NULL : trp_executor_at(e, at);
}
/* The one before *below, which it becomes (TRP_NONE at first: the last of all). */
static inline struct trp_executor *trp_executor_last(const struct trp_engine *e,
                                                     const struct trp_bits *of,
                                                     uint32_t *below)
{
    *below = trp_bits_last(of, *below);
    return *below == TRP_NONE ? NULL : trp_executor_at(e, *below);
}
/* The first request of a class that has no room yet; NULL: none waits. */
static inline struct trp_executor *
trp_executor_first_waiting(const struct trp_engine *e, const struct trp_class *c)
{
    struct trp_executor *x;
    uint32_t i = 0;
    while ((x = trp_executor_next(e, &c->requested, &i)) && !trp_executor_waits(x))
        ;
    return x;
}

#endif
