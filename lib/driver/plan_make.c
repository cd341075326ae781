/*
 * Makes a plan. Profiles are added to the manager one by one, so that an impossible one
 * is told and the others are planned all the same (a run stops at the first). An
 * impossible default profile is replaced by the plain one while the others are looked
 * at.
 */
#include "driver/plan_make.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/yaml.h"
#include "core/base/array.h"
#include "core/limits.h"
#include "driver/by.h"
#include "driver/fit.h"
#include "driver/foreach.h"
#include "driver/output_names.h"

struct maker {
    const trp_pipeline *p;
    const trp_site *site;
    struct trp_plan *plan;
    trp_error *err;
};

static int out_of_memory(struct maker *m)
{
    return trp_error_set(m->err, TRP_ENOMEM, "out of memory for the plan");
}

/* ---- profiles ---- */

static struct trp_plan_profile *find_profile(const struct trp_plan *plan,
                                             const char *name)
{
    for (uint32_t i = 0; i < plan->nprofiles; i++)
        if (strcmp(plan->profile[i].name, name) == 0)
            return &plan->profile[i];
    return NULL;
}

static struct trp_plan_profile *new_profile(struct maker *m, const char *name)
{
    struct trp_plan *plan = m->plan;
    if (!TRP_ARRAY_GROW(plan->profile, plan->nprofiles, plan->profiles_capacity))
        return NULL;
    struct trp_plan_profile *v = &plan->profile[plan->nprofiles++];
    *v = (struct trp_plan_profile){.name = name};
    return v;
}

static int impossible(struct maker *m, struct trp_plan_profile *v, const trp_error *why)
{
    v->never = strdup(why->text);
    return v->never ? 0 : out_of_memory(m);
}

static int add_default(struct maker *m, const trp_options *o)
{
    struct trp_profile_defaults d;
    trp_error why;
    trp_options_profile_defaults(o, &d);
    struct trp_plan_profile *v = new_profile(m, "default");
    if (!v)
        return out_of_memory(m);
    const struct trp_profile_section *section = m->p->fallback;
    int r = trp_profiles_new(&d, section ? &section->builder : NULL, &m->plan->profiles,
                             &why);
    if (r == 0) {
        v->made = trp_profiles_get(m->plan->profiles, (trp_profile_id){0});
        return 0;
    }
    trp_options_profile_defaults(NULL, &d);
    if (r == TRP_ENOMEM || trp_profiles_new(&d, NULL, &m->plan->profiles, NULL) < 0)
        return out_of_memory(m);
    return impossible(m, v, &why);
}

static int add_profile(struct maker *m, const struct trp_profile_section *section)
{
    trp_profile_id id;
    trp_error why;
    struct trp_plan_profile *v = new_profile(m, section->builder.name);
    if (!v)
        return out_of_memory(m);
    int r = trp_profiles_add(m->plan->profiles, &section->builder, &id, &why);
    if (r == TRP_ENOMEM)
        return out_of_memory(m);
    if (r < 0)
        return impossible(m, v, &why);
    v->made = trp_profiles_get(m->plan->profiles, id);
    return 0;
}

static const char *profile_name(const struct trp_pipeline_stage *s)
{
    return s->profile ? s->profile : "default";
}

/* The default, the file's, then those of the site that stages name: the order in which
 * a run gives ids. */
static int add_profiles(struct maker *m, const trp_options *o)
{
    int r = add_default(m, o);
    for (uint32_t i = 0; i < m->p->nprofiles && r == 0; i++)
        r = add_profile(m, &m->p->profiles[i]);
    for (uint32_t i = 0; i < m->p->nstages && r == 0; i++) {
        const char *file, *name = profile_name(&m->p->stages[i]);
        if (find_profile(m->plan, name))
            continue;
        const struct trp_profile_section *section =
            trp_fit_section(m->p, m->site, name, &file);
        r = section ? add_profile(m, section) : 0;
    }
    return r;
}

/* What a run would refuse the profiles with, in its words. */
static int judge_profiles(struct maker *m, const trp_options *o)
{
    trp_profiles *profiles = NULL;
    trp_profile_id *ids = calloc((size_t)m->p->nstages + 1, sizeof *ids);
    if (!ids)
        return out_of_memory(m);
    int r = trp_pipeline_profiles(m->p, o, m->site, &profiles, ids, &m->plan->first);
    if (r == 0) {
        m->plan->first.code = 0;
        trp_profiles_free(profiles);
    }
    free(ids);
    return r == TRP_ENOMEM ? out_of_memory(m) : 0;
}

/* ---- stages ---- */

static int count_tasks(struct maker *m, struct trp_plan_stage *v)
{
    struct trp_items items = {0};
    trp_error why;
    if (!m->plan->first.code)
        trp_foreach_check(m->p, v->stage, NULL, &m->plan->first);
    if (!m->plan->first.code)
        trp_by_check(m->p, v->stage, NULL, &m->plan->first);
    bool later = v->stage->nafter && !trp_foreach_known(v->stage);
    if (later && !trp_foreach_listed(m->p, v->stage))
        return 0;
    int r = trp_foreach_evaluate(m->p, v->stage, NULL, &items, &why);
    if (r == TRP_ENOMEM)
        return out_of_memory(m);
    if (r < 0 && later) /* what is not there yet may come */
        return 0;
    if (r < 0 && trp_foreach_known(v->stage) && !m->plan->first.code)
        m->plan->first = why; /* a run refuses it before anything starts */
    if (r < 0) {
        v->waits = strdup(why.text);
        return v->waits ? 0 : out_of_memory(m);
    }
    v->known = true;
    v->ntasks = items.ntasks;
    trp_items_free(&items);
    return 0;
}

/* A barrier stage that needs more slots at once than can be had. */
static int never_at_once(struct maker *m, struct trp_plan_stage *v, uint64_t slots)
{
    const struct trp_pipeline_stage *s = v->stage;
    struct trp_mark mark = s->profile_mark.line ? s->profile_mark : s->mark;
    trp_error why;
    trp_limits_barrier(v->ntasks, slots, v->profile->made, &why);
    v->never = strdup(why.text);
    if (!v->never)
        return out_of_memory(m);
    if (!m->plan->first.code)
        trp_error_at(&m->plan->first, TRP_ENEVER, m->p->file, mark, "stage %s: %s",
                     s->name, v->never);
    return 0;
}

/* What a stage waits for although it could start: room for all its tasks. */
static int find_wait(struct maker *m, struct trp_plan_stage *v, uint32_t fits)
{
    const struct trp_pipeline_stage *s = v->stage;
    uint64_t executors = fits;
    if (s->spec.max_executors && s->spec.max_executors < executors)
        executors = s->spec.max_executors;
    uint64_t at_once = executors * v->profile->made->slots;
    if (s->spec.max_running && s->spec.max_running < at_once)
        at_once = s->spec.max_running;
    if (!v->known || s->spec.ranks || v->ntasks <= at_once)
        return 0;
    if (s->spec.barrier)
        return never_at_once(m, v, at_once);
    int n = asprintf(&v->waits, "%u tasks, %llu at once", v->ntasks,
                     (unsigned long long)at_once);
    return n < 0 ? out_of_memory(m) : 0;
}

static int plan_stage(struct maker *m, trp_fit *fit, uint32_t i)
{
    struct trp_plan_stage *v = &m->plan->stage[i];
    trp_error why;
    assert(v); /* one was made for each stage */
    v->stage = &m->p->stages[i];
    struct trp_plan_profile *profile = find_profile(m->plan, profile_name(v->stage));
    v->profile = profile;
    int r = count_tasks(m, v);
    if (r < 0 || !profile)
        return r;
    if (!profile->made) {
        v->never = strdup(profile->never);
        return v->never ? 0 : out_of_memory(m);
    }
    uint32_t fits = trp_fit_ask(fit, profile->made, v->stage->spec.ranks, &why);
    if (fits)
        return find_wait(m, v, fits);
    v->never = strdup(why.text);
    if (!m->plan->first.code) /* an impossible profile is told before it */
        trp_fit_stage(fit, m->p, m->site, v->stage, profile->made, &m->plan->first);
    return v->never ? 0 : out_of_memory(m);
}

/* Outputs that two name, as a run would refuse them. */
static void judge_names(struct maker *m)
{
    trp_output_names *names = NULL;
    trp_error why;
    if (trp_output_names_new(m->p, NULL, &names, &why) == TRP_EINVAL &&
        (!m->plan->first.code || m->plan->first.code == TRP_ENEVER))
        m->plan->first = why;
    trp_output_names_free(names);
}

static int fit_profiles(struct maker *m, trp_fit *fit)
{
    trp_error why;
    for (uint32_t i = 0; i < m->plan->nprofiles; i++) {
        struct trp_plan_profile *v = &m->plan->profile[i];
        v->fits = v->made ? trp_fit_ask(fit, v->made, 0, &why) : 0;
        if (v->made && !v->fits && !(v->never = strdup(why.text)))
            return out_of_memory(m);
    }
    return 0;
}

int trp_plan_make(const trp_pipeline *p, const trp_options *o, const trp_site *site,
                  const struct trp_cluster_where *where, struct trp_plan *ret,
                  trp_error *err)
{
    struct trp_plan plan = {.p = p};
    struct maker m = {.p = p, .site = site, .plan = &plan, .err = err};
    trp_fit *fit;
    int r = trp_fit_open(o, site, where, &fit, err);
    if (r < 0)
        return r;
    plan.stage = calloc((size_t)p->nstages + 1, sizeof *plan.stage);
    r = plan.stage ? add_profiles(&m, o) : out_of_memory(&m);
    if (r == 0)
        r = judge_profiles(&m, o);
    if (r == 0)
        r = fit_profiles(&m, fit);
    for (uint32_t i = 0; i < p->nstages && r == 0; i++)
        r = plan_stage(&m, fit, i);
    if (r == 0)
        judge_names(&m);
    trp_fit_close(fit);
    if (r < 0) {
        trp_plan_free(&plan);
        return r;
    }
    *ret = plan;
    return 0;
}

void trp_plan_free(struct trp_plan *plan)
{
    for (uint32_t i = 0; i < plan->nprofiles; i++)
        free(plan->profile[i].never);
    for (uint32_t i = 0; plan->stage && i < plan->p->nstages; i++) {
        free(plan->stage[i].waits);
        free(plan->stage[i].never);
    }
    free(plan->profile);
    free(plan->stage);
    if (plan->profiles)
        trp_profiles_free(plan->profiles);
    *plan = (struct trp_plan){0};
}
