/*
 * One pool: its children and their order. Internal to sched; pools.h is the contract.
 */
#ifndef TRP_CORE_SCHED_POOL_TREE_H
#define TRP_CORE_SCHED_POOL_TREE_H

#include <uthash.h>

#include "core/sched/pools.h"

enum { TRP_POOL_ASIDE = 16 };

struct trp_pool_entry {
    uint64_t key;
    uint32_t rank;
    struct trp_pool_child *child;
};

struct trp_pool {
    struct trp_pool_child self; /* first: a child without a set is a pool */
    enum trp_pool_mode mode;
    bool silent;             /* made for a set: goes with its last child */
    uint32_t nlisted;        /* listed children */
    uint32_t at, aside_left; /* of the walk: next in order, still to come aside */
    struct trp_pool_child **children;
    uint32_t nchildren, children_cap;
    struct trp_pool_entry *order;
    uint32_t norder, order_cap;
    struct trp_pool_entry
        aside[TRP_POOL_ASIDE]; /* whose place is another now, last first */
    uint32_t naside;
    UT_hash_handle hh;
    char name[];
};

/* Makes `c`, unlisted, a child. False: out of memory. */
bool trp_pool_child_add(struct trp_pool *p, struct trp_pool_child *c);
/* The reverse; it may be listed no more. */
void trp_pool_child_remove(struct trp_pool_child *c);

/* Brings its place in its parent's order up to date: with its count, or out of it. */
void trp_pool_child_place(struct trp_pool_child *c);

/* Of two children of one pool, with what runs of them now. */
bool trp_pool_child_is_before(const struct trp_pool_child *a,
                              const struct trp_pool_child *b);
/* A walk over its listed children in order; NULL after the last. */
void trp_pool_enter(struct trp_pool *p);
struct trp_pool_child *trp_pool_step(struct trp_pool *p);

/* The set that is all it has listed; such a pool takes no walk. NULL: it has others. */
static inline void *trp_pool_only_set(const struct trp_pool *p)
{
    const struct trp_pool_child *c =
        p->nlisted == 1 && p->norder == 1 && !p->naside ? p->order[0].child : NULL;
    return c && c->listed ? c->set : NULL;
}

/* Checks a pool and what is in it: TRP_ESTATE. */
int trp_pool_check(const struct trp_pool *p, trp_error *err);

#endif
