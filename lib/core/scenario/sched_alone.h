/*
 * The task scheduler without jobs: for scenarios, tests and fuzzers, which submit task
 * sets and say themselves when what is offered. The decisions are those of real runs
 * (sched/offers.c); only the rounds are the caller's. Internal to the engine and
 * lib/sim.
 *
 *     trp_sched_alone_begin(e, specs, nspecs, &err);
 *     set = trp_sched_alone_submit(e, stage, profile, &spec, &err);
 *     trp_sched_alone_round(e, executors, n, true);
 *     while ((a = trp_engine_next(e))) …
 *
 * Executors come and go, and tasks end, with trp_engine_step as ever. Sets stay where
 * they are until the engine is freed.
 */
#ifndef TRP_CORE_SCENARIO_SCHED_ALONE_H
#define TRP_CORE_SCENARIO_SCHED_ALONE_H

#include "core/engine_state.h"

/* To be called on a new engine: nothing is offered by itself, nothing queued ahead, no
 * jobs stand behind the sets. Pools as in trp_pools_new; `manual_start`: attempts are
 * launching until trp_sched_alone_started. */
int trp_sched_alone_begin(trp_engine *e, const struct trp_pool_spec *pools,
                          uint32_t npools, bool manual_start, trp_error *err);

/* The number of an executor to come, which tasks may prefer already. TRP_NONE: out of
 * memory. */
uint32_t trp_sched_alone_reserve(trp_engine *e);
/* It comes; or comes again, after it was lost. TRP_EEXIST: it is there; TRP_ESTATE: it,
 * or its host, is excluded. */
int trp_sched_alone_add(trp_engine *e, int64_t now_ns, uint32_t executor,
                        trp_profile_id profile, const struct trp_event *added,
                        trp_error *err);

/* A set of the stage with that number (any; made when it is new). */
struct trp_task_set *trp_sched_alone_submit(trp_engine *e, uint32_t stage,
                                            trp_profile_id profile,
                                            const struct trp_set_spec *spec,
                                            trp_error *err);

/* One round over these executors in this order. `full`: all free resources are among
 * them (section 6). Those that are not live, or excluded, are passed over. */
int trp_sched_alone_round(trp_engine *e, const uint32_t *executors, uint32_t n,
                          bool full, trp_error *err);

/* The attempt told that it runs. */
void trp_sched_alone_started(trp_engine *e, uint32_t slot);

/* Excludes for the application, from outside. TRP_ESTATE: exclusion is off. */
int trp_sched_alone_exclude_executor(trp_engine *e, uint32_t executor, trp_error *err);
int trp_sched_alone_exclude_host(trp_engine *e, const char *host, trp_error *err);

#endif
