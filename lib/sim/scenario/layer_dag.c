/*
 * Layer `dag`: jobs and stages alone (semantics, sections 5, 10, 13, 14 and 15). No
 * task set stands behind a stage: what a submitted attempt would run is told, and how
 * its tasks end is the case's business. Outputs lie on executors unless the case says
 * shuffle.host_files (semantics, difference 17).
 */
#include "sim/scenario/layer_dag.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "sim/scenario/case_executors.h"

/* ---- opening ---- */

static int add_executor(struct trp_sim_dag *s, const struct trp_sim_executor *x,
                        int64_t now_ns, trp_error *err)
{
    uint32_t n = trp_sim_executor_number(s->engine, &s->executors, x->id);
    if (n == TRP_NONE)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    return trp_sim_executor_add(s->c, s->engine, now_ns, n, x, err);
}

static void on_submit(void *context, const struct trp_stage *stage,
                      const struct trp_set_spec *spec)
{
    struct trp_sim_dag *s = context;
    uint64_t looks = spec->ntasks;
    for (uint32_t i = 0; i < stage->nparents && stage->nprefer; i++)
        looks += (uint64_t)spec->ntasks * stage->parents[i].parent->ntasks;
    trp_sim_work(s->c, looks); /* for outputs, for preferences */
    s->datasets[s->by_id[stage->dataset]].attempts = spec->attempt + 1;
    trp_sim_tell(s->c, "submitted", trp_sim_dag_submitted(s, stage, spec));
}

static void on_stop(void *context, const struct trp_stage *stage)
{
    struct trp_sim_dag *s = context;
    trp_sim_tell(s->c, "cancelled", json_string(stage->name));
}

static int open_layer(void *state, trp_error *err)
{
    struct trp_sim_dag *s = state;
    struct trp_engine_config config;
    const trp_options *o = trp_sim_options(s->c);
    trp_options_engine_config(o, &config);
    config.fixed = true;
    config.host_files = trp_options_is_set(o, "shuffle.host_files") &&
                        trp_options_bool(o, "shuffle.host_files");
    config.racks = trp_sim_racks(s->c, &config.nracks);
    int rc = trp_engine_new(&config, trp_sim_profiles(s->c), &s->engine, err);
    if (rc < 0)
        return rc;
    s->alone = (struct trp_dag_alone){.context = s,
                                      .elastic = trp_sim_dynamic(s->c),
                                      .submit = on_submit,
                                      .stop = on_stop};
    s->engine->dag.alone = &s->alone;
    rc = trp_sim_dag_read(s, err);
    uint32_t n = 0;
    const struct trp_sim_executor *x = trp_sim_executors(s->c, &n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = add_executor(s, &x[i], 0, err);
    return rc;
}

static void close_layer(void *state)
{
    struct trp_sim_dag *s = state;
    trp_engine_free(s->engine);
    trp_sim_names_free(&s->names);
    trp_sim_names_free(&s->executors);
    trp_sim_names_free(&s->labels);
    free(s->jobs);
    free(s->stages);
}

/* ---- what the engine decided ---- */

/* Stages may be gone when their end is read: whose they are is noted before. */
static int note_stages(struct trp_sim_dag *s, trp_error *err)
{
    if (!TRP_ARRAY_RESERVE(s->stages, s->stages_cap, s->engine->nstages))
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (; s->nstages < s->engine->nstages; s->nstages++) {
        trp_sim_more(s->c);
        const struct trp_stage *stage = s->engine->stages[s->nstages];
        s->stages[s->nstages] = stage ? s->by_id[stage->dataset] : TRP_NONE;
    }
    return 0;
}

static void tell_job(struct trp_sim_dag *s, const struct trp_action *a)
{
    struct trp_sim_job *j = &s->jobs[a->job_ended.job.n];
    j->over = true;
    j->succeeded = a->job_ended.outcome == TRP_OUTCOME_SUCCEEDED;
    if (*a->job_ended.text)
        trp_sim_say(s->c, "%s", a->job_ended.text);
}

static void tell_stage(struct trp_sim_dag *s, const struct trp_action *a)
{
    uint32_t stage = a->stage_ended.stage.n;
    if (a->stage_ended.outcome == TRP_OUTCOME_SUCCEEDED && stage < s->nstages &&
        s->stages[stage] != TRP_NONE)
        trp_sim_tell(s->c, "finished_stages",
                     json_string(s->datasets[s->stages[stage]].name));
}

static int tell_actions(struct trp_sim_dag *s, trp_error *err)
{
    const struct trp_action *a;
    int rc = note_stages(s, err);
    while ((a = trp_engine_next(s->engine))) {
        if (a->kind == TRP_ACTION_JOB_ENDED)
            tell_job(s, a);
        else if (a->kind == TRP_ACTION_STAGE_ENDED)
            tell_stage(s, a);
    }
    return rc;
}

/* ---- names ---- */

int trp_sim_dag_dataset(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                        const char *name)
{
    int n = trp_sim_names_find(&s->names, name);
    return n >= 0 ? n
                  : trp_sim_refuse(s->c, at->mark, "no dataset \"%s\"",
                                   trp_show(name).text);
}

int trp_sim_dag_executor(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                         const char *name)
{
    int n = trp_sim_names_find(&s->executors, name);
    if (n >= 0 && trp_dag_executor(s->engine, (uint32_t)n))
        return n;
    return trp_sim_refuse(s->c, at->mark, "no executor \"%s\"", trp_show(name).text);
}

int trp_sim_dag_stage(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                      const char *name, int64_t attempt, struct trp_stage **ret)
{
    int n = trp_sim_dag_dataset(s, at, name);
    if (n < 0)
        return n;
    *ret = NULL;
    for (uint32_t i = s->engine->nstages; i-- > 0;) {
        struct trp_stage *stage = s->engine->stages[i];
        if (!stage || !stage->uses || stage->dataset != s->datasets[n].id ||
            attempt >= stage->attempts)
            continue;
        bool runs = stage->state == TRP_STAGE_RUNNING && attempt + 1 == stage->attempts;
        if (!*ret || runs)
            *ret = stage;
    }
    if (*ret || attempt < s->datasets[n].attempts)
        return 0;
    return trp_sim_refuse(s->c, at->mark, "stage \"%s\" has no attempt %lld",
                          trp_show(name).text, (long long)attempt);
}

/* ---- steps: jobs ---- */

struct submission {
    const char *job, *dataset;
    const struct trp_yaml_node *partitions;
    int kind;
};

/* A list of partitions, or all of them. *ret is to be freed. */
static int read_partitions(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                           uint32_t **ret, uint32_t *ret_n)
{
    const struct trp_yaml_node *item;
    if (node->kind == TRP_YAML_SCALAR) {
        if (!strcmp(node->text, "all"))
            return 0;
        return trp_sim_wrong(s->c, node->mark,
                             "partitions is \"%s\"; write all, or a list",
                             trp_show(node->text).text);
    }
    if (!trp_sim_list(s->c, node, "partitions", TRP_SIM_TASKS, &item, ret_n))
        return TRP_EINVAL;
    *ret = calloc(*ret_n ? *ret_n : 1, sizeof(**ret));
    if (!*ret)
        return TRP_ENOMEM;
    for (uint32_t i = 0; item; item = item->next) {
        int64_t n;
        if (!trp_sim_whole(s->c, item, "a partition", 0, TRP_SIM_TASKS, &n))
            return TRP_EINVAL;
        (*ret)[i++] = (uint32_t)n;
    }
    return 0;
}

static int submit_read(struct trp_sim_dag *s, const struct submission *v,
                       const struct trp_job_spec *spec, int64_t now_ns, trp_error *err)
{
    if (!TRP_ARRAY_GROW(s->jobs, s->njobs, s->jobs_cap))
        return TRP_ENOMEM;
    const struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {spec}};
    uint32_t before = s->engine->njobs;
    s->jobs[before] = (struct trp_sim_job){.label = v->job};
    int rc = trp_engine_step(s->engine, now_ns, &ev, err);
    if (s->engine->njobs == before)
        return rc;
    s->njobs = s->engine->njobs;
    int n = trp_sim_names_add(&s->labels, v->job);
    return n < 0 ? n : rc;
}

static int submit_job(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                      int64_t now_ns, trp_error *err)
{
    struct submission v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "submit_job", &v, TRP_SIM_MUST(v, job, NAME),
                        TRP_SIM_MUST(v, dataset, NAME),
                        TRP_SIM_MAY(v, partitions, NODE),
                        TRP_SIM_MAY_CHOICE(v, kind, "result|map_only")))
        return TRP_EINVAL;
    if (trp_sim_names_find(&s->labels, v.job) >= 0)
        return trp_sim_refuse(s->c, value->mark, "there was a job \"%s\" already",
                              trp_show(v.job).text);
    int n = trp_sim_dag_dataset(s, value, v.dataset);
    if (n < 0)
        return n;
    trp_sim_work(s->c, (uint64_t)s->names.n * 2 + s->npartitions);
    uint32_t *partitions = NULL;
    struct trp_job_spec spec = {.name = v.job,
                                .is_dataset = true,
                                .dataset = s->datasets[n].id,
                                .map_only = v.kind == 1};
    int rc = v.partitions
                 ? read_partitions(s, v.partitions, &partitions, &spec.npartitions)
                 : 0;
    spec.partitions = partitions;
    spec.some = partitions != NULL;
    if (rc == 0)
        rc = submit_read(s, &v, &spec, now_ns, err);
    free(partitions);
    return rc;
}

static int step_cancel(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                       int64_t now_ns, trp_error *err)
{
    struct {
        const char *job, *stage;
    } v = {0};
    struct trp_event ev = {.kind = TRP_EVENT_CANCEL_JOB};
    if (!TRP_SIM_FIELDS(s->c, value, "cancel", &v, TRP_SIM_MAY(v, job, NAME),
                        TRP_SIM_MAY(v, stage, NAME)))
        return TRP_EINVAL;
    if (!v.job == !v.stage)
        return trp_sim_wrong(s->c, value->mark, "write cancel: {job: …} or {stage: …}");
    if (v.stage) {
        struct trp_stage *stage;
        int rc = trp_sim_dag_stage(s, value, v.stage, -1, &stage);
        if (rc < 0 || !stage)
            return rc;
        ev.kind = TRP_EVENT_CANCEL_STAGE;
        ev.cancel_stage.stage = stage->id;
        return trp_engine_step(s->engine, now_ns, &ev, err);
    }
    int n = trp_sim_names_find(&s->labels, v.job);
    if (n < 0)
        return trp_sim_refuse(s->c, value->mark, "no job \"%s\"", trp_show(v.job).text);
    ev.cancel.job.n = (uint32_t)n;
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

/* ---- steps: executors ---- */

static int step_add(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                    int64_t now_ns, trp_error *err)
{
    struct trp_sim_executor x;
    if (!trp_sim_read_executor(s->c, value, &x))
        return TRP_EINVAL;
    return add_executor(s, &x, now_ns, err);
}

/* One that is there now. */
static int find_live(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                     const char *name)
{
    int n = trp_sim_dag_executor(s, at, name);
    if (n < 0 || s->engine->executors[n])
        return n;
    return trp_sim_refuse(s->c, at->mark, "executor \"%s\" is lost already",
                          trp_show(name).text);
}

static int step_lose(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                     int64_t now_ns, trp_error *err)
{
    struct trp_event ev;
    const char *name;
    if (!trp_sim_read_lose(s->c, value, true, &name, &ev))
        return TRP_EINVAL;
    int n = find_live(s, value, name);
    if (n < 0)
        return n;
    ev.lost.executor.n = (uint32_t)n;
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

/* EXECUTOR, or {executor: EXECUTOR, host: true}: its whole host goes. */
static int step_decommission(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                             int64_t now_ns, trp_error *err)
{
    struct decommission {
        const char *executor;
        bool host;
    } v = {0};
    bool whole = value->kind == TRP_YAML_MAPPING;
    if (whole &&
        !TRP_SIM_FIELDS(s->c, value, "decommission", &v,
                        TRP_SIM_MUST(v, executor, NAME), TRP_SIM_MAY(v, host, BOOL)))
        return TRP_EINVAL;
    if (!whole && !(v.executor = trp_sim_name(s->c, value, "decommission")))
        return TRP_EINVAL;
    int n = find_live(s, value, v.executor);
    if (n < 0)
        return n;
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
        .decommissioned = {{(uint32_t)n}, v.host}
    };
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

static int cache(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                 int64_t now_ns, trp_error *err)
{
    struct cache {
        const char *dataset, *executor;
        int64_t partition;
    } v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "cache", &v, TRP_SIM_MUST(v, dataset, NAME),
                        TRP_SIM_MUST(v, partition, WHOLE),
                        TRP_SIM_MUST(v, executor, NAME)))
        return TRP_EINVAL;
    int d = trp_sim_dag_dataset(s, value, v.dataset);
    int x = d < 0 ? d : find_live(s, value, v.executor);
    if (x < 0)
        return x;
    const struct trp_dataset_spec *spec = &s->datasets[d].spec;
    if (!spec->cached || v.partition >= spec->partitions)
        return trp_sim_refuse(s->c, value->mark,
                              "dataset \"%s\" has no partition %lld to be cached",
                              trp_show(v.dataset).text, (long long)v.partition);
    const struct trp_event ev = {
        .kind = TRP_EVENT_CACHED,
        .cached = {s->datasets[d].id, (uint32_t)v.partition, {(uint32_t)x}, false},
    };
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

/* ---- the layer ---- */

static int act(struct trp_sim_dag *s, const char *action,
               const struct trp_yaml_node *value, int64_t now_ns, trp_error *err)
{
    if (!strcmp(action, "submit_job"))
        return submit_job(s, value, now_ns, err);
    if (!strcmp(action, "cancel"))
        return step_cancel(s, value, now_ns, err);
    if (!strcmp(action, "add"))
        return step_add(s, value, now_ns, err);
    if (!strcmp(action, "lose"))
        return step_lose(s, value, now_ns, err);
    if (!strcmp(action, "decommission"))
        return step_decommission(s, value, now_ns, err);
    if (!strcmp(action, "cache"))
        return cache(s, value, now_ns, err);
    if (!strcmp(action, "wait"))
        return 0;
    return trp_sim_dag_task(s, action, value);
}

static int fire(void *state, int64_t now_ns, trp_error *err)
{
    struct trp_sim_dag *s = state;
    const struct trp_event ev = {.kind = TRP_EVENT_TIME};
    int rc = trp_engine_step(s->engine, now_ns, &ev, err);
    return rc < 0 ? rc : tell_actions(s, err);
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    struct trp_sim_dag *s = state;
    int rc = fire(s, now_ns, err); /* the engine's time is that of the step */
    if (rc == 0)
        rc = act(s, action, value, now_ns, err);
    trp_engine_settle(s->engine);
    int told = tell_actions(s, err);
    if (rc == TRP_ENOMEM)
        trp_error_set(err, rc, "out of memory");
    return rc < 0 ? rc : told;
}

static int64_t next_timer(void *state)
{
    const struct trp_sim_dag *s = state;
    return trp_engine_next_timer(s->engine);
}

const struct trp_sim_layer trp_sim_layer_dag = {
    .names = "dag",
    .keys = "datasets executors racks",
    .actions =
        "submit_job done fail set_failed resubmitted lose add decommission cancel "
        "cache wait",
    .happened = "submitted finished_stages cancelled",
    .states = "waiting running failed_stages job missing outputs parents attempts",
    .ordered = "",
    .whole = "",
    .size = sizeof(struct trp_sim_dag),
    .open = open_layer,
    .close = close_layer,
    .step = step,
    .next_timer = next_timer,
    .fire = fire,
    .state = trp_sim_dag_state,
};
