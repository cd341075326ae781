/*
 * Accumulators: sums that tasks of functions add to.
 *
 * What counts is a partition of what one function makes (its *maker*: a dataset, or for
 * the function of an action that action). The first success that says what it added
 * counts; whatever computes the same partition once more, another attempt, a stage that
 * runs again or another job, adds nothing. Only sums above one bit a partition are kept,
 * for those accumulators and makers of which anything was ever heard.
 *
 *     trp_accumulators *a = trp_accumulators_new();
 *     id = trp_accumulators_add(a, "bad lines");            // from 1; 0: out of memory
 *     n = trp_accumulators_take(a, end.added, end.nadded, &updates);   // of a success
 *     trp_accumulators_value(a, id);
 *
 * No I/O. Threads: one at a time.
 */
#ifndef TRP_DRIVER_ACCUMULATORS_H
#define TRP_DRIVER_ACCUMULATORS_H

#include <stdint.h>

#include "events/event_log.h"

typedef struct trp_accumulators trp_accumulators;

trp_accumulators *trp_accumulators_new(void); /* NULL: out of memory */
void trp_accumulators_free(trp_accumulators *a);
/* A new one, from 1; the name is copied. 0: out of memory. */
uint32_t trp_accumulators_add(trp_accumulators *a, const char *name);
/* 0 for one that there is not. */
int64_t trp_accumulators_value(const trp_accumulators *a, uint32_t id);
/* Takes what a success added; entries of accumulators or partitions that there are not
 * are passed over. Returns how many accumulators it changed; *ret_updates has them, and
 * is valid until the next call. TRP_ENOMEM. */
int trp_accumulators_take(trp_accumulators *a, const uint8_t *added, uint32_t nadded,
                          const struct trp_event_update **ret_updates);

#endif
