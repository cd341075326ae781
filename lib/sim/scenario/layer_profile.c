/*
 * Layer `profile`: profiles on their own (semantics, sections 1 to 3 and 5). Each step
 * asks the profile manager one thing; its answer is what `expect` is compared with.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "sim/scenario/layer.h"

struct profiles {
    trp_sim_case *c;
    trp_profiles *m;
    json_t *answer; /* of the last step; NULL: none */
    trp_profile_id shown;
};

static int open_layer(void *state, trp_error *err)
{
    struct profiles *s = state;
    (void)err;
    s->m = trp_sim_profiles(s->c);
    return 0;
}

static void begin(void *state)
{
    struct profiles *s = state;
    json_decref(s->answer);
    s->answer = NULL;
}

static void close_layer(void *state)
{
    begin(state);
}

/* ---- answers ---- */

static void set_whole(json_t *side, const char *name, int64_t amount)
{
    if (amount >= 0)
        json_object_set_new(side, name, json_integer(amount));
}

/* A profile as it is written, in the words of `expect`. */
static json_t *describe(const struct trp_resource_profile *p)
{
    json_t *executor = json_object(), *task = json_object(), *custom = json_array();
    set_whole(executor, "cores", p->executor.cores);
    set_whole(executor, "memory", p->executor.memory_mib);
    set_whole(executor, "memoryOverhead", p->executor.overhead_mib);
    set_whole(executor, "pyspark.memory", p->executor.pyspark_mib);
    set_whole(executor, "offHeap", p->executor.offheap_mib);
    set_whole(task, "cpus", p->cpus);
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        if (c->on_executor) {
            set_whole(executor, c->name, c->executor);
            json_array_append_new(custom, json_string(c->name));
        }
        if (c->on_task)
            json_object_set_new(task, c->name, trp_sim_json_amount(c->task));
    }
    return json_pack("{s:i, s:s, s:o, s:o, s:o, s:b, s:I}", "id", (int)p->id.n,
                     "profile", p->name, "executor", executor, "task", task,
                     "custom_executor", custom, "task_only", p->task_only,
                     "total_memory", (json_int_t)p->total_mib);
}

static int show(struct profiles *s, trp_profile_id id)
{
    s->shown = id;
    s->answer = describe(trp_profiles_get(s->m, id));
    return 0;
}

/* ---- steps ---- */

static int build(struct profiles *s, const struct trp_yaml_node *value, trp_error *err)
{
    struct {
        const char *name;
        const struct trp_yaml_node *executor, *task;
    } v = {0};
    struct trp_profile_builder b;
    trp_profile_id id;
    if (!TRP_SIM_FIELDS(s->c, value, "build", &v, TRP_SIM_MUST(v, name, NAME),
                        TRP_SIM_MAY(v, executor, NODE), TRP_SIM_MAY(v, task, NODE)))
        return TRP_EINVAL;
    if (!trp_is_name(v.name) || trp_profiles_by_name(s->m, v.name))
        return trp_sim_refuse(s->c, value->mark,
                              "\"%s\" cannot be a new profile's name",
                              trp_show(v.name).text);
    trp_profile_builder_init(&b, v.name);
    if (!trp_sim_read_requests(s->c, v.executor, v.task, &b))
        return TRP_EINVAL;
    int code = trp_profiles_add(s->m, &b, &id, err);
    return code < 0 ? code : show(s, id);
}

static int step_request(struct profiles *s, const struct trp_yaml_node *value)
{
    struct {
        const struct trp_yaml_node *executor, *task;
    } v = {0};
    struct trp_profile_builder b;
    trp_profile_builder_init(&b, "request");
    return TRP_SIM_FIELDS(s->c, value, "request", &v, TRP_SIM_MAY(v, executor, NODE),
                          TRP_SIM_MAY(v, task, NODE)) &&
                   trp_sim_read_requests(s->c, v.executor, v.task, &b)
               ? 0
               : TRP_EINVAL;
}

static int slots_of(struct profiles *s, const struct trp_yaml_node *value)
{
    trp_profile_id id;
    if (!trp_sim_read_profile(s->c, value, &id))
        return TRP_EINVAL;
    const struct trp_resource_profile *p = trp_profiles_get(s->m, id);
    s->answer =
        json_pack("{s:i, s:s}", "slots", (int)p->slots, "limited_by", p->limiting);
    return 0;
}

/* A list of names of profiles; *ret_ids lives as long as the case. */
static int read_profiles(struct profiles *s, const struct trp_yaml_node *value,
                         const char *what, trp_profile_id **ret_ids, uint32_t *ret_n)
{
    const struct trp_yaml_node *item;
    uint32_t n = 0;
    if (!trp_sim_list(s->c, value, what, TRP_SIM_EXPECTED, &item, ret_n))
        return TRP_EINVAL;
    *ret_ids = trp_conf_arena_alloc(trp_sim_keep(s->c), *ret_n, sizeof(**ret_ids));
    if (!*ret_ids)
        return TRP_ENOMEM;
    for (; item; item = item->next) {
        if (!trp_sim_read_profile(s->c, item, &(*ret_ids)[n++]))
            return TRP_EINVAL;
    }
    return 0;
}

static int equal(struct profiles *s, const struct trp_yaml_node *value)
{
    trp_profile_id *v;
    uint32_t n;
    int code = read_profiles(s, value, "equal", &v, &n);
    if (code < 0)
        return code;
    if (n != 2)
        return trp_sim_wrong(s->c, value->mark,
                             "equal compares two profiles; write [p, q]");
    bool same = trp_profile_resources_equal(trp_profiles_get(s->m, v[0]),
                                            trp_profiles_get(s->m, v[1]));
    s->answer = json_pack("{s:b, s:b}", "equal", same && v[0].n == v[1].n,
                          "resources_equal", same);
    return 0;
}

static int step_merge(struct profiles *s, const struct trp_yaml_node *value,
                      bool of_stage, trp_error *err)
{
    trp_profile_id *v, id;
    uint32_t n;
    int code = read_profiles(s, value, of_stage ? "stage_profile" : "merge", &v, &n);
    if (code < 0)
        return code;
    if (n == 0 && !of_stage)
        return trp_sim_wrong(s->c, value->mark, "merge needs profiles; write [p, q]");
    code = of_stage ? trp_profiles_of_stage(s->m, v, n, &id, err)
                    : trp_profiles_merged(s->m, v, n, &id, err);
    return code < 0 ? code : show(s, id);
}

static int supported(struct profiles *s, const struct trp_yaml_node *value,
                     trp_error *err)
{
    trp_profile_id id;
    if (!trp_sim_read_profile(s->c, value, &id))
        return TRP_EINVAL;
    return trp_profiles_supported(s->m, id, err);
}

static int may_run(struct profiles *s, const struct trp_yaml_node *value)
{
    struct {
        const struct trp_yaml_node *task, *executor;
    } v = {0};
    trp_profile_id task, executor;
    if (!TRP_SIM_FIELDS(s->c, value, "may_run", &v, TRP_SIM_MUST(v, task, NODE),
                        TRP_SIM_MUST(v, executor, NODE)) ||
        !trp_sim_read_profile(s->c, v.task, &task) ||
        !trp_sim_read_profile(s->c, v.executor, &executor))
        return TRP_EINVAL;
    s->answer =
        json_pack("{s:b}", "allowed", trp_profiles_may_run(s->m, task, executor));
    return 0;
}

static int perform(struct profiles *s, const char *action,
                   const struct trp_yaml_node *value, trp_error *err)
{
    trp_profile_id id;
    if (!strcmp(action, "build"))
        return build(s, value, err);
    if (!strcmp(action, "request"))
        return step_request(s, value);
    if (!strcmp(action, "slots_of"))
        return slots_of(s, value);
    if (!strcmp(action, "equal"))
        return equal(s, value);
    if (!strcmp(action, "merge") || !strcmp(action, "stage_profile"))
        return step_merge(s, value, *action == 's', err);
    if (!strcmp(action, "supported"))
        return supported(s, value, err);
    if (!strcmp(action, "may_run"))
        return may_run(s, value);
    return trp_sim_read_profile(s->c, value, &id) ? show(s, id) : TRP_EINVAL;
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    struct profiles *s = state;
    (void)now_ns;
    int code = perform(s, action, value, err);
    if (code == 0 && s->answer)
        trp_sim_tell(s->c, action, json_incref(s->answer));
    return code;
}

/* `same_id_as: r`: the name requested where it is another name of the same profile. */
static json_t *same_id_as(struct profiles *s, const struct trp_yaml_node *wanted)
{
    const struct trp_resource_profile *other =
        wanted && wanted->kind == TRP_YAML_SCALAR
            ? trp_profiles_by_name(s->m, wanted->text)
            : NULL;
    if (other && other->id.n == s->shown.n)
        return json_string(other->name);
    return json_string(trp_profiles_get(s->m, s->shown)->name);
}

static json_t *state(void *layer, const char *key, const struct trp_yaml_node *wanted)
{
    struct profiles *s = layer;
    if (!strcmp(key, "same_id_as"))
        return json_object_get(s->answer, "id") ? same_id_as(s, wanted) : NULL;
    return json_incref(json_object_get(s->answer, key));
}

const struct trp_sim_layer trp_sim_layer_profile = {
    .names = "profile",
    .keys = "",
    .actions =
        "build request slots_of equal merge supported may_run stage_profile show",
    .happened = "",
    .states = "id executor task custom_executor task_only total_memory slots "
              "limited_by equal "
              "resources_equal same_id_as allowed profile",
    .ordered = "",
    .whole = "executor task",
    .size = sizeof(struct profiles),
    .open = open_layer,
    .close = close_layer,
    .begin = begin,
    .step = step,
    .state = state,
};
