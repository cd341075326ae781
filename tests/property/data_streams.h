/*
 * What the files of the subject "data" share: its steps (data_steps.c), their making
 * and the end of a play (data_streams.c), its invariants (data_checks.c). Which stage
 * reads what, and where outputs lie, is looked up in the engine, whose own check runs
 * beside.
 */
#ifndef TESTS_PROPERTY_DATA_STREAMS_H
#define TESTS_PROPERTY_DATA_STREAMS_H

#include "core/engine_state.h"
#include "play.h"

enum {
    DATA_HOSTS = 4,
    DATA_JOBS = 24,
    DATA_DATASETS = 24,
    DATA_STAGES = 1024,
    DATA_PROFILES = 3,
};

struct data {
    struct play play; /* stands first */
    uint32_t ndatasets;
    uint32_t partitions[DATA_DATASETS];
    bool runs; /* narrow parents begin anywhere, and are read in runs */
};

static inline struct data *data_of(struct world *w)
{
    return (struct data *)w;
}

enum kind {
    DATASET,
    JOB,
    STAGES,
    END,
    FETCH,
    SYNC,
    COME,
    APPEAR,
    LOSE,
    GONE,
    LEAVE,
    CACHED,
    MOVED,
    RELEASE,
    CANCEL,
    CANCEL_STAGE,
    TIME,
    TIMER,
    NOBODY,
    DRAIN,
    KINDS,
};

void data_play_step(struct play *p, const struct step *s);

/* Single ones, for the end of a play; arguments as in a stream. */
void data_play_end(struct world *w, const uint32_t *a);
void data_play_appear(struct world *w, const uint32_t *a);

const char *data_host(uint32_t host);
bool data_is_barrier(const struct world *w, trp_stage_id stage);

/* data_checks.c */
extern const struct world_hooks data_hooks;

#endif
