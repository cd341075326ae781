/*
 * Layer `alloc`: executors, and what they hold. While only tasks were started on one it
 * is known but of no profile: it counts for nothing and never times out.
 */
#include "core/profile/ledger.h"
#include "sim/scenario/alloc_state.h"

int alloc_executor_of(struct alloc *s, const char *name)
{
    int n = trp_sim_names_find(&s->executor_names, name);
    if (n >= 0)
        return n;
    struct executor *x = trp_conf_arena_alloc(trp_sim_keep(s->c), 1, sizeof(*x));
    if (!x || !TRP_ARRAY_GROW(s->executors, s->executor_names.n, s->executors_cap))
        return TRP_ENOMEM;
    s->executors[s->executor_names.n] = x;
    n = trp_sim_names_add(&s->executor_names, name);
    if (n >= 0)
        x->idle.id = (uint32_t)n;
    return n;
}

/* An executor that is there. *ret NULL: it was lost, or never came; then what is told
 * of it is ignored. */
static int find_tracked(struct alloc *s, const struct trp_yaml_node *node,
                        struct executor **ret)
{
    const char *name = trp_sim_name(s->c, node, "executor");
    if (!name)
        return TRP_EINVAL;
    int n = trp_sim_names_find(&s->executor_names, name);
    *ret = n >= 0 && !s->executors[n]->lost ? s->executors[n] : NULL;
    return 0;
}

/* An executor that was named before. */
static struct executor *find_executor(struct alloc *s, const struct trp_yaml_node *node)
{
    const char *name = trp_sim_name(s->c, node, "executor");
    int n = name ? trp_sim_names_find(&s->executor_names, name) : 0;
    if (name && n < 0)
        trp_sim_refuse(s->c, node->mark, "no executor \"%s\"", trp_show(name).text);
    return name && n >= 0 ? s->executors[n] : NULL;
}

/* Do all executors of the profile that are there share one host? */
static void look_at_hosts(struct alloc *s, trp_profile_id profile)
{
    const char *host = NULL;
    bool one = true;
    for (uint32_t i = 0; i < s->executor_names.n && one; i++) {
        const struct executor *x = s->executors[i];
        if (!x->added || x->leaving || x->profile.n != profile.n)
            continue;
        one = !host || !strcmp(host, x->host);
        host = x->host;
    }
    trp_targets_one_host(s->targets, profile.n, one && host);
}

int alloc_add_executor(struct alloc *s, const struct trp_sim_executor *v,
                       int64_t now_ns)
{
    int n = alloc_executor_of(s, v->id);
    if (n < 0)
        return n;
    struct executor *x = s->executors[n];
    x->lost = false;
    int first = trp_idle_added(s->idle, &x->idle, now_ns);
    if (first <= 0)
        return first;
    x->added = true;
    x->profile = v->profile;
    x->host = v->host;
    trp_targets_registered(s->targets, x->profile.n, 1);
    look_at_hosts(s, x->profile);
    return 0;
}

static int do_add(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    struct trp_sim_executor v = {0};
    if (!trp_sim_read_executor(s->c, value, &v))
        return TRP_EINVAL;
    return alloc_add_executor(s, &v, now_ns);
}

static int do_lose(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    (void)now_ns;
    struct {
        const struct trp_yaml_node *executor;
    } v = {0};
    struct executor *x;
    if (!TRP_SIM_FIELDS(s->c, value, "lose", &v, TRP_SIM_MUST(v, executor, NODE)))
        return TRP_EINVAL;
    int code = find_tracked(s, v.executor, &x);
    if (code < 0 || !x)
        return code;
    bool added = x->added, leaving = x->leaving;
    trp_idle_gone(s->idle, &x->idle);
    x->lost = true;
    x->added = x->leaving = false;
    if (!added)
        return 0;
    trp_targets_registered(s->targets, x->profile.n, -1);
    if (leaving)
        trp_targets_leaving(s->targets, x->profile.n, -1);
    look_at_hosts(s, x->profile);
    return 0;
}

void alloc_remove_idle(struct alloc *s, const char **names, uint32_t n)
{
    bool decommission = trp_options_bool(trp_sim_options(s->c), "decommission.enabled");
    trp_sim_work(s->c, (uint64_t)n * 50); /* sorted by name, twice */
    qsort(names, n, sizeof(*names), trp_natural_order);
    for (uint32_t i = 0; i < n; i++) {
        struct executor *x =
            s->executors[trp_sim_names_find(&s->executor_names, names[i])];
        if (!x->added || x->leaving || !trp_targets_spare(s->targets, x->profile.n))
            continue;
        x->leaving = true;
        trp_idle_leaving(s->idle, &x->idle);
        trp_targets_leaving(s->targets, x->profile.n, 1);
        look_at_hosts(s, x->profile);
        trp_sim_tell(s->c, "removed", json_string(names[i]));
        if (decommission)
            trp_sim_tell(s->c, "decommissioned", json_string(names[i]));
    }
}

static int do_may_remove(struct alloc *s, const struct trp_yaml_node *value,
                         int64_t now_ns)
{
    (void)now_ns;
    const struct trp_yaml_node *item;
    uint32_t count, n = 0;
    if (!trp_sim_list(s->c, value, "may_remove", TRP_SIM_ENTRIES, &item, &count))
        return TRP_EINVAL;
    const char **names = calloc(count + 1, sizeof(*names));
    if (!names)
        return TRP_ENOMEM;
    for (; item && find_executor(s, item); item = item->next)
        names[n++] = item->text;
    if (!item)
        alloc_remove_idle(s, names, n);
    free(names);
    return item ? TRP_EINVAL : 0;
}

/* ---- what executors hold ---- */

struct holding {
    const struct trp_yaml_node *executor;
    const char *shuffle;
    int64_t blocks;
    bool job_active;
};

static int do_cached(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    (void)now_ns;
    struct holding v = {0};
    struct executor *x;
    if (!TRP_SIM_FIELDS(s->c, value, "cached", &v, TRP_SIM_MUST(v, executor, NODE),
                        TRP_SIM_MUST(v, blocks, WHOLE)))
        return TRP_EINVAL;
    int code = find_tracked(s, v.executor, &x);
    if (code < 0 || !x)
        return code;
    return trp_idle_cached(s->idle, &x->idle, (uint32_t)v.blocks);
}

static int shuffle_of(struct alloc *s, const char *name)
{
    int n = trp_sim_names_find(&s->shuffles, name);
    return n >= 0 ? n : trp_sim_names_add(&s->shuffles, name);
}

static int do_shuffle_data(struct alloc *s, const struct trp_yaml_node *value,
                           int64_t now_ns)
{
    (void)now_ns;
    struct holding v = {0};
    struct executor *x;
    if (!TRP_SIM_FIELDS(s->c, value, "shuffle_data", &v,
                        TRP_SIM_MUST(v, executor, NODE),
                        TRP_SIM_MUST(v, shuffle, NAME)))
        return TRP_EINVAL;
    int code = find_tracked(s, v.executor, &x);
    if (code < 0 || !x)
        return code;
    int n = shuffle_of(s, v.shuffle);
    return n < 0 ? n : trp_idle_shuffle_data(s->idle, &x->idle, (uint32_t)n);
}

static int do_shuffle_in_use(struct alloc *s, const struct trp_yaml_node *value,
                             int64_t now_ns)
{
    (void)now_ns;
    struct holding v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "shuffle_in_use", &v,
                        TRP_SIM_MUST(v, shuffle, NAME),
                        TRP_SIM_MUST(v, job_active, BOOL)))
        return TRP_EINVAL;
    int n = shuffle_of(s, v.shuffle);
    return n < 0 ? n : trp_idle_shuffle_use(s->idle, (uint32_t)n, v.job_active);
}

static int do_shuffle_gone(struct alloc *s, const struct trp_yaml_node *value,
                           int64_t now_ns)
{
    (void)now_ns;
    const char *name = trp_sim_name(s->c, value, "shuffle_gone");
    int n = name ? shuffle_of(s, name) : TRP_EINVAL;
    return n < 0 ? n : trp_idle_shuffle_gone(s->idle, (uint32_t)n);
}

const struct alloc_action alloc_executor_actions[] = {
    {"add",            do_add           },
    {"lose",           do_lose          },
    {"may_remove",     do_may_remove    },
    {"cached",         do_cached        },
    {"shuffle_data",   do_shuffle_data  },
    {"shuffle_in_use", do_shuffle_in_use},
    {"shuffle_gone",   do_shuffle_gone  },
    {NULL,             NULL             },
};
