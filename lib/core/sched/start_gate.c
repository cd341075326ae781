/*
 * Start gating (semantics, section 6): nothing is launched until enough of the first
 * executors have come, or the wait is over. The gate opens once and stays open, even if
 * executors are lost later.
 *
 * The first executors are what the run was given: the ranks of a static run, with
 * alloc.grow=ramp the initial executors, else the minimum of the profile. Any executor
 * counts, of whatever profile. The wait starts with the engine's first step. An engine
 * without a job has nothing to hold back. A step costs one more comparison while the
 * gate is closed, and nothing afterwards.
 */
#include "core/engine_state.h"

uint32_t trp_start_gate_expected(const struct trp_engine *e)
{
    const struct trp_engine_config *c = &e->config;
    uint32_t n = c->min_executors;
    if (c->fixed && !e->sched_alone)
        return e->live + e->requested;
    if ((c->grow_ramp || e->sched_alone) && c->initial_executors > n)
        n = c->initial_executors;
    n = n < c->max_executors ? n : c->max_executors;
    return n < c->alloc_max_executors ? n : c->alloc_max_executors;
}

TRP_RARE void trp_start_gate_look(struct trp_engine *e)
{
    if (e->gate_due == INT64_MAX)
        e->gate_due = e->now + e->config.registered_wait_ns;
    if (!e->njobs && !e->sched_alone)
        return;
    double wanted = e->config.registered_ratio * trp_start_gate_expected(e);
    if (e->live < wanted && e->now < e->gate_due)
        return;
    e->gated = false;
    e->gate_due = INT64_MAX;
    e->offer_all = true;
}
