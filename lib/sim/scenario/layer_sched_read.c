/*
 * Layers `sched` and `health`: reading `task_sets` and `pools`.
 */
#include "sim/scenario/layer_sched.h"

#include <string.h>

#include "conf/wording.h"

/* ---- pools ---- */

int trp_sched_read_pools(struct trp_sched *s)
{
    const struct trp_yaml_node *node = trp_sim_top(s->c, "pools"), *key;
    uint32_t n;
    if (!node)
        return 0;
    if (!trp_sim_map(s->c, node, "pools", TRP_SIM_ENTRIES, &key, &n))
        return TRP_EINVAL;
    s->pools = trp_conf_arena_alloc(trp_sim_keep(s->c), n, sizeof(*s->pools));
    if (!s->pools)
        return TRP_ENOMEM;
    for (; key; key = key->next->next) {
        struct trp_pool_spec *p = &s->pools[s->npools++];
        p->name = trp_sim_name(s->c, key, "a pool");
        if (!p->name ||
            !TRP_SIM_FIELDS(s->c, key->next, "a pool", p, TRP_SIM_MAY(*p, mode, TEXT),
                            TRP_SIM_MAY(*p, weight, TEXT),
                            TRP_SIM_MAY(*p, min_share, TEXT),
                            TRP_SIM_MAY(*p, parent, NAME)))
            return TRP_EINVAL;
    }
    return 0;
}

/* ---- task sets ---- */

/* "h1", or "h1/e1". */
static bool read_place(struct trp_sched *s, const struct trp_yaml_node *node,
                       struct trp_place *ret)
{
    const char *text = trp_sim_name(s->c, node, "a preferred place");
    const char *slash = text ? strchr(text, '/') : NULL;
    if (!text)
        return false;
    *ret = (struct trp_place){.host = text, .executor = TRP_NONE};
    if (slash) {
        ret->host =
            trp_conf_arena_text(trp_sim_keep(s->c), text, (size_t)(slash - text));
        ret->executor = trp_sim_executor_number(s->engine, &s->executors, slash + 1);
        if (slash == text || !slash[1]) {
            trp_sim_wrong(s->c, node->mark,
                          "\"%s\" is no place; write HOST or HOST/EXECUTOR",
                          trp_show(text).text);
            return false;
        }
        if (!ret->host || ret->executor == TRP_NONE)
            return false;
    }
    return true;
}

static bool count_places(struct trp_sched *s, const struct trp_yaml_node *tasks,
                         uint32_t *ret_n)
{
    *ret_n = 0;
    for (const struct trp_yaml_node *t = tasks; t; t = t->next) {
        const struct trp_yaml_node *key;
        uint32_t n;
        if (!trp_sim_map(s->c, t, "a task", 1, &key, &n))
            return false;
        if (key && strcmp(key->text, "prefer") != 0) {
            trp_sim_wrong(s->c, key->mark,
                          "unknown key \"%s\" in a task; write {prefer: […]} or {}",
                          trp_show(key->text).text);
            return false;
        }
        const struct trp_yaml_node *place;
        if (key &&
            !trp_sim_list(s->c, key->next, "prefer", TRP_SIM_ENTRIES, &place, &n))
            return false;
        *ret_n += key ? n : 0;
    }
    return true;
}

static bool read_task_list(struct trp_sched *s, const struct trp_yaml_node *node,
                           struct trp_sched_set *set)
{
    const struct trp_yaml_node *first;
    uint32_t places, i = 0, at = 0;
    if (!trp_sim_list(s->c, node, "tasks", TRP_SIM_TASKS, &first, &set->ntasks) ||
        !count_places(s, first, &places))
        return false;
    if (places > TRP_SIM_TASKS) {
        trp_sim_refuse(s->c, node->mark, "more than %d preferences", TRP_SIM_TASKS);
        return false;
    }
    set->first =
        trp_conf_arena_alloc(trp_sim_keep(s->c), set->ntasks + 1, sizeof(*set->first));
    set->places =
        trp_conf_arena_alloc(trp_sim_keep(s->c), places, sizeof(*set->places));
    if (!set->first || !set->places)
        return false;
    for (const struct trp_yaml_node *t = first; t; t = t->next) {
        const struct trp_yaml_node *p = t->first ? t->first->next->first : NULL;
        for (; p; p = p->next)
            if (!read_place(s, p, &set->places[at++]))
                return false;
        set->first[++i] = at;
    }
    return true;
}

static bool read_tasks(struct trp_sched *s, const struct trp_yaml_node *node,
                       struct trp_sched_set *set)
{
    int64_t n = 0;
    bool is_list = node->kind == TRP_YAML_LIST;
    if (is_list && !read_task_list(s, node, set))
        return false;
    if (!is_list) {
        if (!trp_sim_whole(s->c, node, "tasks", 0, TRP_SIM_TASKS, &n))
            return false;
        set->ntasks = (uint32_t)n;
    }
    s->ntasks += set->ntasks;
    if (s->ntasks <= TRP_SIM_TASKS)
        return true;
    trp_sim_refuse(s->c, node->mark, "more than %d tasks in a case", TRP_SIM_TASKS);
    return false;
}

struct declared {
    const char *id, *pool;
    int64_t stage, attempt, job;
    const struct trp_yaml_node *profile, *tasks;
    bool barrier;
    int kind;
};

static int read_set(struct trp_sched *s, const struct trp_yaml_node *node,
                    struct trp_sched_set *set)
{
    struct declared v = {0};
    if (!TRP_SIM_FIELDS(s->c, node, "a task set", &v, TRP_SIM_MUST(v, id, NAME),
                        TRP_SIM_MAY(v, stage, WHOLE), TRP_SIM_MAY(v, attempt, WHOLE),
                        TRP_SIM_MAY(v, job, WHOLE), TRP_SIM_MAY(v, profile, NODE),
                        TRP_SIM_MAY(v, pool, NAME), TRP_SIM_MAY(v, barrier, BOOL),
                        TRP_SIM_MAY_CHOICE(v, kind, "map|result"),
                        TRP_SIM_MUST(v, tasks, NODE)) ||
        !trp_sim_read_profile(s->c, v.profile, &set->profile) ||
        !read_tasks(s, v.tasks, set))
        return TRP_EINVAL;
    set->id = v.id;
    set->pool = v.pool;
    set->stage = v.stage;
    set->attempt = v.attempt;
    set->job = v.job;
    set->barrier = v.barrier;
    set->map = v.kind == 0;
    set->mark = node->mark;
    int n = trp_sim_names_add(&s->names, v.id);
    if (n == TRP_EEXIST)
        return trp_sim_wrong(s->c, node->mark, "two task sets \"%s\"",
                             trp_show(v.id).text);
    return n < 0 ? n : 0;
}

int trp_sched_read_sets(struct trp_sched *s, trp_error *err)
{
    const struct trp_yaml_node *node = trp_sim_top(s->c, "task_sets"), *item;
    uint32_t n;
    if (!node)
        return 0;
    if (!trp_sim_list(s->c, node, "task_sets", TRP_SIM_ENTRIES, &item, &n))
        return TRP_EINVAL;
    s->sets = trp_conf_arena_alloc(trp_sim_keep(s->c), n, sizeof(*s->sets));
    if (!s->sets)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (; item; item = item->next) {
        int rc = read_set(s, item, &s->sets[s->nsets++]);
        if (rc < 0)
            return rc == TRP_ENOMEM ? trp_error_set(err, rc, "out of memory") : rc;
    }
    return 0;
}
