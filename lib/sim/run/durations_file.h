/*
 * Durations files: how long the tasks of a pipeline's stages take (docs/simulator.md).
 *
 *     durations: 1
 *     default: 10s
 *     stages:
 *       split: 20s
 *       count: {lognormal: {median: 8s, sigma: 0.5}, tasks: 4000, fail: 0.001}
 *       score: {events: RUN/events.jsonl, stage: score, scale: 1.5}
 *
 * `tasks` says how many tasks the stage has, whatever the pipeline says of it; `fail`
 * how likely an attempt is to fail. Event logs are looked for where the durations file
 * is. Every error says FILE:LINE:COL.
 */
#ifndef TRP_SIM_RUN_DURATIONS_FILE_H
#define TRP_SIM_RUN_DURATIONS_FILE_H

#include "sim/run/distribution.h"

struct trp_sim_stage {
    struct trp_distribution_reader of; /* first: its keys are read into it */
    bool has_duration;
    bool tasks_written, fail_written;
    uint32_t tasks;
    double fail;
};

typedef struct trp_sim_durations {
    struct trp_conf_arena arena;
    char *file;
    trp_duration_log **logs;
    uint32_t nlogs, logs_cap;
    struct trp_sim_stage *stages; /* in the pipeline's order */
    uint32_t nstages;
} trp_sim_durations;

/* Reads `text`, NULL: the file, for the stages of `p`. TRP_EINVAL with FILE:LINE:COL, also for a stage
 * that the pipeline does not have and one of which no duration is known. */
int trp_sim_durations_parse(const char *file, const char *text, size_t size,
                            const trp_pipeline *p, trp_sim_durations **ret,
                            trp_error *err);
void trp_sim_durations_free(trp_sim_durations *d);

/* The number of tasks that the file says a stage has; false: it does not. */
bool trp_sim_durations_tasks(const trp_sim_durations *d, uint32_t stage,
                             uint32_t *ret_tasks);
/* The number that its event log had; 0: not known. */
uint32_t trp_sim_durations_recorded(const trp_sim_durations *d, uint32_t stage);

#endif
