/*
 * Counted as the books do it, but node by node and without what is in use. A licence is
 * Slurm's to refuse.
 */
#include "cluster/slurm/offers.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more, zeroed; arrays grow by doubling. */
static void *grow(void *array, uint32_t n, size_t size)
{
    char *v = n & (n - 1) ? array : realloc(array, (n ? 2 * (size_t)n : 1) * size);
    if (v)
        memset(v + n * size, 0, size);
    return v;
}

static int add_partition(struct trp_slurm_offers *o, const struct trp_slurm_line *l)
{
    struct trp_slurm_partition *v = grow(o->partitions, o->npartitions, sizeof *v);
    if (!v)
        return TRP_ENOMEM;
    o->partitions = v;
    v += o->npartitions++;
    v->name = strdup(trp_slurm_line_text(l, "name"));
    v->is_default = trp_slurm_line_number(l, "default");
    v->minutes = trp_slurm_line_number(l, "time");
    v->cores = (uint32_t)trp_slurm_line_number(l, "cpus");
    return v->name ? 0 : TRP_ENOMEM;
}

static int add_offer(struct trp_slurm_offers *o, const struct trp_slurm_line *l)
{
    struct trp_slurm_offer *v = grow(o->v, o->n, sizeof *v);
    if (!v)
        return TRP_ENOMEM;
    o->v = v;
    v += o->n++;
    v->nodes = (uint32_t)trp_slurm_line_number(l, "nodes");
    v->cores = (uint32_t)trp_slurm_line_number(l, "cpus");
    v->threads = (uint32_t)trp_slurm_line_number(l, "threads");
    v->threads = v->threads ? v->threads : 1;
    v->memory_mib = trp_slurm_line_number(l, "memory");
    v->features = strdup(trp_slurm_line_text(l, "features"));
    v->partitions = strdup(trp_slurm_line_text(l, "partitions"));
    v->npools = trp_slurm_pools_parse(trp_slurm_line_text(l, "gres"), v->pools);
    return v->features && v->partitions ? 0 : TRP_ENOMEM;
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
        free(o->v[i].partitions);
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

/* Units that an empty node holds. */
static uint64_t units_on(const struct trp_slurm_offer *v,
                         const struct trp_slurm_partition *p,
                         const struct trp_slurm_need *need)
{
    uint64_t units = UINT32_MAX, all = v->cores;
    uint64_t cores = (need->cores + v->threads - 1) / v->threads * v->threads;
    if (p->cores && p->cores < all)
        all = p->cores;
    if (cores && all / cores < units)
        units = all / cores;
    if (need->memory_mib && (uint64_t)(v->memory_mib / need->memory_mib) < units)
        units = (uint64_t)(v->memory_mib / need->memory_mib);
    for (uint32_t i = 0; i < need->nwants && units; i++) {
        const struct trp_slurm_want *w = &need->wants[i];
        uint64_t room = UINT32_MAX;
        if (w->kind == TRP_SLURM_FEATURE)
            room = trp_slurm_names_have(v->features, w->name) ? room : 0;
        else if (w->kind == TRP_SLURM_GRES)
            room = devices(v, w) / w->count * w->each;
        units = room < units ? room : units;
    }
    return units;
}

uint32_t trp_slurm_offers_fit(const struct trp_slurm_offers *o, const char *partition,
                              const struct trp_slurm_need *need, uint32_t units,
                              trp_error *err)
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
            sum += units_on(&o->v[i], p, need) * o->v[i].nodes;
    }
    sum /= units;
    if (sum == 0)
        trp_error_set(err, TRP_ENEVER, "no node of partition %s is so large", p->name);
    return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
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
