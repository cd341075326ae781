/*
 * Datasets and what they are computed from. It knows nothing of the engine: jobs and
 * stages are made of what is found here. Semantics, sections 5, 13
 * (chain checks) and 14.
 *
 * Words. A *dataset* has partitions and parents. A *narrow* parent is computed in the
 * same task (partition i from partition i, or from a run of partitions), a *shuffle*
 * parent in a stage of its own, whose outputs every partition reads. The *chain* of a
 * dataset is everything reached over narrow parents: one stage computes it. Datasets
 * are added parents first, so ids grow from parents to children, and are never changed.
 * One that nothing is made of, and that no job or stage is about, may be removed; its
 * number is not given again.
 *
 * Every walk keeps a stack of its own: a chain of 100,000 datasets is no deeper for the
 * C stack than one of 2. Work memory belongs to the graph and is used again.
 *
 * Threads: one at a time.
 */
#ifndef TRP_CORE_DAG_GRAPH_H
#define TRP_CORE_DAG_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/array.h"
#include "core/engine.h"

/* Where a cached partition lies: one entry a copy. */
struct trp_cached {
    uint32_t dataset, partition;
    uint32_t executor;
    struct trp_cached *next; /* of the same partition */
    struct trp_cached *of_executor_next, *of_executor_prev;
};

struct trp_cached_list {
    struct trp_cached *first;
    uint32_t n;
};

struct trp_dataset_edge {
    uint32_t dataset;
    bool shuffle;
    uint32_t begin, nfirst; /* as in the spec */
    uint32_t *first;
};

struct trp_dataset {
    char *name;
    uint32_t partitions, nparents;
    struct trp_dataset_edge *parents;
    uint32_t profile;                       /* TRP_NONE: none attached */
    bool may_cache, barrier, indeterminate; /* the last two also when inherited */
    uint32_t *prefer_first;                 /* partitions + 1, NULL: no preference */
    uint32_t *prefer_hosts;
    struct trp_cached **cached; /* by partition; NULL: none ever */
    uint32_t ncached;           /* partitions with a copy */
    uint32_t shuffle; /* its number among the map outputs; TRP_NONE: none yet */
    uint32_t seen;    /* number of the last walk that came here … */
    uint32_t read;    /* … and that found it shuffled */
    uint32_t users;   /* datasets made of it, jobs and stages that compute it */
};

struct trp_graph {
    struct trp_dataset **v; /* NULL: it was removed */
    uint32_t n, cap, walk;
    struct trp_cached_list *executors; /* the cached copies of each */
    uint32_t nexecutors, executors_cap;
    /* What the last walk found; valid until the next one. */
    struct trp_stack todo, shuffles, chain, profiles;
};

void trp_graph_free(struct trp_graph *g);

/* NULL: there is none of this number. */
static inline struct trp_dataset *trp_graph_get(const struct trp_graph *g,
                                                uint32_t dataset)
{
    return dataset < g->n ? g->v[dataset] : NULL;
}

/* A dataset; `hosts` are the numbers of the hosts that `spec` prefers, in its order.
 * TRP_EINVAL: a parent that is not there, or a bad amount; TRP_ELIMIT; TRP_ENOMEM. */
int trp_graph_add(struct trp_graph *g, const struct trp_dataset_spec *spec,
                  const uint32_t *hosts, uint32_t *ret_id, trp_error *err);

/* Removes one that has no users. */
void trp_graph_remove(struct trp_graph *g, uint32_t dataset);

/* Walks the chain of a dataset into g->chain (its datasets, in the order in which they
 * are asked for a preference), g->shuffles (shuffled datasets that it reads, once each)
 * and g->profiles (attached ones); with `stop_at_cached` not past a dataset of which all
 * partitions are cached. False: out of memory. */
bool trp_graph_walk(struct trp_graph *g, uint32_t dataset, bool stop_at_cached);

/* Begins a walk of the caller's own, who marks as `seen` with g->walk. */
void trp_graph_begin_walk(struct trp_graph *g);

/* The partitions *ret_from .. *ret_to of a narrow parent that the partitions from .. to
 * of the child read; false: none. */
bool trp_graph_run(const struct trp_graph *g, const struct trp_dataset_edge *edge,
                   uint32_t from, uint32_t to, uint32_t *ret_from, uint32_t *ret_to);

/* Barrier stages: every dataset of the chain has `ntasks` partitions and at most one
 * barrier parent. TRP_EINVAL with Spark's reason. */
int trp_graph_check_barrier(struct trp_graph *g, uint32_t dataset, uint32_t ntasks,
                            trp_error *err);

/* A copy of a cached partition is on an executor. Unknown ones are refused. */
int trp_graph_cache(struct trp_graph *g, uint32_t dataset, uint32_t partition,
                    uint32_t executor);
uint32_t trp_graph_cached_on(const struct trp_graph *g, uint32_t executor);
/* All copies on an executor are gone; all copies of a dataset are. */
/* That copy is gone, if there was one. */
void trp_graph_uncache_copy(struct trp_graph *g, uint32_t dataset, uint32_t partition,
                            uint32_t executor);
void trp_graph_uncache_executor(struct trp_graph *g, uint32_t executor);
void trp_graph_uncache(struct trp_graph *g, uint32_t dataset);

#endif
