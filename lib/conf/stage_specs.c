/* A pipeline's stages as the engine takes them, parents first, and their places. */
#include "conf/stage_specs.h"

#include <stdlib.h>
#include <string.h>

/* Losses of its executor, and repeats with more memory, until a command is given up. */
enum { LOSSES = 4, REPEATS = 3 };

uint32_t trp_stage_tries(const struct trp_pipeline_stage *s, const trp_options *options)
{
    if (s->spec.max_failures)
        return s->spec.max_failures;
    return options && trp_options_is_set(options, "task.maxFailures")
               ? (uint32_t)trp_options_int(options, "task.maxFailures")
               : 1;
}

/* `place`: of each stage of the pipeline, where it is in the job, or TRP_NONE. */
static void fill_stage(const struct trp_pipeline_stage *s, const uint32_t *place,
                       trp_profile_id profile, const trp_options *options,
                       struct trp_parent_spec *parents, struct trp_stage_spec *ret)
{
    *ret = s->spec;
    ret->name = s->name;
    ret->profile = profile;
    ret->max_failures = trp_stage_tries(s, options);
    ret->max_losses = LOSSES;
    ret->max_repeats =
        ret->max_failures > REPEATS + 1 ? ret->max_failures - 1 : REPEATS;
    ret->kind = s->spec.ranks ? TRP_STAGE_GANG : TRP_STAGE_TASKS;
    ret->parents = parents;
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t above = place[s->after[a].index];
        if (above != TRP_NONE)
            parents[ret->nparents++] = (struct trp_parent_spec){
                .stage = above, .each = s->after[a].each, .by = s->after[a].by != NULL};
    }
}

int trp_stage_specs_make(const trp_pipeline *p, const trp_profile_id *ids,
                         const trp_options *options, const bool *runs,
                         struct trp_stage_specs *ret, trp_error *err)
{
    struct trp_stage_specs specs = {0};
    size_t n = (size_t)p->nstages + 1, nparents = 1;
    uint32_t *place = calloc(n, sizeof *place);
    for (uint32_t i = 0; i < p->nstages; i++)
        nparents += p->stages[i].nafter;
    specs.stages = calloc(n, sizeof *specs.stages);
    specs.parents = calloc(nparents, sizeof *specs.parents);
    specs.of = calloc(n, sizeof *specs.of);
    if (!place || !specs.stages || !specs.parents || !specs.of) {
        free(place);
        trp_stage_specs_free(&specs);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages",
                             p->nstages);
    }
    struct trp_parent_spec *parents = specs.parents;
    for (uint32_t k = 0; k < p->nstages; k++) {
        uint32_t stage = p->order[k], i = specs.nstages;
        place[stage] = !runs || runs[stage] ? i : TRP_NONE;
        if (place[stage] == TRP_NONE)
            continue;
        specs.of[i] = stage;
        specs.nstages++;
        fill_stage(&p->stages[stage], place, ids[stage], options, parents,
                   &specs.stages[i]);
        parents += specs.stages[i].nparents;
    }
    free(place);
    *ret = specs;
    return 0;
}

void trp_stage_specs_count(struct trp_stage_specs *specs, uint32_t i,
                           const trp_pipeline *p, uint32_t ntasks)
{
    struct trp_stage_spec *s = &specs->stages[i];
    s->tasks_known = !p->stages[specs->of[i]].nprefer;
    for (uint32_t a = 0; a < s->nparents; a++)
        s->tasks_known = s->tasks_known && !s->parents[a].by;
    s->ntasks = ntasks;
}

void trp_stage_specs_free(struct trp_stage_specs *specs)
{
    free(specs->stages);
    free(specs->parents);
    free(specs->of);
    *specs = (struct trp_stage_specs){0};
}

/* ---- places ---- */

/* One place as `prefer` writes it: HOST or HOST/EXECUTOR. */
static int make_place(const char *text, struct trp_stage_places *v,
                      struct trp_place *ret)
{
    const char *slash = strrchr(text, '/');
    char *end = NULL;
    unsigned long number = slash ? strtoul(slash + 1, &end, 10) : 0;
    bool numbered = slash && end > slash + 1 && *end == '\0' && number < TRP_NONE;
    char *host = strndup(text, numbered ? (size_t)(slash - text) : strlen(text));
    if (!host)
        return TRP_ENOMEM;
    v->hosts[v->nhosts++] = host;
    *ret = (struct trp_place){host, numbered ? (uint32_t)number : TRP_NONE};
    return 0;
}

static bool of_each_task(const struct trp_pipeline_stage *s)
{
    for (uint32_t k = 0; k < s->nprefer; k++)
        if (trp_template_names_task(s->prefer[k]))
            return true;
    return false;
}

/* The places of one task, from v->places[first] on. */
static int make_places(const struct trp_pipeline_stage *s,
                       const struct trp_task_values *values, uint32_t first,
                       struct trp_stage_places *v)
{
    struct trp_buf b = {0};
    int r = 0;
    for (uint32_t k = 0; k < s->nprefer && r == 0; k++) {
        trp_buf_clear(&b);
        trp_template_put(&b, s->prefer[k], values);
        trp_put_u8(&b, 0);
        r = b.failed ? TRP_ENOMEM
                     : make_place((const char *)b.data, v, &v->places[first + k]);
    }
    trp_buf_free(&b);
    return r;
}

int trp_stage_places_make(const struct trp_pipeline_stage *s, uint32_t ntasks,
                          trp_values_of_task *values, void *context,
                          struct trp_stage_places *ret, trp_error *err)
{
    struct trp_stage_places v = {0};
    uint64_t n = (uint64_t)ntasks * s->nprefer;
    bool each = of_each_task(s);
    int r = 0;
    *ret = v;
    if (!s->nprefer)
        return 0;
    if (n > UINT32_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "stage %s: %u tasks with %u places in `prefer`", s->name,
                             ntasks, s->nprefer);
    v.first = calloc((size_t)ntasks + 1, sizeof *v.first);
    v.places = calloc(n + s->nprefer, sizeof *v.places);
    v.hosts = calloc(each ? n + 1 : s->nprefer, sizeof *v.hosts);
    if (!v.first || !v.places || !v.hosts)
        r = TRP_ENOMEM;
    for (uint32_t t = 0; t <= ntasks && r == 0; t++)
        v.first[t] = t * s->nprefer;
    if (r == 0 && !each)
        r = make_places(s, &(struct trp_task_values){0}, 0, &v);
    for (uint32_t t = 0; t < ntasks && r == 0; t++) {
        struct trp_task_values of = {.task = t};
        if (each && values)
            values(context, t, &of);
        if (each)
            r = make_places(s, &of, v.first[t], &v);
        else if (t > 0)
            memcpy(&v.places[v.first[t]], v.places, s->nprefer * sizeof *v.places);
    }
    if (r < 0) {
        trp_stage_places_free(&v);
        return trp_error_set(err, r, "out of memory for stage %s", s->name);
    }
    v.prefer = (struct trp_preferences){v.first, v.places};
    *ret = v;
    return 0;
}

void trp_stage_places_free(struct trp_stage_places *v)
{
    for (uint32_t i = 0; i < v->nhosts; i++)
        free(v->hosts[i]);
    free(v->hosts);
    free(v->first);
    free(v->places);
    *v = (struct trp_stage_places){0};
}
