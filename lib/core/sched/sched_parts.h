/*
 * What each file of sched/ offers the rest of the engine. Included by engine_state.h.
 */
#ifndef TRP_CORE_SCHED_SCHED_PARTS_H
#define TRP_CORE_SCHED_SCHED_PARTS_H

#include "core/engine_state.h"

/* sched/attempts.c */
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

/* sched/executors.c */
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

/* sched/sets.c */
/* A new attempt of a stage: what task sets are made of. */
struct trp_set_spec {
    uint32_t attempt; /* number of the stage attempt */
    uint32_t job;     /* for priority: the earliest active job of the stage */
    const char *pool; /* NULL: "default" */
    bool map;         /* makes map outputs; else results */
    bool barrier;
    uint32_t ntasks;
    const struct trp_preferences *prefer; /* NULL: none */
    const uint8_t *done; /* ntasks bytes, 1: not missing; NULL: all are missing */
};
/* Makes the stage's active set: tells STAGE_SUBMITTED, makes earlier sets of the stage
 * zombies, sets stage->set, and offers. TRP_ENEVER, TRP_ENOMEM. */
struct trp_task_set *trp_set_submit(struct trp_engine *e, struct trp_stage *stage,
                                    const struct trp_set_spec *spec, trp_error *err);
/* Launches nothing more; what runs goes on. It is freed at the end of the step in which
 * its last attempt ends; stage->set is NULL then if it was this one. */
void trp_set_zombie(struct trp_engine *e, struct trp_task_set *s);
/* A zombie, and all its attempts are killed. */
void trp_set_kill(struct trp_engine *e, struct trp_task_set *s);
/* Another attempt of the stage did this task: it is done here too. Kills its attempts
 * here. May finish the set. */
void trp_set_task_elsewhere(struct trp_engine *e, struct trp_task_set *s,
                            uint32_t task);
/* A task waits for one task of a parent (after … each) less. */
void trp_set_unhold(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* Its tasks are all done (or tolerated): told once. */
void trp_set_check_finished(struct trp_engine *e, struct trp_task_set *s);
/* Gives up: tells it, then the stage. */
void trp_set_abort(struct trp_engine *e, struct trp_task_set *s, int code,
                   uint32_t task, const char *text);
/* What executors can be had has changed: gives up barrier sets that can never start. */
void trp_sets_check_gangs(struct trp_engine *e, const struct trp_class *c);
/* To be freed at the end of the step, if it is a zombie without attempts. */
void trp_set_bury(struct trp_engine *e, struct trp_task_set *s);
void trp_sets_free(struct trp_engine *e);      /* all, before the stages */
void trp_sets_free_dead(struct trp_engine *e); /* at the end of every step */
/* In its class's order, or its pool, while it has tasks to launch. */
void trp_task_set_list(struct trp_engine *e, struct trp_task_set *s);
void trp_task_set_unlist(struct trp_engine *e, struct trp_task_set *s);
/* In the order of a class: FIFO. */
bool trp_task_set_before(const struct trp_task_set *a, const struct trp_task_set *b);
static inline bool trp_set_has_work(const struct trp_task_set *s)
{
    return s->pending || s->copies;
}

/* sched/task_set.c */
struct trp_task_set *trp_task_set_new(struct trp_engine *e, struct trp_stage *s,
                                      const struct trp_set_spec *spec, trp_error *err);
void trp_task_set_free(struct trp_engine *e, struct trp_task_set *s);
/* The stage's own set. */
static inline struct trp_task_set *trp_task_set_main(struct trp_task_set *s)
{
    return s->owner ? s->owner : s;
}
static inline bool trp_task_is_pending(const struct trp_task *t)
{
    return t->attempt == TRP_NONE && !(t->flags & TRP_TASK_OVER) && !t->held;
}

/* sched/pending.c */
static inline bool trp_set_prefers(const struct trp_task_set *s, uint32_t task)
{
    return s->prefer_first && s->prefer_first[task] != s->prefer_first[task + 1];
}
bool trp_pending_make(struct trp_task_set *s, struct trp_pending *lists);
/* All pending tasks of a set that is being made onto its lists, empty until now. */
bool trp_pending_fill(struct trp_task_set *s);
void trp_pending_free(const struct trp_task_set *s, struct trp_pending *lists);
bool trp_pending_push(const struct trp_engine *e, struct trp_task_set *s,
                      struct trp_pending *lists, uint32_t task);
/* No pending task needs the level: its lists go. */
void trp_pending_drop(struct trp_task_set *s, enum trp_level level);
bool trp_pending_has_executor(const struct trp_task_set *s, uint32_t executor);
/* The list of an executor that some task prefers; false: out of memory. */
bool trp_pending_add_executor(struct trp_pending *lists, uint32_t executor);
uint32_t trp_pending_executors_alive(const struct trp_engine *e,
                                     const struct trp_task_set *s);
/* The task became pending: onto its lists. */
bool trp_task_set_push(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* The task is not pending any more (it was until now). */
void trp_task_set_take(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* Section 8: the task for an offer of `x` at most at `level`, taken off the list it was
 * found on; TRP_NONE: none. `ret_copy`: is it to be a copy; NULL: none is wanted. */
uint32_t trp_task_set_pick(struct trp_engine *e, struct trp_task_set *s,
                           const struct trp_executor *x, enum trp_level level,
                           enum trp_level *ret_level, bool *ret_copy);

/* sched/locality.c */
/* Section 7.3. */
enum trp_level trp_task_set_allowed(struct trp_engine *e, struct trp_task_set *s,
                                    enum trp_level max);
/* Section 7.2, after executors came or went. */
void trp_task_set_recompute(struct trp_task_set *s);
/* When the set is made: counts keys with live executors, computes levels. */
void trp_task_set_levels(struct trp_engine *e, struct trp_task_set *s);
void trp_task_sets_executor_changed(struct trp_engine *e, const struct trp_executor *x,
                                    bool host_changed, bool rack_changed, int by);

/* sched/offers.c: what rounds are made of */
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
static inline void trp_set_count_running(struct trp_engine *e, struct trp_task_set *s,
                                         int by)
{
    s->running += (uint32_t)by;
    if (e->pools)
        trp_pools_count(e->pools, &s->place, by);
}

/* sched/start_gate.c: after every step while e->gated. */
void trp_start_gate_look(struct trp_engine *e);
uint32_t trp_start_gate_expected(const struct trp_engine *e);

/* sched/barrier.c */
/* How many tasks of `s` fit into what `x` has free (section 13's gate). */
uint32_t trp_barrier_room(const struct trp_engine *e, const struct trp_task_set *s,
                          const struct trp_executor *x);
/* How many tasks what is free of one custom resource is enough for. */
int64_t trp_barrier_addresses(const trp_books *b, const struct trp_custom *c);
/* After a visit that held back `held` attempts: launches all tasks, or undoes it. */
void trp_barrier_finish(struct trp_engine *e, struct trp_task_set *s, uint32_t held);
/* How many tasks of a profile could run at once on all live executors, busy or not. */
uint64_t trp_barrier_slots(const struct trp_engine *e, trp_profile_id profile);

/* How many tasks of `s` `x` could hold if nothing ran there; at most all. */
uint32_t trp_barrier_most(const struct trp_task_set *s, const struct trp_executor *x);

/* sched/keep.c */
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

/* sched/rounds.c */
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
    if (!s->dull)
        return;
    s->dull = false;
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

/* sched/overflow.c: the set that a task of `s` moves to when it was killed for memory;
 * NULL when none can be made. */
struct trp_task_set *trp_overflow_set(struct trp_engine *e, struct trp_task_set *s);

/* sched/outcomes.c */
/* The attempt in `slot` ended so. With `uncounted` that is no failure of its task,
 * whatever the status says. */
void trp_attempt_ended(struct trp_engine *e, uint32_t slot,
                       const struct trp_task_end *end, bool uncounted);
/* A finished task is to be done again: its output is gone. */
void trp_task_undo(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s);

/* sched/losses.c */
void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       const struct trp_event *lost);
void trp_attempt_kill(struct trp_engine *e, uint32_t slot, bool recall);
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s);
/* Is it nobody's failure that a gang was lost so (end->code)? Told once an attempt. */
bool trp_gang_blameless(struct trp_engine *e, uint32_t slot,
                        const struct trp_task_end *end);

/* sched/decommission.c */
void trp_executor_decommission(struct trp_engine *e, struct trp_executor *x);
/* Tells to release it; it gets nothing new. What runs there ends with it. */
void trp_executor_release(struct trp_engine *e, struct trp_executor *x);
/* An attempt there has ended: released, if it was the last of a decommissioned one. */
void trp_executor_drained(struct trp_engine *e, struct trp_executor *x);
/* It goes, or is gone: nothing forces it any more. */
void trp_executor_unforce(struct trp_engine *e, struct trp_executor *x);
int64_t trp_decommission_due(const struct trp_engine *e);
void trp_decommission_time(struct trp_engine *e);

/* sched/ends.c */
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

/* sched/exclusion.c */
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
/* Something was launched: nobody is stuck. */
void trp_exclusion_unstick_all(struct trp_engine *e);
void trp_exclusion_unstick(struct trp_engine *e, struct trp_task_set *s);
int64_t trp_exclusion_due(const struct trp_engine *e);
void trp_exclusion_time(struct trp_engine *e); /* timers that are due */

/* sched/copies.c */
void trp_copies_init(struct trp_engine *e);
/* The check for slow tasks, over all sets. */
void trp_copies_check(struct trp_engine *e);
void trp_copies_time(struct trp_engine *e);
void trp_copies_start(struct trp_engine *e); /* a set was submitted: look again */
/* The task does not need its copy any more. */
void trp_copy_unmark(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* Notes where an attempt ended. */
void trp_copies_past(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                     uint32_t host);
bool trp_copies_ran_on(const struct trp_engine *e, const struct trp_task_set *s,
                       uint32_t task, uint32_t host);
/* Hosts on which none of the copies that wait in the class could run, since their tasks
 * ran there; at most TRP_COPY_HOSTS of them. Returns how many. */
enum { TRP_COPY_HOSTS = 8 };
uint32_t trp_copies_useless_hosts(const struct trp_engine *e, const struct trp_class *c,
                                  uint32_t ret_hosts[TRP_COPY_HOSTS]);

/* sched/sync.c */
void trp_sync_called(struct trp_engine *e, const struct trp_event *ev);
/* A barrier set launches nothing more: nobody of it waits any longer. */
void trp_sync_set_over(struct trp_engine *e, const struct trp_task_set *s);
int64_t trp_sync_due(const struct trp_engine *e);
void trp_sync_time(struct trp_engine *e); /* timers that are due */

#endif
