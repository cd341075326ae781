/*
 * The datasets of a case: read in the file's order, then added to the engine parents
 * first, with a stack of their own for what is being added.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "sim/scenario/layer_dag.h"

struct declared {
    int64_t partitions;
    const struct trp_yaml_node *parents, *profile, *prefer;
    bool cached, barrier, indeterminate;
};

/* ---- one dataset ---- */

static int read_parent(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                       struct trp_dataset_parent *ret)
{
    struct {
        const char *narrow, *shuffle;
    } v = {0};
    if (!TRP_SIM_FIELDS(s->c, node, "a parent", &v, TRP_SIM_MAY(v, narrow, NAME),
                        TRP_SIM_MAY(v, shuffle, NAME)))
        return TRP_EINVAL;
    if (!v.narrow == !v.shuffle)
        return trp_sim_wrong(s->c, node->mark,
                             "a parent is {narrow: DATASET} or {shuffle: DATASET}");
    const char *name = v.narrow ? v.narrow : v.shuffle;
    int n = trp_sim_names_find(&s->names, name);
    if (n < 0)
        return trp_sim_refuse(s->c, node->mark, "no dataset \"%s\"",
                              trp_show(name).text);
    *ret = (struct trp_dataset_parent){.dataset = (uint32_t)n, .shuffle = v.shuffle};
    return 0;
}

static int read_parents(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                        struct trp_sim_dataset *d)
{
    const struct trp_yaml_node *item;
    uint32_t n, i = 0;
    if (!node)
        return 0;
    if (!trp_sim_list(s->c, node, "parents", TRP_SIM_ENTRIES, &item, &n))
        return TRP_EINVAL;
    d->parents = trp_conf_arena_alloc(trp_sim_keep(s->c), n, sizeof(*d->parents));
    if (!d->parents)
        return TRP_ENOMEM;
    for (; item; item = item->next) {
        int rc = read_parent(s, item, &d->parents[i++]);
        if (rc < 0)
            return rc;
    }
    d->spec.nparents = n;
    return 0;
}

/* [[h1], [h2, h3], …]: hosts of each partition; partitions behind the list have none.
 */
static int read_prefer(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                       struct trp_sim_dataset *d)
{
    const struct trp_yaml_node *list, *item;
    uint32_t n, hosts, total = 0, partitions = d->spec.partitions;
    if (!node)
        return 0;
    if (!trp_sim_list(s->c, node, "prefer", TRP_SIM_TASKS, &list, &n))
        return TRP_EINVAL;
    if (n > partitions)
        return trp_sim_refuse(s->c, node->mark, "dataset \"%s\" has %u partitions",
                              trp_show(d->name).text, partitions);
    for (item = list; item; item = item->next) {
        const struct trp_yaml_node *first;
        if (!trp_sim_list(s->c, item, "the hosts of a partition", TRP_SIM_ENTRIES,
                          &first, &hosts))
            return TRP_EINVAL;
        total += hosts;
        if (total > TRP_SIM_TASKS)
            return trp_sim_refuse(s->c, item->mark, "more than %d preferences",
                                  TRP_SIM_TASKS);
    }
    struct trp_dataset_place *places =
        trp_conf_arena_alloc(trp_sim_keep(s->c), total, sizeof(*places));
    if (!places)
        return TRP_ENOMEM;
    d->spec.prefer = places;
    uint32_t partition = 0;
    for (item = list; item; item = item->next, partition++)
        for (const struct trp_yaml_node *h = item->first; h; h = h->next, places++) {
            places->partition = partition;
            if (!(places->host = trp_sim_name(s->c, h, "a host")))
                return TRP_EINVAL;
        }
    d->spec.nprefer = total;
    return 0;
}

static int read_dataset(struct trp_sim_dag *s, const struct trp_yaml_node *node,
                        struct trp_sim_dataset *d)
{
    struct declared v = {0};
    if (!TRP_SIM_FIELDS(s->c, node, "a dataset", &v, TRP_SIM_MUST(v, partitions, WHOLE),
                        TRP_SIM_MAY(v, parents, NODE), TRP_SIM_MAY(v, profile, NODE),
                        TRP_SIM_MAY(v, prefer, NODE), TRP_SIM_MAY(v, cached, BOOL),
                        TRP_SIM_MAY(v, barrier, BOOL),
                        TRP_SIM_MAY(v, indeterminate, BOOL)))
        return TRP_EINVAL;
    s->npartitions += (uint64_t)v.partitions;
    if (s->npartitions > TRP_SIM_TASKS)
        return trp_sim_refuse(s->c, node->mark, "more than %d partitions in a case",
                              TRP_SIM_TASKS);
    d->spec = (struct trp_dataset_spec){
        .name = d->name,
        .partitions = (uint32_t)v.partitions,
        .has_profile = v.profile != NULL,
        .cached = v.cached,
        .barrier = v.barrier,
        .indeterminate = v.indeterminate,
    };
    if (v.profile && !trp_sim_read_profile(s->c, v.profile, &d->spec.profile))
        return TRP_EINVAL;
    int rc = read_parents(s, v.parents, d);
    return rc < 0 ? rc : read_prefer(s, v.prefer, d);
}

/* ---- all, parents first ---- */

static int add_dataset(struct trp_sim_dag *s, uint32_t n, trp_error *err)
{
    struct trp_sim_dataset *d = &s->datasets[n];
    for (uint32_t i = 0; i < d->spec.nparents; i++)
        d->parents[i].dataset = s->datasets[d->parents[i].dataset].id;
    d->spec.parents = d->parents;
    d->id = s->engine->dag.graph.n;
    s->by_id[d->id] = n;
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&d->spec}};
    return trp_engine_step(s->engine, 0, &ev, err);
}

/* `next`: how many parents of each were looked at; what is on the stack and met again
 * is its own ancestor. */
static int add_behind(struct trp_sim_dag *s, uint32_t n, struct trp_stack *stack,
                      uint32_t *next, trp_error *err)
{
    if (!trp_stack_push(stack, n))
        return TRP_ENOMEM;
    next[n] = 1;
    while (stack->n) {
        uint32_t at = stack->v[stack->n - 1];
        const struct trp_sim_dataset *d = &s->datasets[at];
        if (next[at] > d->spec.nparents) {
            int rc = add_dataset(s, at, err);
            if (rc < 0)
                return rc;
            stack->n--;
            continue;
        }
        uint32_t parent = d->parents[next[at]++ - 1].dataset;
        if (s->datasets[parent].id != TRP_NONE)
            continue;
        if (next[parent])
            return trp_sim_refuse(s->c, d->mark, "dataset \"%s\" is its own ancestor",
                                  trp_show(d->name).text);
        next[parent] = 1;
        if (!trp_stack_push(stack, parent))
            return TRP_ENOMEM;
    }
    return 0;
}

static int add_all(struct trp_sim_dag *s, trp_error *err)
{
    struct trp_stack stack = {0};
    uint32_t *next = calloc(s->names.n ? s->names.n : 1, sizeof(*next));
    int rc = next ? 0 : TRP_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < s->names.n; i++)
        if (s->datasets[i].id == TRP_NONE)
            rc = add_behind(s, i, &stack, next, err);
    free(stack.v);
    free(next);
    return rc;
}

int trp_sim_dag_read(struct trp_sim_dag *s, trp_error *err)
{
    const struct trp_yaml_node *node = trp_sim_top(s->c, "datasets"), *first;
    struct trp_conf_arena *keep = trp_sim_keep(s->c);
    uint32_t n;
    if (!node)
        return 0;
    if (!trp_sim_map(s->c, node, "datasets", TRP_SIM_ENTRIES, &first, &n))
        return TRP_EINVAL;
    s->datasets = trp_conf_arena_alloc(keep, n, sizeof(*s->datasets));
    s->by_id = trp_conf_arena_alloc(keep, n, sizeof(*s->by_id));
    int rc = s->datasets && s->by_id ? 0 : TRP_ENOMEM;
    for (const struct trp_yaml_node *k = first; rc == 0 && k; k = k->next->next) {
        rc = trp_sim_names_add(&s->names, k->text);
        if (rc < 0)
            break;
        s->datasets[rc] =
            (struct trp_sim_dataset){.name = k->text, .mark = k->mark, .id = TRP_NONE};
        rc = 0;
    }
    uint32_t i = 0;
    for (const struct trp_yaml_node *k = first; rc == 0 && k; k = k->next->next)
        rc = read_dataset(s, k->next, &s->datasets[i++]);
    if (rc == 0)
        rc = add_all(s, err);
    return rc == TRP_ENOMEM ? trp_error_set(err, rc, "out of memory") : rc;
}
