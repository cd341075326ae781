/*
 * What the files of the subject "engine" share: what is known of the stages and tasks
 * that it submits, which says what the engine's counts must be; its setup
 * (engine_setup.c), its jobs (engine_jobs.c), its invariants (engine_checks.c), its
 * other steps and the end of a play (engine_streams.c). Uses the public engine.h only.
 */
#ifndef TESTS_PROPERTY_ENGINE_STREAMS_H
#define TESTS_PROPERTY_ENGINE_STREAMS_H

#include "play.h"

enum {
    MAX_JOBS = 16,
    MAX_JOB_STAGES = 6,
    MAX_STAGES = MAX_JOBS * MAX_JOB_STAGES,
    MAX_TASKS = 32,
    MAX_PREFERENCES = 2,
    MAX_PROFILES = 64,
    MAX_ADDRESSES = 4,
    MAX_RESOURCES = 2,
    MAX_HOSTS = 5,
    NPROFILES = 5,
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
    bool prefers, prefers_executors;
    bool set_ended, excludes; /* something counted failed: executors may be excluded */
    uint32_t ntasks, running, queued, ndone, nfailed, nskipped;
    struct cl_task tasks[MAX_TASKS];
};

struct cluster {
    struct play play;    /* stands first */
    int64_t quiet_since; /* the last action */
    uint64_t actions;    /* until then */
    bool patient;        /* additional jobs are had when they may, else at once */
    uint32_t inside[MAX_PROFILES]; /* executors of each profile that are held */
    uint32_t nstages;
    struct cl_stage stages[MAX_STAGES];
    uint32_t new_profiles[MAX_PROFILES], nnew_profiles; /* derived, to be answered */
};

static inline struct cluster *cluster_of(struct world *w)
{
    return (struct cluster *)w;
}

/* By a value: of how many those of a stage are, which one a task has, and whether a task
 * of a parent has it, which may have two or none. */
static inline uint32_t cluster_values(const struct cl_stage *s)
{
    return (s->ntasks + 1) / 2;
}
static inline uint32_t cluster_value(const struct cl_stage *s, uint32_t task)
{
    return task * 5 % cluster_values(s);
}
static inline bool cluster_has_value(const struct cl_stage *s, uint32_t above,
                                     uint32_t value)
{
    uint32_t n = cluster_values(s);
    return above % (n + 1) == value || above * 3 % (n + 2) == value;
}
/* Whether a task comes after that one of its k-th parent. */
static inline bool cluster_comes_after(const struct cl_stage *s, uint32_t k,
                                       uint32_t task, uint32_t above)
{
    if (!s->parents[k].by)
        return s->parents[k].each && task == above;
    return cluster_has_value(s, above, cluster_value(s, task));
}

enum knob {
    CORES,
    MAX_PER_PROFILE, /* executors, 0: no bound */
    MAX_IN_ALL,
    MIN_PER_PROFILE,
    REUSE,
    KEEP_GOING,
    FIXED,
    PACK,
    QUEUE_AHEAD, /* ms */
    WAIT,        /* locality, ms */
    RELEASE_IDLE,
    MANUAL, /* executors come and go by steps, not at once */
    MAX_FAILURES,
    FAIR,
    SEED,
    SPECULATION,
    EXCLUSION,  /* on failure; 2: for the application after one failure */
    TWICE,      /* play it twice: the same must happen */
    LOOK_AHEAD, /* s that further executors wait, and how few are held; 0: none wait */
};

extern const char *const engine_knobs[];

void engine_make_knobs(struct stream *s, struct rng *r);
void engine_open(struct cluster *c, const struct stream *s, struct verdict *v,
                 FILE *explain);
/* Submits a job; arguments: seed, stages, tasks, features. */
void engine_job(struct cluster *c, const uint32_t *a);

/* engine_checks.c */
extern const struct world_hooks engine_hooks;
const char *cluster_host(uint32_t host);
const char *cluster_rack(uint32_t host); /* NULL: none */
/* The class whose executors serve a stage. */
uint32_t cluster_class_of(const struct cluster *c, const struct cl_stage *s);

#endif
