/*
 * Moves of the engine's fuzz target that need an input which asks for features: copies
 * of slow tasks, exclusion, decommissioning, pools, growth in steps, map outputs and
 * datasets. In an input that does not, they do nothing.
 */
#ifndef TESTS_FUZZ_ENGINE_MOVES_H
#define TESTS_FUZZ_ENGINE_MOVES_H

#include "fuzz.h"
#include "world/world.h"

enum { FUZZ_PROFILES = 4, FUZZ_JOBS = 16 };

struct fuzz_world {
    struct world world; /* stands first */
    trp_profile_id profile[FUZZ_PROFILES];
    uint32_t ndatasets;
    bool features; /* the input asks for them */
};

/* engine_end.c: a world whose breaking ends the program. With FUZZ_TELL in the environment
 * every event and action is told on stderr. `record` (or NULL): the file of a trace.
 * False: the configuration is refused. */
bool fuzz_begin(struct fuzz_world *w, const struct trp_engine_config *config,
                const char *record);
/* One event: 0 or TRP_EINVAL. */
int fuzz_step(struct fuzz_world *w, const struct trp_event *ev);
/* An executor comes up, with two `gpu`. */
void fuzz_come(struct fuzz_world *w, uint32_t executor, const char *host,
               const char *rack);
/* Answers, starts and ends whatever is asked for, as a healthy cluster; at last drains
 * and loses all executors. Every job must have ended, and nothing may be left. */
void fuzz_finish(struct fuzz_world *w);

/* One that there is, or the next. */
uint32_t choose_executor(const struct fuzz_world *w, struct fuzz_bytes *b);
/* A live one, or one that is made up. */
trp_attempt_id choose_attempt(const struct fuzz_world *w, struct fuzz_bytes *b);

void choose_features(struct fuzz_bytes *b, struct trp_engine_config *c);
/* What else an end may say: map outputs, records, where a fetch failed. */
void choose_end(struct fuzz_world *w, struct fuzz_bytes *b, struct trp_event *ev);

void move_decommission(struct fuzz_world *w, struct fuzz_bytes *b);
void move_progress(struct fuzz_world *w, struct fuzz_bytes *b);
void move_dataset(struct fuzz_world *w, struct fuzz_bytes *b);
void move_dataset_job(struct fuzz_world *w, struct fuzz_bytes *b);
void move_cached(struct fuzz_world *w, struct fuzz_bytes *b);
void move_moved(struct fuzz_world *w, struct fuzz_bytes *b);
void move_released(struct fuzz_world *w, struct fuzz_bytes *b);
void move_cancel_stage(struct fuzz_world *w, struct fuzz_bytes *b);

/* engine.c: plays an input; the hash of what was decided. */
uint64_t fuzz_play(const uint8_t *data, size_t size, const char *record);
/* The first of that name; -1: there is none. */
int fuzz_move_number(const char *name);

#endif
