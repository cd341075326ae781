/*
 * Task sets: one attempt of a stage, with its pending tasks by locality.
 */
#ifndef TRP_CORE_SCHED_SETS_H
#define TRP_CORE_SCHED_SETS_H

#include "core/engine_state.h"

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
/* Launches nothing more; what runs continues. It is freed at the end of the step in
 * which its last attempt ends; stage->set is NULL then if it was this one. */
void trp_set_zombie(struct trp_engine *e, struct trp_task_set *s);
/* A zombie, and all its attempts are killed. */
void trp_set_kill(struct trp_engine *e, struct trp_task_set *s);
/* Another attempt of the stage did this task: it is done here too. Kills its attempts
 * here. May finish the set. */
void trp_set_task_elsewhere(struct trp_engine *e, struct trp_task_set *s,
                            uint32_t task);
/* A task waits for one task of a parent (after … each) less. */
void trp_set_unhold(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* A task that waits for one of a parent never runs. */
void trp_set_skip(struct trp_task_set *s, uint32_t task);
/* Its tasks are all done, or given up: reported once. */
void trp_set_check_finished(struct trp_engine *e, struct trp_task_set *s);
/* Gives up: tells it, then the stage. */
void trp_set_abort(struct trp_engine *e, struct trp_task_set *s, int code,
                   uint32_t task, const char *text);
/* Other executors can be obtained than before: gives up barrier sets that can never
 * start. */
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
/* The next of all sets; visits are counted. */
static inline struct trp_task_set *trp_set_after(const struct trp_engine *e,
                                                 const struct trp_task_set *s)
{
    ++*e->visited;
    return s->all_next;
}
/* It is one of the class's from now on. */
void trp_set_count_in(struct trp_class *c, struct trp_task_set *s);
static inline bool trp_set_has_work(const struct trp_task_set *s)
{
    return s->pending || s->copies;
}

/* ---- task_set.c ---- */

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
    return t->attempt == TRP_NONE && !(t->flags & TRP_TASK_OVER) && !t->waits_for;
}

/* ---- pending.c ---- */

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

/* ---- locality.c ---- */

/* Section 7.3. */
enum trp_level trp_task_set_allowed(struct trp_engine *e, struct trp_task_set *s,
                                    enum trp_level max);
/* Section 7.2, after executors came or went. */
void trp_task_set_recompute(struct trp_task_set *s);
/* When the set is made: counts keys with live executors, computes levels. */
void trp_task_set_levels(struct trp_engine *e, struct trp_task_set *s);
void trp_task_sets_executor_changed(struct trp_engine *e, const struct trp_executor *x,
                                    bool host_changed, bool rack_changed, int by);

/* ---- overflow.c ---- */

/* The set that a task of `s` moves to when it was killed for memory; NULL when none can
 * be made. */
struct trp_task_set *trp_overflow_set(struct trp_engine *e, struct trp_task_set *s);

#endif
