/* A pipeline's stages, parents first, as the engine takes them. */
#include "sim/virtual_job.h"

#include <stdlib.h>
#include <string.h>

static void fill_stage(const trp_pipeline *p, uint32_t stage, const uint32_t *place,
                       trp_profile_id profile, uint32_t ntasks,
                       struct trp_stage_spec *spec, struct trp_parent_spec *parents)
{
    const struct trp_pipeline_stage *s = &p->stages[stage];
    *spec = (struct trp_stage_spec){
        .name = s->name,
        .profile = profile,
        .kind = s->ranks ? TRP_STAGE_GANG : TRP_STAGE_TASKS,
        .ranks = s->ranks,
        .parents = parents,
        .tasks_known = !s->nprefer,
        .ntasks = ntasks,
        .max_failures = s->max_failures,
        .memory_factor_ppm = (uint32_t)(s->memory_factor * 1e6 + 0.5),
        .max_running = s->max_running,
        .tolerate = s->tolerate,
        .tolerate_ppm = s->tolerate_ppm,
        .not_on = s->not_on,
        .nnot_on = s->nnot_on,
        .min_executors = s->min_executors,
        .max_executors = s->max_executors,
        .look_ahead = s->look_ahead,
        .look_ahead_ns = s->look_ahead_ns,
    };
    for (uint32_t a = 0; a < s->nafter; a++)
        parents[spec->nparents++] = (struct trp_parent_spec){
            .stage = place[s->after[a].index], .each = s->after[a].each};
}

int trp_virtual_job_make(const trp_pipeline *p, const trp_profile_id *ids,
                         const uint32_t *ntasks, struct trp_virtual_job *ret,
                         trp_error *err)
{
    struct trp_virtual_job j = {0};
    size_t n = (size_t)p->nstages + 1, nparents = 1;
    uint32_t *place = calloc(n, sizeof *place);
    for (uint32_t i = 0; i < p->nstages; i++)
        nparents += p->stages[i].nafter;
    j.stages = calloc(n, sizeof *j.stages);
    j.parents = calloc(nparents, sizeof *j.parents);
    j.of = calloc(n, sizeof *j.of);
    if (!place || !j.stages || !j.parents || !j.of) {
        free(place);
        trp_virtual_job_free(&j);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages",
                             p->nstages);
    }
    struct trp_parent_spec *parents = j.parents;
    for (uint32_t k = 0; k < p->nstages; k++) {
        uint32_t stage = p->order[k];
        place[stage] = k;
        j.of[k] = stage;
        fill_stage(p, stage, place, ids[stage], ntasks[stage], &j.stages[k], parents);
        parents += j.stages[k].nparents;
    }
    j.spec = (struct trp_job_spec){.stages = j.stages, .nstages = p->nstages};
    free(place);
    *ret = j;
    return 0;
}

void trp_virtual_job_free(struct trp_virtual_job *j)
{
    free(j->stages);
    free(j->parents);
    free(j->of);
    *j = (struct trp_virtual_job){0};
}

/* ---- preferences ---- */

/* HOST or HOST/EXECUTOR. */
static int make_place(const char *text, struct trp_virtual_places *v,
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

int trp_virtual_places_make(const struct trp_pipeline_stage *s, uint32_t ntasks,
                            struct trp_virtual_places *ret, trp_error *err)
{
    struct trp_virtual_places v = {0};
    uint64_t n = (uint64_t)ntasks * s->nprefer;
    int r = 0;
    memset(ret, 0, sizeof *ret);
    if (!s->nprefer)
        return 0;
    if (n > UINT32_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "stage %s: %u tasks with %u places in `prefer`", s->name,
                             ntasks, s->nprefer);
    v.first = calloc((size_t)ntasks + 1, sizeof *v.first);
    v.places = calloc(n + s->nprefer, sizeof *v.places);
    v.hosts = calloc(s->nprefer, sizeof *v.hosts);
    if (!v.first || !v.places || !v.hosts)
        r = TRP_ENOMEM;
    for (uint32_t k = 0; k < s->nprefer && r == 0; k++)
        r = make_place(s->prefer[k], &v, &v.places[k]);
    if (r < 0) {
        trp_virtual_places_free(&v);
        return trp_error_set(err, r, "out of memory for stage %s", s->name);
    }
    for (uint32_t t = 0; t <= ntasks; t++)
        v.first[t] = t * s->nprefer;
    for (uint32_t t = 1; t < ntasks; t++)
        memcpy(&v.places[v.first[t]], v.places, s->nprefer * sizeof *v.places);
    v.prefer = (struct trp_preferences){v.first, v.places};
    *ret = v;
    return 0;
}

void trp_virtual_places_free(struct trp_virtual_places *v)
{
    for (uint32_t i = 0; i < v->nhosts; i++)
        free(v->hosts[i]);
    free(v->hosts);
    free(v->first);
    free(v->places);
    memset(v, 0, sizeof *v);
}
