/*
 * What the engine's parts share: its state. Internal to lib/core; engine.h is the
 * contract.
 *
 *     dag/jobs.c           jobs and stages: what is ready, what ends
 *     sched/task_set.c     one running stage: pending lists, locality levels
 *     sched/attempts.c     the pool of attempts
 *     sched/executors.c    executors and their classes: books, free lists
 *     sched/rounds.c       offers, launches, queue ahead
 *     sched/outcomes.c     ends, failures, losses
 *     alloc/wanted.c       how many executors each profile should have
 *
 * A *class* is everything that may share executors: one per profile id. An executor
 * carries the label of one class; tasks of a set run on executors of the set's class
 * only (canBeScheduled), which in a static run is class 0 for task-only profiles too.
 */
#ifndef TRP_CORE_ENGINE_STATE_H
#define TRP_CORE_ENGINE_STATE_H

#include "core/base/array.h"
#include "core/engine.h"
#include "core/topo/hosts.h"

/* ---- attempts ---- */

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
    uint64_t unused; /* makes it 64 bytes: an attempt is found by a shift */
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
    TRP_EXECUTOR_RELEASING, /* told to go; runs nothing */
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
    int64_t idle_since;
    struct trp_executor *free_next, *free_prev; /* ring of its class; NULL: not in it */
    struct trp_executor *queued_next, *queued_prev; /* ring of those with a queue */
};

struct trp_class {
    trp_profile_id profile;
    struct trp_task_set *first, *last; /* sets with pending tasks, by job and stage */
    struct trp_executor *free;   /* ring of executors with free cores; the one whose
                                  * turn is next */
    struct trp_executor *queued; /* ring of executors with queued attempts */
    uint32_t nfree;
    uint32_t live, requested, idle;
    uint32_t sets; /* submitted and not ended, gangs not counted */
    uint64_t
        open; /* pending, running and queued tasks of the sets, bounded ones apart */
    struct trp_task_set
        *bounded;     /* sets with bounds of their own on executors or tasks */
    uint32_t nqueued; /* queued attempts on its executors */
    uint32_t recalls; /* recalls under way */
    uint32_t fit;     /* executors the cluster can hold at once */
    char *never;      /* why none can ever be had, or NULL */
    int64_t retry_at; /* nothing is asked for before */
    int64_t backoff;
    uint32_t start_failures; /* in a row */
    char *start_failure;     /* what the last one said */
};

/* ---- task sets ---- */

enum { TRP_TASK_DONE = 1, TRP_TASK_FAILED = 2 };

struct trp_task {
    uint32_t attempt;  /* slot of its live attempt, TRP_NONE: none */
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

struct trp_task_set {
    struct trp_stage *stage;
    struct trp_class *class; /* NULL: a gang */
    /* Tasks that were killed for memory move on to sets of larger profiles (decision
     * 15), chained behind the stage's own, which has the tasks and counts done and
     * failed. */
    struct trp_task_set *owner, *overflow;
    const struct trp_resource_profile *profile;
    struct trp_task_set *next, *prev; /* in its class's order; linked when `listed` */
    bool listed;
    bool takes_custom; /* its tasks take custom resources: addresses have to be found */
    bool ended;        /* its stage has ended: launches nothing */
    uint32_t ntasks;
    struct trp_task *tasks;
    uint32_t pending, running, queued, done, failed;
    uint32_t attempts; /* live ones: keeps the set alive */

    uint32_t *prefer_first; /* ntasks + 1, NULL: no preferences at all */
    struct trp_set_place *places;
    struct trp_stack all, no_pref;
    struct trp_stack *hosts; /* by host number, nhosts of them */
    struct trp_stack *racks; /* by rack number, nracks of them */
    struct trp_executor_list *executors;
    uint32_t nhosts, nracks;
    uint32_t pending_executor, pending_host,
        pending_rack; /* pending tasks on such lists */
    uint32_t alive_executors, alive_hosts, alive_racks; /* keys with live executors */
    struct trp_task_set *preferring_next, *preferring_prev;
    bool is_bounded;
    struct trp_task_set *bounded_next, *bounded_prev;

    uint8_t levels[TRP_LEVELS], nlevels, current;
    bool no_reject; /* since the last reset of the clock */
    int64_t last;   /* locality clock */

    int64_t mean_ns; /* of ended attempts, exponentially weighted */
    uint32_t timed;  /* how many are in it */
};

/* ---- jobs and stages ---- */

enum trp_stage_state {
    TRP_STAGE_WAITING,
    TRP_STAGE_ASKED, /* ready, its tasks were asked for */
    TRP_STAGE_RUNNING,
    TRP_STAGE_ENDED,
};

struct trp_stage_link {
    struct trp_stage *stage;
    bool each;
};

struct trp_stage {
    trp_stage_id id;
    struct trp_job *job;
    char *name;
    trp_profile_id profile;
    enum trp_stage_kind kind;
    enum trp_stage_state state;
    enum trp_outcome outcome;
    bool tasks_known;
    uint32_t ranks, ntasks, max_failures, max_running, tolerate, tolerate_ppm;
    uint32_t memory_factor_ppm;
    uint32_t min_executors, max_executors;
    int32_t *not_on;
    uint32_t nnot_on;
    struct trp_stage_link *parents, *children;
    uint32_t nparents, nchildren;
    uint32_t blockers; /* parents that are not as far as this stage needs */
    struct trp_task_set *set;
    struct trp_stage *ready_next, *skip_next; /* work lists of jobs.c */
};

struct trp_job {
    trp_job_id id;
    uint32_t first, nstages; /* stage ids */
    uint32_t ended;
    bool cancelled, over;
    int code;
    trp_stage_id failed; /* the first that failed */
    uint32_t attempts;   /* live attempts of its stages */
    bool dead;           /* on the engine's list of jobs to be freed */
    struct trp_job *dead_next;
};

/* ---- the engine ---- */

struct trp_action_queue {
    struct trp_action *v;
    uint32_t n, cap, head;
    struct trp_grant *grants; /* of LAUNCH actions: indices until handed out */
    uint32_t ngrants, grants_cap;
    char **texts; /* of *_ENDED actions */
    uint32_t ntexts, texts_cap;
};

struct trp_engine {
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
    struct trp_stage *ready_first, *ready_last; /* stages whose blockers are gone */
    struct trp_job *dead_jobs;
    uint32_t gangs;                  /* gang attempts under way */
    struct trp_task_set *preferring; /* sets with preferences */
    int64_t locality_due, idle_due, retry_due;
    bool any_dirty, draining;
    bool out_of_memory;
    struct trp_action_queue actions;
    uint64_t launches, ends, ignored;
};

/* actions.c: appends an action and returns it for filling; on failure the engine is
 * marked out of memory (the step then fails) and a scratch action is returned. */
struct trp_action *trp_action_add(struct trp_engine *e, enum trp_action_kind kind);
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
struct trp_executor *trp_executor_find(const struct trp_engine *e, trp_executor_id id);
int trp_executor_live(struct trp_engine *e, struct trp_executor *x,
                      const struct trp_event *added, trp_error *err);
void trp_executor_retire(struct trp_engine *e, struct trp_executor *x);
void trp_executor_remove(struct trp_engine *e, struct trp_executor *x);
void trp_executor_relabel(struct trp_engine *e, struct trp_executor *x,
                          struct trp_class *to);
void trp_executor_set_free(struct trp_engine *e, struct trp_executor *x);
void trp_executor_attach(struct trp_engine *e, struct trp_executor *x, uint32_t slot,
                         bool queued);
void trp_executor_detach(struct trp_engine *e, struct trp_executor *x, uint32_t slot);

/* sched/task_set.c */
struct trp_task_set *trp_task_set_new(struct trp_engine *e, struct trp_stage *s,
                                      uint32_t ntasks,
                                      const struct trp_preferences *prefer,
                                      const uint8_t *done, trp_error *err);
void trp_task_set_free(struct trp_engine *e, struct trp_task_set *s);
/* The stage's own set. */
static inline struct trp_task_set *trp_task_set_main(struct trp_task_set *s)
{
    return s->owner ? s->owner : s;
}
static inline bool trp_task_is_pending(const struct trp_task *t)
{
    return t->attempt == TRP_NONE && !t->flags && !t->held;
}
/* The task became pending: onto its lists. */
bool trp_task_set_push(struct trp_engine *e, struct trp_task_set *s, uint32_t task);
/* The task is not pending any more (it was until now). */
void trp_task_set_take(struct trp_task_set *s, uint32_t task);
/* Section 8: the task for an offer of `x` at most at `level`; TRP_NONE: none. */
uint32_t trp_task_set_pick(struct trp_engine *e, struct trp_task_set *s,
                           const struct trp_executor *x, enum trp_level level,
                           enum trp_level *ret_level);
/* Section 7.3. */
enum trp_level trp_task_set_allowed(struct trp_engine *e, struct trp_task_set *s,
                                    enum trp_level max);
/* Section 7.2, after executors came or went. */
void trp_task_set_recompute(struct trp_task_set *s);
void trp_task_sets_executor_changed(struct trp_engine *e, const struct trp_executor *x,
                                    bool host_changed, bool rack_changed, int by);
/* In the class's order while it has pending tasks that may be launched. */
void trp_task_set_list(struct trp_task_set *s);
void trp_task_set_unlist(struct trp_task_set *s);

/* sched/rounds.c */
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
void trp_attempt_ended(struct trp_engine *e, uint32_t slot, enum trp_end_status status,
                       int32_t code, int64_t duration_ns, bool counted);
void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       enum trp_loss reason, trp_attempt_id culprit, int32_t code,
                       bool has_culprit);
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s);
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s);

/* dag/jobs.c */
int trp_job_submit(struct trp_engine *e, const struct trp_job_spec *spec,
                   trp_error *err);
int trp_stage_submit(struct trp_engine *e, struct trp_stage *s, uint32_t ntasks,
                     const struct trp_preferences *prefer, const uint8_t *done,
                     trp_error *err);
struct trp_stage *trp_stage_find(const struct trp_engine *e, trp_stage_id id);
void trp_stage_end(struct trp_engine *e, struct trp_stage *s, enum trp_outcome outcome,
                   int code, uint32_t task, const char *text);
void trp_stage_task_done(struct trp_engine *e, struct trp_stage *s, uint32_t task);
void trp_stage_check_end(struct trp_engine *e, struct trp_stage *s);
void trp_job_cancel(struct trp_engine *e, struct trp_job *j);
void trp_job_check_over(struct trp_engine *e, struct trp_job *j);
void trp_jobs_check_drained(struct trp_engine *e);
void trp_jobs_run_ready(struct trp_engine *e); /* at the end of every step, … */
void trp_jobs_free_dead(struct trp_engine *e); /* … in this order */
void trp_class_give_up(struct trp_engine *e, struct trp_class *c, int code,
                       const char *text);
void trp_jobs_free(struct trp_engine *e);

/* alloc/wanted.c */
void trp_wanted_reconcile(struct trp_engine *e);
void trp_wanted_time(struct trp_engine *e); /* timers that are due */
void trp_wanted_start_failed(struct trp_engine *e, struct trp_class *c, bool never,
                             const char *text);
uint32_t trp_wanted_executors(const struct trp_engine *e, const struct trp_class *c);

#endif
