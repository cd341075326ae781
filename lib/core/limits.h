/*
 * What the limits of a run allow of a profile at most: alloc.max_* over all profiles
 * (semantics, difference 4) and dynamicAllocation.maxExecutors. Asked before a run and
 * when a stage is submitted, so that what can never be is told in the same words, and
 * nothing waits for it.
 */
#ifndef TRP_CORE_LIMITS_H
#define TRP_CORE_LIMITS_H

#include "core/engine.h"

/* How many executors of `p` (ranks 0), or gangs of so many ranks, the limits allow at
 * once when there is nothing else; UINT32_MAX: they do not matter. 0: never one, with
 * `err` filled (TRP_ENEVER): the limit, what is taken of it and what to do. */
uint32_t trp_limits_most(const struct trp_engine_config *c,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         trp_error *err);

/* Fills `err` with why a barrier stage of `ntasks` never has its slots, of which there
 * are at most `slots`; TRP_ENEVER. */
int trp_limits_barrier(uint32_t ntasks, uint64_t slots,
                       const struct trp_resource_profile *p, trp_error *err);

#endif
