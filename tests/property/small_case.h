/*
 * Small cases: the setup of an oracle from the knobs of a stream, and the same setup as
 * an engine whose rounds are made by hand (core/scenario/sched_alone.h).
 */
#ifndef TESTS_PROPERTY_SMALL_CASE_H
#define TESTS_PROPERTY_SMALL_CASE_H

#include "oracle.h"
#include "stream.h"
#include "world/world.h"

extern const char *const small_knobs[];

void small_make_knobs(uint32_t *knob, struct rng *r);
void small_setup(const uint32_t *knob, struct or_setup *ret);
/* The setup as the top of a scenario file. */
void small_write(const struct or_setup *s, FILE *f);

struct small_engine {
    struct world world; /* stands first */
    char broken[256];   /* how it broke */
    const struct or_setup *setup;
    struct trp_task_set *sets[OR_SETS];
    trp_attempt_id attempts[OR_ATTEMPTS]; /* as the oracle numbers them */
    int nattempts;
    struct or_decision decisions[OR_DECISIONS]; /* of the last step */
    int ndecisions;
};

/* 0, or -1 with what is wrong. */
int small_open(struct small_engine *e, const struct or_setup *setup, trp_error *err);
void small_close(struct small_engine *e);
/* Time passes (ms); timers fire. */
int small_time(struct small_engine *e, int64_t now, trp_error *err);
int small_submit(struct small_engine *e, int set, trp_error *err);
int small_add(struct small_engine *e, int executor, trp_error *err);
int small_decommission(struct small_engine *e, int executor, trp_error *err);
int small_lose(struct small_engine *e, int executor, enum or_loss loss, trp_error *err);
int small_end(struct small_engine *e, int attempt, enum or_end status, int64_t ran,
              int64_t records, trp_error *err);
void small_started(struct small_engine *e, int attempt);
int small_progress(struct small_engine *e, int attempt, int64_t records,
                   trp_error *err);
void small_speculate(struct small_engine *e);
void small_tick(struct small_engine *e);
int small_round(struct small_engine *e, const int *executors, int n, bool full,
                trp_error *err);

/* Compares what both are in now; what differs goes into buf. */
bool small_same_state(const struct small_engine *e, const struct oracle *o,
                      bool exclusions, char *buf, size_t size);

#endif
