/*
 * The layers there are. One line each.
 */
#include "sim/scenario/layer.h"

extern const struct trp_sim_layer trp_sim_layer_alloc;
extern const struct trp_sim_layer trp_sim_layer_dag;
extern const struct trp_sim_layer trp_sim_layer_outputs;
extern const struct trp_sim_layer trp_sim_layer_profile;
extern const struct trp_sim_layer trp_sim_layer_resources;
extern const struct trp_sim_layer trp_sim_layer_sched;

const struct trp_sim_layer *const trp_sim_layers[] = {
    &trp_sim_layer_alloc,     /* executor targets */
    &trp_sim_layer_dag,       /* jobs and stages */
    &trp_sim_layer_outputs,   /* map outputs */
    &trp_sim_layer_profile,   /* resource profiles */
    &trp_sim_layer_resources, /* addresses */
    &trp_sim_layer_sched,     /* task sets; health */
    NULL,
};
