/*
 * Layers `sched` and `health`: how things stand (levels, exclusions, free resources).
 */
#include <string.h>

#include "sim/scenario/layer_sched.h"

static json_t *levels(const struct trp_sched *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->nsets; i++) {
        const struct trp_task_set *set = s->sets[i].set;
        json_t *list = json_array();
        for (uint8_t k = 0; set && k < set->nlevels; k++)
            json_array_append_new(list, json_string(trp_level_name(set->levels[k])));
        json_object_set_new(all, s->sets[i].id, list);
    }
    return all;
}

static json_t *unschedulable(const struct trp_sched *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->nsets; i++)
        if (s->sets[i].set && s->sets[i].set->abort_at != INT64_MAX)
            json_array_append_new(list, json_string(s->sets[i].id));
    return list;
}

static json_t *slots(const struct trp_sched *s)
{
    trp_profiles *profiles = trp_sim_profiles(s->c);
    json_t *all = json_object();
    for (uint32_t i = 0; i < trp_profiles_count(profiles); i++) {
        trp_profile_id id = {i};
        json_object_set_new(all, trp_profiles_get(profiles, id)->name,
                            json_integer((json_int_t)trp_barrier_slots(s->engine, id)));
    }
    return all;
}

/* {cores: 1, gpu: {"0": 0.5}} */
static json_t *free_of(const struct trp_executor *x)
{
    json_t *all = json_object();
    json_object_set_new(all, "cores", json_integer(x->cores_free));
    for (uint32_t r = 0; r < trp_ledger_resources(x->ledger); r++) {
        json_t *left = json_object();
        for (uint32_t i = 0; i < trp_ledger_addresses(x->ledger, r); i++)
            json_object_set_new(left, trp_ledger_address(x->ledger, r, i),
                                trp_sim_json_amount(trp_ledger_left(x->ledger, r, i)));
        json_object_set_new(all, trp_ledger_resource_name(x->ledger, r), left);
    }
    return all;
}

static json_t *free_resources(const struct trp_sched *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->norder; i++) {
        const struct trp_executor *x = s->engine->executors[s->order[i]];
        json_object_set_new(all, s->executors.v[s->order[i]], free_of(x));
    }
    return all;
}

/* ---- exclusions ---- */

static json_t *excluded_for(const struct trp_sched *s, const struct trp_task_set *set)
{
    json_t *executors = json_array(), *hosts = json_array(), *tasks = json_array();
    const void *cursor = NULL;
    struct trp_exclusion x;
    while (set && trp_health_each(set->health, &cursor, &x)) {
        const char *name = x.is_node ? s->engine->hosts.hosts[x.node].name
                                     : s->executors.v[x.executor];
        if (x.task != TRP_NONE)
            json_array_append_new(tasks,
                                  json_pack("{s:i, s:s}", "task", (int)x.task,
                                            x.is_node ? "host" : "executor", name));
        else
            json_array_append_new(x.is_node ? hosts : executors, json_string(name));
    }
    return json_pack("{s:o, s:o, s:o}", "executors", executors, "hosts", hosts, "tasks",
                     tasks);
}

static json_t *excluded(const struct trp_sched *s)
{
    json_t *executors = json_array(), *hosts = json_array(), *sets = json_object();
    const void *cursor = NULL;
    uint32_t n;
    while (s->engine->tracker &&
           trp_health_each_executor(s->engine->tracker, &cursor, &n))
        json_array_append_new(executors, json_string(s->executors.v[n]));
    cursor = NULL;
    while (s->engine->tracker && trp_health_each_node(s->engine->tracker, &cursor, &n))
        json_array_append_new(hosts, json_string(s->engine->hosts.hosts[n].name));
    for (uint32_t i = 0; i < s->nsets; i++)
        json_object_set_new(sets, s->sets[i].id, excluded_for(s, s->sets[i].set));
    return json_pack("{s:o, s:o, s:o}", "executors", executors, "hosts", hosts, "for",
                     sets);
}

json_t *trp_sched_state(void *state, const char *key,
                        const struct trp_yaml_node *wanted)
{
    const struct trp_sched *s = state;
    (void)wanted;
    if (!strcmp(key, "levels"))
        return levels(s);
    if (!strcmp(key, "unschedulable"))
        return unschedulable(s);
    if (!strcmp(key, "slots"))
        return slots(s);
    if (!strcmp(key, "free"))
        return free_resources(s);
    return excluded(s);
}
