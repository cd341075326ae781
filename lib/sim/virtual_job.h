/*
 * A pipeline as the engine has to know it, for a virtual run: as the driver makes it of
 * a run whose stages all run (driver/command_job.c).
 */
#ifndef TRP_SIM_VIRTUAL_JOB_H
#define TRP_SIM_VIRTUAL_JOB_H

#include "conf/pipeline.h"
#include "core/engine.h"

struct trp_virtual_job {
    struct trp_job_spec spec;
    struct trp_stage_spec *stages;
    struct trp_parent_spec *parents;
    uint32_t *of; /* stage of the pipeline, of each stage of the job */
};

int trp_virtual_job_make(const trp_pipeline *p, const trp_profile_id *ids,
                         const uint32_t *ntasks, struct trp_virtual_job *ret,
                         trp_error *err);
void trp_virtual_job_free(struct trp_virtual_job *j);

/* Preferences of a stage's tasks: every task prefers all places of `prefer`. Zeroed
 * when the stage has none. */
struct trp_virtual_places {
    struct trp_preferences prefer;
    uint32_t *first;
    struct trp_place *places;
    char **hosts;
    uint32_t nhosts;
};
int trp_virtual_places_make(const struct trp_pipeline_stage *s, uint32_t ntasks,
                            struct trp_virtual_places *ret, trp_error *err);
void trp_virtual_places_free(struct trp_virtual_places *v);

#endif
