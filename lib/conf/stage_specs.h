/*
 * A pipeline's stages as the engine takes them: the one place where a key of a stage
 * becomes what the engine knows of it, for real runs (driver/command_job.h) and virtual
 * ones (sim/run/virtual_run.h).
 *
 *     trp_stage_specs_make(pipeline, ids, options, NULL, &specs, &err);
 *     for (i = 0; i < specs.nstages; i++)
 *         trp_stage_specs_count(&specs, i, pipeline, ntasks_of(specs.of[i]));
 *     struct trp_job_spec job = {.stages = specs.stages, .nstages = specs.nstages};
 *     trp_stage_specs_free(&specs);
 */
#ifndef TRP_CONF_STAGE_SPECS_H
#define TRP_CONF_STAGE_SPECS_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "core/base/template.h"
#include "core/engine.h"

struct trp_stage_specs {
    struct trp_stage_spec *stages; /* parents before children; they borrow from the
                                    * pipeline */
    uint32_t nstages;
    uint32_t *of; /* the stage of the pipeline, of each of `stages` */
    struct trp_parent_spec *parents;
};

/* All stages, or with `runs` (one for each stage of the pipeline) those that it says
 * true of: a parent that does not run is waited for by nobody. `ids` are the profiles
 * of all stages. No number of tasks is known yet. TRP_ENOMEM. */
int trp_stage_specs_make(const trp_pipeline *p, const trp_profile_id *ids,
                         const trp_options *options, const bool *runs,
                         struct trp_stage_specs *ret, trp_error *err);
/* How often a command of the stage may fail: what its `retries` say, else
 * task.maxFailures where that is set, else once. */
uint32_t trp_stage_tries(const struct trp_pipeline_stage *s,
                         const trp_options *options);
/* Stage `i` has so many tasks. Where they have preferred places, or wait for tasks by a
 * column, the engine still asks for them when the stage is ready. */
void trp_stage_specs_count(struct trp_stage_specs *specs, uint32_t i,
                           const trp_pipeline *p, uint32_t ntasks);
void trp_stage_specs_free(struct trp_stage_specs *specs);

/* Where the tasks of a stage would best run: each prefers all places of `prefer`. */
struct trp_stage_places {
    struct trp_preferences prefer; /* NULL `first`: the stage has none */
    uint32_t *first;
    struct trp_place *places;
    char **hosts;
    uint32_t nhosts;
};
/* What a task has; it need only last until the next call. */
typedef void trp_values_of_task(void *context, uint32_t task,
                                struct trp_task_values *ret);
/* `values` NULL: tasks have nothing but their number. TRP_ENOMEM, TRP_ELIMIT. */
int trp_stage_places_make(const struct trp_pipeline_stage *s, uint32_t ntasks,
                          trp_values_of_task *values, void *context,
                          struct trp_stage_places *ret, trp_error *err);
void trp_stage_places_free(struct trp_stage_places *places);

#endif
