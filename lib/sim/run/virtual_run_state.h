/*
 * What the parts of a virtual run share; virtual_run.h is the contract.
 *
 *     virtual_run.c       making, the loop: what is due next, the engine's step
 *     virtual_act.c       performing what the engine decided
 *     virtual_happen.c    what happens: executors come and die, attempts end
 */
#ifndef TRP_SIM_RUN_VIRTUAL_RUN_STATE_H
#define TRP_SIM_RUN_VIRTUAL_RUN_STATE_H

#include "conf/stage_specs.h"
#include "core/base/array.h"
#include "events/engine_trace.h"
#include "sim/run/virtual_heap.h"
#include "sim/run/virtual_run.h"

#define TRP_VIRTUAL_NOBODY UINT64_MAX

struct trp_virtual_attempt {        /* by the slot of its id */
    uint64_t id;                    /* TRP_VIRTUAL_NOBODY: free */
    uint32_t stage, task, executor; /* executor TRP_NONE: a gang */
    uint32_t share;                 /* gang */
    uint32_t next;                  /* queued behind it on its executor */
    uint16_t number;
    uint8_t status;  /* how it will end */
    int64_t granted; /* gang: when it got its room */
    int64_t started; /* -1: queued, or no room yet */
    int64_t takes;
};

enum trp_virtual_executor_state {
    TRP_VIRTUAL_ASKED,
    TRP_VIRTUAL_STARTS,
    TRP_VIRTUAL_UP,
    TRP_VIRTUAL_WITHDRAWN, /* it never got room; the engine is to hear of it */
    TRP_VIRTUAL_GONE,
};

struct trp_virtual_executor {
    uint32_t share;
    uint32_t stage; /* whose task ran there last; TRP_NONE: none since it came */
    uint8_t state;
    uint32_t queue_first, queue_last; /* attempt slots */
    int64_t asked;
    int64_t since; /* up to here its time is given to stages */
    float part;    /* of its node */
};

/* What a stage's tasks do, beside its result. */
struct trp_virtual_plan {
    uint32_t place; /* in the job */
    bool submitted;
    struct trp_sim_amounts task; /* amounts of one task */
    struct trp_stage_places places;
};

struct trp_virtual_run {
    struct trp_virtual_run_config c;
    struct trp_virtual_result *result;
    struct trp_stage_specs specs;
    struct trp_virtual_plan *plan; /* of each stage of the pipeline */
    uint32_t *children;            /* of all */
    trp_engine *engine;
    trp_engine_trace *trace; /* NULL: none */
    trp_virtual_cluster *cluster;
    struct trp_virtual_heap heap;
    struct trp_virtual_attempt *attempts;
    uint32_t nattempts, attempts_cap;
    struct trp_virtual_executor *executors;
    uint32_t nexecutors, executors_cap;
    struct trp_resource_addresses *resources; /* scratch: of the executor that comes */
    int64_t now;
    uint64_t steps, last_end;
    uint64_t jobs; /* for draws */
    uint32_t up;
    bool asked;   /* somebody began to wait */
    bool freed;   /* somebody gave nodes back, or parts of them */
    bool patient; /* jobs are requested when they are worth it, not at once */
    bool performing, over;
    int rc;
    trp_error *err;
};

/* virtual_run.c */
void trp_virtual_step(struct trp_virtual_run *r, const struct trp_event *ev);
void trp_virtual_fail(struct trp_virtual_run *r, int code, const char *text);
void trp_virtual_later(struct trp_virtual_run *r, int64_t in,
                       enum trp_virtual_due_kind kind, uint32_t a, uint64_t b);
static inline struct trp_virtual_stage *trp_virtual_stage_of(struct trp_virtual_run *r,
                                                             uint32_t engine_stage)
{
    return &r->result->stages[r->specs.of[engine_stage]];
}

/* How many executors of a profile there can be; `why`: of none. */
struct trp_event trp_virtual_fit_of(const struct trp_virtual_run *r,
                                    const struct trp_resource_profile *p,
                                    trp_error *why);

/* virtual_act.c */
void trp_virtual_act(struct trp_virtual_run *r, const struct trp_action *a);

/* virtual_happen.c */
void trp_virtual_happen(struct trp_virtual_run *r, const struct trp_virtual_due *due);
/* The attempt begins to run. */
void trp_virtual_begin(struct trp_virtual_run *r, uint32_t slot);
/* The live attempt, or NULL. */
struct trp_virtual_attempt *trp_virtual_attempt(struct trp_virtual_run *r, uint64_t id);
/* What the executor held up to now is its stage's. */
void trp_virtual_settle(struct trp_virtual_run *r, uint32_t executor, uint32_t next);
extern const struct trp_virtual_handler trp_virtual_cluster_handler;

#endif
