/*
 * Policies. For the nodes of the largest stage, the executors of each stage are laid
 * out on the groups of the empty cluster in their order; the job holds, of each group,
 * the most that any stage takes. For a job per stage, every stage gets a profile of its
 * own, so that no executor of another stage can serve it.
 */
#include "sim/run/policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run/virtual_state.h"

const struct trp_policy trp_policies[] = {
    {.name = "monolithic",   .largest = true},
    {.name = "job-per-stage",                      .stage_jobs = true},
    {.name = "inside-first"},
    {.name = "look-ahead", .ahead = true},
    {.name = "idle-timeout",   .release_idle = true},
    {0                     },
};

const struct trp_policy trp_policy_options = {.name = "options", .as_options = true};

const struct trp_policy *trp_policy_find(const char *name)
{
    for (const struct trp_policy *p = trp_policies; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* ---- the largest stage ---- */

/* Nodes of a group that are not others'. */
static uint32_t free_nodes(const trp_sim_cluster *c, uint32_t group)
{
    const struct trp_sim_group *g = &c->groups[group];
    return g->count - (uint32_t)(g->busy * (g->count - g->inside) + 0.5);
}

static uint64_t units_of(const struct trp_virtual_run_config *config, uint32_t stage,
                         const struct trp_resource_profile *p)
{
    const struct trp_pipeline_stage *s = &config->pipeline->stages[stage];
    if (s->spec.ranks)
        return s->spec.ranks;
    uint64_t n = ((uint64_t)config->ntasks[stage] + p->slots - 1) / p->slots;
    uint64_t most = config->engine.max_executors;
    if (config->engine.alloc_max_executors < most)
        most = config->engine.alloc_max_executors;
    if (s->spec.max_executors && s->spec.max_executors < most)
        most = s->spec.max_executors;
    if (s->spec.max_running && (s->spec.max_running + p->slots - 1) / p->slots < most)
        most = (s->spec.max_running + p->slots - 1) / p->slots;
    return n < most ? n : most;
}

static void most_nodes(const struct trp_virtual_run_config *config,
                       struct trp_policy_run *r)
{
    const trp_sim_cluster *c = config->cluster;
    int64_t room[TRP_SIM_DIMS] = {0};
    struct trp_virtual_footprint need;
    for (uint32_t i = 0; i < config->pipeline->nstages; i++) {
        const struct trp_resource_profile *p = trp_profiles_get(r->profiles, r->ids[i]);
        uint64_t left = units_of(config, i, p);
        trp_virtual_footprint_make(c, p, config->pipeline->stages[i].spec.ranks, &need);
        for (uint32_t g = 0; g < c->ngroups && left; g++) {
            trp_virtual_group_capacity(c, g, room);
            uint64_t fits = trp_virtual_footprint_fits(&need, room, 2 + c->ndevices);
            uint64_t nodes = fits ? (left + fits - 1) / fits : 0;
            nodes = nodes < free_nodes(c, g) ? nodes : free_nodes(c, g);
            r->inside[g] = nodes > r->inside[g] ? (uint32_t)nodes : r->inside[g];
            left -= nodes * fits < left ? nodes * fits : left;
        }
    }
}

/* ---- a profile a stage ---- */

static int own_profiles(const trp_pipeline *p, struct trp_policy_run *r, trp_error *err)
{
    struct trp_profile_builder b;
    int rc = 0;
    for (uint32_t i = 0; i < p->nstages && rc == 0; i++) {
        trp_profile_written(trp_profiles_get(r->profiles, r->ids[i]), &b);
        rc = trp_profiles_add(r->profiles, &b, &r->ids[i], err);
    }
    return rc;
}

int trp_policy_apply(const struct trp_policy *policy, const trp_options *options,
                     const trp_site *site, struct trp_virtual_run_config *config,
                     struct trp_policy_run *ret, trp_error *err)
{
    const trp_pipeline *p = config->pipeline;
    struct trp_policy_run r = {.ids = calloc((size_t)p->nstages + 1, sizeof *r.ids)};
    if (!r.ids)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the simulation");
    int rc = trp_pipeline_profiles(p, options, site, &r.profiles, r.ids, err);
    if (rc == 0 && policy->stage_jobs)
        rc = own_profiles(p, &r, err);
    if (rc < 0) {
        trp_policy_run_free(&r);
        return rc;
    }
    for (uint32_t g = 0; g < config->cluster->ngroups; g++)
        if (!policy->stage_jobs && !policy->largest)
            r.inside[g] = config->cluster->groups[g].inside;
    if (policy->largest)
        most_nodes(config, &r);
    if (!policy->as_options)
        config->engine.release_idle = policy->release_idle;
    if (policy->stage_jobs)
        config->engine.reuse = TRP_REUSE_NEVER;
    config->inside_only = policy->largest;
    config->whole_jobs = policy->stage_jobs;
    config->ahead = policy->ahead || policy->as_options;
    if (policy->ahead)
        config->engine.look_ahead = TRP_LOOK_AHEAD_AUTO;
    config->profiles = r.profiles;
    config->ids = r.ids;
    *ret = r;
    return 0;
}

void trp_policy_run_free(struct trp_policy_run *r)
{
    if (r->profiles)
        trp_profiles_free(r->profiles);
    free(r->ids);
    *r = (struct trp_policy_run){0};
}
