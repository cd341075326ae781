/*
 * What the files of the subject "engine" share: its setup (engine_setup.c), its jobs
 * (engine_jobs.c), its other steps and the end of a play (engine_streams.c).
 */
#ifndef TESTS_PROPERTY_ENGINE_STREAMS_H
#define TESTS_PROPERTY_ENGINE_STREAMS_H

#include "cluster.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

enum { NPROFILES = 5 };

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

#endif
