/*
 * An engine with a pretended cluster, for every test that gives the engine events: unit
 * tests, which write down what happens; random streams (tests/property) and the fuzz
 * target (tests/fuzz), which choose it.
 *
 * The world takes every action of the engine, holds it against what it knows of jobs,
 * stages, executors and attempts, and keeps what tests ask for. An action that cannot be
 * (a launch on an executor that is gone, a second verdict on an attempt) *breaks* the
 * world: the program ends with a sentence, or whatever the hook `broken` does.
 *
 *     WORLD w;
 *     struct trp_engine_config config = world_config(4);
 *     struct trp_stage_spec stage = world_stage("a", 10);
 *     world_begin(&w, &config, 2);                 // executors of two cores
 *     world_submit(&w, &stage, 1);                 // they come up at once
 *     world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
 *     world_run_out(&w, SECOND);
 *     g_assert_cmpuint(w.job_ends, ==, 1);
 *
 * Executors come up and go as soon as they are asked to, unless `manual` is set. After
 * every step the engine checks itself. Lists belong to the world; indices and pointers
 * into them hold until the next step.
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include <stdio.h>

#include "core/engine.h"
#include "events/engine_trace.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

enum {
    WORLD_PAST = 64,      /* ids of ended attempts that are remembered */
    WORLD_RESOURCES = 4,  /* of an executor, and addresses of each, … */
    WORLD_ADDRESSES = 16, /* … that are held against double use */
};
#define WORLD_GOES (UINT32_C(1) << 31) /* in `asked`: it was told to go */

struct world_attempt {
    trp_attempt_id id;
    trp_stage_id stage;
    uint32_t stage_attempt, task, number, executor; /* TRP_NONE: a gang */
    enum trp_level level;
    bool gang, copy;
    bool queued; /* behind one that runs */
    bool kill, recall;
    bool waits, asks, commits; /* for an answer to SYNC; to its commit; it may */
    uint32_t epoch;            /* barrier calls, for who makes them */
    int64_t cpus;
    uint32_t ngrants;
    struct trp_grant grants[2 * WORLD_RESOURCES];
    int64_t ends; /* when, for who plays its time */
};

enum world_executor_state {
    WORLD_UNKNOWN,
    WORLD_REQUESTED,
    WORLD_LIVE,
    WORLD_RELEASED, /* told to go, and not gone */
    WORLD_GONE,
};

struct world_executor {
    enum world_executor_state state;
    bool came; /* RELEASED: it was live */
    bool ahead, may_add, decommissioned, excluded;
    int64_t decommissioned_at;
    uint32_t label, shape; /* the profile that it serves, and was made with */
    const char *host, *rack;
    int64_t cores, used;
    uint32_t running;
    trp_amount taken[WORLD_RESOURCES][WORLD_ADDRESSES];
};

struct world_stage {
    bool told; /* as a stage of a job, not by a dataset; then `profile` and … */
    bool once; /* … whether it is submitted again only when it was retried */
    trp_profile_id profile;
    bool ready, answered, submitted, check, checked, ended;
    uint32_t attempt, launched; /* the latest that launched, and how much */
    uint64_t sets_ended;        /* bit i: that of attempt i */
    uint64_t done;              /* bit i: task i has succeeded */
};

struct world_job {
    bool ended;
    uint32_t first, nstages; /* those that it told */
};

struct world;

/* What a test adds; each may be NULL. */
struct world_hooks {
    void (*broken)(struct world *w, const char *what, const char *text);
    /* Of what is about to be noted. */
    void (*launch)(struct world *w, const struct trp_action *a); /* also of gangs */
    void (*executor)(struct world *w, const struct trp_action *a);
    /* Of what has just been noted. */
    void (*launched)(struct world *w, struct world_attempt *a);
    void (*moved_up)(struct world *w, struct world_attempt *a); /* no longer queued */
    void (*killed)(struct world *w, struct world_attempt *a);
    void (*task_end)(struct world *w, const struct trp_action *a,
                     const struct world_attempt *was);
    void (*submitted)(struct world *w, trp_stage_id stage);
    void (*stage_ended)(struct world *w, const struct trp_action *a);
    void (*set_ended)(struct world *w, const struct trp_action *a);
    void (*resubmitted)(struct world *w, const struct trp_action *a);
    void (*slow)(struct world *w, const struct trp_action *a); /* SPECULATABLE */
    void (*given_up)(struct world *w, const struct trp_action *a);
    void (*profile_added)(struct world *w, trp_profile_id profile);
    void (*stepped)(struct world *w); /* all actions of a step are taken */
};

struct world {
    trp_engine *engine;
    trp_profiles *profiles;
    struct trp_engine_config config;
    const struct world_hooks *hooks;
    trp_engine_trace *trace;
    FILE *explain; /* gets every action, a line each; NULL: nobody asks */
    int64_t now;
    bool manual;      /* executors come and go only when the test says so */
    bool alone;       /* core/scenario/sched_alone.h: who is told to go stays */
    uint32_t repeats; /* so often a timer may be due again at the time it fired */
    bool unchecked;   /* no check after a step, nor of cores and copies (speed) */
    bool broken;
    /* Where executors come up: h<number>, no rack, nothing beside their cores. */
    const char *(*host_of)(uint32_t executor);
    const struct trp_resource_addresses *resources;
    uint32_t nresources;

    struct world_attempt *attempts; /* live, in order of launch */
    struct world_executor *executors;
    struct world_stage *stages;
    struct world_job *jobs;
    uint32_t nattempts, nexecutors, nstages, njobs;
    bool draining, appeared; /* an executor was not asked for */
    const char *excluded_hosts[8];
    uint32_t nexcluded_hosts;
    bool excluded_any; /* at any time, executor or host */

    /* The record, for assertions. */
    uint32_t *asked; /* executors to come, and with WORLD_GOES to go, in order */
    uint32_t *live;  /* executors, in the order in which they came */
    struct trp_action *verdicts, *ended, *given_up; /* without their texts */
    char **texts;                                   /* of `ended` */
    trp_stage_id *ready;                            /* that asked for their tasks */
    uint32_t nasked, nlive, nverdicts, nended, ngiven_up, nready;
    struct trp_action job_end, synced, outlived; /* the latest */
    uint32_t job_ends, syncs, outlives, out_of_time, releases, relabels, may_add;
    uint32_t ahead, needed; /* asked for ahead, and needed then */
    bool job_drains;        /* of jobs that are submitted */
    uint32_t waits_asked, checks_asked, drains;
    char not_on[64];                 /* where the latest one asked for is not to be */
    trp_attempt_id past[WORLD_PAST]; /* of attempts that have ended, the latest */
    uint32_t npast;
    uint64_t hash; /* of all actions: the same events give the same */
    uint64_t actions;
    int64_t fired_at;                     /* the latest TIME, … */
    uint32_t fired;                       /* … and how many followed at that time */
    uint32_t most_attempts, most_actions; /* at once, of a step */
};

/* ---- beginning and end ---- */

/* A world without an engine yet; `defaults` of profiles, NULL: the options'. */
void world_init(struct world *w, const struct trp_profile_defaults *defaults);
/* The same around profiles that are made already, which become the world's. */
void world_init_with(struct world *w, trp_profiles *profiles);
/* Its engine, which must be possible. */
void world_start(struct world *w, const struct trp_engine_config *config);
/* 0, or TRP_EINVAL: the configuration is refused. */
int world_try_start(struct world *w, const struct trp_engine_config *config);
/* Both, with executors of so many cores. */
void world_begin(struct world *w, const struct trp_engine_config *config,
                 int64_t cores);
/* Everything from now on goes into the file of an engine's trace, until world_free. */
void world_record(struct world *w, const char *file);
void world_free(struct world *w);
/* One that is freed at the end of its block. */
#define WORLD __attribute__((cleanup(world_free))) struct world

/* The default options, but nothing is queued ahead. */
struct trp_engine_config world_config(uint32_t max_executors);
struct trp_stage_spec world_stage(const char *name, uint32_t ntasks);
/* A profile of executors with `cores` (0: none of its own, for tasks only) and, where
 * `custom` is not NULL, `amount` of that, of which a task takes `task`. */
trp_profile_id world_profile(struct world *w, const char *name, int64_t cores,
                             const char *custom, int64_t amount, trp_amount task);

/* ---- what happens ---- */

/* One event and all its actions; it must be taken. */
void world_step(struct world *w, const struct trp_event *ev);
/* The same, written in one: world_tell(&w, TRP_EVENT_CANCEL_JOB, .cancel = {{1}}). */
#define world_tell(w, is, ...)                                                         \
    world_step(w, &(struct trp_event){.kind = (is), ##__VA_ARGS__})
/* The same of one that may be impossible: 0 or TRP_EINVAL. */
int world_try(struct world *w, const struct trp_event *ev);
/* The same of one about nobody: nothing may follow, and the engine counts it. */
void world_step_ignored(struct world *w, const struct trp_event *ev);
/* A stage that no job told is there and may launch (core/scenario/sched_alone.h). */
void world_tell_stage(struct world *w, uint32_t stage, trp_profile_id profile);
/* Takes what the engine has to say, without an event. */
void world_drain(struct world *w);

void world_submit(struct world *w, const struct trp_stage_spec *stages, uint32_t n);
/* The tasks that a stage asked for; `first` as in struct trp_preferences. */
void world_tasks(struct world *w, uint32_t stage, uint32_t ntasks,
                 const uint32_t *first, const struct trp_place *places);
void world_come(struct world *w, uint32_t executor);
void world_come_on(struct world *w, uint32_t executor, const char *host,
                   const char *rack);
/* Takes the i-th out of `asked`: the test sees to it. */
void world_unask(struct world *w, uint32_t i);
/* An executor that is there without having been asked for, before it comes up. */
uint32_t world_expect(struct world *w, trp_profile_id profile);
void world_lose(struct world *w, uint32_t executor, enum trp_loss reason);
void world_lose_with(struct world *w, uint32_t executor, enum trp_loss reason,
                     bool has_culprit, trp_attempt_id culprit);
void world_refuse(struct world *w, uint32_t executor, enum trp_refusal how,
                  const char *text);
void world_end(struct world *w, trp_attempt_id id, enum trp_end_status status,
               int32_t code, int64_t duration_ns);
/* Time passes; timers fire on the way. */
void world_time(struct world *w, int64_t to);
/* Ends all that runs with success until nothing is left. */
void world_run_out(struct world *w, int64_t duration_ns);

/* ---- looking ---- */

struct world_attempt *world_find(const struct world *w, trp_attempt_id id);
/* The i-th of the live attempts, which must be there. */
const struct world_attempt *world_attempt_at(const struct world *w, uint32_t i);
/* The i-th of all executors in a state, counted round; TRP_NONE: none is. */
uint32_t world_executor_in(const struct world *w, enum world_executor_state state,
                           uint32_t i);
bool world_excludes(const struct world *w, const char *host);
bool world_all_over(const struct world *w); /* all jobs and attempts have ended */

/* ---- for hooks ---- */

/* An action cannot be: `what` must hold, and the sentence says what there was. */
void world_break(struct world *w, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void world_say(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void world_mix(struct world *w, uint64_t v);
/* Grows with what is asked for, zeroed. */
struct world_stage *world_stage_at(struct world *w, uint32_t id);
struct world_executor *world_executor_at(struct world *w, uint32_t id);

#endif
