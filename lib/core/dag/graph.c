/*
 * Datasets in one array, walked with a stack of their numbers. A walk has a number, and
 * a dataset remembers the last walk that saw it, so nothing is cleared between walks.
 * Cached copies stand on the list of their partition and on that of their executor: the
 * loss of an executor touches its own copies only.
 */
#include "core/dag/graph.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void dataset_free(struct trp_dataset *d)
{
    if (!d)
        return;
    free(d->name);
    for (uint32_t i = 0; i < d->nparents; i++)
        free(d->parents[i].first);
    free(d->parents);
    free(d->prefer_first);
    free(d->prefer_hosts);
    free(d->cached);
    free(d);
}

void trp_graph_free(struct trp_graph *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->v[i])
            trp_graph_uncache(g, i);
        dataset_free(g->v[i]);
    }
    free(g->v);
    free(g->executors);
    free(g->todo.v);
    free(g->shuffles.v);
    free(g->chain.v);
    free(g->profiles.v);
}

/* ---- adding ---- */

/* Runs that grow, within both datasets. */
static bool runs_are_good(const struct trp_graph *g, const struct trp_dataset_spec *s,
                          const struct trp_dataset_parent *p)
{
    uint32_t last = g->v[p->dataset]->partitions;
    if (p->nfirst == 0)
        return true;
    for (uint32_t i = p->nfirst; i-- > 0; last = p->first[i])
        if (p->first[i] > last)
            return false;
    return !p->shuffle && p->begin <= s->partitions &&
           p->nfirst - 1 <= s->partitions - p->begin;
}

static int check(const struct trp_graph *g, const struct trp_dataset_spec *s,
                 trp_error *err)
{
    const char *name = s->name ? s->name : "";
    if (s->partitions > TRP_DATASET_PARTITIONS_MAX)
        return trp_error_set(err, TRP_ELIMIT, "dataset %s: %u partitions, at most %u",
                             name, s->partitions, (unsigned)TRP_DATASET_PARTITIONS_MAX);
    for (uint32_t i = 0; i < s->nparents; i++)
        if (!trp_graph_get(g, s->parents[i].dataset))
            return trp_error_set(err, TRP_EINVAL,
                                 "dataset %s: its parent does not stand before it",
                                 name);
    for (uint32_t i = 0; i < s->nparents; i++)
        if (!runs_are_good(g, s, &s->parents[i]))
            return trp_error_set(
                err, TRP_EINVAL,
                "dataset %s: the partitions that it reads of its parent "
                "are out of order",
                name);
    for (uint32_t i = 0; i < s->nprefer; i++)
        if (s->prefer[i].partition >= s->partitions ||
            (i && s->prefer[i].partition < s->prefer[i - 1].partition))
            return trp_error_set(err, TRP_EINVAL,
                                 "dataset %s: its preferred hosts are out of order",
                                 name);
    return 0;
}

static bool copy_parents(struct trp_graph *g, struct trp_dataset *d,
                         const struct trp_dataset_spec *s)
{
    d->parents = malloc((s->nparents ? s->nparents : 1) * sizeof(*d->parents));
    if (!d->parents)
        return false;
    for (; d->nparents < s->nparents; d->nparents++) {
        const struct trp_dataset_parent *p = &s->parents[d->nparents];
        const struct trp_dataset *parent = g->v[p->dataset];
        struct trp_dataset_edge edge = {.dataset = p->dataset,
                                        .shuffle = p->shuffle,
                                        .begin = p->begin,
                                        .nfirst = p->nfirst};
        if (p->nfirst) {
            edge.first = malloc(p->nfirst * sizeof(*edge.first));
            if (!edge.first)
                return false;
            memcpy(edge.first, p->first, p->nfirst * sizeof(*edge.first));
        }
        d->parents[d->nparents] = edge;
        d->indeterminate |= parent->indeterminate;
        d->barrier |= parent->barrier && !p->shuffle;
    }
    return true;
}

static bool copy_hosts(struct trp_dataset *d, const struct trp_dataset_spec *s,
                       const uint32_t *hosts)
{
    if (!s->nprefer)
        return true;
    d->prefer_first = malloc(((size_t)s->partitions + 1) * sizeof(*d->prefer_first));
    d->prefer_hosts = malloc(s->nprefer * sizeof(*d->prefer_hosts));
    if (!d->prefer_first || !d->prefer_hosts)
        return false;
    memcpy(d->prefer_hosts, hosts, s->nprefer * sizeof(*d->prefer_hosts));
    for (uint32_t i = 0, at = 0; i <= s->partitions; i++) {
        while (at < s->nprefer && s->prefer[at].partition < i)
            at++;
        d->prefer_first[i] = at;
    }
    return true;
}

int trp_graph_add(struct trp_graph *g, const struct trp_dataset_spec *spec,
                  const uint32_t *hosts, uint32_t *ret_id, trp_error *err)
{
    int rc = check(g, spec, err);
    if (rc < 0)
        return rc;
    struct trp_dataset *d = calloc(1, sizeof(*d));
    if (!d)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a dataset");
    *d = (struct trp_dataset){
        .name = strdup(spec->name ? spec->name : ""),
        .partitions = spec->partitions,
        .profile = spec->has_profile ? spec->profile.n : TRP_NONE,
        .may_cache = spec->cached,
        .barrier = spec->barrier,
        .indeterminate = spec->indeterminate,
        .shuffle = TRP_NONE,
    };
    if (!d->name || !copy_parents(g, d, spec) || !copy_hosts(d, spec, hosts) ||
        !TRP_ARRAY_GROW(g->v, g->n, g->cap)) {
        dataset_free(d);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a dataset");
    }
    for (uint32_t i = 0; i < d->nparents; i++)
        g->v[d->parents[i].dataset]->users++;
    *ret_id = g->n;
    g->v[g->n++] = d;
    return 0;
}

void trp_graph_remove(struct trp_graph *g, uint32_t dataset)
{
    struct trp_dataset *d = g->v[dataset];
    trp_graph_uncache(g, dataset);
    for (uint32_t i = 0; i < d->nparents; i++)
        g->v[d->parents[i].dataset]->users--;
    dataset_free(d);
    g->v[dataset] = NULL;
}

/* ---- walks ---- */

/* Notes what one dataset of the chain brings, and puts its narrow parents on the stack,
 * the first on top. */
static bool visit_dataset(struct trp_graph *g, uint32_t dataset)
{
    const struct trp_dataset *d = g->v[dataset];
    if (!trp_stack_push(&g->chain, dataset))
        return false;
    if (d->profile != TRP_NONE && !trp_stack_push(&g->profiles, d->profile))
        return false;
    for (uint32_t i = 0; i < d->nparents; i++) {
        uint32_t p = d->parents[i].dataset;
        if (!d->parents[i].shuffle || g->v[p]->read == g->walk)
            continue;
        g->v[p]->read = g->walk;
        if (!trp_stack_push(&g->shuffles, p))
            return false;
    }
    for (uint32_t i = d->nparents; i-- > 0;)
        if (!d->parents[i].shuffle && g->v[d->parents[i].dataset]->seen != g->walk &&
            !trp_stack_push(&g->todo, d->parents[i].dataset))
            return false;
    return true;
}

void trp_graph_begin_walk(struct trp_graph *g)
{
    if (++g->walk == 0) { /* the numbers are used up: start them again */
        for (uint32_t i = 0; i < g->n; i++)
            if (g->v[i])
                g->v[i]->seen = g->v[i]->read = 0;
        g->walk = 1;
    }
}

bool trp_graph_walk(struct trp_graph *g, uint32_t dataset, bool stop_at_cached)
{
    g->todo.n = g->shuffles.n = g->chain.n = g->profiles.n = 0;
    trp_graph_begin_walk(g);
    if (!trp_stack_push(&g->todo, dataset))
        return false;
    while (g->todo.n) {
        uint32_t at = g->todo.v[--g->todo.n];
        struct trp_dataset *d = g->v[at];
        if (d->seen == g->walk)
            continue;
        d->seen = g->walk;
        if (stop_at_cached && d->ncached == d->partitions)
            continue;
        if (!visit_dataset(g, at))
            return false;
    }
    return true;
}

bool trp_graph_run(const struct trp_graph *g, const struct trp_dataset_edge *edge,
                   uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to)
{
    const uint32_t n =
        edge->nfirst ? edge->nfirst - 1 : g->v[edge->dataset]->partitions;
    from = from > edge->begin ? from - edge->begin : 0;
    to = to > edge->begin ? to - edge->begin : 0;
    to = to < n ? to : n;
    from = from < to ? from : to;
    *ret_from = edge->nfirst ? edge->first[from] : from;
    *ret_to = edge->nfirst ? edge->first[to] : to;
    return *ret_from < *ret_to;
}

int trp_graph_check_barrier(struct trp_graph *g, uint32_t dataset, uint32_t ntasks,
                            trp_error *err)
{
    if (!trp_graph_walk(g, dataset, false))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a walk");
    for (uint32_t i = 0; i < g->chain.n; i++) {
        const struct trp_dataset *d = g->v[g->chain.v[i]];
        uint32_t barriers = 0;
        for (uint32_t p = 0; p < d->nparents; p++)
            barriers += g->v[d->parents[p].dataset]->barrier;
        if (d->partitions != ntasks || barriers > 1)
            return trp_error_set(
                err, TRP_EINVAL,
                "[SPARK-24820][SPARK-24821]: Barrier execution mode does not allow the "
                "following chain of datasets within a barrier stage: %s has "
                "%u partition%s for %u task%s, and %u barrier parents of at most 1",
                d->name, d->partitions, d->partitions == 1 ? "" : "s", ntasks,
                ntasks == 1 ? "" : "s", barriers);
    }
    return 0;
}

/* ---- cached partitions ---- */

static bool reach_executor(struct trp_graph *g, uint32_t executor)
{
    if (executor < g->nexecutors)
        return true;
    uint64_t n = (uint64_t)executor + 1;
    if (!TRP_ARRAY_RESERVE(g->executors, g->executors_cap, n))
        return false;
    memset(g->executors + g->nexecutors, 0,
           (size_t)(n - g->nexecutors) * sizeof(*g->executors));
    g->nexecutors = (uint32_t)n;
    return true;
}

int trp_graph_cache(struct trp_graph *g, uint32_t dataset, uint32_t partition,
                    uint32_t executor)
{
    struct trp_dataset *d = trp_graph_get(g, dataset);
    if (!d || !d->may_cache || partition >= d->partitions)
        return TRP_ENOENT;
    if (!d->cached)
        d->cached = calloc(d->partitions, sizeof(*d->cached));
    if (!d->cached || !reach_executor(g, executor))
        return TRP_ENOMEM;
    for (struct trp_cached *c = d->cached[partition]; c; c = c->next)
        if (c->executor == executor)
            return 0;
    struct trp_cached *c = calloc(1, sizeof(*c));
    if (!c)
        return TRP_ENOMEM;
    *c = (struct trp_cached){
        .dataset = dataset, .partition = partition, .executor = executor};
    DL_PREPEND2(g->executors[executor].first, c, of_executor_prev, of_executor_next);
    g->executors[executor].n++;
    d->ncached += !d->cached[partition];
    LL_PREPEND(d->cached[partition], c);
    return 0;
}

static void uncache(struct trp_graph *g, struct trp_cached *c)
{
    struct trp_dataset *d = g->v[c->dataset];
    LL_DELETE(d->cached[c->partition], c);
    d->ncached -= !d->cached[c->partition];
    DL_DELETE2(g->executors[c->executor].first, c, of_executor_prev, of_executor_next);
    g->executors[c->executor].n--;
    free(c);
}

void trp_graph_uncache_copy(struct trp_graph *g, uint32_t dataset, uint32_t partition,
                            uint32_t executor)
{
    struct trp_dataset *d = trp_graph_get(g, dataset);
    if (!d || !d->cached || partition >= d->partitions)
        return;
    for (struct trp_cached *c = d->cached[partition]; c; c = c->next)
        if (c->executor == executor) {
            uncache(g, c);
            return;
        }
}

void trp_graph_uncache_executor(struct trp_graph *g, uint32_t executor)
{
    while (executor < g->nexecutors && g->executors[executor].first)
        uncache(g, g->executors[executor].first);
}

uint32_t trp_graph_cached_on(const struct trp_graph *g, uint32_t executor)
{
    return executor < g->nexecutors ? g->executors[executor].n : 0;
}

void trp_graph_uncache(struct trp_graph *g, uint32_t dataset)
{
    struct trp_dataset *d = g->v[dataset];
    for (uint32_t i = 0; d->cached && i < d->partitions; i++)
        while (d->cached[i])
            uncache(g, d->cached[i]);
    free(d->cached);
    d->cached = NULL;
}
