/*
 * Rounds of offers: which set an executor is offered to, and what that launches.
 */
#ifndef TRP_CORE_SCHED_ROUNDS_H
#define TRP_CORE_SCHED_ROUNDS_H

#include "core/engine_state.h"
#include "core/sched/sets.h"

enum { TRP_GRANTS_MAX = 256 }; /* addresses one task may be given */
/* What a round did for one set. */
struct trp_visit {
    bool full;
    uint32_t launched;
    enum trp_level best; /* most local level launched at */
    bool rejected;       /* an offer at ANY was presented and launched nothing */
    bool together; /* barrier: attempts hold what they need, but are not launched */
    bool one;      /* executor only: offers are made to it alone … */
    uint8_t vain;  /* … and nothing is left for it at this level (+ 1; 0: none yet) */
};
static inline bool trp_set_may_launch(const struct trp_task_set *s)
{
    uint32_t max = s->stage->max_running, n = 0;
    if (s->zombie || !trp_set_has_work(s))
        return false;
    if (!max)
        return true;
    /* The limit is the stage's: its overflow sets count with its own set. */
    for (s = s->owner ? s->owner : s; s; s = s->overflow)
        n += s->running + s->queued;
    return n < max;
}
/* Can `x` take one more task of `s` now? Fills the addresses it would get. */
bool trp_offer_fits(const struct trp_engine *e, const struct trp_task_set *s,
                    const struct trp_executor *x, struct trp_grant *grants, int *ret_n);
/* One offer. 1 launched, 0 presented without a launch, -1 not presented. */
int trp_offer(struct trp_engine *e, struct trp_task_set *s, struct trp_executor *x,
              enum trp_level max, struct trp_visit *v);
/* Sections 7.4 and 12.4, after all levels were tried. `x`: a live executor, not
 * excluded, that was offered; NULL: none is known. */
void trp_visit_finish(struct trp_engine *e, struct trp_task_set *s,
                      const struct trp_visit *v, const struct trp_executor *x);
/* A new attempt of what was picked, which is not pending any more; its slot, or
 * TRP_NONE. */
uint32_t trp_attempt_make(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                          enum trp_level level, bool copy);
/* Off its task's chain of live attempts. */
void trp_attempt_unlink(struct trp_engine *e, struct trp_task *t, uint32_t slot);
/* What it holds there is counted already: it runs now. */
void trp_attempt_launch(struct trp_engine *e, struct trp_executor *x, uint32_t slot);
/* A task of the set runs from now on; one that was launched then runs no more. */
static inline void trp_set_began(struct trp_engine *e, struct trp_task_set *s)
{
    s->running++;
    trp_start_times_add(&s->began, e->now);
    if (e->pools)
        trp_pools_count(e->pools, &s->pool_place, 1);
}
static inline void trp_set_runs_no_more(struct trp_engine *e, struct trp_task_set *s,
                                        int64_t launched_ns)
{
    s->running--;
    trp_start_times_remove(&s->began, launched_ns);
    if (e->pools)
        trp_pools_count(e->pools, &s->pool_place, -1);
}

/* ---- start_gate.c: after every step while e->gated ---- */

void trp_start_gate_look(struct trp_engine *e);
uint32_t trp_start_gate_expected(const struct trp_engine *e);

/* ---- barrier.c ---- */

/* How many tasks of `s` fit into what `x` has free (semantics, section 13: the gate).
 * */
uint32_t trp_barrier_fits(const struct trp_engine *e, const struct trp_task_set *s,
                          const struct trp_executor *x);
/* How many tasks what is free of one custom resource is enough for. */
int64_t trp_barrier_addresses(const trp_ledger *b, const struct trp_custom *c);
/* After a visit that held back `held` attempts: launches all tasks, or undoes it. */
void trp_barrier_finish(struct trp_engine *e, struct trp_task_set *s, uint32_t held);
/* How many tasks of a profile could run at once on all live executors, busy or not. */
uint64_t trp_barrier_slots(const struct trp_engine *e, trp_profile_id profile);

/* How many tasks of `s` `x` could hold if nothing ran there; at most all. */
uint32_t trp_barrier_most(const struct trp_task_set *s, const struct trp_executor *x);

/* ---- keep.c ---- */

/* The first set in order that has tasks to launch is the barrier set `s`, which did not
 * start: are slots kept for it in this round? Begins its time. */
bool trp_keep(struct trp_engine *e, struct trp_task_set *s);
/* A barrier set has come: takes back what sets behind it have sent ahead. */
void trp_keep_recall(struct trp_engine *e, const struct trp_task_set *s);
/* Is what `x` has free kept for `keeper`, so that no task of `s` may start there? */
bool trp_keep_refuses(const struct trp_engine *e, const struct trp_task_set *keeper,
                      const struct trp_task_set *s, const struct trp_executor *x);
void trp_keep_time(struct trp_engine *e);
/* Offers what is kept in vain. */
void trp_keep_check(struct trp_engine *e);
/* The barrier set `s` waits no more: it has ended. */
void trp_keep_gone(struct trp_engine *e, struct trp_task_set *s);
/* The barrier set before `s` for which slots are kept now; or NULL. */
const struct trp_task_set *trp_keep_keeper(const struct trp_engine *e,
                                           const struct trp_task_set *s);

/* ---- rounds.c ---- */

/* After the visit of a set in a round: is it the first that has still something to
 * launch, and keeps slots from those behind? */
static inline void trp_keep_behind(struct trp_engine *e, struct trp_task_set *s,
                                   bool *first)
{
    if (!*first || !trp_set_may_launch(s))
        return;
    *first = false;
    if (s->barrier && trp_keep(e, s))
        s->class->keeper = s;
}
/* Something of the set changed: it has to be visited again. */
static inline void trp_set_liven(struct trp_task_set *s)
{
    if (!s->only_preferred)
        return;
    s->only_preferred = false;
    s->class->ndull--;
    s->class->lively = s;
}
/* All sets: their waits are to be noted anew. */
void trp_sets_liven(struct trp_engine *e);
void trp_round_full(struct trp_engine *e, struct trp_class *c);
void trp_round_partial(struct trp_engine *e, struct trp_executor *x);
/* The end of `slot` on its executor: the head of the queue takes its place, or what it
 * held is free again: trp_round_partial there has to follow. The attempt is detached,
 * not freed. */
void trp_round_replace(struct trp_engine *e, uint32_t slot);

#endif
