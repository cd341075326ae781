/*
 * The hosts on which the tasks of a dataset prefer to run.
 *
 * A node has its preferences in the form that the engine takes, offsets and host names,
 * in one allocation. When a stage starts, the hosts of each partition are looked up
 * from the end of the chain towards its source: the first node that names hosts for it
 * counts, as in Spark. A coalesced partition prefers the hosts of all its members.
 */
#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "core/base/array.h"

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
    if (!hosts)
        return trp_dataset_refuse(d->context, TRP_EINVAL, "trp_prefer: no hosts given");
    struct amount all = amount_of(hosts, d->partitions);
    size_t names = all.names * sizeof(char *);
    size_t first = ((size_t)d->partitions + 1) * sizeof(uint32_t);
    if (all.names >= UINT32_MAX)
        return trp_dataset_refuse(d->context, TRP_ELIMIT, "trp_prefer: too many hosts");
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
    return trp_dataset_made_of(n, d);
}

bool trp_chain_prefers(const trp_context *ctx)
{
    for (size_t i = 0; i < ctx->nnodes; i++)
        if (ctx->nodes[i]->kind == TRP_NODE_PREFER)
            return true;
    return false;
}

static bool is_there(const struct trp_chain_places *p, uint32_t first, const char *name)
{
    for (uint32_t i = first; i < p->nplaces; i++)
        if (strcmp(p->places[i].host, name) == 0)
            return true;
    return false;
}

static int add_names(struct trp_chain_places *p, uint32_t first, const trp_dataset *d,
                     uint32_t task)
{
    for (uint32_t i = d->prefer.first[task]; i < d->prefer.first[task + 1]; i++) {
        if (is_there(p, first, d->prefer.names[i]))
            continue;
        if (!TRP_ARRAY_GROW(p->places, p->nplaces, p->capacity))
            return TRP_ENOMEM;
        p->places[p->nplaces++] = (struct trp_place){d->prefer.names[i], TRP_NONE};
    }
    return 0;
}

/* Adds the hosts of a partition to those of a task that begin at `first`, each once. */
static int add_hosts(struct trp_chain_places *p, uint32_t first, const trp_dataset *d,
                     uint32_t task)
{
    while (d && d->kind != TRP_NODE_COALESCE) {
        if (d->kind == TRP_NODE_PREFER &&
            d->prefer.first[task + 1] > d->prefer.first[task])
            return add_names(p, first, d, task);
        bool right = d->kind == TRP_NODE_UNION && task >= d->a->partitions;
        task -= right ? d->a->partitions : 0;
        d = right ? d->b : d->a;
    }
    if (!d)
        return 0;
    int64_t member;
    uint64_t count;
    trp_range_part(0, d->a->partitions, d->partitions, task, &member, &count);
    int rc = 0;
    for (; rc == 0 && count > 0; member++, count--)
        rc = add_hosts(p, first, d->a, (uint32_t)member);
    return rc;
}

int trp_chain_places(const trp_dataset *d, struct trp_chain_places *ret)
{
    *ret = (struct trp_chain_places){
        .first = calloc((size_t)d->partitions + 1, sizeof(*ret->first))};
    int rc = ret->first ? 0 : TRP_ENOMEM;
    for (uint32_t t = 0; rc == 0 && t < d->partitions; t++) {
        rc = add_hosts(ret, ret->nplaces, d, t);
        ret->first[t + 1] = ret->nplaces;
    }
    if (rc < 0)
        trp_chain_places_free(ret);
    return rc;
}

void trp_chain_places_free(struct trp_chain_places *p)
{
    free(p->first);
    free(p->places);
    *p = (struct trp_chain_places){0};
}
