/*
 * What the files of the subject "data" share: its steps (data_steps.c), their making
 * and the end of a play (data_streams.c).
 */
#ifndef TESTS_PROPERTY_DATA_STREAMS_H
#define TESTS_PROPERTY_DATA_STREAMS_H

#include "data_world.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

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

void data_play_step(struct data_world *w, const struct step *s);

/* Single ones, for the end of a play; arguments as in a stream. */
void data_play_end(struct data_world *w, const uint32_t *a);
void data_play_appear(struct data_world *w, const uint32_t *a);
void data_play_gone(struct data_world *w, uint32_t which);
/* One of those in a state, TRP_NONE: none is. */
uint32_t data_executor_in(const struct data_world *w, enum dw_state state,
                          uint32_t which);

#endif
