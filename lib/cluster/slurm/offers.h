/*
 * What nodes the cluster has, whoever uses them now: whether a further job can ever
 * hold something. An upper bound: Slurm may still refuse for reasons of its own.
 */
#ifndef TRP_CLUSTER_SLURM_OFFERS_H
#define TRP_CLUSTER_SLURM_OFFERS_H

#include "cluster/slurm/books.h"

/* `nodes` nodes that are alike. */
struct trp_slurm_offer {
    uint32_t nodes, cores, threads;
    int64_t memory_mib;
    char *features, *partitions; /* "a,b" */
    struct trp_slurm_pool pools[TRP_SLURM_POOLS];
    uint32_t npools;
};

struct trp_slurm_partition {
    char *name;
    bool is_default;
    int64_t minutes; /* the longest job; 0: any */
    uint32_t cores;  /* of a node, for one job; 0: any */
};

struct trp_slurm_offers {
    struct trp_slurm_offer *v;
    uint32_t n;
    struct trp_slurm_partition *partitions;
    uint32_t npartitions;
    bool known; /* Slurm has answered */
};

/* One line of the answer to `nodes`: a trp_slurm_answer. */
int trp_slurm_offers_add(void *offers, const struct trp_slurm_line *line,
                         trp_error *err);
void trp_slurm_offers_free(struct trp_slurm_offers *o);

/* The partition of that name; "": the default one. NULL: there is none. */
const struct trp_slurm_partition *
trp_slurm_offers_partition(const struct trp_slurm_offers *o, const char *name);

/* How many requests of `units` units the nodes of a partition hold at most; 0 with
 * TRP_ENEVER. */
uint32_t trp_slurm_offers_fit(const struct trp_slurm_offers *o, const char *partition,
                              const struct trp_slurm_need *need, uint32_t units,
                              trp_error *err);
/* The most threads that a core of a partition's nodes has. */
uint32_t trp_slurm_offers_threads(const struct trp_slurm_offers *o,
                                  const char *partition);

#endif
