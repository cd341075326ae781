/*
 * A pretended cluster with a ledger of its own: performs the engine's actions, remembers
 * who runs what, and knows from the actions and events alone what the engine's counts
 * must be. Every action is checked when it is taken (actions.c), the whole after every
 * step (checks.c). Uses the public engine.h only.
 */
#ifndef TESTS_PROPERTY_CLUSTER_H
#define TESTS_PROPERTY_CLUSTER_H

#include "core/engine.h"
#include "stream.h"

enum {
    MAX_JOBS = 16,
    MAX_JOB_STAGES = 6,
    MAX_STAGES = MAX_JOBS * MAX_JOB_STAGES,
    MAX_TASKS = 32,
    MAX_PREFERENCES = 2,
    MAX_EXECUTORS = 8192,
    MAX_ATTEMPTS = 4096,
    MAX_PROFILES = 64,
    MAX_ADDRESSES = 4,
    MAX_RESOURCES = 2,
    MAX_HOSTS = 5,
    MAX_RACKS = 2,
    MAX_PAST = 64,
};

struct cl_job {
    bool started, ended;
    uint32_t first, nstages;
};

struct cl_task {
    uint32_t live;     /* attempts of it */
    uint32_t attempts; /* launched, without those that were recalled */
    uint32_t failures;
    uint32_t grown;
    bool done, failed;
    bool speculatable; /* may get a copy */
    uint32_t nplaces;
    struct trp_place places[MAX_PREFERENCES];
};

struct cl_stage {
    struct trp_stage_spec spec; /* names and parents are in `parents` */
    struct trp_parent_spec parents[2];
    uint32_t job;
    bool ready, submitted, ended, prefers, prefers_executors;
    uint32_t sets_ended; /* bit i: that of attempt i */
    uint32_t ntasks, running, queued, ndone, nfailed;
    bool excludes; /* something counted failed: executors may be excluded for it */
    struct cl_task tasks[MAX_TASKS];
};

enum cl_executor_state { CL_NOT_THERE, CL_REQUESTED, CL_LIVE, CL_RELEASING, CL_GONE };

struct cl_executor {
    enum cl_executor_state state;
    bool may_add; /* room may be had for it that is not held */
    bool ahead;   /* asked for, and nobody needs it yet */
    bool came;    /* RELEASING: it was live */
    bool decommissioned, excluded;
    uint32_t label, shape, host;
    int64_t cores, used;
    uint32_t running;
    uint32_t naddresses[MAX_RESOURCES]; /* resource r is gpu, fpga */
    trp_amount taken[MAX_RESOURCES][MAX_ADDRESSES];
};

struct cl_attempt {
    trp_attempt_id id;
    uint32_t stage, task, number, executor; /* TRP_NONE: a gang */
    enum trp_level level;
    bool queued, kill, recall, copy;
    int64_t cpus;
    uint32_t ngrants;
    struct trp_grant grants[2 * MAX_ADDRESSES];
};

struct cluster {
    trp_engine *engine;
    trp_profiles *profiles;
    struct trp_engine_config config;
    struct verdict *verdict;
    FILE *explain;
    int64_t now;
    int64_t quiet_since; /* the last action */
    bool patient;        /* additional jobs are had when they may, else at once */
    uint32_t inside[MAX_PROFILES]; /* executors of each profile that are held */
    bool draining, appeared;       /* an executor came without having been asked for */
    uint32_t njobs, nstages, nexecutors, nattempts;
    struct cl_job jobs[MAX_JOBS];
    struct cl_stage stages[MAX_STAGES];
    struct cl_executor executors[MAX_EXECUTORS];
    struct cl_attempt attempts[MAX_ATTEMPTS];
    trp_attempt_id past[MAX_PAST]; /* ids of attempts that have ended, the latest */
    uint32_t npast;
    uint32_t new_profiles[MAX_PROFILES], nnew_profiles; /* derived, to be answered */
    bool excluded_hosts[MAX_HOSTS],
        excluded_any; /* any: at any time, for the application */
    uint64_t hash;    /* of all actions */
    uint64_t actions; /* how many there were */
    uint32_t most_attempts, most_actions;
    int64_t memory_before;
    uint64_t ignored; /* what the engine said last */
};

/* An engine over `profiles`, whose owner the cluster becomes. */
void cluster_open(struct cluster *c, const struct trp_engine_config *config,
                  trp_profiles *profiles, struct verdict *verdict, FILE *explain);
void cluster_close(struct cluster *c);

/* One event into the engine; its actions are performed; everything is checked. */
void cluster_step(struct cluster *c, const struct trp_event *ev);
/* An event that must change nothing: it is about nobody. */
void cluster_step_ignored(struct cluster *c, const struct trp_event *ev);

/* Time passes; timers fire on the way. */
void cluster_time(struct cluster *c, int64_t to);

/* Submits a job; the stages' names and parents are copied. */
void cluster_submit(struct cluster *c, const struct trp_stage_spec *v, uint32_t n);
/* Answers a stage that asked for its tasks. `t` has ntasks tasks with their places;
 * those with `done` were done in an earlier run. */
void cluster_answer(struct cluster *c, uint32_t stage, uint32_t ntasks,
                    const struct cl_task *t);
void cluster_come(struct cluster *c, uint32_t executor, uint32_t host, uint32_t more);
void cluster_refuse(struct cluster *c, uint32_t executor, bool never);
void cluster_lose(struct cluster *c, uint32_t executor, enum trp_loss reason,
                  const trp_attempt_id *culprit);
void cluster_decommission(struct cluster *c, uint32_t executor);
void cluster_end(struct cluster *c, uint32_t attempt, enum trp_end_status status,
                 int32_t code, int64_t duration_ns);

void cluster_say(struct cluster *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *cluster_host(uint32_t host);
const char *cluster_rack(uint32_t host); /* NULL: none */

/* actions.c */
void cluster_take(struct cluster *c, const struct trp_action *a);

/* checks.c */
void check_launch(struct cluster *c, const struct trp_action *a, bool gang);
void check_executor_action(struct cluster *c, const struct trp_action *a);
void check_everything(struct cluster *c);
void check_memory(struct cluster *c);
/* Nothing new may run there. */
bool cluster_is_shut(const struct cluster *c, const struct cl_executor *x);
/* The class whose executors serve a stage. */
uint32_t cluster_class_of(const struct cluster *c, const struct cl_stage *s);
/* What one more task of the stage takes there; NULL: no room. */
const struct trp_resource_profile *cluster_task_profile(const struct cluster *c,
                                                        const struct cl_stage *s,
                                                        const struct cl_executor *x);

#endif
