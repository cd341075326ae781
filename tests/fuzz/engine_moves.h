/*
 * Moves of the engine's fuzz target that need an input which asks for features: copies
 * of slow tasks, exclusion, decommissioning, pools, growth in steps, map outputs and
 * datasets. In an input that does not, they do nothing.
 */
#ifndef TESTS_FUZZ_ENGINE_MOVES_H
#define TESTS_FUZZ_ENGINE_MOVES_H

#include "engine_world.h"

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

#endif
