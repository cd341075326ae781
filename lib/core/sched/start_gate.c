/*
 * Start gating (semantics 6): nothing is launched until enough of the executors that
 * are to be there at the start have come, or the wait is over. Then never again: a gate
 * that is open stays open, whoever goes.
 *
 * What is to be there is what the run was given: in a static run its ranks, with
 * alloc.grow=ramp the initial executors, otherwise the least a profile keeps. Any
 * executor counts, of whatever profile. The wait begins with the engine's first step,
 * and an engine without a job has nothing to hold back. While the gate is closed a step
 * costs one comparison more; afterwards nothing.
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
