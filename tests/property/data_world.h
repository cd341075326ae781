/*
 * The world of the subject "data": datasets, shuffles, barrier stages, fetch failures
 * and executors that are decommissioned, with records of its own about executors,
 * attempts and jobs. Which stage reads what, and where outputs lie, is looked up in the
 * engine, whose own check runs beside.
 */
#ifndef TESTS_PROPERTY_DATA_WORLD_H
#define TESTS_PROPERTY_DATA_WORLD_H

#include "core/engine_state.h"
#include "stream.h"

enum {
    DW_HOSTS = 4,
    DW_JOBS = 24,
    DW_DATASETS = 24,
    DW_EXECUTORS = 4096,
    DW_ATTEMPTS = 2048,
    DW_STAGES = 1024,
    DW_TASKS = 64,
    DW_PAST = 64,
    DW_PROFILES = 3,
};

struct dw_attempt {
    trp_attempt_id id;
    uint32_t stage, stage_attempt, task, executor;
    bool queued, kill, recall, barrier;
    uint32_t epoch; /* barrier calls it made */
    bool waits;     /* for the answer to one */
    bool asks;      /* whether it may commit … */
    bool commits;   /* … and it may */
};

enum dw_state { DW_NONE, DW_REQUESTED, DW_LIVE, DW_RELEASING, DW_GONE };

struct dw_executor {
    enum dw_state state;
    bool came, decommissioned;
    int64_t decommissioned_at;
    uint32_t host, label;
    int64_t cores, used;
};

struct dw_stage {
    bool ended, map;
    uint32_t set;      /* the attempt whose launches are counted, + 1 */
    uint32_t launched; /* of it, first copies only */
    uint64_t done;     /* tasks that succeeded, a bit each */
};

struct data_world {
    trp_engine *engine;
    trp_profiles *profiles;
    struct trp_engine_config config;
    struct verdict *verdict;
    FILE *explain;
    int64_t now, memory_before;
    int64_t fired_at; /* the time of the last step, … */
    uint32_t fired;   /* … and how many timers have fired since at that time */
    uint64_t hash;
    bool appeared; /* an executor came without having been asked for */
    uint32_t njobs, ndatasets, nattempts, nexecutors, most_attempts, most_actions;
    uint32_t partitions[DW_DATASETS];
    bool job_ended[DW_JOBS];
    struct dw_executor executors[DW_EXECUTORS];
    struct dw_attempt attempts[DW_ATTEMPTS];
    struct dw_stage stages[DW_STAGES];
    trp_attempt_id past[DW_PAST];
    uint32_t npast;
};

void data_open(struct data_world *w, const struct trp_engine_config *config,
               trp_profiles *profiles, struct verdict *v, FILE *explain);
void data_close(struct data_world *w);
void data_say(struct data_world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One event; what follows is taken and checked. `ignored`: it is about nobody, and
 * nothing may follow. */
void data_step(struct data_world *w, const struct trp_event *ev);
void data_step_ignored(struct data_world *w, const struct trp_event *ev);
void data_time(struct data_world *w, int64_t to);

void data_come(struct data_world *w, uint32_t executor, uint32_t host);
void data_lose(struct data_world *w, uint32_t executor, enum trp_loss reason);
void data_end(struct data_world *w, uint32_t attempt, struct trp_event *ev);
const char *data_host(uint32_t host);

/* data_checks.c: after every step; after all jobs: what may still be held. */
void data_check_everything(struct data_world *w);
void data_check_memory(struct data_world *w);

#endif
