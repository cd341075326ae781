/*
 * Whole runs in virtual time, as `troupe sim --cluster C --durations D PIPELINE` plays
 * them: files to a run, or to one run a policy.
 *
 *     monolithic      one job with the nodes of the largest stage, held to the end
 *     job-per-stage   each stage is a job of its own, submitted when those before it
 *                     are done, which holds all its room to its end
 *     inside-first    Troupe: the driver's job, additional jobs where it is too small,
 *                     given back as stages end
 *     look-ahead      the same; the next stage's jobs are submitted before this one
 *                     ends
 *     idle-timeout    the same as inside-first, but executors stay until they were idle
 *                     for dynamicAllocation.executorIdleTimeout
 *
 * Tasks take the same times under every policy.
 */
#ifndef TRP_SIM_RUN_WHOLE_H
#define TRP_SIM_RUN_WHOLE_H

#include <stdio.h>

#include "conf/pool_section.h"
#include "conf/site.h"
#include "sim/run/virtual_report.h"

struct trp_whole_request {
    const char *cluster, *durations; /* files */
    const char *cluster_text,
        *durations_text; /* what they would have; NULL: read them */
    const trp_pipeline *pipeline;
    const trp_options *options; /* with the pipeline's */
    const trp_site *site;       /* profiles; may be NULL */
    const struct trp_pool_list *pools;
    uint64_t seed;
    const char *policy; /* NULL: as the options say, called "options" */
    bool compare, json;
    const char *record; /* where the engine's trace goes, or NULL */
    /* How many tasks a stage has by its `foreach` or `tasks`; what cannot be told is an
     * error, which is told unless the durations file knows. */
    int (*count)(void *context, const struct trp_pipeline_stage *s, uint32_t *ret_tasks,
                 trp_error *err);
    /* Which tasks of a stage wait for which above by a column; its arrays are malloc'ed.
     * Negative: the tables cannot tell. */
    int (*by)(void *context, const struct trp_pipeline_stage *s,
              const struct trp_after *a, struct trp_by *ret);
    void *context;
};

/* Plays and prints. 0; TRP_EFAILED: the run was played and failed, the report says how;
 * TRP_EINVAL: a file is wrong; TRP_ENEVER: a stage never fits the cluster. */
int trp_whole_play(const struct trp_whole_request *q, FILE *out, trp_error *err);

#endif
