/*
 * What the DAG's parts share: stages, jobs, and the seam between them and the task
 * scheduler. Internal to lib/core. Semantics, sections 13 (gate and retry), 14
 * and 15.
 *
 *     dag/graph.c      datasets: which stages a job needs
 *     dag/outputs.c    where map outputs lie
 *     dag/dataset_stages.c stages made from datasets
 *     dag/jobs.c       jobs: submission, end, cancelling
 *     dag/stages.c     one stage: waiting, attempts, end
 *     dag/task_links.c which tasks wait for which (after … each, after … by)
 *     dag/given_up.c   tasks that fail for good, and those that are skipped for it
 *     dag/failures.c   fetch failures, barrier failures, what is run again and when
 *     dag/losses.c     executors and hosts that go: epochs, outputs, decommission
 *     dag/preferences.c where tasks of an attempt would like to run
 *     dag/gate.c       barrier stages that need more slots than there are
 *
 * There is one kind of stage. What differs is what its tasks leave: a *map* stage
 * leaves map outputs, which may be lost, and may be needed by several jobs; any other
 * leaves files or results that stay, belongs to one job, and ends once. Stages get ids
 * after their parents, so an edge always leads from a lower id to a higher one.
 *
 * A stage is wanted → WAITING for parents → (ASKED for its tasks →) RUNNING as the task
 * set of its newest attempt → ENDED. A map stage goes back to IDLE, from where it is
 * wanted again when an output is missing; so does a stage whose attempt failed, which
 * then is `failed`, and not to be wanted, until the timer of 200 ms. Wanted stages
 * stand on a work list that the end of each step empties: nothing recurs, and 10,000
 * empty stages in a row end in one step.
 */
#ifndef TRP_CORE_DAG_DAG_STATE_H
#define TRP_CORE_DAG_DAG_STATE_H

#include "core/dag/graph.h"
#include "core/dag/outputs.h"

struct trp_task_set;
struct trp_task_links;
struct trp_executor;
struct trp_class;
struct trp_job;
struct trp_stage;

enum trp_stage_state {
    TRP_STAGE_IDLE,    /* nobody wants it now */
    TRP_STAGE_WAITING, /* for parents */
    TRP_STAGE_ASKED,   /* its tasks were asked for */
    TRP_STAGE_RUNNING,
    TRP_STAGE_ENDED,
};

enum trp_edge {
    TRP_EDGE_AFTER,       /* all tasks of the parent are done */
    TRP_EDGE_EACH,        /* a task after tasks of the parent: task_links.c */
    TRP_EDGE_EACH_OF_ALL, /* the same, but after all of the parent, a barrier stage: what
                           * one of its tasks did may be undone */
    TRP_EDGE_SHUFFLE,     /* all map outputs of the parent are there */
};

struct trp_stage_link {
    struct trp_stage *parent, *child;
    struct trp_stage_link *next, *prev; /* of the parent's children, by child's id */
    enum trp_edge edge;
    bool
        by_value; /* EACH: not the task of the same number; once the child has tasks: */
    struct trp_task_links *by; /* which */
    bool waits;                /* the child is WAITING for this one */
};

/* That a job uses a stage. */
struct trp_use {
    struct trp_job *job;
    struct trp_stage *stage;
    struct trp_use *next, *prev; /* of the stage's, in order of the jobs */
    bool over;                   /* the job waits for the stage's end no longer */
};

/* What alloc/ahead.c knows of a stage. */
struct trp_stage_ahead {
    struct trp_stage *next, *prev; /* of those that are looked ahead to */
    bool watched, asked_wait;
    bool given_up;  /* its executors came and waited for too long */
    uint32_t n;     /* executors requested */
    int64_t since;  /* watched */
    int64_t expect; /* the stage should have started by then … */
    int64_t most;   /* … and later than that nothing is held for it */
};

struct trp_stage {
    trp_stage_id id;
    trp_job_id first_job; /* it was made for */
    char *name;
    trp_profile_id profile;
    enum trp_stage_kind kind;
    enum trp_stage_state state;
    enum trp_outcome outcome;
    bool tasks_known, is_map, barrier, indeterminate;
    bool queued;                 /* on the work list */
    bool failed;                 /* it is wanted again when the timer fires */
    bool roll_back;              /* its outputs are of no use any more: all run again */
    bool end_told;               /* and no attempt was submitted since */
    bool redo;                   /* what its tasks gave may be given again */
    bool unjudged;               /* it is over, but for what its parents lose yet */
    bool untold;                 /* tasks were skipped before its attempt was told */
    bool checked;                /* it ends when it was told that all is well … */
    bool asked;                  /* … and that was asked */
    bool has_news;               /* in the list of those … (trp_ahead_news) */
    struct trp_stage *news_next; /* … by this */
    struct {
        char *text; /* it gave up, and ends when its attempts have; NULL: it did not */
        int code;
        uint32_t task;
    } gave_up;
    uint32_t ranks, ntasks, max_failures, max_running, tolerate, tolerate_ppm;
    uint32_t max_losses, max_repeats;
    uint32_t memory_factor_ppm;
    uint32_t min_executors, max_executors;
    enum trp_look_ahead look_ahead;
    int64_t look_ahead_ns;
    char *pool; /* NULL: the job's */
    struct trp_stage_ahead ahead;
    int32_t *not_on;
    uint32_t nnot_on;

    struct trp_stage_link *parents; /* array */
    uint32_t nparents;
    struct trp_stage_link *children;
    uint32_t each_children;
    uint32_t blockers;  /* links that wait … */
    uint64_t looked_at; /* … as of this state of outputs and cached data */
    struct trp_use *uses;

    uint32_t dataset; /* TRP_NONE: given as a stage */
    uint32_t shuffle; /* map: its number among the map outputs */
    bool cache_in_chain;
    bool has_runs;    /* a dataset of the chain is made of runs of partitions */
    uint32_t *prefer; /* datasets of the chain that may prefer places, in their order */
    uint32_t nprefer;

    uint32_t attempts;        /* number of the next one */
    uint32_t failed_attempts; /* since it last succeeded; semantics, difference 12 */
    uint32_t last_failed;     /* the newest of them, TRP_NONE: none */
    uint64_t *epochs;         /* by attempt: of the map outputs when it began */
    uint32_t epochs_cap;
    /* A bit a task. Map: the newest attempt has not told its end yet. Otherwise: it is
     * over (done, given up, or not requested). */
    uint64_t *bits;
    uint64_t *lost;   /* a bit each that was given up; NULL: none was */
    uint32_t awaited; /* map: bits set */
    uint32_t succeeded, given_up, unasked; /* otherwise: their sum is the bits set */
    uint32_t skipped;                      /* given up because a parent's task was */

    uint64_t
        *commits; /* by task: who may commit (sched/commits.c); NULL: nobody asked */

    struct trp_task_set *set; /* of the newest attempt; NULL: none, or it is gone */
    uint32_t live;            /* attempts of its tasks, in all its sets */
    bool dead;                /* to be freed at the end of the step */
    uint32_t mark;            /* number of the last walk over stages that came here */
    struct trp_stage *ready_next, *skip_next, *lost_next, *dead_next;
    uint32_t lost_from, lost_to; /* in the list by lost_next: its part of dag.lost */
    /* A barrier stage that nothing has the slots for yet: looked at again. */
    bool gated;
    uint32_t gate_failures;
    int64_t gate_due;
    struct trp_stage *gate_next;
};

struct trp_job {
    trp_job_id id;
    char *name; /* NULL: its number */
    char *pool; /* NULL: "default" */
    bool keep_going, of_dataset, map_only, redo;
    bool drains;             /* what runs may finish when it has failed */
    struct trp_stage *final; /* dataset jobs */
    struct trp_use *uses;    /* array, by stage id */
    uint32_t nuses;
    uint32_t open;  /* uses whose end it waits for */
    uint32_t busy;  /* stages with live attempts */
    uint32_t asked; /* stages of which was asked whether all is well */
    bool cancelled, over;
    int code;
    trp_stage_id failed; /* the first that failed */
    char *text;          /* why */
    /* Refused for want of slots, tried again: what was requested. */
    bool gated;
    uint32_t dataset, *partitions, npartitions, gate_failures;
    int64_t gate_due;
    struct trp_job *gate_next, *dead_next;
};

/* An executor as map outputs see it, also after it is gone. */
struct trp_dag_executor {
    uint64_t failed_at; /* epoch of the loss + 1; 0: none */
    uint64_t files_lost_at;
    uint32_t host;
    bool decommissioning, host_decommissioned;
    bool released; /* we let it go: semantics, difference 8 */
};

struct trp_set_spec;

struct trp_dag {
    struct trp_graph graph;
    trp_map_outputs *outputs;
    uint32_t nshuffles;            /* numbers given */
    struct trp_stage **map_stages; /* by shuffle; NULL: no job uses it */
    uint32_t nmap_stages, map_stages_cap;
    struct trp_dag_executor *executors; /* by number */
    uint32_t nexecutors, executors_cap;
    struct trp_stack decommissioned; /* gone ones that are remembered, oldest first */
    struct trp_stage *ready_first, *ready_last; /* the work list */
    struct trp_stage *dead_stages;
    struct trp_stage *told_stages; /* dead ones of which this step's actions tell */
    struct trp_job *dead_jobs;
    struct trp_job *gated;     /* by due time */
    struct trp_stage *watched; /* gated stages, by due time */
    int64_t *resubmit_due;     /* timers, in order; resubmit_head is the next */
    uint32_t nresubmit, resubmit_head, resubmit_cap;
    struct trp_stack failed;  /* ids of stages that are, or were, `failed` */
    struct trp_stack rolling; /* ids of stages that are, or were, to be rolled back */
    struct trp_stack lost;    /* work memory of given_up.c: tasks that were lost */
    uint64_t changes;         /* of outputs and cached data, but for new outputs */
    uint32_t mark;            /* walks over stages so far */
    struct trp_stack found;   /* stages that the last one found */
    const struct trp_dag_alone *alone; /* NULL but in scenarios */
    struct trp_place *places;          /* work memory of preferences.c */
    struct trp_read {                  /* partitions of a dataset that a task reads */
        uint32_t dataset, from, to;
        bool spare; /* of no interest when others say something */
    } * reads;
    uint32_t nreads, reads_cap;
    uint32_t *place_first;
    uint32_t places_cap, place_first_cap;
};

/* Bits of a stage. */
static inline bool trp_bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}
static inline void trp_bit_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}
/* Sets it; was it set before? */
static inline bool trp_bit_put(uint64_t *bits, uint32_t i)
{
    uint64_t bit = UINT64_C(1) << i % 64, was = bits[i / 64];
    bits[i / 64] = was | bit;
    return was & bit;
}
static inline void trp_bit_clear(uint64_t *bits, uint32_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

#endif
