/*
 * A pretended cluster that believes nothing: it keeps who runs what from the engine's
 * actions alone, and ends the program when an action contradicts them. For the fuzz
 * target of the engine's events.
 *
 *     struct fuzz_world w;
 *     world_begin(&w, &config);
 *     world_step(&w, &event);      // one event, all its actions, all invariants
 *     world_finish(&w);            // until nothing runs and all jobs have ended
 *     world_end(&w);
 */
#ifndef TESTS_FUZZ_ENGINE_WORLD_H
#define TESTS_FUZZ_ENGINE_WORLD_H

#include "core/engine.h"
#include "fuzz.h"

#define SECOND INT64_C(1000000000)

enum {
    WORLD_PROFILES = 4,
    WORLD_ATTEMPTS = 2048,
    WORLD_EXECUTORS = 2048,
    WORLD_STAGES = 128,
    WORLD_JOBS = 32,
};

struct world_attempt {
    trp_attempt_id id;
    trp_stage_id stage;
    uint32_t task, executor; /* TRP_NONE: a gang */
    uint32_t stage_attempt;
    bool queued, killed, recalled, copy;
};

enum world_executor {
    WORLD_UNKNOWN,
    WORLD_REQUESTED,
    WORLD_LIVE,
    WORLD_RELEASED, /* told to go, not gone */
    WORLD_GONE,
};

/* What is known of a stage: it is asked for tasks once, ends once. */
enum {
    WORLD_READY = 1,
    WORLD_ANSWERED = 2,
    WORLD_SUBMITTED = 4,
    WORLD_ENDED = 8,
    WORLD_CHECK = 16, /* it is asked whether all is well */
    WORLD_CHECKED = 32,
};

struct fuzz_world {
    trp_engine *engine;
    trp_profiles *profiles;
    trp_profile_id profile[WORLD_PROFILES];
    int64_t now;
    struct world_attempt attempts[WORLD_ATTEMPTS];
    uint32_t nattempts; /* live ones */
    uint8_t executors[WORLD_EXECUTORS];
    uint32_t nexecutors; /* ids below */
    uint8_t stages[WORLD_STAGES];
    uint32_t nstages;
    uint8_t jobs[WORLD_JOBS]; /* 1: runs, 2: ended */
    uint32_t njobs, jobs_ended;
    uint32_t ndatasets;
    /* With `features` tasks may have a copy, stages run again after their end, and
     * executors be released at work. */
    bool draining, fixed, features, tell;
    uint64_t trace; /* of all actions: the same events give the same */
};

/* False: the configuration is refused. */
bool world_begin(struct fuzz_world *w, const struct trp_engine_config *config);
/* What the event says of executors is noted if the engine takes it. Returns its code,
 * which is 0 or TRP_EINVAL. */
int world_step(struct fuzz_world *w, const struct trp_event *ev);
/* Answers, starts and ends whatever is asked for, as a healthy cluster; at last drains
 * and loses all executors. Every job must have ended, and nothing may be left. */
void world_finish(struct fuzz_world *w);
void world_end(struct fuzz_world *w);

/* The stage, if it asked for its tasks, gets its answer now. */
static inline void world_answered(struct fuzz_world *w, trp_stage_id stage)
{
    if (stage.n < w->nstages && w->stages[stage.n] & WORLD_READY)
        w->stages[stage.n] |= WORLD_ANSWERED;
}
/* An executor that is there without having been asked for: its id. */
uint32_t world_expect(struct fuzz_world *w, trp_profile_id profile);
/* An executor comes up, with two `gpu`. */
void world_come(struct fuzz_world *w, uint32_t executor, const char *host,
                const char *rack);

#endif
