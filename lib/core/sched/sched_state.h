/*
 * Attempts, executors, classes and task sets: what scheduling works on.
 *
 * A *class* is everything that may share executors: one per profile id. An executor
 * carries the label of one class; tasks of a set run on executors of the set's class
 * only (canBeScheduled), which in a static run is class 0 for task-only profiles too.
 */
#ifndef TRP_CORE_SCHED_SCHED_STATE_H
#define TRP_CORE_SCHED_SCHED_STATE_H

#include "core/alloc/idle.h"
#include "core/alloc/shares.h"
#include "core/alloc/start_times.h"
#include "core/base/array.h"
#include "core/engine.h"
#include "core/sched/health.h"
#include "core/sched/pools.h"
#include "core/sched/speculation.h"

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
    bool recall_sent; /* queued: counted in its class's recalls */
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
    TRP_EXECUTOR_DECOMMISSIONED, /* gets nothing new; what runs there continues */
    TRP_EXECUTOR_RELEASING,      /* being released; runs nothing */
};

struct trp_executor {
    trp_executor_id id;
    uint32_t class;       /* the profile it is labelled with */
    trp_profile_id shape; /* the profile it was made for */
    enum trp_executor_state state;
    bool came;     /* it has been live */
    uint32_t host; /* number in hosts, once it came */
    int64_t cores, cores_free;
    trp_ledger *ledger;
    uint32_t running, nrunning;                /* list of attempts */
    uint32_t queue_first, queue_last, nqueued; /* list of attempts, FIFO */
    struct trp_task_set *one_set; /* the set of all its running attempts, NULL: mixed */
    struct trp_idle_item idle;
    int64_t decommissioned_ns; /* when; INT64_MAX: not */
    int64_t ends_ns;           /* of its allocation; INT64_MAX: not known */
    int64_t outlived_ns;       /* the least estimate that was refused; 0: none was */
    bool excluded;             /* for the application: gets nothing new */
    bool yields;               /* gets nothing new, is released when it is idle */
    bool ahead;                /* for a stage that is not ready yet */
    bool granted;              /* requested, and has its room */
    int64_t asked_ns;          /* when it was requested */
    bool forced; /* released when its time is over: in the list by force_next */
    struct trp_executor *force_next, *force_prev;
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
    return x->state == TRP_EXECUTOR_LIVE && !x->excluded && !x->yields;
}

static inline bool trp_executor_is_idle(const struct trp_executor *x)
{
    return x->state == TRP_EXECUTOR_LIVE && !x->nrunning && !x->nqueued;
}

/* Requested for tasks that are there, without room so far. */
static inline bool trp_executor_waits(const struct trp_executor *x)
{
    return x->state == TRP_EXECUTOR_REQUESTED && !x->granted && !x->ahead;
}

enum { TRP_CAUSES_KEPT = 8 };

/* Starts of a class that failed in a row (alloc/starts.c). */
struct trp_starts {
    uint32_t failures;         /* counted */
    int64_t first_ns, last_ns; /* when the first and the last counted one was told */
    char *causes[TRP_CAUSES_KEPT], *texts[TRP_CAUSES_KEPT]; /* that differ */
    uint32_t ncauses;
};

struct trp_class {
    trp_profile_id profile;
    struct trp_task_set *first;  /* sets with pending tasks, by job and stage */
    struct trp_executor *free;   /* ring of executors with free cores; the one whose
                                  * turn is next */
    struct trp_executor *queued; /* ring of executors with queued attempts */
    uint32_t nfree;
    uint32_t nlisted, ndull;     /* sets from first on; dull ones of them (rounds.c) */
    struct trp_task_set *lively; /* the last that became listed or not dull; or NULL */
    /* In a round: the barrier set for which slots are kept from those behind. */
    struct trp_task_set *keeper;
    struct trp_task_set *keep_for; /* between rounds: the last such set, or NULL … */
    int64_t keep_due;              /* … when those behind get some all the same */
    bool keep_over;                /* in the round in which they do */
    uint32_t live;
    struct trp_bits requested, idle; /* numbers of executors: asked for; live ones that
                                      * run nothing */
    uint32_t came;                   /* executors that have come, so far */
    uint32_t granted;         /* of the requested ones: those that have their room */
    uint32_t sets;            /* submitted and not ended, gangs not counted … */
    struct trp_task_set *all; /* … in that order */
    bool set_ended; /* since executors were last no more than what is wanted */
    uint32_t late; /* so often it gave way late, since a set ended (alloc/give_way.c) */
    uint64_t
        open; /* pending, running and queued tasks of the sets, bounded ones apart */
    struct trp_task_set
        *bounded; /* sets with bounds of their own on executors or tasks */
    uint32_t
        copies; /* tasks that are to get a copy: part of open, or of bounded sets */
    uint32_t *on_host; /* live executors by host number, on_host_cap of them … */
    uint32_t on_host_cap, hosts; /* … and hosts with any */
    struct {                     /* while copies wait (alloc/demand.c): */
        uint32_t useless;        /* live executors where none of them could run … */
        uint32_t idle;           /* … of which idle */
        bool asked;              /* one was requested elsewhere … */
        trp_executor_id apart;   /* … which is this, or n == TRP_NONE */
    } copying;
    uint32_t fit_hosts;  /* that the cluster has for it; 0: not known */
    uint32_t nqueued;    /* queued attempts on its executors */
    uint32_t recalls;    /* recalls under way */
    uint32_t fit;        /* executors the cluster can hold at once … */
    uint32_t additional; /* … of those, how many do not fit on the nodes of the run */
    bool more; /* additional jobs may be requested for it (alloc/patience.c): */
    struct trp_bits inside; /* requested ones that may not come from one */
    uint32_t lost;          /* executors to be replaced at once */
    int64_t waits_since; /* since when others of those wait; INT64_MAX: none does … */
    int64_t patience_due;   /* … and when that is judged next */
    uint32_t ahead;         /* executors for stages that are not ready yet … */
    uint32_t nahead;        /* … requested or live */
    int64_t wait_ns;        /* in the cluster's queue, as far as is known */
    int64_t cost[TRP_CAPS]; /* what an executor of it takes of the limits */
    uint32_t share;         /* executors that the limits allow it */
    bool is_short;          /* tasks wait, and could use more than are live */
    uint32_t yielding;      /* live executors that are released when they are idle */
    char *never;            /* why none can ever be obtained, or NULL */
    int64_t retry_at;       /* nothing is requested before */
    int64_t backoff;
    struct trp_starts starts; /* that failed */
    char *start_failure;      /* text of the last refusal */
};

/* ---- task sets ---- */

enum { TRP_TIMES_KEPT = 16 };

enum {
    TRP_TASK_DONE = 1,
    TRP_TASK_FAILED = 2,       /* for good */
    TRP_TASK_LEFT = 4,         /* its input is gone: the next attempt's */
    TRP_TASK_OVER = 7,         /* any of these */
    TRP_TASK_SPECULATABLE = 8, /* is to get a copy */
    TRP_TASK_OUTRAN = 16,      /* an attempt of it ended with its allocation */
};

struct trp_task {
    uint32_t attempt;   /* slot of its live attempt (a copy is that one's twin), or
                        * TRP_NONE */
    uint16_t failures;  /* counted, of all kinds */
    uint16_t attempts;  /* made so far */
    uint16_t waits_for; /* parents' tasks it still waits for (after … each) */
    uint8_t flags;
    uint8_t grown;   /* how often its memory was raised: the overflow set it is in */
    uint8_t losses;  /* of its executor, where they have a count of their own … */
    uint8_t repeats; /* … and repeats with more memory */
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
    uint32_t *block;         /* memory of those stacks that never grew; or NULL */
    size_t nblock;
    bool has_hosts, has_racks; /* some of them have a list */
    struct trp_executor_list *executors;
};

/* A host on which an attempt of a task ended. */
struct trp_past_host {
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
    struct trp_task_set *all_next, *all_prev;     /* all sets of the engine */
    struct trp_task_set *class_next, *class_prev; /* those of its class */
    struct trp_task_set *dead_next;               /* to be freed */
    struct trp_pool_child pool_place; /* in the pools, where there are any */
    uint32_t stage_attempt;
    uint32_t arrival;  /* sets that were made before */
    uint32_t priority; /* job */
    bool map;          /* its outputs lie where tasks ran */
    bool barrier;      /* all tasks at once */
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
    struct trp_set_place *preferred;
    struct trp_pending lists, copy_lists;
    uint32_t nhosts, nracks; /* of the arrays in both */
    uint32_t pending_executor, pending_host,
        pending_rack; /* pending tasks on such lists */
    uint32_t alive_executors, alive_hosts, alive_racks; /* keys with live executors */
    struct trp_task_set *preferring_next, *preferring_prev;
    bool is_bounded;
    struct trp_task_set *bounded_next, *bounded_prev;

    uint8_t levels[TRP_LEVELS], nlevels, current;
    bool nothing_rejected;     /* since the last reset of the clock */
    bool only_preferred;       /* only executors that its tasks prefer can run one */
    int64_t locality_clock_ns; /* the last launch at its level, or change of it */
    int64_t keep_until; /* barrier: until then slots are kept for it; 0: none are */

    struct trp_start_times began;    /* those that run, gangs apart */
    int64_t mean_ns;                 /* of ended attempts, exponentially weighted */
    uint32_t timed;                  /* how many are in it */
    int64_t took_ns[TRP_TIMES_KEPT]; /* the last of them, the next one at timed % … */

    uint32_t *success_executor; /* executor of each task's success; NULL: not kept */
    trp_speculation *durations; /* of successes; NULL: no speculation */
    bool refused_by_end;        /* a task of it, since all were offered everything */
    trp_speculation *durations_for_end; /* the same, where the allocation's is known */
    struct trp_speculation_gate gate;   /* of the present check, with `looked_at` */
    bool looked_at, newly;
    uint32_t *past_hosts_first; /* by task, the latest; with speculation */
    struct trp_past_host *past_hosts;
    uint32_t npast_hosts, past_hosts_cap;
    struct trp_health *health; /* failures; NULL: none */
    int64_t abort_at;          /* nothing can run a task of it: given up then … */
    uint32_t abort_task;
    uint32_t abort_after; /* … unless no executor has come since (its class's `came`) */
    struct trp_task_set *stuck_next; /* sets with an abort_at */
    uint64_t result_bytes;
    uint32_t ramp;             /* its name among the targets */
    uint32_t requested_before; /* executors, before a gang was launched */
};

#endif
