/*
 * A stream: the setup of a small world and what happens in it, as plain numbers, so
 * that it can be made from a seed, cut shorter, written down and run again.
 *
 * A *subject* says what the numbers mean: the engine under its invariants, or the
 * engine beside the oracle. *Knobs* are the numbers of the setup, *steps* what happens.
 * Arguments of a step are relative ("end the third of those that run"), so every
 * shorter stream is a stream too; a step that is not possible does nothing. For each
 * number 0 is the simplest value.
 *
 * As text, a line each:
 *
 *     engine                    the subject
 *     set reuse 2               a knob; those left out are 0
 *     end 3 0 1000 0            a step
 */
#ifndef TESTS_PROPERTY_STREAM_H
#define TESTS_PROPERTY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rng.h"

enum { STREAM_ARGS = 4, STREAM_KNOBS = 80, STREAM_STEPS = 1024 };

struct step {
    uint32_t kind; /* index into the subject's kinds */
    uint32_t arg[STREAM_ARGS];
};

struct stream {
    const struct subject *subject;
    uint32_t knob[STREAM_KNOBS];
    struct step steps[STREAM_STEPS];
    uint32_t nsteps;
};

/* What a play came to. */
struct verdict {
    char broken[48]; /* the invariant, "": all held */
    char text[1024]; /* what was wanted and what there was */
    uint32_t at;     /* step at which it broke; nsteps: when all was over */
};

struct subject {
    const char *name;
    const char *const *knobs; /* names, NULL at the end */
    const char *const *kinds; /* names of steps, NULL at the end */
    /* Fills knobs and steps of an empty stream. */
    void (*make)(struct stream *s, struct rng *r);
    /* Runs it. `explain` (may be NULL) gets what happens, line by line. */
    void (*play)(const struct stream *s, FILE *explain, struct verdict *ret);
};

extern const struct subject engine_subject, data_subject, reserve_subject,
    oracle_subject;

const struct subject *subject_by_name(const char *name);
void stream_make(struct stream *s, const struct subject *subject, uint64_t seed);
void stream_write(const struct stream *s, FILE *f);
/* One step as it is written, without a newline. */
void stream_write_step(const struct stream *s, uint32_t step, FILE *f);
/* 0, or -1 with the reason on stderr. */
int stream_read(struct stream *s, const char *file);

/* Plays it by `play_once`, which returns a hash of all actions; with `twice` once more,
 * for the same hash. Everything must be freed each time. */
void stream_play(const struct stream *s,
                 uint64_t (*play_once)(const struct stream *s, FILE *explain,
                                       struct verdict *v),
                 bool twice, FILE *explain, struct verdict *ret);

/* Notes the first broken invariant; later ones are not looked at. */
void verdict_break(struct verdict *v, const char *broken, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
