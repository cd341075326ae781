/*
 * Where the tasks of a dataset would best run.
 *
 * A node keeps what it was told as the engine wants it, offsets and names, in the one
 * allocation that it is. The places of a stage are found when it starts: for each
 * partition from the end of the chain towards its source, the first node that names a
 * host for it counts, as the nearest preference does in Spark.
 */
#include <stdlib.h>
#include <string.h>

#include "api/stage_run.h"

/* The next name in a list with commas, NULL at its end. */
static const char *next_name(const char **at, size_t *ret_size)
{
    if (!*at)
        return NULL;
    *at += strspn(*at, ", ");
    const char *name = *at;
    *ret_size = strcspn(name, ", ");
    *at += *ret_size;
    return *ret_size ? name : NULL;
}

struct amount {
    size_t names, bytes;
};

static struct amount amount_of(const char *const *hosts, uint32_t partitions)
{
    struct amount sum = {0};
    for (uint32_t i = 0; i < partitions; i++) {
        const char *at = hosts[i];
        for (size_t n; next_name(&at, &n); sum.names++)
            sum.bytes += n + 1;
    }
    return sum;
}

trp_dataset *trp_prefer(trp_dataset *d, const char *const *hosts)
{
    if (!d)
        return NULL;
    if (!hosts) {
        trp_dataset_fail(d->context, TRP_EINVAL, "trp_prefer: no hosts given");
        return NULL;
    }
    struct amount all = amount_of(hosts, d->partitions);
    size_t names = all.names * sizeof(char *);
    size_t first = ((size_t)d->partitions + 1) * sizeof(uint32_t);
    if (all.names >= UINT32_MAX) {
        trp_dataset_fail(d->context, TRP_ELIMIT, "trp_prefer: too many hosts");
        return NULL;
    }
    trp_dataset *n = trp_dataset_mark(d, TRP_NODE_PREFER, names + first + all.bytes);
    if (!n)
        return NULL;
    n->prefer.names = (const char **)(n + 1);
    n->prefer.first = (uint32_t *)(void *)((char *)(n + 1) + names);
    char *text = (char *)(n + 1) + names + first;
    uint32_t k = 0;
    for (uint32_t i = 0; i < d->partitions; i++) {
        const char *at = hosts[i], *name;
        n->prefer.first[i] = k;
        for (size_t size; (name = next_name(&at, &size)); text += size + 1) {
            memcpy(text, name, size); /* the allocation is zeroed */
            n->prefer.names[k++] = text;
        }
    }
    n->prefer.first[d->partitions] = k;
    return n;
}

bool trp_chain_prefers(const trp_context *ctx)
{
    for (size_t i = 0; i < ctx->nnodes; i++)
        if (ctx->nodes[i]->kind == TRP_NODE_PREFER)
            return true;
    return false;
}

/* The hosts of a task: how many, and their names. */
static uint32_t hosts_of(const trp_dataset *d, uint32_t task, const char *const **ret)
{
    while (d) {
        if (d->kind == TRP_NODE_PREFER) {
            uint32_t n = d->prefer.first[task + 1] - d->prefer.first[task];
            *ret = d->prefer.names + d->prefer.first[task];
            if (n > 0)
                return n;
        }
        bool right = d->kind == TRP_NODE_UNION && task >= d->a->partitions;
        task -= right ? d->a->partitions : 0;
        d = right ? d->b : d->a;
    }
    return 0;
}

int trp_chain_places(const trp_dataset *d, struct trp_chain_places *ret)
{
    const char *const *names;
    uint64_t n = 0;
    for (uint32_t t = 0; t < d->partitions; t++)
        n += hosts_of(d, t, &names);
    *ret = (struct trp_chain_places){
        .first = calloc((size_t)d->partitions + 1, sizeof(*ret->first)),
        .places = n < UINT32_MAX ? calloc(n + 1, sizeof(*ret->places)) : NULL};
    if (!ret->first || !ret->places) {
        trp_chain_places_free(ret);
        return TRP_ENOMEM;
    }
    uint32_t k = 0;
    for (uint32_t t = 0; t < d->partitions; t++) {
        uint32_t hosts = hosts_of(d, t, &names);
        for (uint32_t i = 0; i < hosts; i++)
            ret->places[k++] = (struct trp_place){names[i], TRP_NONE};
        ret->first[t + 1] = k;
    }
    return 0;
}

void trp_chain_places_free(struct trp_chain_places *p)
{
    free(p->first);
    free(p->places);
    *p = (struct trp_chain_places){0};
}
