/*
 * What the parts of layer `alloc` share; private to layer_alloc.c (evaluation),
 * alloc_shares.c (limits over all profiles), alloc_stages.c and alloc_executors.c (what
 * happens).
 */
#ifndef TRP_SIM_SCENARIO_ALLOC_STATE_H
#define TRP_SIM_SCENARIO_ALLOC_STATE_H

#include <stdlib.h>
#include <string.h>

#include "conf/arena.h"
#include "conf/wording.h"
#include "core/alloc/idle.h"
#include "core/alloc/shares.h"
#include "core/alloc/targets.h"
#include "core/base/array.h"
#include "sim/scenario/layer.h"

struct stage {
    trp_profile_id profile;
    uint32_t handle; /* of the targets, while `live` */
    uint32_t ntasks;
    bool barrier, done, live;
};

struct executor {
    struct trp_idle_item idle; /* its id is the executor's number */
    trp_profile_id profile;
    const char *host;
    bool added, leaving, lost;
};

struct alloc_profile {
    int64_t cost[TRP_CAPS]; /* of one executor */
    uint32_t slots;
    uint32_t target; /* within the limits, as of the last evaluation */
    int64_t grew;    /* … by which it changed */
};

struct alloc {
    trp_sim_case *c;
    trp_targets *targets;
    trp_idle *idle;
    struct trp_sim_names stage_names; /* "s0/0": stage and attempt */
    struct stage *stages;
    uint32_t stages_cap;
    struct trp_sim_names newest; /* stage names; the number of the newest attempt */
    uint32_t *newest_of, newest_cap;
    struct trp_sim_names executor_names;
    struct executor **executors; /* each stays where it is */
    uint32_t executors_cap;
    struct trp_sim_names shuffles;
    int64_t tasks; /* of all stages */
    struct trp_caps caps;
    struct alloc_profile *profiles; /* by id */
    uint32_t nprofiles;
    struct trp_share *claims; /* room for one of each profile */
};

struct alloc_action {
    const char *name;
    int (*perform)(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns);
};
/* Each ends in a NULL name. */
extern const struct alloc_action alloc_stage_actions[], alloc_executor_actions[];

/* The number of an executor, which may be new. */
int alloc_executor_of(struct alloc *s, const char *name);
int alloc_add_executor(struct alloc *s, const struct trp_sim_executor *v,
                       int64_t now_ns);
/* Of these executors as many go as may, in order of their ids. Sorts `names`. */
void alloc_remove_idle(struct alloc *s, const char **names, uint32_t n);

/* alloc_shares.c */
int alloc_shares_open(struct alloc *s);
void alloc_shares_close(struct alloc *s);
/* Evaluates the targets within the limits over all profiles. */
void alloc_shares_find(struct alloc *s);

#endif
