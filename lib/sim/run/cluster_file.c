/* Cluster files, read as all our files are: tree, readers, verdict. */
#include "sim/run/cluster_file.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"

/* A group while it is read: devices are numbered in the cluster. */
struct reading {
    trp_sim_cluster *c;
    struct trp_sim_group g;
};

/* ---- groups of nodes ---- */

static TRP_YAML_READER(read_name)
{
    struct trp_sim_group *g = &((struct reading *)context)->g;
    g->name = trp_yaml_word(y, value, key->text);
    if (g->name && !trp_is_name(g->name))
        trp_yaml_wrong(y, value->mark,
                       "\"%s\" is not a name of nodes; write letters, digits, '_', '.' "
                       "and '-', a letter, digit or '_' first",
                       trp_show(g->name).text);
}

static TRP_YAML_READER(read_inside)
{
    struct trp_sim_group *g = &((struct reading *)context)->g;
    g->inside_written = true;
    trp_yaml_count(y, value, key->text, 0, TRP_SIM_NODES, &g->inside);
}

static TRP_YAML_READER(read_cores)
{
    trp_yaml_whole(y, value, key->text, 1, TRP_SIM_NODE_CORES,
                   &((struct reading *)context)->g.cores);
}

static TRP_YAML_READER(read_node_memory)
{
    struct trp_sim_group *g = &((struct reading *)context)->g;
    if (trp_yaml_memory(y, value, key->text, &g->memory_mib) &&
        (g->memory_mib < 1 || g->memory_mib > TRP_EXECUTOR_AMOUNT_MAX))
        trp_yaml_wrong(y, value->mark, "memory is \"%s\"; write 1m to 1000000000g",
                       trp_show(value->text).text);
}

/* The number of a kind of device in the cluster; TRP_NONE after an error. */
static uint32_t device_index(trp_yaml *y, trp_sim_cluster *c,
                             const struct trp_yaml_node *key)
{
    char *name = trp_yaml_word(y, key, "a device");
    if (!name)
        return TRP_NONE;
    for (uint32_t i = 0; i < c->ndevices; i++)
        if (strcmp(c->devices[i], name) == 0)
            return i;
    if (!trp_is_resource_name(name)) {
        trp_yaml_wrong(y, key->mark,
                       "\"%s\" is not a resource's name; write letters, digits, '_', "
                       "'.' and '-', a letter or '_' first",
                       trp_show(name).text);
        return TRP_NONE;
    }
    if (c->ndevices == TRP_PROFILE_RESOURCES) {
        trp_yaml_wrong(y, key->mark, "more than %d kinds of devices",
                       TRP_PROFILE_RESOURCES);
        return TRP_NONE;
    }
    c->devices[c->ndevices] = name;
    return c->ndevices++;
}

static TRP_YAML_READER(read_devices)
{
    struct reading *r = context;
    if (!trp_yaml_is_mapping(y, value, key->text))
        return;
    for (key = value->first; key; key = key->next->next) {
        uint32_t i = device_index(y, r->c, key), n = 0;
        if (i == TRP_NONE)
            continue;
        trp_yaml_count(y, key->next, key->text, 0, TRP_SIM_NODE_DEVICES, &n);
        r->g.devices[i] = n;
    }
}

static void read_group(trp_yaml *y, const struct trp_yaml_node *node,
                       trp_sim_cluster *c)
{
    struct reading r = {
        .c = c, .g = {.count = 1, .racks = 1}
    };
    struct trp_sim_group *g = &c->groups[c->ngroups++];
    bool sound = TRP_YAML_MAPPING(
        y, node, "a group of nodes", &r,
        TRP_YAML_READ("name", read_name, .required = true),
        TRP_YAML_INTO("count", count, struct reading, g.count, .min = 1,
                      .max = TRP_SIM_NODES),
        TRP_YAML_READ("cores", read_cores, .required = true),
        TRP_YAML_READ("memory", read_node_memory, .required = true),
        TRP_YAML_READ("devices", read_devices),
        TRP_YAML_INTO("racks", count, struct reading, g.racks, .min = 1,
                      .max = TRP_SIM_NODES),
        TRP_YAML_READ("inside", read_inside),
        TRP_YAML_INTO("busy", number, struct reading, g.busy, .max = 1));
    *g = r.g;
    if (!sound)
        return;
    if (g->inside > g->count)
        trp_yaml_wrong(y, node->mark, "%u of %u nodes inside; write at most %u",
                       g->inside, g->count, g->count);
    if (g->racks > g->count)
        trp_yaml_wrong(y, node->mark, "%u racks for %u nodes; write at most %u",
                       g->racks, g->count, g->count);
    for (uint32_t i = 0; g->name && i + 1 < c->ngroups; i++)
        if (c->groups[i].name && strcmp(c->groups[i].name, g->name) == 0)
            trp_yaml_wrong(y, node->mark, "two groups of nodes are called \"%s\"",
                           g->name);
}

static TRP_YAML_READER(read_nodes)
{
    trp_sim_cluster *c = context;
    uint64_t all = 0;
    bool written = false;
    if (!trp_yaml_is_list(y, value, key->text))
        return;
    if (value->count < 1 || value->count > TRP_SIM_GROUPS) {
        trp_yaml_wrong(y, value->mark, "%u groups of nodes; write 1 to %d",
                       value->count, TRP_SIM_GROUPS);
        return;
    }
    for (const struct trp_yaml_node *n = value->first; n; n = n->next)
        read_group(y, n, c);
    for (uint32_t i = 0; i < c->ngroups; i++) {
        all += c->groups[i].count;
        written |= c->groups[i].inside_written;
    }
    if (all > TRP_SIM_NODES)
        trp_yaml_wrong(y, value->mark, "%llu nodes in all; write at most %d",
                       (unsigned long long)all, TRP_SIM_NODES);
    if (!written)
        c->groups[0].inside = 1;
}

/* ---- the rest ---- */

static TRP_YAML_READER(read_version)
{
    trp_yaml_version(y, value, "cluster", "cluster");
}

static TRP_YAML_READER(read_cluster_name)
{
    trp_yaml_text(y, value, key->text);
}

static TRP_YAML_READER(read_wait)
{
    trp_distribution_read(y, value, key->text, &((trp_sim_cluster *)context)->wait);
}

static TRP_YAML_READER(read_per_node)
{
    trp_sim_time_read(y, value, key->text, 0,
                      &((trp_sim_cluster *)context)->wait_per_node_ns);
}

static TRP_YAML_READER(read_queue)
{
    TRP_YAML_MAPPING(y, value, key->text, context, TRP_YAML_READ("wait", read_wait),
                     TRP_YAML_READ("per_node", read_per_node));
}

static TRP_YAML_READER(read_start_up)
{
    trp_distribution_read(y, value, key->text, &((trp_sim_cluster *)context)->start_up);
}

static TRP_YAML_READER(read_node_mtbf)
{
    trp_sim_time_read(y, value, key->text, 1,
                      &((trp_sim_cluster *)context)->node_mtbf_ns);
}

static TRP_YAML_READER(read_repair)
{
    trp_sim_time_read(y, value, key->text, 1,
                      &((trp_sim_cluster *)context)->node_repair_ns);
}

static TRP_YAML_READER(read_executor_mtbf)
{
    trp_sim_time_read(y, value, key->text, 1,
                      &((trp_sim_cluster *)context)->executor_mtbf_ns);
}

static TRP_YAML_READER(read_failures)
{
    TRP_YAML_MAPPING(
        y, value, key->text, context, TRP_YAML_READ("node", read_node_mtbf),
        TRP_YAML_READ("repair", read_repair),
        TRP_YAML_READ("executor", read_executor_mtbf),
        TRP_YAML_INTO("task", number, trp_sim_cluster, task_failure, .max = 1));
}

static const struct trp_yaml_key cluster_keys[] = {
    TRP_YAML_READ("cluster", read_version, .required = true),
    TRP_YAML_READ("name", read_cluster_name),
    TRP_YAML_READ("queue", read_queue),
    TRP_YAML_READ("start_up", read_start_up),
    TRP_YAML_READ("failures", read_failures),
    TRP_YAML_INTO("whole_nodes", flag, trp_sim_cluster, whole_nodes),
    TRP_YAML_READ("nodes", read_nodes, .required = true),
};

/* ---- loading ---- */

static trp_sim_cluster *new_cluster(const char *file, trp_error *err)
{
    trp_sim_cluster *c = calloc(1, sizeof(*c));
    if (c)
        c->file = trp_conf_arena_text(&c->arena, file, strlen(file));
    if (!c || !c->file) {
        trp_sim_cluster_free(c);
        trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
        return NULL;
    }
    c->wait = trp_distribution_constant(0);
    c->start_up = trp_distribution_constant(INT64_C(1000000000));
    c->node_repair_ns = INT64_C(3600000000000);
    return c;
}

int trp_sim_cluster_parse(const char *file, const char *text, size_t size,
                          trp_sim_cluster **ret, trp_error *err)
{
    trp_yaml *y;
    trp_sim_cluster *c = new_cluster(file, err);
    int code = c ? trp_yaml_open(c->file, text, size, &c->arena, &y, err) : TRP_ENOMEM;
    if (code == 0) {
        trp_yaml_mapping(y, trp_yaml_root(y), "a cluster file", cluster_keys,
                         TRP_YAML_COUNT(cluster_keys), c);
        code = trp_yaml_verdict(y, err);
        trp_yaml_free(y);
    }
    if (code < 0)
        trp_sim_cluster_free(c);
    else
        *ret = c;
    return code;
}

void trp_sim_cluster_free(trp_sim_cluster *c)
{
    if (!c)
        return;
    trp_conf_arena_free(&c->arena);
    free(c);
}
