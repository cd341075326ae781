/*
 * What nodes the cluster has, whoever uses them now: whether an additional job can ever
 * hold something. An upper bound: Slurm may still refuse for reasons of its own.
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_NODE_OFFERS_H
#define TRP_CLUSTER_SLURM_HELPER_NODE_OFFERS_H

#include "cluster/slurm/accounts/node_ledger.h"
#include "cluster/slurm/helper/line.h"

/* `nodes` nodes that are alike. */
struct trp_slurm_offer {
    uint32_t nodes, cores, threads;
    int64_t memory_mib;
    char *features, *partitions; /* "a,b" */
    char *version;               /* of slurmd, "" when none has come up yet */
    char *oldest;                /* the node whose slurmd has run the longest … */
    int64_t since;   /* … since then, in seconds since 1970; 0: not known */
    char *available; /* features that a node can have after a reboot; the others too */
    struct trp_slurm_pool pools[TRP_SLURM_POOLS];
    uint32_t npools;
};

struct trp_slurm_partition {
    char *name;
    bool is_default;
    bool is_up;      /* jobs start there */
    int64_t minutes; /* the longest job; 0: any */
    uint32_t cores;  /* of a node, for one job; 0: any */
};

struct trp_slurm_offers {
    struct trp_slurm_offer *v;
    uint32_t n, cap;
    struct trp_slurm_partition *partitions;
    uint32_t npartitions, partitions_cap;
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
 * TRP_ENEVER and "no node of partition main is so large: cores wanted 8, at most 4". */
uint32_t trp_slurm_offers_fit(const struct trp_slurm_offers *o, const char *partition,
                              const struct trp_slurm_footprint *footprint,
                              uint32_t units, trp_error *err);
/* Of a gang with devices, which are to be the same on each of its nodes: how many of
 * its ranks a node has, `most` at most, when they are on as few nodes as the partition
 * has for that, spread evenly. 0: it has not enough of them. */
uint32_t trp_slurm_offers_even(const struct trp_slurm_offers *o, const char *partition,
                               const struct trp_slurm_footprint *footprint,
                               uint32_t ranks, uint32_t most);
/* How many units a node of the partition holds that holds any, on average; at least 1.
 */
uint32_t trp_slurm_offers_on_node(const struct trp_slurm_offers *o,
                                  const char *partition,
                                  const struct trp_slurm_footprint *footprint);
/* The most cores and MiB that one node has for a job, and the most of a device or
 * feature (1: it has it) by name and type. `p` NULL: of all nodes. */
void trp_slurm_offers_most(const struct trp_slurm_offers *o,
                           const struct trp_slurm_partition *p, uint64_t *ret_cores,
                           int64_t *ret_mib);
uint64_t trp_slurm_offers_most_of(const struct trp_slurm_offers *o,
                                  const struct trp_slurm_partition *p,
                                  const struct trp_slurm_want *w);
/* The most threads that a core of a partition's nodes has. */
uint32_t trp_slurm_offers_threads(const struct trp_slurm_offers *o,
                                  const char *partition);

#endif
