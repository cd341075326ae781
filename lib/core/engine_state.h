/*
 * What the engine's parts share: its state, and at the end what each part offers the
 * others. Internal to lib/core; engine.h is the contract.
 *
 *     dag/dag_state.h      jobs and stages: what is ready, what ends, what runs again
 *     sched/sched_state.h  attempts, executors, classes, task sets
 *     sched/sets.c         task sets: submitted, zombie, killed, gone; their order
 *     sched/task_set.c     making and freeing one
 *     sched/pending.c      its pending tasks, by place: which one an offer gets
 *     sched/locality.c     its locality levels and their clock
 *     sched/attempts.c     the pool of attempts
 *     sched/executors.c    executors and their classes: ledger, free lists
 *     sched/offers.c       one offer, one visit of a set, rounds over given executors
 *     scenario/            task sets without jobs, the DAG without task sets: for
 *                          scenarios
 *     sched/rounds.c       rounds over a class, queue ahead
 *     sched/start_gate.c   nothing is launched until enough executors have come
 *     sched/barrier.c      gangs of executors: all tasks in one round or none
 *     sched/keep.c         slots that are kept for them
 *     sched/outcomes.c     how attempts end
 *     sched/executor_losses.c  executors that are lost; kills
 *     sched/decommission.c executors that are to go in good order
 *     sched/exclusion.c    who gets nothing because tasks failed there
 *     sched/copies.c       speculation: second attempts of slow tasks
 *     alloc/demand.c       how many executors the tasks of a class can use
 *     alloc/outlook.c      what may still run, and what of it at once
 *     alloc/wanted.c       how many executors each profile should have
 *     alloc/ahead.c        executors of stages that are not ready yet
 *     alloc/patience.c     which requests may come from additional jobs
 *     alloc/left.c         how much longer tasks take
 *     alloc/start_times.c  when those that run began
 *     alloc/yield.c        limits over all profiles that are short
 *     alloc/give_way.c     idle executors that others wait for the room of
 *     alloc/supply.c       what executors there are, for the limits and timeouts
 *     alloc/ramp.c         what happens to task sets, for alloc.grow=ramp
 */
#ifndef TRP_CORE_ENGINE_STATE_H
#define TRP_CORE_ENGINE_STATE_H

#include "core/alloc/shares.h"
#include "core/alloc/targets.h"
#include "core/base/rare.h"
#include "core/dag/dag_state.h"
#include "core/engine.h"
#include "core/sched/sched_state.h"
#include "core/topo/hosts.h"

/* ---- the engine ---- */

struct trp_action_queue {
    struct trp_action *v, *head, *end, *limit; /* those from head to end are to come */
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
    uint32_t live,
        requested;      /* executors that came and are not gone; that are requested */
    uint32_t leaving;   /* that came, and are being released */
    uint32_t nyielding; /* in all classes */
    struct trp_class **classes; /* by profile id; made when first needed */
    uint32_t nclasses, classes_cap;
    struct trp_stage **stages; /* by id; NULL: of a job that is over */
    uint32_t nstages, stages_cap;
    struct trp_job **jobs;
    uint32_t njobs, jobs_cap;
    uint32_t jobs_active;
    struct trp_dag dag;
    uint32_t gangs;            /* gang attempts under way */
    struct trp_task_set *sets; /* all of them */
    uint32_t sets_made;
    struct trp_task_set *dead_sets;   /* zombies without attempts */
    struct trp_task_set *preferring;  /* sets with preferences */
    struct trp_task_set *stuck;       /* sets that will be given up */
    struct trp_executor *force_first; /* decommissioned ones, by time */
    trp_pools *pools;                 /* NULL: FIFO, the classes' own order */
    trp_health_tracker *tracker;      /* NULL: nothing is excluded */
    trp_idle *idle;                   /* NULL: executors are not released */
    trp_targets *targets;             /* NULL: alloc.grow=need */
    struct trp_caps caps;
    int64_t caps_used[TRP_CAPS]; /* by executors requested or there */
    struct trp_share *shares;    /* of the classes, in order, as last found */
    uint32_t nshares, shares_cap;
    uint32_t nshort;         /* classes that are; and one more while there are gangs */
    bool contended;          /* other runs wait for room of this one */
    struct trp_stage *ahead; /* stages that wait for running ones: looked ahead to … */
    int64_t ahead_due;       /* … then */
    struct trp_stage *ahead_news; /* … and in this step those that wait for these */
    int64_t patience_due;         /* requests that wait are judged again */
    int64_t start_ns;  /* the least time from a request to its executor; 0: none came */
    bool dynamic;      /* other executors can be obtained */
    bool sched_alone;  /* scenario/sched_alone.h: no jobs, no offers by itself … */
    bool manual_start; /* … and attempts are launching until told otherwise */
    bool gated;        /* too few executors have come to begin (sched/start_gate.c) */
    int64_t locality_due, retry_due, slow_due, gate_due;
    int64_t keep_due;  /* the earliest of the classes', or before it */
    uint64_t draws;    /* of the seed */
    uint64_t listings; /* how often tasks became pending, or were to get a copy */
    /* What the end of the step has to do: */
    bool unsettled;      /* stages are ready, or something is over and to be freed */
    bool any_dirty;      /* the executors wanted and those there may differ */
    bool offer_all;      /* the sets of all classes may find slots */
    bool draining;       /* jobs may be over */
    bool refused_by_end; /* tasks would outlive executors or the run … */
    struct trp_stack outlived; /* … numbers of those executors */
    bool told_out_of_time;
    bool has_ends;   /* of executors or the run … */
    int64_t ends_ns; /* … INT64_MAX: not of the run */
    bool out_of_memory;
    uint64_t losses; /* of executors, by events that may take several … */
    int64_t loss_ns; /* … and when the last one began */
    struct trp_action_queue actions;
    uint64_t launches, ends, ignored;
    uint64_t visits; /* of executors, sets and stages by walks (trp_engine_counts) … */
    uint64_t *visited; /* … which also those count that change nothing */
};

/* engine.c: the closing work of every step. */
void trp_engine_settle(struct trp_engine *e);
/* engine.c: nothing is launched any more. */
void trp_engine_drain(struct trp_engine *e);

/* action_queue.c: appends an action and returns it for filling; on failure the engine
 * is marked out of memory (the step then fails) and a scratch action is returned. */
struct trp_action *trp_action_add(struct trp_engine *e, enum trp_action_kind kind);
/* Memory for what an action points to; NULL when out of memory. */
void *trp_action_bytes(struct trp_engine *e, size_t size);
/* Copies text for an action; "" when out of memory. */
const char *trp_action_text(struct trp_engine *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void trp_action_launch(struct trp_engine *e, const struct trp_attempt *a,
                       uint32_t slot);
void trp_actions_free(struct trp_action_queue *q);

#include "core/alloc/alloc_parts.h"
#include "core/dag/jobs.h"
#include "core/dag/seam.h"
#include "core/dag/stages.h"
#include "core/sched/attempts.h"
#include "core/sched/commits.h"
#include "core/sched/copies.h"
#include "core/sched/exclusion.h"
#include "core/sched/executors.h"
#include "core/sched/rounds.h"
#include "core/sched/sets.h"
#include "core/sched/sync.h"

#endif
