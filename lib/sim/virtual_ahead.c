/*
 * Looking ahead: executors of a stage are asked for while its parents still run, so
 * that the wait in the queue overlaps work.
 *
 * When. As soon as what is left of the parents is expected to take no longer than the
 * wait for a job and the start of an executor. Left of a parent: its open tasks times
 * their mean so far, over the attempts that run. Nothing is expected before a first
 * task has ended. It is looked at when a parent ends, and 64 times on its way.
 *
 * How many. As many as the stage can use, less what the nodes inside hold, and less the
 * executors of its parents that it will take over.
 *
 * What the stage then does not take, is given back at once.
 */
#include "sim/virtual_run_state.h"

/* What is left of a parent, ns; INT64_MAX: not known. */
static int64_t left_of(const struct trp_virtual_run *r, uint32_t stage)
{
    const struct trp_virtual_plan *p = &r->plan[stage];
    const struct trp_virtual_stage *s = &r->result->stages[stage];
    if (s->end >= 0)
        return s->outcome == TRP_OUTCOME_SUCCEEDED ? 0 : INT64_MAX;
    if (!p->submitted || !p->ended)
        return INT64_MAX;
    double mean = p->run_sum / p->ended, open = (double)s->ntasks - p->ended;
    /* The slot of the attempt that has just ended will be taken again. */
    double left = mean * open / ((double)p->running + 1);
    return left < (double)TRP_SIM_TIME_MAX ? (int64_t)left : TRP_SIM_TIME_MAX;
}

/* Executors of running parents that the stage may use when they are done. */
static uint64_t taken_over(const struct trp_virtual_run *r, uint32_t stage,
                           const struct trp_resource_profile *want)
{
    const struct trp_pipeline_stage *s = &r->c.pipeline->stages[stage];
    uint64_t n = 0;
    if (r->c.engine.reuse == TRP_REUSE_NEVER)
        return 0;
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t above = s->after[a].index;
        const struct trp_resource_profile *have =
            trp_profiles_get(r->c.profiles, r->c.ids[above]);
        bool same = have == want || trp_profile_same_executor(have, want);
        if (r->result->stages[above].end < 0 && same && have->slots)
            n += (r->plan[above].running + have->slots - 1) / have->slots;
    }
    return n;
}

static uint32_t how_many(const struct trp_virtual_run *r, uint32_t stage)
{
    const struct trp_pipeline_stage *s = &r->c.pipeline->stages[stage];
    const struct trp_resource_profile *p =
        trp_profiles_get(r->c.profiles, r->c.ids[stage]);
    uint32_t inside = 0, fit = trp_virtual_fit(r->cluster, p, s->ranks, &inside, NULL);
    uint64_t n = ((uint64_t)r->c.ntasks[stage] + p->slots - 1) / p->slots;
    uint32_t most = r->c.engine.max_executors;
    if (r->c.engine.alloc_max_executors < most)
        most = r->c.engine.alloc_max_executors;
    if (s->max_executors && s->max_executors < most)
        most = s->max_executors;
    if (fit < most)
        most = fit;
    if (s->ranks) /* its room is asked for at once, as a whole */
        return 0;
    n = n < most ? n : most;
    uint64_t have = inside + taken_over(r, stage, p);
    return n > have ? (uint32_t)(n - have) : 0;
}

static int64_t lead(const struct trp_virtual_run *r, uint32_t shares)
{
    const trp_sim_cluster *c = r->c.cluster;
    double ns = (double)trp_distribution_mean(&c->wait) +
                (double)trp_distribution_mean(&c->start_up) +
                (double)c->wait_per_node_ns * shares;
    return ns < (double)TRP_SIM_TIME_MAX ? (int64_t)ns : TRP_SIM_TIME_MAX;
}

static void consider(struct trp_virtual_run *r, uint32_t stage)
{
    const struct trp_pipeline_stage *s = &r->c.pipeline->stages[stage];
    struct trp_virtual_plan *p = &r->plan[stage];
    int64_t left = 0;
    for (uint32_t a = 0; a < s->nafter; a++) {
        int64_t of = left_of(r, s->after[a].index);
        left = of > left ? of : left;
    }
    if (left == 0 || left == INT64_MAX)
        return;
    uint32_t n = how_many(r, stage);
    if (!n || left > lead(r, n))
        return;
    p->line = trp_virtual_line(r->cluster,
                               trp_profiles_get(r->c.profiles, r->c.ids[stage]), 0);
    if (p->line == TRP_NONE)
        return;
    p->asked_ahead = true;
    trp_virtual_ahead(r->cluster, p->line, n);
}

void trp_virtual_look_ahead(struct trp_virtual_run *r, uint32_t stage)
{
    const struct trp_virtual_plan *p = &r->plan[stage];
    for (uint32_t i = 0; r->c.ahead && i < p->nchildren; i++) {
        struct trp_virtual_plan *child = &r->plan[p->children[i]];
        if (!child->asked_ahead && !child->submitted)
            consider(r, p->children[i]);
    }
}

void trp_virtual_ahead_over(struct trp_virtual_run *r)
{
    while (r->ahead_over != TRP_NONE) {
        struct trp_virtual_plan *p = &r->plan[r->ahead_over];
        r->ahead_over = p->next_over;
        trp_virtual_ahead_end(r->cluster, p->line, r->now);
        r->room = true;
    }
}
