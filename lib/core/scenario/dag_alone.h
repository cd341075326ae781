/*
 * Jobs and stages without the task scheduler: for scenarios, which say themselves what
 * became of tasks (dag/seam.h) and are told here what the scheduler would be. Internal
 * to the engine and lib/sim.
 *
 *     struct trp_dag_alone alone = {
 *         .context = s, .submit = on_submit, .stop = on_stop};
 *     engine->dag.alone = &alone;
 */
#ifndef TRP_CORE_SCENARIO_DAG_ALONE_H
#define TRP_CORE_SCENARIO_DAG_ALONE_H

#include "core/engine_state.h"

struct trp_dag_alone {
    void *context;
    bool elastic; /* executors could be obtained: a barrier stage waits for no slots */
    void (*submit)(void *context, const struct trp_stage *s,
                   const struct trp_set_spec *spec);
    void (*stop)(void *context, const struct trp_stage *s); /* kill its attempts */
};

#endif
