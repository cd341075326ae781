/*
 * Where the tasks of an attempt would like to run (semantics, section 14): where their
 * partition is cached, else where its dataset wants it, else with most of what they
 * read of a shuffle (15), else what the first narrow parent says. Which datasets of the
 * chain have anything to say is known since the stage was made, in that order; the
 * first that says something about a partition wins.
 *
 * Where datasets of the chain stand side by side, or several of their partitions are
 * taken together, a task goes to who has most of the partitions that it reads. Those
 * are found for each task, from its own partition down.
 */
#include <stdlib.h>
#include <string.h>

#include "core/engine_state.h"

enum { SHARES = 8 }; /* more than can have a fifth each */

static const double SHARE = 0.2;

static bool add_place(struct trp_engine *e, uint32_t *n, uint32_t host,
                      uint32_t executor)
{
    if (!TRP_ARRAY_GROW(e->dag.places, *n, e->dag.places_cap))
        return false;
    e->dag.places[(*n)++] =
        (struct trp_place){.host = e->hosts.hosts[host].name, .executor = executor};
    return true;
}

static bool add_largest(struct trp_engine *e, uint32_t *n, uint32_t shuffle,
                        uint32_t task, uint32_t ntasks)
{
    struct trp_output_place at[SHARES];
    if (!e->config.reduce_locality || ntasks >= TRP_MAP_OUTPUTS_PREFER_MAX)
        return true;
    uint32_t found =
        trp_map_outputs_prefer(e->dag.outputs, shuffle, task, SHARE, at, SHARES);
    for (uint32_t i = 0; i < found; i++)
        if ((!i || at[i].host != at[i - 1].host) &&
            !add_place(e, n, at[i].host, TRP_NONE))
            return false;
    return true;
}

static bool add_dataset(struct trp_engine *e, uint32_t *n, const struct trp_dataset *d,
                        uint32_t task)
{
    uint32_t before = *n;
    if (task >= d->partitions)
        return true;
    for (struct trp_cached *c = d->cached ? d->cached[task] : NULL; c; c = c->next)
        if (!add_place(e, n, trp_dag_executor(e, c->executor)->host, c->executor))
            return false;
    if (*n > before)
        return true;
    for (uint32_t i = d->prefer_first ? d->prefer_first[task] : 0;
         d->prefer_first && i < d->prefer_first[task + 1]; i++)
        if (!add_place(e, n, d->prefer_hosts[i], TRP_NONE))
            return false;
    if (*n > before || d->nparents != 1 || !d->parents->shuffle)
        return true;
    uint32_t shuffle = e->dag.graph.v[d->parents->dataset]->shuffle;
    return add_largest(e, n, shuffle, task, d->partitions);
}

/* ---- chains with runs of partitions ---- */

static bool push_read(struct trp_engine *e, struct trp_read read)
{
    if (!TRP_ARRAY_GROW(e->dag.reads, e->dag.nreads, e->dag.reads_cap))
        return false;
    e->dag.reads[e->dag.nreads++] = read;
    return true;
}

/* What the partitions of `at` are made of, the first parent's on top. Of parents that
 * have each all of them, one is enough. */
static bool push_parents(struct trp_engine *e, const struct trp_dataset *d,
                         struct trp_read at)
{
    for (uint32_t i = d->nparents; i-- > 0;) {
        const struct trp_dataset_edge *edge = &d->parents[i];
        struct trp_read read = {.dataset = edge->dataset,
                                .spare = i > 0 && !edge->begin && !edge->nfirst};
        if (!edge->shuffle &&
            trp_graph_run(&e->dag.graph, edge, at.from, at.to, &read.from, &read.to) &&
            !push_read(e, read))
            return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct trp_place *x = a, *y = b;
    if (x->executor != y->executor)
        return x->executor < y->executor ? -1 : 1;
    return strcmp(x->host, y->host);
}

/* Of the places from … on those that stand there most often, once each. */
static void keep_most(struct trp_engine *e, uint32_t from, uint32_t *n)
{
    struct trp_place *v = e->dag.places;
    uint32_t most = 0, kept = from, times;
    qsort(v + from, *n - from, sizeof(*v), by_place);
    for (uint32_t i = from; i < *n; i += times) {
        for (times = 1; i + times < *n && by_place(&v[i], &v[i + times]) == 0;)
            times++;
        if (times > most)
            kept = from;
        most = times > most ? times : most;
        if (times == most)
            v[kept++] = v[i];
    }
    *n = kept;
}

static bool add_reads(struct trp_engine *e, uint32_t *n, const struct trp_stage *s,
                      uint32_t task)
{
    struct trp_graph *g = &e->dag.graph;
    const uint32_t before = *n;
    trp_graph_begin_walk(g);
    e->dag.nreads = 0;
    if (!push_read(e, (struct trp_read){s->dataset, task, task + 1, false}))
        return false;
    while (e->dag.nreads) {
        const struct trp_read at = e->dag.reads[--e->dag.nreads];
        struct trp_dataset *d = g->v[at.dataset];
        if (d->seen == g->walk || (at.spare && *n > before))
            continue;
        d->seen = g->walk;
        const uint32_t here = *n;
        for (uint32_t i = at.from; i < at.to; i++)
            if (!add_dataset(e, n, d, i))
                return false;
        if (*n == here && !push_parents(e, d, at))
            return false;
    }
    if (*n - before > 1)
        keep_most(e, before, n);
    return true;
}

static bool add_task(struct trp_engine *e, uint32_t *n, const struct trp_stage *s,
                     uint32_t task)
{
    if (s->dataset == TRP_NONE)
        return add_largest(e, n, s->parents->parent->shuffle, task, s->ntasks);
    if (s->has_runs)
        return add_reads(e, n, s, task);
    uint32_t before = *n;
    for (uint32_t i = 0; i < s->nprefer && *n == before; i++)
        if (!add_dataset(e, n, e->dag.graph.v[s->prefer[i]], task))
            return false;
    return true;
}

const struct trp_preferences *trp_dag_prefer(struct trp_engine *e,
                                             const struct trp_stage *s,
                                             const uint8_t *done,
                                             struct trp_preferences *ret)
{
    bool reads_one = s->nparents == 1 && s->parents->edge == TRP_EDGE_SHUFFLE;
    if (s->dataset == TRP_NONE ? !reads_one : !s->nprefer)
        return NULL;
    uint32_t n = 0;
    bool ok = TRP_ARRAY_GROW(e->dag.place_first, s->ntasks, e->dag.place_first_cap);
    for (uint32_t i = 0; ok && i < s->ntasks; i++) {
        e->dag.place_first[i] = n;
        ok = (done && done[i]) || add_task(e, &n, s, i);
    }
    if (!ok) {
        e->out_of_memory = true;
        return NULL;
    }
    e->dag.place_first[s->ntasks] = n;
    *ret = (struct trp_preferences){e->dag.place_first, e->dag.places};
    return n ? ret : NULL;
}
