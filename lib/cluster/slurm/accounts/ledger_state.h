/*
 * What the files of the ledger share.
 */
#ifndef TRP_CLUSTER_SLURM_ACCOUNTS_LEDGER_STATE_H
#define TRP_CLUSTER_SLURM_ACCOUNTS_LEDGER_STATE_H

#include "cluster/slurm/accounts/node_ledger.h"

struct trp_slurm_room {
    uint64_t cores;
    int64_t memory_mib;
    uint32_t pools[TRP_SLURM_POOLS];
};

/* What there is: of each node, and of each part the licences. */
struct trp_slurm_side {
    struct trp_slurm_room *rooms;
    uint32_t (*licences)[TRP_SLURM_POOLS];
};

/* The nodes of a part, in the order in which they are filled: `n` of ledger.order from
 * `begin`. */
struct trp_slurm_span {
    uint32_t part, begin, n;
    bool blocked; /* somebody who came earlier waits for it */
};

/* Who looks for room, where (`kind` may be NULL), and how bad nodes may be. */
struct trp_slurm_look {
    const struct trp_slurm_side *side;
    const struct trp_slurm_footprint *footprint;
    uint32_t units;
    const struct trp_slurm_request_kind *kind;
    enum trp_slurm_standing worst;
};

struct trp_slurm_ledger {
    const struct trp_slurm_inventory *inventory;
    struct trp_slurm_share driver;
    struct trp_slurm_side all, free;   /* when nothing is placed, and now */
    uint32_t *placed;                  /* spots that are taken, by node */
    enum trp_slurm_standing *standing; /* by node */
    bool *held;                        /* by node */
    uint32_t *resized;                 /* how often its part was, by node */
    uint32_t nodes_cap, parts_cap;     /* of these arrays by node, and by part */
    struct trp_slurm_span *spans;      /* open parts, in the order in which they came */
    uint32_t nspans, nown; /* parts that were there at first: the driver's own */
    uint32_t *order;
    struct trp_slurm_request_kind **kinds;
    uint32_t nkinds, kinds_cap;
    uint64_t turns;
};

/* Into order: the nodes of all spans. */
void trp_slurm_ledger_set_order(trp_slurm_ledger *b);
/* As if nothing were placed. */
void trp_slurm_ledger_empty(trp_slurm_ledger *b);
/* A ledger of the first `parts` jobs alone, with nothing placed and all nodes well. NULL
 * with `err`: out of memory. */
trp_slurm_ledger *trp_slurm_ledger_own(const trp_slurm_ledger *b, uint32_t parts,
                                       trp_error *err);
/* Finds room for a request that is not in the queue, and takes it; nodes of the best
 * standing first, and none that is worse than `worst`. */
bool trp_slurm_ledger_place(trp_slurm_ledger *b, struct trp_slurm_request *r,
                            enum trp_slurm_standing worst);
/* Whether a part has room for all units. */
bool trp_slurm_ledger_has_room(const trp_slurm_ledger *b,
                               const struct trp_slurm_look *l,
                               const struct trp_slurm_span *span);
/* Gives back what a request was placed on. */
void trp_slurm_ledger_unplace(trp_slurm_ledger *b, struct trp_slurm_request *r);
/* Units that a side has room for on a node. */
uint64_t trp_slurm_ledger_units(const trp_slurm_ledger *b,
                                const struct trp_slurm_side *side, uint32_t node,
                                const struct trp_slurm_footprint *footprint);
/* How much of a want a side has on a node; of a feature all, or nothing. */
uint64_t trp_slurm_ledger_available(const trp_slurm_ledger *b,
                                    const struct trp_slurm_side *side, uint32_t node,
                                    const struct trp_slurm_want *w);

#endif
