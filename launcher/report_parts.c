/* `troupe report --json`: what a start of a run was made of, for each stage and besides. */
#include "report.h"

static json_t *ms_or_null(int64_t ms)
{
    return ms ? json_integer(ms) : json_null();
}

static void put_counts(json_t *o, const struct trp_run_counts *c)
{
    json_object_set_new(o, "succeeded", json_integer((json_int_t)c->succeeded));
    json_object_set_new(o, "failed", json_integer((json_int_t)c->failed));
    json_object_set_new(o, "killed", json_integer((json_int_t)c->killed));
    json_object_set_new(o, "summarised", json_integer((json_int_t)c->summarised));
    json_object_set_new(o, "task_ms", json_integer(c->task_ms));
    for (int i = 0; i < TRP_RUN_FLOWS; i++)
        json_object_set_new(o, trp_run_flow_name(i), json_integer(c->flow[i]));
}

static json_t *try_json(const struct trp_run_try *t)
{
    json_t *o = json_pack(
        "{s:I, s:I, s:o, s:o, s:s?, s:s?, s:o}", "attempt", (json_int_t)t->key.attempt,
        "tasks", (json_int_t)t->ntasks, "submitted", ms_or_null(t->submitted), "ended",
        ms_or_null(t->ended), "reason", t->reason, "pool", t->pool, "accumulated",
        t->accumulated ? json_incref(t->accumulated) : json_array());
    put_counts(o, &t->counts);
    return o;
}

json_t *trp_report_tries(const struct trp_run_part *p, uint32_t stage)
{
    json_t *list = json_array();
    for (const struct trp_run_try *t = p->tries; t; t = t->hh.next)
        if (t->key.stage == stage)
            json_array_append_new(list, try_json(t));
    return list;
}

static json_t *executor(const struct trp_run_executor *x)
{
    json_t *o = json_pack(
        "{s:I, s:s?, s:I, s:I, s:o, s:o, s:s?, s:O}", "id", (json_int_t)x->id, "host",
        x->host, "profile", (json_int_t)x->profile, "cores", (json_int_t)x->cores,
        "added", ms_or_null(x->added), "removed", ms_or_null(x->removed), "reason",
        x->reason, "resources", x->resources);
    put_counts(o, &x->counts);
    return o;
}

static json_t *action(const struct trp_run_action *a)
{
    json_t *stages = json_array();
    for (uint32_t i = 0; i < a->nstages; i++)
        json_array_append_new(stages, json_integer(a->stages[i]));
    return json_pack("{s:I, s:s?, s:s?, s:o, s:o, s:s?, s:o}", "id", (json_int_t)a->id,
                     "name", a->name, "pool", a->pool, "submitted",
                     ms_or_null(a->submitted), "ended", ms_or_null(a->ended), "outcome",
                     a->outcome, "stages", stages);
}

void trp_report_put_parts(json_t *start, const struct trp_run_part *p)
{
    json_t *actions = json_array(), *executors = json_array();
    for (uint32_t i = 0; i < p->nactions; i++)
        json_array_append_new(actions, action(&p->actions[i]));
    for (const struct trp_run_executor *x = p->executors; x; x = x->hh.next)
        json_array_append_new(executors, executor(x));
    json_object_set_new(start, "app_id", json_pack("s?", p->app_id));
    json_object_set_new(start, "actions", actions);
    json_object_set_new(start, "executors", executors);
    json_object_set(start, "profiles", p->profiles);
}
