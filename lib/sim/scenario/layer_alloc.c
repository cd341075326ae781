/*
 * Layer `alloc`: how many executors each profile should have, and which may go
 * (semantics, sections 16 and 17). Targets and idle monitor are the engine's own; what
 * stands between them in a run (alloc/wanted.c: requests, executors of other profiles)
 * is left out, so every request is accepted.
 */
#include "sim/scenario/alloc_state.h"

/* ---- start and end ---- */

static void close_layer(void *state)
{
    struct alloc *s = state;
    for (uint32_t i = 0; i < s->executor_names.n; i++)
        trp_idle_gone(s->idle, &s->executors[i]->idle);
    alloc_shares_close(s);
    trp_targets_free(s->targets);
    trp_idle_free(s->idle);
    trp_sim_names_free(&s->stage_names);
    trp_sim_names_free(&s->newest);
    trp_sim_names_free(&s->executor_names);
    trp_sim_names_free(&s->shuffles);
    free(s->stages);
    free(s->newest_of);
    free(s->executors);
}

static int make_parts(struct alloc *s, bool tracking)
{
    struct trp_engine_config e;
    trp_options_engine_config(trp_sim_options(s->c), &e);
    struct trp_targets_config t = {.min = e.min_executors,
                                   .max = e.max_executors,
                                   .initial = e.initial_executors,
                                   .ratio = e.allocation_ratio,
                                   .backlog_ns = e.backlog_timeout_ns,
                                   .sustained_ns = e.sustained_timeout_ns};
    struct trp_idle_config i = {.plain_ns = e.idle_timeout_ns,
                                .cached_ns = e.cached_timeout_ns,
                                .shuffle_ns = e.shuffle_timeout_ns,
                                .tracking = tracking};
    trp_caps_init(&s->caps, &e.caps, e.alloc_max_executors);
    int code = trp_targets_new(&t, &s->targets);
    if (code == 0)
        code = trp_idle_new(&i, &s->idle);
    for (uint32_t p = 0; code == 0 && p < trp_profiles_count(trp_sim_profiles(s->c));
         p++) {
        const struct trp_resource_profile *profile =
            trp_profiles_get(trp_sim_profiles(s->c), (trp_profile_id){p});
        code = trp_targets_profile(s->targets, p, profile->slots, p == 0);
    }
    if (code == 0)
        code = alloc_shares_open(s);
    if (code == 0)
        alloc_shares_find(s);
    return code;
}

static int open_layer(void *state, trp_error *err)
{
    struct alloc *s = state;
    const trp_options *o = trp_sim_options(s->c);
    bool tracking = trp_options_bool(o, "dynamicAllocation.shuffleTracking.enabled");
    bool service = trp_options_bool(o, "shuffle.service.enabled");
    uint32_t n;
    const struct trp_sim_executor *v = trp_sim_executors(s->c, &n);
    if (trp_sim_dynamic(s->c) && !trp_options_shuffle_safe(o))
        return trp_error_set(err, TRP_EINVAL,
                             "dynamicAllocation.enabled loses shuffle data without "
                             "dynamicAllocation.shuffleTracking.enabled, "
                             "shuffle.service.enabled, or decommission.enabled with "
                             "storage.decommission.shuffleBlocks.enabled");
    int code = make_parts(s, tracking && !service);
    for (uint32_t i = 0; code == 0 && i < n; i++)
        code = alloc_add_executor(s, &v[i], 0);
    return code < 0 ? trp_error_set(err, code, "out of memory") : 0;
}

/* ---- what is told ---- */

static const char *profile_name(struct alloc *s, uint32_t profile)
{
    return trp_profiles_get(trp_sim_profiles(s->c), (trp_profile_id){profile})->name;
}

static void tell_growth(struct alloc *s)
{
    json_t *all = json_object();
    alloc_shares_find(s);
    for (uint32_t p = 0; p < s->nprofiles; p++)
        json_object_set_new(all, profile_name(s, p), json_integer(s->profiles[p].grew));
    trp_sim_tell(s->c, "grew", all);
}

/* ---- evaluation ---- */

static int do_tick(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    struct trp_idle_item *const *list;
    if (value->kind != TRP_YAML_SCALAR || strcmp(value->text, "allocation") != 0)
        return trp_sim_wrong(s->c, value->mark, "tick is not \"allocation\"");
    uint32_t n = trp_idle_expired(s->idle, now_ns, &list);
    const char **names = calloc(n + 1, sizeof(*names));
    if (!names)
        return TRP_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        names[i] = s->executor_names.v[list[i]->id];
    qsort(names, n, sizeof(*names), trp_natural_order);
    for (uint32_t i = 0; i < n; i++)
        trp_sim_tell(s->c, "timed_out", json_string(names[i]));
    if (n)
        trp_targets_initialized(s->targets);
    trp_targets_tick(s->targets, now_ns);
    tell_growth(s);
    trp_targets_answer(s->targets, true, now_ns);
    alloc_remove_idle(s, names, n);
    free(names);
    return 0;
}

static int do_add_step(struct alloc *s, const struct trp_yaml_node *value,
                       int64_t now_ns)
{
    trp_profile_id profile;
    if (!trp_sim_read_profile(s->c, value, &profile))
        return TRP_EINVAL;
    trp_targets_step(s->targets, profile.n);
    tell_growth(s);
    trp_targets_answer(s->targets, true, now_ns);
    return 0;
}

static int do_wait(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    (void)s;
    (void)value;
    (void)now_ns;
    return 0;
}

static const struct alloc_action own_actions[] = {
    {"tick",     do_tick    },
    {"add_step", do_add_step},
    {"wait",     do_wait    },
    {NULL,       NULL       },
};

static const struct alloc_action *find_action(const struct alloc_action *list,
                                              const char *name)
{
    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->name ? list : NULL;
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    const struct alloc_action *a = find_action(own_actions, action);
    if (!a)
        a = find_action(alloc_stage_actions, action);
    if (!a)
        a = find_action(alloc_executor_actions, action);
    int code = a->perform(state, value, now_ns);
    return code == TRP_ENOMEM ? trp_error_set(err, code, "out of memory") : code;
}

/* Of all executors whose deadline will come. */
static json_t *idle_deadlines(const struct alloc *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->executor_names.n; i++) {
        int64_t due = trp_idle_deadline(s->idle, &s->executors[i]->idle);
        if (due != INT64_MAX)
            json_object_set_new(all, s->executor_names.v[i], trp_sim_json_time(due));
    }
    return all;
}

static json_t *state(void *layer, const char *key, const struct trp_yaml_node *wanted)
{
    struct alloc *s = layer;
    (void)wanted;
    if (!strcmp(key, "idle_deadline"))
        return idle_deadlines(s);
    json_t *all = json_object();
    for (uint32_t p = 0; p < s->nprofiles; p++) {
        uint32_t n = !strcmp(key, "targets")  ? s->profiles[p].target
                     : !strcmp(key, "to_add") ? trp_targets_to_add(s->targets, p)
                                              : trp_targets_demand(s->targets, p);
        json_object_set_new(all, profile_name(s, p), json_integer(n));
    }
    return all;
}

const struct trp_sim_layer trp_sim_layer_alloc = {
    .names = "alloc",
    .keys = "executors racks",
    .actions = "stage stage_done start finish speculative unschedulable schedulable "
               "add lose tick add_step may_remove cached shuffle_data shuffle_in_use "
               "shuffle_gone wait",
    .happened = "grew removed decommissioned timed_out",
    .states = "targets to_add needed idle_deadline",
    .ordered = "",
    .whole = "",
    .size = sizeof(struct alloc),
    .open = open_layer,
    .close = close_layer,
    .step = step,
    .state = state,
};
