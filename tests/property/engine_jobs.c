/*
 * Random jobs: graphs of stages from the arguments of a step (seed, stages, tasks,
 * features).
 */
#include "engine_streams.h"

enum feature {
    F_PROFILES = 1,
    F_PARENTS = 2,
    F_EACH = 4,
    F_MAX_RUNNING = 8,
    F_TOLERATE = 16,
    F_MEMORY = 32,
    F_GANG = 64,
    F_UNKNOWN = 128,
    F_BOUNDS = 256,
    F_NOT_ON = 512,
    F_SAME_SIZE = 1024,
    F_BY = 2048,
};

static void random_stage(struct trp_stage_spec *s, struct rng *r, uint32_t max_tasks,
                         uint32_t features)
{
    static const int32_t not_on[] = {3};
    *s = (struct trp_stage_spec){.name = "s", .tasks_known = true};
    s->ntasks = features & F_SAME_SIZE ? max_tasks : rng_below(r, max_tasks + 1);
    if (features & F_PROFILES)
        s->profile.n = rng_below(r, NPROFILES);
    if ((features & F_MAX_RUNNING) && rng_one_in(r, 3))
        s->max_running = 1 + rng_below(r, 3);
    if ((features & F_TOLERATE) && rng_one_in(r, 2))
        s->tolerate = rng_below(r, 3);
    if ((features & F_TOLERATE) && rng_one_in(r, 4))
        s->tolerate_ppm = rng_below(r, 500000);
    if ((features & F_MEMORY) && rng_one_in(r, 2))
        s->memory_factor_ppm = 1500000;
    if ((features & F_UNKNOWN) && rng_one_in(r, 2))
        s->tasks_known = false;
    if ((features & F_BOUNDS) && rng_one_in(r, 3)) {
        s->min_executors = rng_below(r, 3);
        s->max_executors = 1 + rng_below(r, 3);
    }
    if (features & F_NOT_ON) {
        s->not_on = not_on;
        s->nnot_on = 1;
    }
    if ((features & F_GANG) && rng_one_in(r, 3)) {
        s->kind = TRP_STAGE_GANG;
        s->ranks = 1 + rng_below(r, 4);
        s->ntasks = 1;
        s->memory_factor_ppm = 0;
    }
}

static void random_parents(struct trp_stage_spec *v, struct trp_parent_spec *p,
                           uint32_t i, struct rng *r, uint32_t features)
{
    v[i].parents = p;
    if (!(features & F_PARENTS) || i == 0)
        return;
    for (uint32_t k = 0; k < 2 && rng_one_in(r, 2); k++) {
        uint32_t n = rng_below(r, i);
        if (k == 1 && n == p[0].stage)
            break;
        p[k] = (struct trp_parent_spec){.stage = n};
        v[i].nparents++;
        /* `each` wants two of one size; what is not known yet may turn out wrong. */
        bool tasks = v[i].kind == TRP_STAGE_TASKS && v[n].kind == TRP_STAGE_TASKS;
        p[k].each =
            (features & F_EACH) && tasks &&
            (!v[i].tasks_known || !v[n].tasks_known || v[i].ntasks == v[n].ntasks);
        p[k].by = (features & F_BY) && tasks && !v[i].tasks_known && rng_one_in(r, 2);
        p[k].each = p[k].each || p[k].by;
    }
}

/* The stages are known before they are submitted: what follows is held against them.
 */
static void submit(struct cluster *c, const struct trp_stage_spec *v, uint32_t n)
{
    struct world *w = &c->play.world;
    if (w->njobs == MAX_JOBS)
        return;
    if (trp_engine_stages(w->engine) != c->nstages)
        world_break(w, "stages are numbered one by one", "next is %u",
                    trp_engine_stages(w->engine));
    for (uint32_t i = 0; i < n; i++) {
        struct cl_stage *s = &c->stages[c->nstages + i];
        *s = (struct cl_stage){.spec = v[i], .job = w->njobs};
        s->ntasks = v[i].tasks_known ? v[i].ntasks : 0;
        for (uint32_t k = 0; k < v[i].nparents; k++) {
            s->parents[k] = v[i].parents[k];
            s->parents[k].stage += c->nstages;
        }
        s->spec.parents = s->parents;
    }
    c->nstages += n;
    world_submit(w, v, n);
}

void engine_job(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    struct trp_stage_spec v[MAX_JOB_STAGES];
    struct trp_parent_spec p[MAX_JOB_STAGES][2];
    struct rng r = {a[0]};
    uint32_t n = 1 + a[1] % MAX_JOB_STAGES;
    for (uint32_t i = 0; i < n; i++) {
        random_stage(&v[i], &r, a[2] % MAX_TASKS, a[3]);
        if (w->config.alloc_max_executors < UINT32_MAX)
            v[i].min_executors = 0; /* as for min_per_profile */
        random_parents(v, p[i], i, &r, a[3]);
        world_say(w, "  stage %u: profile %u, %u %s%s", c->nstages + i, v[i].profile.n,
                  v[i].kind == TRP_STAGE_GANG ? v[i].ranks : v[i].ntasks,
                  v[i].kind == TRP_STAGE_GANG ? "ranks" : "tasks",
                  v[i].tasks_known ? "" : " (to be asked for)");
        world_say(w, ", max_running %u, tolerate %u, memory_factor %u",
                  v[i].max_running, v[i].tolerate, v[i].memory_factor_ppm);
        for (uint32_t k = 0; k < v[i].nparents; k++)
            world_say(w, ", after %s%u",
                      p[i][k].by     ? "by a value "
                      : p[i][k].each ? "each "
                                     : "",
                      c->nstages + p[i][k].stage);
        world_say(w, "\n");
    }
    submit(c, v, n);
}
