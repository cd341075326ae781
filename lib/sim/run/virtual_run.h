/*
 * A whole run of a pipeline in virtual time: the engine that schedules real runs, on a
 * cluster and with durations that files describe.
 *
 * Time 0 is when the run is submitted; the driver's own job waits in the queue first.
 * Nothing is measured: the same configuration gives the same result, to the byte.
 *
 *     trp_virtual_run(&config, &result, &err);
 *     trp_virtual_report(&result, …);
 *     trp_virtual_result_free(&result);
 */
#ifndef TRP_SIM_RUN_VIRTUAL_RUN_H
#define TRP_SIM_RUN_VIRTUAL_RUN_H

#include "core/engine.h"
#include "events/durations.h"
#include "sim/run/durations_file.h"
#include "sim/run/virtual_cluster.h"

struct trp_virtual_run_config {
    const trp_pipeline *pipeline;
    trp_profiles *profiles; /* the engine may add some */
    const trp_profile_id *ids;
    const uint32_t *ntasks; /* of each stage */
    const struct trp_by *const
        *by; /* … of each parent that it comes after by a column, in
                                     * their order; NULL: none does */
    const trp_options *options;
    struct trp_engine_config engine;
    const trp_sim_cluster *cluster;
    const trp_sim_durations *durations;
    const uint32_t *inside; /* nodes of each group in the driver's own job */
    uint64_t seed;
    bool inside_only;   /* virtual_cluster.h */
    bool whole_jobs;    /* virtual_cluster.h */
    bool fail_fast;     /* run.fail_fast */
    bool ahead;         /* stages are looked ahead to, as they and options say */
    const char *record; /* file for the engine's trace, or NULL */
};

struct trp_virtual_stage {
    const char *name, *profile; /* borrowed from pipeline and profiles */
    uint32_t ntasks, ranks;
    enum trp_outcome outcome;
    char *why;                 /* it failed, or NULL */
    int64_t ready, first, end; /* ns since the run was submitted; -1: never */
    uint64_t attempts, failures;
    uint32_t given_up, skipped; /* tasks */
    double wait;              /* of first attempts, from ready to start: seconds, sum */
    uint64_t waited;          /* how many */
    struct trp_durations ran; /* attempts that succeeded */
    struct trp_sim_amounts held, used; /* times seconds */
};

struct trp_virtual_result {
    struct trp_virtual_stage *stages; /* in the pipeline's order */
    uint32_t nstages;
    enum trp_outcome outcome;
    bool never;       /* it failed: what a stage needs can never be had */
    int64_t start;    /* the driver's own job began */
    int64_t makespan; /* from submission to the end of the last stage */
    uint32_t jobs, executors, most_executors, lost;
    uint64_t tasks, events;
    struct trp_sim_amounts held, used;          /* of all, with what no stage held */
    const char *devices[TRP_PROFILE_RESOURCES]; /* borrowed from the cluster */
    uint32_t ndevices;
};

/* TRP_ENEVER: a stage never fits this cluster, with its FILE:LINE:COL. TRP_EINVAL: the
 * engine refuses the job. TRP_ELIMIT: it does not come to an end. A stage that fails is
 * no error: it is in the result. */
int trp_virtual_run(const struct trp_virtual_run_config *config,
                    struct trp_virtual_result *ret, trp_error *err);
void trp_virtual_result_free(struct trp_virtual_result *r);

#endif
