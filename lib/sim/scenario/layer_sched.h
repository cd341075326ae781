/*
 * Layers `sched` and `health`: what their files share.
 */
#ifndef TRP_SIM_SCENARIO_LAYER_SCHED_H
#define TRP_SIM_SCENARIO_LAYER_SCHED_H

#include "sim/scenario/case_executors.h"

/* A task set as the file declares it. */
struct trp_sched_set {
    const char *id, *pool;
    int64_t stage, attempt, job;
    trp_profile_id profile;
    bool barrier, map;
    uint32_t ntasks;
    uint32_t *first;          /* ntasks + 1; NULL: nobody prefers */
    struct trp_place *places; /* of preferences */
    struct trp_mark mark;
    struct trp_task_set *set; /* NULL: not submitted */
};

struct trp_sched {
    trp_sim_case *c;
    trp_engine *engine;
    struct trp_sim_names executors; /* by engine number: those that were ever named */
    struct trp_sim_executor *shapes;
    uint32_t *order; /* executors that are there, as they were added */
    uint32_t norder, order_cap;
    struct trp_sim_names names; /* of sets */
    struct trp_sched_set *sets;
    uint32_t nsets, ntasks;
    struct trp_pool_spec *pools;
    uint32_t npools;
};

/* The key `pools`, before there is an engine. */
int trp_sched_read_pools(struct trp_sched *s);
/* The key `task_sets`. */
int trp_sched_read_sets(struct trp_sched *s, trp_error *err);

/* layer_sched_tell.c: all actions that wait. An executor that is forced to go is lost
 * by it. */
void trp_sched_tell(struct trp_sched *s);
/* One that is there is gone from now on: the event EXECUTOR_LOST. */
int trp_sched_lose(struct trp_sched *s, const struct trp_event *lost, int64_t now_ns,
                   trp_error *err);

/* layer_sched_state.c */
json_t *trp_sched_state(void *state, const char *key,
                        const struct trp_yaml_node *wanted);

#endif
