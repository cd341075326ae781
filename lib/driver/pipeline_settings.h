/*
 * What a run specification comes to: the pipeline, the site, the options and the
 * profiles that are in force.
 *
 *     trp_pipeline_settings_load(spec, &settings, &err);
 *     … settings.pipeline, settings.options, settings.ids[stage] …
 *     trp_pipeline_settings_free(&settings);
 */
#ifndef TRP_DRIVER_PIPELINE_SETTINGS_H
#define TRP_DRIVER_PIPELINE_SETTINGS_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/pool_section.h"
#include "conf/site.h"
#include "driver/run_spec.h"

struct trp_pipeline_settings {
    trp_pipeline *pipeline;
    trp_site *site;
    trp_options *options;
    trp_profiles *profiles;
    trp_profile_id *ids; /* of each stage */
    struct trp_pool_list pools;
};

/* A run's pipeline as it was stored when the run began, with what it includes. Codes as of
 * trp_pipeline_read; TRP_ESYSTEM: an error of the disk. */
int trp_pipeline_stored(const struct trp_run_spec *spec, trp_pipeline **ret,
                        trp_error *err);
/* The pipeline is RUN/state/pipeline.yaml, called in messages as the user called it.
 * Fills *ret; on failure there is nothing to free. */
int trp_pipeline_settings_load(const struct trp_run_spec *spec,
                               struct trp_pipeline_settings *ret, trp_error *err);
void trp_pipeline_settings_free(struct trp_pipeline_settings *s);

#endif
