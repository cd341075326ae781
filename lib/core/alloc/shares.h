/*
 * How the room under the limits over all profiles is divided among profiles
 * (docs/decisions/0014).
 *
 * A *share* is how many executors a profile may have. What tasks can use comes first,
 * profile by profile in the order of the first stage that waits in each; what is kept
 * beyond that (minima) comes when everybody has had that. A gang that does not fit into
 * what is left gets nothing of it: pieces of a gang are of no use, and others may have
 * the room until its turn comes. So the first in order always has its room, and nobody
 * waits for anyone who comes after him.
 *
 *     struct trp_share v[] = {{.profile = 0, .cost = small, .order = 7, .work = 3, …}};
 *     trp_shares_divide(&caps, v, n);      // sorted by order; v[i].share
 */
#ifndef TRP_CORE_ALLOC_SHARES_H
#define TRP_CORE_ALLOC_SHARES_H

#include "core/alloc/caps.h"

struct trp_share {
    uint32_t profile;    /* whose: the lower one first where `order` is the same */
    const int64_t *cost; /* of one executor: caps->n numbers */
    uint64_t order;      /* of its first stage that waits; UINT64_MAX: none does */
    uint32_t work;       /* executors that its tasks can use */
    uint32_t least;      /* with fewer its first stage that waits cannot start */
    uint32_t all;        /* with those that are kept: at least `work` */
    uint32_t share;      /* found; at most `all` */
};

/* Sorts `v` by order and finds the shares. O(n log n). */
void trp_shares_divide(const struct trp_caps *caps, struct trp_share *v, uint32_t n);

#endif
