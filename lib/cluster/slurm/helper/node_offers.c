/*
 * Counted as the ledger does it, but node by node and without what is in use. A licence
 * is Slurm's to refuse.
 */
#include "cluster/slurm/helper/node_offers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/helper/inventory_lines.h"
#include "core/base/array.h"

static int add_partition(struct trp_slurm_offers *o, const struct trp_slurm_line *l)
{
    if (!TRP_ARRAY_GROW(o->partitions, o->npartitions, o->partitions_cap))
        return TRP_ENOMEM;
    struct trp_slurm_partition *v = &o->partitions[o->npartitions++];
    *v = (struct trp_slurm_partition){0};
    v->name = strdup(trp_slurm_line_text(l, "name"));
    v->is_default = trp_slurm_line_number(l, "default");
    v->is_up = trp_slurm_line_number(l, "up");
    v->minutes = trp_slurm_line_number(l, "time");
    v->cores = (uint32_t)trp_slurm_line_number(l, "cpus");
    return v->name ? 0 : TRP_ENOMEM;
}

static int add_offer(struct trp_slurm_offers *o, const struct trp_slurm_line *l)
{
    if (!TRP_ARRAY_GROW(o->v, o->n, o->cap))
        return TRP_ENOMEM;
    struct trp_slurm_offer *v = &o->v[o->n++];
    *v = (struct trp_slurm_offer){0};
    v->nodes = (uint32_t)trp_slurm_line_number(l, "nodes");
    v->cores = (uint32_t)trp_slurm_line_number(l, "cpus");
    v->threads = (uint32_t)trp_slurm_line_number(l, "threads");
    v->threads = v->threads ? v->threads : 1;
    v->memory_mib = trp_slurm_line_number(l, "memory");
    v->features = strdup(trp_slurm_line_text(l, "features"));
    v->version = strdup(trp_slurm_line_text(l, "version"));
    v->available = strdup(trp_slurm_line_text(l, "available"));
    v->partitions = strdup(trp_slurm_line_text(l, "partitions"));
    v->oldest = strdup(trp_slurm_line_text(l, "oldest"));
    v->since = trp_slurm_line_number(l, "since");
    v->npools = trp_slurm_pools_parse(trp_slurm_line_text(l, "gres"), v->pools);
    return v->features && v->version && v->available && v->partitions && v->oldest
               ? 0
               : TRP_ENOMEM;
}

int trp_slurm_offers_add(void *offers, const struct trp_slurm_line *line,
                         trp_error *err)
{
    int code = 0;
    if (strcmp(line->word, "partition") == 0)
        code = add_partition(offers, line);
    else if (strcmp(line->word, "shape") == 0)
        code = add_offer(offers, line);
    return code < 0 ? trp_error_set(err, code, "out of memory for the cluster's nodes")
                    : 0;
}

void trp_slurm_offers_free(struct trp_slurm_offers *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        free(o->v[i].features);
        free(o->v[i].version);
        free(o->v[i].available);
        free(o->v[i].partitions);
        free(o->v[i].oldest);
    }
    for (uint32_t i = 0; i < o->npartitions; i++)
        free(o->partitions[i].name);
    free(o->v);
    free(o->partitions);
    *o = (struct trp_slurm_offers){0};
}

const struct trp_slurm_partition *
trp_slurm_offers_partition(const struct trp_slurm_offers *o, const char *name)
{
    for (uint32_t i = 0; i < o->npartitions; i++) {
        const struct trp_slurm_partition *p = &o->partitions[i];
        if (*name ? strcmp(p->name, name) == 0 : p->is_default)
            return p;
    }
    return NULL;
}

static uint64_t devices(const struct trp_slurm_offer *v, const struct trp_slurm_want *w)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->npools; i++) {
        const struct trp_slurm_pool *p = &v->pools[i];
        bool right = strcmp(p->name, w->name) == 0 &&
                     (!*w->type || strcmp(p->type, w->type) == 0);
        sum += right ? p->count : 0;
    }
    return sum;
}

static bool is_in(const struct trp_slurm_offer *v, const struct trp_slurm_partition *p)
{
    return !p || trp_slurm_names_have(v->partitions, p->name);
}

static uint64_t cores_of(const struct trp_slurm_offer *v,
                         const struct trp_slurm_partition *p)
{
    return p && p->cores && p->cores < v->cores ? p->cores : v->cores;
}

/* What a node has of a device or a feature; as to licences it may have any. */
static uint64_t amount_on(const struct trp_slurm_offer *v,
                          const struct trp_slurm_want *w)
{
    if (w->kind == TRP_SLURM_FEATURE)
        return trp_slurm_names_have(v->features, w->name) ||
               trp_slurm_names_have(v->available, w->name);
    return w->kind == TRP_SLURM_GRES ? devices(v, w) : UINT32_MAX;
}

/* Units that an empty node holds. */
static uint64_t units_on(const struct trp_slurm_offer *v,
                         const struct trp_slurm_partition *p,
                         const struct trp_slurm_footprint *footprint)
{
    uint64_t units = UINT32_MAX, all = cores_of(v, p);
    uint64_t cores = (footprint->cores + v->threads - 1) / v->threads * v->threads;
    if (cores && all / cores < units)
        units = all / cores;
    if (footprint->memory_mib &&
        (uint64_t)(v->memory_mib / footprint->memory_mib) < units)
        units = (uint64_t)(v->memory_mib / footprint->memory_mib);
    for (uint32_t i = 0; i < footprint->nwants && units; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        uint64_t room = amount_on(v, w);
        if (w->kind == TRP_SLURM_GRES)
            room = room / w->count * w->each;
        else
            room = room ? UINT32_MAX : 0;
        units = room < units ? room : units;
    }
    return units;
}

void trp_slurm_offers_most(const struct trp_slurm_offers *o,
                           const struct trp_slurm_partition *p, uint64_t *ret_cores,
                           int64_t *ret_mib)
{
    *ret_cores = 0;
    *ret_mib = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct trp_slurm_offer *v = &o->v[i];
        if (is_in(v, p) && cores_of(v, p) > *ret_cores)
            *ret_cores = cores_of(v, p);
        if (is_in(v, p) && v->memory_mib > *ret_mib)
            *ret_mib = v->memory_mib;
    }
}

uint64_t trp_slurm_offers_most_of(const struct trp_slurm_offers *o,
                                  const struct trp_slurm_partition *p,
                                  const struct trp_slurm_want *w)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        uint64_t n = is_in(&o->v[i], p) ? amount_on(&o->v[i], w) : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* What is short on every node, if it is one thing. */
static void explain(const struct trp_slurm_offers *o,
                    const struct trp_slurm_partition *p,
                    const struct trp_slurm_footprint *footprint, trp_error *err)
{
    char short_of[128] = "it has not all of it at once";
    uint64_t cores;
    int64_t mib;
    trp_slurm_offers_most(o, p, &cores, &mib);
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        uint64_t most = trp_slurm_offers_most_of(o, p, w);
        if (w->kind == TRP_SLURM_FEATURE ? !most : most < w->count)
            snprintf(short_of, sizeof short_of, "%s wanted %u, at most %llu",
                     w->resource, w->count, (unsigned long long)most);
    }
    struct trp_memory_pair m = trp_memory_pair(footprint->memory_mib, mib);
    if (footprint->memory_mib > mib)
        snprintf(short_of, sizeof short_of, "memory wanted %s, at most %s", m.a, m.b);
    if (footprint->cores > cores)
        snprintf(short_of, sizeof short_of, "cores wanted %llu, at most %llu",
                 (unsigned long long)footprint->cores, (unsigned long long)cores);
    trp_error_set(err, TRP_ENEVER, "no node of partition %s is so large: %s", p->name,
                  short_of);
}

/* Nodes with room for so many units. */
static uint64_t nodes_with(const struct trp_slurm_offers *o,
                           const struct trp_slurm_partition *p,
                           const struct trp_slurm_footprint *footprint, uint32_t units)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        if (is_in(&o->v[i], p) && units_on(&o->v[i], p, footprint) >= units)
            sum += o->v[i].nodes;
    }
    return sum;
}

static uint32_t most_on_node(const struct trp_slurm_offers *o,
                             const struct trp_slurm_partition *p,
                             const struct trp_slurm_footprint *footprint, uint32_t most)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        uint64_t room = is_in(&o->v[i], p) ? units_on(&o->v[i], p, footprint) : 0;
        units = room > units ? room : units;
    }
    return units < most ? (uint32_t)units : most;
}

uint32_t trp_slurm_offers_even(const struct trp_slurm_offers *o, const char *partition,
                               const struct trp_slurm_footprint *footprint,
                               uint32_t ranks, uint32_t most)
{
    const struct trp_slurm_partition *p = trp_slurm_offers_partition(o, partition);
    most = p ? most_on_node(o, p, footprint, most < ranks ? most : ranks) : 0;
    for (uint32_t k = most; k; k--) {
        uint32_t nodes = (ranks - 1) / k + 1;
        assert(nodes > 0);
        if (nodes_with(o, p, footprint, k) >= nodes)
            return (ranks - 1) / nodes + 1;
    }
    return 0;
}

uint32_t trp_slurm_offers_fit(const struct trp_slurm_offers *o, const char *partition,
                              const struct trp_slurm_footprint *footprint,
                              uint32_t units, trp_error *err)
{
    const struct trp_slurm_partition *p = trp_slurm_offers_partition(o, partition);
    uint64_t sum = 0;
    if (!p) {
        trp_error_set(err, TRP_ENEVER, "Slurm has no %s%s",
                      *partition ? "partition " : "default partition", partition);
        return 0;
    }
    for (uint32_t i = 0; i < o->n; i++) {
        if (trp_slurm_names_have(o->v[i].partitions, p->name))
            sum += units_on(&o->v[i], p, footprint) * o->v[i].nodes;
    }
    if (sum == 0)
        explain(o, p, footprint, err);
    else if (sum < units)
        trp_error_set(err, TRP_ENEVER, "partition %s has room for %llu of %u ranks",
                      p->name, (unsigned long long)sum, units);
    sum /= units;
    if (sum && trp_slurm_wants_devices(footprint) &&
        !trp_slurm_offers_even(o, partition, footprint, units, units)) {
        trp_error_set(err, TRP_ENEVER,
                      "partition %s has no room for %u ranks with as many devices on "
                      "each node",
                      p->name, units);
        return 0;
    }
    return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

uint32_t trp_slurm_offers_on_node(const struct trp_slurm_offers *o,
                                  const char *partition,
                                  const struct trp_slurm_footprint *footprint)
{
    const struct trp_slurm_partition *p = trp_slurm_offers_partition(o, partition);
    uint64_t sum = 0, nodes = 0;
    for (uint32_t i = 0; p && i < o->n; i++) {
        uint64_t units = is_in(&o->v[i], p) ? units_on(&o->v[i], p, footprint) : 0;
        sum += units * o->v[i].nodes;
        nodes += units ? o->v[i].nodes : 0;
    }
    return nodes ? (uint32_t)(sum / nodes) : 1;
}

uint32_t trp_slurm_offers_threads(const struct trp_slurm_offers *o,
                                  const char *partition)
{
    const struct trp_slurm_partition *p = trp_slurm_offers_partition(o, partition);
    uint32_t most = 1;
    for (uint32_t i = 0; p && i < o->n; i++) {
        if (trp_slurm_names_have(o->v[i].partitions, p->name) && o->v[i].threads > most)
            most = o->v[i].threads;
    }
    return most;
}
