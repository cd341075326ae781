/*
 * Layer `dag`: how things stand, in the words of the format. A stage goes by the name
 * of its dataset.
 */
#include <string.h>

#include "sim/scenario/layer_dag.h"

typedef bool is_so(const struct trp_stage *stage);

static bool is_waiting(const struct trp_stage *stage)
{
    return stage->state == TRP_STAGE_WAITING;
}

static bool is_running(const struct trp_stage *stage)
{
    return stage->state == TRP_STAGE_RUNNING;
}

static bool is_failed(const struct trp_stage *stage)
{
    return stage->failed;
}

static json_t *stages(const struct trp_sim_dag *s, is_so *holds)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->engine->nstages; i++) {
        const struct trp_stage *stage = s->engine->stages[i];
        if (stage && stage->uses && holds(stage))
            json_array_append_new(list, json_string(stage->name));
    }
    return list;
}

static json_t *jobs(const struct trp_sim_dag *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->njobs; i++) {
        const struct trp_sim_job *j = &s->jobs[i];
        const char *text = j->succeeded ? "succeeded" : "failed";
        json_object_set_new(all, j->label, json_string(j->over ? text : "running"));
    }
    return all;
}

/* ---- map outputs ---- */

static json_t *missing_of(const struct trp_sim_dag *s, uint32_t shuffle)
{
    const trp_map_outputs *o = s->engine->dag.outputs;
    json_t *list = json_array();
    for (uint32_t i = 0; i < trp_map_outputs_maps(o, shuffle); i++)
        if (!trp_map_outputs_place(o, shuffle, i, NULL))
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *outputs_of(const struct trp_sim_dag *s, uint32_t shuffle)
{
    const trp_map_outputs *o = s->engine->dag.outputs;
    struct trp_output_place at;
    json_t *all = json_object();
    for (uint32_t i = 0; i < trp_map_outputs_maps(o, shuffle); i++) {
        char map[16];
        if (!trp_map_outputs_place(o, shuffle, i, &at))
            continue;
        snprintf(map, sizeof(map), "%u", i);
        const char *place = at.executor == TRP_NONE
                                ? s->engine->hosts.hosts[at.host].name
                                : s->executors.v[at.executor];
        json_object_set_new(all, map, json_string(place));
    }
    return all;
}

static json_t *each_shuffle(const struct trp_sim_dag *s,
                            json_t *(*of)(const struct trp_sim_dag *s,
                                          uint32_t shuffle))
{
    const struct trp_graph *g = &s->engine->dag.graph;
    json_t *all = json_object();
    for (uint32_t i = 0; i < g->n; i++)
        if (trp_map_outputs_known(s->engine->dag.outputs, g->v[i]->shuffle))
            json_object_set_new(all, g->v[i]->name, of(s, g->v[i]->shuffle));
    return all;
}

/* ---- what a stage is ---- */

/* Of the datasets that are requested: a chain may be long. */
static json_t *parents(struct trp_sim_dag *s, const struct trp_yaml_node *wanted)
{
    struct trp_graph *g = &s->engine->dag.graph;
    const struct trp_yaml_node *key;
    uint32_t n;
    if (!trp_sim_map(s->c, wanted, "parents", TRP_SIM_EXPECTED, &key, &n))
        return NULL;
    json_t *all = json_object();
    for (; key; key = key->next->next) {
        int at = trp_sim_names_find(&s->names, key->text);
        if (at < 0 || !trp_graph_walk(g, s->datasets[at].id, false))
            continue;
        trp_sim_work(s->c, g->chain.n);
        json_t *list = json_array();
        for (uint32_t p = 0; p < g->shuffles.n; p++)
            json_array_append_new(list, json_string(g->v[g->shuffles.v[p]]->name));
        json_object_set_new(all, key->text, list);
    }
    return all;
}

static json_t *attempts(const struct trp_sim_dag *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->names.n; i++)
        json_object_set_new(all, s->datasets[i].name,
                            json_integer(s->datasets[i].attempts));
    return all;
}

static json_t *places(const struct trp_sim_dag *s, const struct trp_preferences *p,
                      uint32_t task)
{
    json_t *list = json_array();
    for (uint32_t i = p->first[task]; i < p->first[task + 1]; i++) {
        char text[2 * TRP_SIM_NAME_MAX + 2];
        const struct trp_place *at = &p->places[i];
        bool cached = at->executor != TRP_NONE;
        snprintf(text, sizeof(text), "%s%s%s", at->host, cached ? "/" : "",
                 cached ? s->executors.v[at->executor] : "");
        json_array_append_new(list, json_string(text));
    }
    return list;
}

json_t *trp_sim_dag_submitted(struct trp_sim_dag *s, const struct trp_stage *stage,
                              const struct trp_set_spec *spec)
{
    json_t *tasks = json_array(), *prefer = json_object();
    for (uint32_t i = 0; i < spec->ntasks; i++) {
        char task[16];
        if (spec->done && spec->done[i])
            continue;
        json_array_append_new(tasks, json_integer(i));
        if (!spec->prefer || spec->prefer->first[i] == spec->prefer->first[i + 1])
            continue;
        snprintf(task, sizeof(task), "%u", i);
        json_object_set_new(prefer, task, places(s, spec->prefer, i));
    }
    const char *profile = trp_profiles_get(s->engine->profiles, stage->profile)->name;
    return json_pack("{s:s, s:i, s:o, s:s, s:o, s:s}", "stage", stage->name, "attempt",
                     (int)spec->attempt, "tasks", tasks, "profile", profile, "prefer",
                     prefer, "job", s->jobs[spec->job].label);
}

json_t *trp_sim_dag_state(void *layer, const char *key,
                          const struct trp_yaml_node *wanted)
{
    struct trp_sim_dag *s = layer;
    if (!strcmp(key, "waiting"))
        return stages(s, is_waiting);
    if (!strcmp(key, "running"))
        return stages(s, is_running);
    if (!strcmp(key, "failed_stages"))
        return stages(s, is_failed);
    if (!strcmp(key, "job"))
        return jobs(s);
    if (!strcmp(key, "missing"))
        return each_shuffle(s, missing_of);
    if (!strcmp(key, "outputs"))
        return each_shuffle(s, outputs_of);
    if (!strcmp(key, "parents"))
        return wanted ? parents(s, wanted) : NULL;
    return attempts(s);
}
