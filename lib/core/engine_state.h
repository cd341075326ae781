/*
 * What the engine's parts share: its state. Internal to lib/core; engine.h is the
 * contract.
 *
 *     dag/dag_state.h      jobs and stages: what is ready, what ends, what runs again
 *     sched/sets.c         task sets: submitted, zombie, killed, gone; their order
 *     sched/task_set.c     making and freeing one
 *     sched/pending.c      its pending tasks, by place: which one an offer gets
 *     sched/locality.c     its locality levels and their clock
 *     sched/attempts.c     the pool of attempts
 *     sched/executors.c    executors and their classes: books, free lists
 *     sched/offers.c       one offer, one visit of a set, rounds over given executors
 *     sched/by_hand.c      task sets without jobs, for scenarios
 *     sched/rounds.c       rounds over a class, queue ahead
 *     sched/barrier.c      gangs of executors: all tasks in one round or none
 *     sched/outcomes.c     how attempts end
 *     sched/losses.c       executors that are lost or decommissioned; kills
 *     sched/exclusion.c    who gets nothing because tasks failed there
 *     sched/copies.c       speculation: second attempts of slow tasks
 *     alloc/wanted.c       how many executors each profile should have
 *     alloc/supply.c       what executors there are, for the limits and timeouts
 *     alloc/ramp.c         what happens to task sets, for alloc.grow=ramp
 *
 * A *class* is everything that may share executors: one per profile id. An executor
 * carries the label of one class; tasks of a set run on executors of the set's class
 * only (canBeScheduled), which in a static run is class 0 for task-only profiles too.
 */
#ifndef TRP_CORE_ENGINE_STATE_H
#define TRP_CORE_ENGINE_STATE_H

#include "core/alloc/idle.h"
#include "core/alloc/targets.h"
#include "core/base/array.h"
#include "core/dag/dag_state.h"
#include "core/engine.h"
#include "core/sched/health.h"
#include "core/sched/pools.h"
#include "core/sched/speculation.h"
#include "core/topo/hosts.h"

/* ---- attempts ---- */

enum {
    TRP_ATTEMPT_COPY = 1,      /* speculative */
    TRP_ATTEMPT_LAUNCHING = 2, /* has not told that it runs */
    TRP_ATTEMPT_BEATEN = 4, /* killed because another attempt of its task succeeded */
};

enum trp_attempt_state { TRP_ATTEMPT_FREE, TRP_ATTEMPT_RUNNING, TRP_ATTEMPT_QUEUED };

struct trp_attempt {
    struct trp_task_set *set;
    struct trp_grant *grants; /* what it holds of the executor's addresses; owned */
    int64_t launched_ns;
    uint32_t serial; /* high half of its id */
    uint32_t task;
    uint32_t executor;   /* number; TRP_NONE: a gang */
    uint32_t next, prev; /* in its executor's running or queued list, in its set's list
                          * of gangs; next free slot in the pool */
    uint16_t number;     /* earlier attempts of the task */
    uint8_t state, level, ngrants;
    bool kill_sent;
    uint8_t flags;
    uint32_t twin; /* the task's next live attempt; TRP_NONE */
    double rate;   /* records a second, when last heard of */
};
_Static_assert(sizeof(struct trp_attempt) == 64, "an attempt is found by a shift");

struct trp_attempts {
    struct trp_attempt *v;
    uint32_t n, cap;
    uint32_t free; /* first free slot, TRP_NONE: none */
    uint32_t serial;
};

/* ---- executors ---- */

enum trp_executor_state {
    TRP_EXECUTOR_REQUESTED,
    TRP_EXECUTOR_LIVE,
    TRP_EXECUTOR_DECOMMISSIONED, /* gets nothing new; what runs there goes on */
    TRP_EXECUTOR_RELEASING,      /* told to go; runs nothing */
};

struct trp_executor {
    trp_executor_id id;
    uint32_t class;       /* the profile it is labelled with */
    trp_profile_id shape; /* the profile it was made for */
    enum trp_executor_state state;
    bool came;     /* it has been live */
    uint32_t host; /* number in hosts, once it came */
    int64_t cores, cores_free;
    trp_books *books;
    uint32_t running, nrunning;                /* list of attempts */
    uint32_t queue_first, queue_last, nqueued; /* list of attempts, FIFO */
    struct trp_task_set *one_set; /* the set of all its running attempts, NULL: mixed */
    struct trp_idle_item idle;
    int64_t decommissioned_ns; /* when; INT64_MAX: not */
    bool excluded;             /* for the application: gets nothing new */
    uint64_t stranger; /* to all dull sets as long as this is the engine's listings */
    struct trp_executor *free_next, *free_prev; /* ring of its class; NULL: not in it */
    struct trp_executor *queued_next, *queued_prev; /* ring of those with a queue */
};

/* Makes its host and its own lists count as places where a task could run. */
static inline bool trp_executor_is_alive(const struct trp_executor *x)
{
    return x->state != TRP_EXECUTOR_REQUESTED && x->decommissioned_ns == INT64_MAX;
}

static inline bool trp_executor_may_get(const struct trp_executor *x)
{
    return x->state == TRP_EXECUTOR_LIVE && !x->excluded;
}

struct trp_class {
    trp_profile_id profile;
    struct trp_task_set *first, *last; /* sets with pending tasks, by job and stage */
    struct trp_executor *free;   /* ring of executors with free cores; the one whose
                                  * turn is next */
    struct trp_executor *queued; /* ring of executors with queued attempts */
    uint32_t nfree;
    uint32_t nlisted, ndull;     /* sets from first on; dull ones of them (rounds.c) */
    struct trp_task_set *lively; /* the last that became listed or not dull; or NULL */
    uint32_t live, requested, idle;
    uint32_t sets; /* submitted and not ended, gangs not counted */
    uint64_t
        open; /* pending, running and queued tasks of the sets, bounded ones apart */
    struct trp_task_set
        *bounded; /* sets with bounds of their own on executors or tasks */
    uint32_t
        copies; /* tasks that are to get a copy: part of open, or of bounded sets */
    uint32_t *on_host; /* live executors by host number, on_host_cap of them … */
    uint32_t on_host_cap, hosts; /* … and hosts with any */
    uint64_t spread;             /* executors there are to be for the sake of copies */
    uint32_t nqueued;            /* queued attempts on its executors */
    uint32_t recalls;            /* recalls under way */
    uint32_t fit;                /* executors the cluster can hold at once */
    char *never;                 /* why none can ever be had, or NULL */
    int64_t retry_at;            /* nothing is asked for before */
    int64_t backoff;
    uint32_t start_failures; /* in a row */
    char *start_failure;     /* what the last one said */
};

/* ---- task sets ---- */

enum {
    TRP_TASK_DONE = 1,
    TRP_TASK_FAILED = 2,       /* for good */
    TRP_TASK_LEFT = 4,         /* its input is gone: the next attempt's */
    TRP_TASK_OVER = 7,         /* any of these */
    TRP_TASK_SPECULATABLE = 8, /* is to get a copy */
};

struct trp_task {
    uint32_t attempt;  /* slot of its live attempt (a copy is that one's twin), or
                        * TRP_NONE */
    uint16_t failures; /* counted */
    uint16_t attempts; /* made so far */
    uint16_t held;     /* parents' tasks it still waits for (after … each) */
    uint8_t flags;
    uint8_t grown; /* how often its memory was raised: the overflow set it is in */
};

/* A preferred place by number. The rack is as it was known when the set was made. */
struct trp_set_place {
    uint32_t host, rack, executor;
};

struct trp_executor_list; /* pending tasks by executor number (uthash) */

/* Pending tasks, as stacks by place. */
struct trp_pending {
    struct trp_stack all, no_pref;
    struct trp_stack *hosts; /* by host number; NULL: none yet */
    struct trp_stack *racks; /* by rack number */
    struct trp_executor_list *executors;
};

/* A host on which an attempt of a task ended. */
struct trp_past {
    uint32_t host, next; /* the task's earlier one, TRP_NONE */
};

struct trp_task_set {
    struct trp_stage *stage;
    struct trp_class *class; /* NULL: a gang */
    /* Tasks that were killed for memory move on to sets of larger profiles (decision
     * 15), chained behind the stage's own, which has the tasks and counts done and
     * failed. */
    struct trp_task_set *owner, *overflow;
    const struct trp_resource_profile *profile;
    struct trp_task_set *next, *prev; /* in its class's order; linked when `listed` */
    struct trp_task_set *all_next, *all_prev; /* all sets of the engine */
    struct trp_task_set *dead_next;           /* to be freed */
    struct trp_pool_child place;              /* in the pools, where there are any */
    uint32_t number;                          /* the stage's attempt */
    uint32_t priority;                        /* job */
    bool map;                                 /* its outputs lie where tasks ran */
    bool barrier;                             /* all tasks at once */
    bool listed;
    bool takes_custom; /* its tasks take custom resources: addresses have to be found */
    uint8_t grown; /* how often memory was raised for its tasks; 0: the stage's own */
    bool zombie;   /* launches nothing more */
    bool told_finished, dead;
    uint32_t ntasks;
    struct trp_task *tasks;
    uint32_t pending, running, queued, done, failed;
    uint32_t copies;   /* tasks that are to get a copy */
    uint32_t attempts; /* live ones: keeps the set alive */

    uint32_t *prefer_first; /* ntasks + 1, NULL: no preferences at all */
    struct trp_set_place *places;
    struct trp_pending lists, copy_lists;
    uint32_t nhosts, nracks; /* of the arrays in both */
    uint32_t pending_executor, pending_host,
        pending_rack; /* pending tasks on such lists */
    uint32_t alive_executors, alive_hosts, alive_racks; /* keys with live executors */
    struct trp_task_set *preferring_next, *preferring_prev;
    bool is_bounded;
    struct trp_task_set *bounded_next, *bounded_prev;

    uint8_t levels[TRP_LEVELS], nlevels, current;
    bool no_reject; /* since the last reset of the clock */
    bool dull;      /* only an executor that its tasks prefer can use it (rounds.c) */
    int64_t last;   /* locality clock */

    int64_t mean_ns; /* of ended attempts, exponentially weighted */
    uint32_t timed;  /* how many are in it */

    uint32_t *where;       /* executor of each task's success; NULL: not kept */
    trp_speculation *slow; /* durations; NULL: no speculation */
    struct trp_speculation_gate gate; /* of the present check, with `looked_at` */
    bool looked_at, newly;
    uint32_t *past_first; /* by task, with speculation */
    struct trp_past *past;
    uint32_t npast, past_cap;
    struct trp_health *health; /* failures; NULL: none */
    int64_t abort_at;          /* nothing can run a task of it: given up then */
    uint32_t abort_task;
    struct trp_task_set *stuck_next; /* sets with an abort_at */
    uint64_t result_bytes;
    uint32_t ramp; /* its name among the targets */
};

/* ---- the engine ---- */

struct trp_action_queue {
    struct trp_action *v;
    uint32_t n, cap, head;
    struct trp_grant *grants; /* of LAUNCH actions: indices until handed out */
    uint32_t ngrants, grants_cap;
    void **kept; /* texts and bytes that actions point to */
    uint32_t nkept, kept_cap;
};

struct trp_engine {
    trp_barrier_sync *sync; /* NULL: nobody has called yet */
    struct trp_engine_config config;
    trp_profiles *profiles;
    int64_t now;
    struct trp_hosts hosts;
    struct trp_attempts attempts;
    struct trp_executor **executors; /* by number; NULL: gone */
    uint32_t nexecutors, executors_cap;
    uint32_t live, requested;   /* came and not gone yet; asked for */
    struct trp_class **classes; /* by profile id; made when first needed */
    uint32_t nclasses, classes_cap;
    struct trp_stage **stages; /* by id; NULL: of a job that is over */
    uint32_t nstages, stages_cap;
    struct trp_job **jobs;
    uint32_t njobs, jobs_cap;
    uint32_t jobs_active;
    struct trp_dag dag;
    uint32_t gangs;                  /* gang attempts under way */
    struct trp_task_set *sets;       /* all of them */
    struct trp_task_set *dead_sets;  /* zombies without attempts */
    struct trp_task_set *preferring; /* sets with preferences */
    struct trp_task_set *stuck;      /* sets that will be given up */
    trp_pools *pools;                /* NULL: FIFO, the classes' own order */
    trp_health_tracker *tracker;     /* NULL: nothing is excluded */
    struct trp_health_config health;
    struct trp_speculation_config speculation;
    trp_idle *idle;       /* NULL: executors are not released */
    trp_targets *targets; /* NULL: alloc.grow=need */
    struct trp_caps caps;
    int64_t caps_used[TRP_CAPS]; /* by executors asked for or there */
    /* Scenarios of task sets: */
    bool manual;       /* nothing is offered by itself */
    bool bare;         /* no jobs stand behind the stages */
    bool dynamic;      /* other executors can be had */
    bool manual_start; /* attempts are launching until told otherwise */
    int64_t locality_due, retry_due, slow_due;
    uint64_t draws;    /* of the seed */
    uint64_t listings; /* how often tasks became pending, or were to get a copy */
    bool any_dirty, draining;
    bool out_of_memory;
    struct trp_action_queue actions;
    uint64_t launches, ends, ignored;
};

/* actions.c: appends an action and returns it for filling; on failure the engine is
 * marked out of memory (the step then fails) and a scratch action is returned. */
struct trp_action *trp_action_add(struct trp_engine *e, enum trp_action_kind kind);
/* Memory for what an action points to; NULL when out of memory. */
void *trp_action_bytes(struct trp_engine *e, size_t size);
/* Copies text for an action; "" when out of memory. */
const char *trp_action_text(struct trp_engine *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void trp_action_launch(struct trp_engine *e, const struct trp_attempt *a,
                       uint32_t slot);
void trp_actions_free(struct trp_action_queue *q);

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
/* To be freed at the end of the step, if it is a zombie without attempts. */
void trp_set_bury(struct trp_engine *e, struct trp_task_set *s);
void trp_sets_free(struct trp_engine *e);      /* all, before the stages */
void trp_sets_free_dead(struct trp_engine *e); /* at the end of every step */
/* In its class's order, or its pool, while it has tasks to launch. */
void trp_task_set_list(struct trp_engine *e, struct trp_task_set *s);
void trp_task_set_unlist(struct trp_engine *e, struct trp_task_set *s);
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
void trp_pending_free(const struct trp_task_set *s, struct trp_pending *lists);
bool trp_pending_push(struct trp_task_set *s, struct trp_pending *lists, uint32_t task);
bool trp_pending_has_executor(const struct trp_task_set *s, uint32_t executor);
/* The list of an executor that some task prefers; false: out of memory. */
bool trp_pending_add_executor(struct trp_pending *lists, uint32_t executor);
uint32_t trp_pending_executors_alive(const struct trp_engine *e,
                                     const struct trp_task_set *s);
/* The task became pending: onto its lists. */
bool trp_task_set_push(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* The same while the set is being made: it is in no order yet. */
bool trp_task_set_fill_one(struct trp_task_set *s, uint32_t task);
/* The task is not pending any more (it was until now). */
void trp_task_set_take(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* Section 8: the task for an offer of `x` at most at `level`, taken off the list it was
 * found on; TRP_NONE: none. */
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
/* Sections 7.4 and 12.4, after all levels were tried. */
void trp_visit_finish(struct trp_engine *e, struct trp_task_set *s,
                      const struct trp_visit *v);
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
    if (e->pools && s->class)
        trp_pools_count(e->pools, &s->place, by);
}

/* sched/barrier.c */
/* How many tasks of `s` fit into what `x` has free (section 13's gate). */
uint32_t trp_barrier_room(const struct trp_engine *e, const struct trp_task_set *s,
                          const struct trp_executor *x);
/* After a visit that held back `held` attempts: launches all tasks, or undoes it. */
void trp_barrier_finish(struct trp_engine *e, struct trp_task_set *s, uint32_t held);
/* How many tasks of a profile could run at once on all live executors, busy or not. */
uint64_t trp_barrier_slots(const struct trp_engine *e, trp_profile_id profile);

/* sched/rounds.c */
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

/* The closing work of every step. */
void trp_engine_settle(struct trp_engine *e);

/* sched/outcomes.c */
struct trp_attempt_end {
    enum trp_end_status status;
    int32_t code;
    int64_t duration_ns;
    bool uncounted;                      /* whatever the status says */
    const struct trp_fetch_source *from; /* FETCH: NULL is nothing known */
    uint64_t records, result_bytes;
};
void trp_attempt_ended(struct trp_engine *e, uint32_t slot,
                       const struct trp_attempt_end *end);
/* A finished task is to be done again: its output is gone. */
void trp_task_undo(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s);

/* sched/losses.c */
void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       const struct trp_event *lost);
void trp_executor_decommission(struct trp_engine *e, struct trp_executor *x);
void trp_attempt_kill(struct trp_engine *e, uint32_t slot, bool recall);
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s);

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
/* A round launched nothing of `s`: can its next task run anywhere? (12.4) */
void trp_exclusion_check_stuck(struct trp_engine *e, struct trp_task_set *s);
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

/* ---- what task sets tell the stages: dag/ ---- */

/* The first success of a task; of a zombie set too. executor: TRP_NONE for a gang. */
void trp_dag_task_done(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                       uint32_t executor);
/* It failed for good and that is tolerated. */
void trp_dag_task_tolerated(struct trp_engine *e, struct trp_task_set *s,
                            uint32_t task);
/* All its tasks succeeded, or are tolerated, which was told before; of a set that was
 * no zombie. */
void trp_dag_set_finished(struct trp_engine *e, struct trp_task_set *s);
/* It gave up. */
void trp_dag_set_aborted(struct trp_engine *e, struct trp_task_set *s, int code,
                         uint32_t task, const char *text);
/* The set is a zombie now. */
void trp_dag_fetch_failed(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                          const struct trp_fetch_source *from);
/* A task of a barrier set failed; the set is a zombie now. */
void trp_dag_barrier_failed(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                            const char *text);
/* A finished map task whose output went with its executor is pending again. */
void trp_dag_resubmitted(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* After everything above was told of a lost executor; it is still there. */
void trp_dag_executor_lost(struct trp_engine *e, const struct trp_executor *x,
                           enum trp_loss reason);

/* alloc/supply.c: an executor is asked for; is live; is no longer; is gone (or its
 * request withdrawn); serves another class. */
void trp_supply_asked(struct trp_engine *e, struct trp_executor *x);
void trp_supply_live(struct trp_engine *e, struct trp_executor *x);
void trp_supply_leaving(struct trp_engine *e, struct trp_executor *x);
void trp_supply_gone(struct trp_engine *e, struct trp_executor *x);
void trp_supply_moved(struct trp_engine *e, struct trp_executor *x,
                      struct trp_class *from);
/* A map output lies on it; an active job uses the shuffle, or none does any more; it is
 * cleaned up; what is cached there has changed. */
void trp_supply_output(struct trp_engine *e, uint32_t executor, uint32_t shuffle);
void trp_supply_shuffle(struct trp_engine *e, uint32_t shuffle, bool in_use);
void trp_supply_shuffle_gone(struct trp_engine *e, uint32_t shuffle);
void trp_supply_cached(struct trp_engine *e, uint32_t executor);
/* Its first attempt starts, its last has ended. */
static inline void trp_supply_busy(struct trp_engine *e, struct trp_executor *x)
{
    if (e->idle && trp_idle_started(e->idle, &x->idle, e->now) < 0)
        e->out_of_memory = true;
}
static inline void trp_supply_idle(struct trp_engine *e, struct trp_executor *x)
{
    if (e->idle && trp_idle_ended(e->idle, &x->idle, e->now) < 0)
        e->out_of_memory = true;
}

/* alloc/ramp.c: what targets are told, if there are any. */
bool trp_ramp_class(struct trp_engine *e, const struct trp_class *c);
void trp_ramp_set(struct trp_engine *e,
                  struct trp_task_set *s); /* it joined its class */
void trp_ramp_set_done(struct trp_engine *e, struct trp_task_set *s);
void trp_ramp_tasks(struct trp_engine *e, struct trp_task_set *s, int by);
void trp_ramp_tell_start(struct trp_engine *e, const struct trp_attempt *a);
void trp_ramp_tell_end(struct trp_engine *e, const struct trp_attempt *a);
static inline void trp_ramp_started(struct trp_engine *e, const struct trp_attempt *a)
{
    if (e->targets)
        trp_ramp_tell_start(e, a);
}
/* Whether it runs again is told by trp_ramp_again. */
static inline void trp_ramp_ended(struct trp_engine *e, const struct trp_attempt *a)
{
    if (e->targets)
        trp_ramp_tell_end(e, a);
}
void trp_ramp_again(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
void trp_ramp_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                   bool wanted);
void trp_ramp_stuck(struct trp_engine *e, struct trp_task_set *s, bool is);
int trp_ramp_check(const struct trp_engine *e, const struct trp_class *c,
                   trp_error *err); /* the counts, against lists */

/* sched/sync.c */
void trp_sync_called(struct trp_engine *e, const struct trp_event *ev);
/* A barrier set launches nothing more: nobody of it waits any longer. */
void trp_sync_set_over(struct trp_engine *e, const struct trp_task_set *s);
int64_t trp_sync_due(const struct trp_engine *e);
void trp_sync_time(struct trp_engine *e); /* timers that are due */

/* alloc/wanted.c */
int trp_wanted_init(struct trp_engine *e, trp_error *err);
void trp_wanted_free(struct trp_engine *e);
int64_t trp_wanted_due(const struct trp_engine *e); /* its timers */
/* One copy more, or less, that waits for an executor. */
void trp_wanted_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                     int by);
void trp_wanted_reconcile(struct trp_engine *e);
void trp_wanted_time(struct trp_engine *e); /* timers that are due */
void trp_wanted_start_failed(struct trp_engine *e, struct trp_class *c, bool never,
                             const char *text);
uint32_t trp_wanted_executors(const struct trp_engine *e, const struct trp_class *c);

#endif
