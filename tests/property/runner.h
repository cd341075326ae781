/*
 * Runs streams apart from the caller, in a child process, so that a crash, a failed
 * assertion, a sanitizer's report and an endless loop are findings like any other; and
 * makes a failing stream short.
 */
#ifndef TESTS_PROPERTY_RUNNER_H
#define TESTS_PROPERTY_RUNNER_H

#include "stream.h"

/* A made-up invariant that streams break: no three steps of a kind of this name in one
 * stream. NULL: none. */
extern const char *runner_break;

/* Plays streams of seeds first .. first+n-1 in one child. Returns how many held before
 * the first that did not (n: all); then *ret says what broke and *ret_seed where. */
uint64_t run_seeds(const struct subject *subject, uint64_t first, uint64_t n,
                   struct verdict *ret, uint64_t *ret_seed);

/* Plays one stream in a child of its own; `explain` as for play. What the child prints
 * on stderr is dropped when `quiet`. */
void run_stream(const struct stream *s, FILE *explain, bool quiet, struct verdict *ret);

/* Delta debugging: leaves out steps, sets knobs to 0 and lowers arguments while the
 * same invariant still breaks. Returns how many streams it tried. */
uint32_t reduce_stream(struct stream *s, const struct verdict *of);

#endif
