/*
 * Layer `dag`: the steps that say how tasks of a stage ended, in place of a task set.
 */
#include <string.h>

#include "conf/wording.h"
#include "sim/scenario/layer_dag.h"

struct of_task {
    const char *stage, *executor, *reason;
    const struct trp_yaml_node *sizes, *from;
    int64_t attempt, task;
    int status;
};

/* The stage of a step that speaks of a task; *ret NULL: it is gone. */
static int find_task(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                     const struct of_task *v, struct trp_stage **ret)
{
    int rc = trp_sim_dag_stage(s, at, v->stage, v->attempt, ret);
    if (rc < 0 || !*ret || v->task < (*ret)->ntasks)
        return rc;
    return trp_sim_refuse(s->c, at->mark, "stage \"%s\" has no task %lld",
                          trp_show(v->stage).text, (long long)v->task);
}

static int step_done(struct trp_sim_dag *s, const struct trp_yaml_node *value)
{
    struct of_task v = {0};
    struct trp_stage *stage;
    uint64_t *sizes = NULL;
    uint32_t nsizes = 0;
    if (!TRP_SIM_FIELDS(s->c, value, "done", &v, TRP_SIM_MUST(v, stage, NAME),
                        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MUST(v, task, WHOLE),
                        TRP_SIM_MUST(v, executor, NAME), TRP_SIM_MAY(v, sizes, NODE)))
        return TRP_EINVAL;
    int rc = find_task(s, value, &v, &stage);
    int executor = rc < 0 ? rc : trp_sim_dag_executor(s, value, v.executor);
    if (executor < 0)
        return executor;
    if (v.sizes)
        rc = trp_sim_sizes(s->c, v.sizes, &sizes, &nsizes);
    const struct trp_task_end end = {.sizes = sizes, .nsizes = nsizes};
    if (rc == 0 && stage)
        trp_stage_done(s->engine, stage, (uint32_t)v.attempt, (uint32_t)v.task,
                       (uint32_t)executor, &end);
    return rc;
}

/* Where a reader could not have its input. *ret_stage NULL: that stage is gone. */
static int read_from(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                     struct trp_fetch_source *ret, struct trp_stage **ret_stage)
{
    struct {
        const char *stage, *executor;
        const struct trp_yaml_node *map;
    } v = {0};
    int64_t map = -1; /* which of them is not known */
    if (!TRP_SIM_FIELDS(s->c, node, "from", &v, TRP_SIM_MUST(v, stage, NAME),
                        TRP_SIM_MAY(v, map, NODE), TRP_SIM_MAY(v, executor, NAME)) ||
        (v.map && !trp_sim_whole(s->c, v.map, "map", -1, TRP_SIM_TASKS, &map)))
        return TRP_EINVAL;
    int n = trp_sim_dag_dataset(s, node, v.stage);
    if (n < 0)
        return n;
    uint32_t shuffle = s->engine->dag.graph.v[s->datasets[n].id]->shuffle;
    *ret_stage = shuffle < s->engine->dag.nmap_stages
                     ? s->engine->dag.map_stages[shuffle]
                     : NULL;
    *ret = (struct trp_fetch_source){{TRP_NONE}, TRP_NONE, {TRP_NONE}, NULL, NULL, 0};
    if (*ret_stage)
        ret->stage = (*ret_stage)->id;
    if (map >= 0)
        ret->map = (uint32_t)map;
    if (!v.executor || !strcmp(v.executor, "unknown"))
        return 0;
    n = trp_sim_dag_executor(s, node, v.executor);
    if (n >= 0)
        ret->executor.n = (uint32_t)n;
    return n < 0 ? n : 0;
}

static int fetch_failed(struct trp_sim_dag *s, const struct trp_yaml_node *value,
                        const struct of_task *v, struct trp_stage *stage)
{
    struct trp_fetch_source from;
    struct trp_stage *map;
    if (!v->from)
        return trp_sim_wrong(s->c, value->mark,
                             "a task that could not fetch says from where: "
                             "from: {stage: …, map: …, executor: …}");
    int rc = read_from(s, v->from, &from, &map);
    from.text = v->reason;
    if (rc == 0 && stage && map)
        trp_stage_fetch_failed(s->engine, stage, (uint32_t)v->attempt, &from);
    return rc;
}

static int step_fail(struct trp_sim_dag *s, const struct trp_yaml_node *value)
{
    struct of_task v = {0};
    struct trp_stage *stage;
    if (!TRP_SIM_FIELDS(s->c, value, "fail", &v, TRP_SIM_MUST(v, stage, NAME),
                        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MUST(v, task, WHOLE),
                        TRP_SIM_MUST_CHOICE(v, status, "failed|fetch_failed"),
                        TRP_SIM_MAY(v, reason, TEXT), TRP_SIM_MAY(v, from, NODE)))
        return TRP_EINVAL;
    int rc = find_task(s, value, &v, &stage);
    if (rc < 0)
        return rc;
    if (v.status == 1)
        return fetch_failed(s, value, &v, stage);
    if (stage && stage->barrier)
        trp_stage_barrier_failed(s->engine, stage, (uint32_t)v.attempt,
                                 (uint32_t)v.task, v.reason ? v.reason : "it failed");
    return 0;
}

static int step_set_failed(struct trp_sim_dag *s, const struct trp_yaml_node *value)
{
    struct of_task v = {.reason = "a task failed too often"};
    struct trp_stage *stage;
    if (!TRP_SIM_FIELDS(s->c, value, "set_failed", &v, TRP_SIM_MUST(v, stage, NAME),
                        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MAY(v, reason, TEXT)))
        return TRP_EINVAL;
    int rc = trp_sim_dag_stage(s, value, v.stage, v.attempt, &stage);
    if (rc == 0 && stage)
        trp_stage_abort(s->engine, stage, TRP_EFAILED, TRP_NONE, v.reason);
    return rc;
}

static int step_resubmitted(struct trp_sim_dag *s, const struct trp_yaml_node *value)
{
    struct of_task v = {0};
    struct trp_stage *stage;
    if (!TRP_SIM_FIELDS(s->c, value, "resubmitted", &v, TRP_SIM_MUST(v, stage, NAME),
                        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MUST(v, task, WHOLE)))
        return TRP_EINVAL;
    int rc = find_task(s, value, &v, &stage);
    if (rc == 0 && stage)
        trp_stage_resubmitted(s->engine, stage, (uint32_t)v.attempt, (uint32_t)v.task);
    return rc;
}

int trp_sim_dag_task(struct trp_sim_dag *s, const char *action,
                     const struct trp_yaml_node *value)
{
    if (!strcmp(action, "done"))
        return step_done(s, value);
    if (!strcmp(action, "fail"))
        return step_fail(s, value);
    if (!strcmp(action, "set_failed"))
        return step_set_failed(s, value);
    return step_resubmitted(s, value);
}
