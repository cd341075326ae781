/*
 * Whether map outputs are moved before their host goes, or left, and made again by who
 * needs them.
 *
 *     if (trp_moving_pays(bytes, made_ns, rate)) …
 *     rate = trp_moving_rate(rate, bytes, took_ns);   // when they were moved
 *
 * A rate is in bytes a second; 0: nothing was moved yet. No state, no errors.
 */
#ifndef TRP_CORE_ALLOC_MOVE_WORTH_H
#define TRP_CORE_ALLOC_MOVE_WORTH_H

#include <stdbool.h>
#include <stdint.h>

/* How long so many bytes take, ns. */
int64_t trp_moving_takes(uint64_t bytes, uint64_t rate);
/* `made_ns`: what the tasks that made them have taken, in all. */
bool trp_moving_pays(uint64_t bytes, int64_t made_ns, uint64_t rate);
/* The rate, after so many bytes took so long. */
uint64_t trp_moving_rate(uint64_t rate, uint64_t bytes, int64_t took_ns);

#endif
