/*
 * Replaying an engine's trace (events/engine_trace.h): a new engine is told the same
 * events at the same times, and must decide the same.
 */
#ifndef TRP_SIM_RUN_REPLAY_H
#define TRP_SIM_RUN_REPLAY_H

#include <stdio.h>

#include "core/base/error.h"

/* Replays and prints one line, "FILE: 120 events, 360 decisions: the same again"; or,
 * when a decision differs, at which event, what was decided then and what now, and
 * TRP_EFAILED. TRP_EINVAL: the file is broken or cut off, with the place; what it holds
 * up to there was the same. */
int trp_sim_replay(const char *file, FILE *out, trp_error *err);

#endif
