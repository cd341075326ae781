/* From files to played runs and their report. */
#include "sim/run/whole.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "sim/run/policies.h"

enum { PLAYS_MAX = 8 };

struct whole {
    const struct trp_whole_request *q;
    trp_sim_cluster *cluster;
    trp_sim_durations *durations;
    uint32_t *ntasks;
    struct trp_by **by; /* of each stage, of each parent by a column */
    struct trp_virtual_play plays[PLAYS_MAX];
    struct trp_policy_run runs[PLAYS_MAX]; /* results borrow their profiles' names */
    uint32_t nplays;
};

/* The durations file's number, else the pipeline's, else the event log's. */
static int count_tasks(struct whole *w, uint32_t i, trp_error *err)
{
    const struct trp_pipeline_stage *s = &w->q->pipeline->stages[i];
    uint32_t n = 1;
    trp_error why;
    if (s->spec.ranks || trp_sim_durations_tasks(w->durations, i, &n)) {
        w->ntasks[i] = s->spec.ranks ? 1 : n;
        return 0;
    }
    int rc = w->q->count(w->q->context, s, &n, &why);
    if (rc < 0 && rc != TRP_ENOMEM && trp_sim_durations_recorded(w->durations, i)) {
        n = trp_sim_durations_recorded(w->durations, i);
        rc = 0;
    }
    w->ntasks[i] = n;
    return rc < 0 ? trp_error_set(err, rc,
                                  "%s; or write how many: tasks at the stage in %s",
                                  why.text, w->q->durations)
                  : 0;
}

/* Tasks of both in their order, as evenly as can be. */
static int spread(uint32_t n, uint32_t nabove, struct trp_by *ret)
{
    uint64_t values = n < nabove ? n : nabove;
    uint32_t *of = calloc((size_t)n + 1, sizeof *of);
    struct trp_by_task *above = calloc((size_t)nabove + 1, sizeof *above);
    for (uint32_t t = 0; of && values && t < n; t++)
        of[t] = (uint32_t)(t * values / n);
    for (uint32_t t = 0; above && values && t < nabove; t++)
        above[t] = (struct trp_by_task){t, (uint32_t)(t * values / nabove)};
    *ret = (struct trp_by){.nvalues = values ? (uint32_t)values : n > 0,
                           .values = of,
                           .ntasks = n,
                           .above = above,
                           .nabove = values ? nabove : 0};
    return of && above ? 0 : TRP_ENOMEM;
}

static void by_free(struct trp_by *by)
{
    free((void *)(uintptr_t)by->values);
    free((void *)(uintptr_t)by->above);
    *by = (struct trp_by){0};
}

/* As the tables say, where they say it for so many tasks. */
static int link_tasks(struct whole *w, uint32_t i, trp_error *err)
{
    const struct trp_pipeline_stage *s = &w->q->pipeline->stages[i];
    uint32_t n = 0;
    int rc = 0;
    w->by[i] = calloc((size_t)s->nafter + 1, sizeof **w->by);
    for (uint32_t a = 0; a < s->nafter && w->by[i] && rc == 0; a++) {
        uint32_t nabove = w->ntasks[s->after[a].index];
        if (!s->after[a].by)
            continue;
        struct trp_by *by = &w->by[i][n++];
        bool told = w->q->by(w->q->context, s, &s->after[a], by) == 0;
        if (told && by->ntasks == w->ntasks[i] &&
            (!by->nabove || by->above[by->nabove - 1].task < nabove))
            continue;
        by_free(by);
        rc = spread(w->ntasks[i], nabove, by);
    }
    return w->by[i] && rc == 0
               ? 0
               : trp_error_set(err, TRP_ENOMEM, "out of memory for the simulation");
}

static int load_cluster(struct whole *w, trp_error *err)
{
    const char *text = w->q->cluster_text;
    return trp_sim_cluster_parse(w->q->cluster, text, text ? strlen(text) : 0,
                                 &w->cluster, err);
}

static int load_durations(struct whole *w, trp_error *err)
{
    const char *text = w->q->durations_text;
    const trp_pipeline *p = w->q->pipeline;
    return trp_sim_durations_parse(w->q->durations, text, text ? strlen(text) : 0, p,
                                   &w->durations, err);
}

static int load(struct whole *w, trp_error *err)
{
    const trp_pipeline *p = w->q->pipeline;
    int rc = load_cluster(w, err);
    if (rc == 0)
        rc = load_durations(w, err);
    w->ntasks = calloc((size_t)p->nstages + 1, sizeof *w->ntasks);
    if (rc == 0 && !w->ntasks)
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for the simulation");
    w->by = calloc((size_t)p->nstages + 1, sizeof *w->by);
    if (rc == 0 && !w->by)
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for the simulation");
    for (uint32_t i = 0; i < p->nstages && rc == 0; i++)
        rc = count_tasks(w, i, err);
    for (uint32_t i = 0; i < p->nstages && rc == 0; i++)
        rc = link_tasks(w, i, err);
    return rc;
}

static int play(struct whole *w, const struct trp_policy *policy, trp_error *err)
{
    struct trp_policy_run *run = &w->runs[w->nplays];
    struct trp_virtual_play *v = &w->plays[w->nplays];
    struct trp_virtual_run_config c = {.pipeline = w->q->pipeline,
                                       .ntasks = w->ntasks,
                                       .by = (const struct trp_by *const *)w->by,
                                       .cluster = w->cluster,
                                       .durations = w->durations,
                                       .seed = w->q->seed,
                                       .record = w->q->record};
    trp_options_engine_config(w->q->options, &c.engine);
    c.engine.pools = w->q->pools->specs;
    c.options = w->q->options;
    c.fail_fast = trp_options_bool(w->q->options, "run.fail_fast");
    c.engine.npools = w->q->pools->n;
    int rc = trp_policy_apply(policy, w->q->options, w->q->site, &c, run, err);
    if (rc < 0)
        return rc;
    c.inside = run->inside;
    v->policy = policy->name;
    v->seed = w->q->seed;
    rc = trp_virtual_run(&c, &v->result, err);
    if (rc < 0)
        trp_policy_run_free(run);
    else
        w->nplays++;
    return rc;
}

static int play_all(struct whole *w, trp_error *err)
{
    int rc = 0;
    const struct trp_policy *policy =
        w->q->policy ? trp_policy_find(w->q->policy) : &trp_policy_options;
    if (!policy) {
        struct trp_nearest near = trp_nearest_of(w->q->policy);
        for (policy = trp_policies; policy->name; policy++)
            trp_nearest_try(&near, policy->name);
        return trp_error_set(err, TRP_EINVAL, "no policy \"%s\"%s",
                             trp_show(w->q->policy).text, trp_did_you_mean(&near).text);
    }
    if (!w->q->compare)
        return play(w, policy, err);
    for (policy = trp_policies; policy->name && rc == 0; policy++)
        rc = play(w, policy, err);
    return rc;
}

int trp_whole_play(const struct trp_whole_request *q, FILE *out, trp_error *err)
{
    struct whole w = {.q = q};
    int rc = load(&w, err);
    if (rc == 0)
        rc = play_all(&w, err);
    if (rc == 0)
        rc = q->compare ? trp_virtual_compare(w.plays, w.nplays, q->json, out, err)
                        : trp_virtual_report(&w.plays[0], q->json, out, err);
    for (uint32_t i = 0; i < w.nplays; i++) {
        const struct trp_virtual_result *result = &w.plays[i].result;
        if (rc == 0 && result->outcome != TRP_OUTCOME_SUCCEEDED)
            rc = trp_error_set(err, result->never ? TRP_ENEVER : TRP_EFAILED,
                               "the run fails (policy %s)", w.plays[i].policy);
        trp_virtual_result_free(&w.plays[i].result);
        trp_policy_run_free(&w.runs[i]);
    }
    for (uint32_t i = 0; w.by && i < q->pipeline->nstages; i++) {
        for (uint32_t a = 0; w.by[i] && a < q->pipeline->stages[i].nafter; a++)
            by_free(&w.by[i][a]);
        free(w.by[i]);
    }
    free(w.by);
    free(w.ntasks);
    trp_sim_durations_free(w.durations);
    trp_sim_cluster_free(w.cluster);
    return rc;
}
