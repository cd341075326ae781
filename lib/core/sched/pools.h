/*
 * Pools: in which order task sets are offered resources (semantics, section 19).
 *
 * Words. A *pool* holds task sets and other pools, its children; the root pool holds
 * all. FIFO order of children is job id, then stage id, then arrival; FAIR order looks
 * at running tasks, minimum shares and weights, then at names. A *round* walks the
 * sets in order: order is computed once a round, counts that change during a walk show
 * in the next one. A set that has nothing to launch is not *listed* and costs a round
 * nothing, but its running tasks count.
 *
 *     trp_pools_new(TRP_POOL_FAIR, specs, nspecs, &pools, &err);
 *     trp_pools_add(pools, &set->place, set, "etl", job, stage, attempt, &err);
 *     trp_pools_list(pools, &set->place);
 *     for (set = trp_pools_first(pools); set; set = trp_pools_next(pools))
 *         while (launch(set))
 *             trp_pools_count(pools, &set->place, +1);
 *
 * Invariants. Only what trp_pools_add and _new allocate; nothing else can fail. One
 * walk at a time; sets may be added, listed, unlisted, removed and freed during it
 * (those listed meanwhile come in the next walk).
 */
#ifndef TRP_CORE_SCHED_POOLS_H
#define TRP_CORE_SCHED_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_pools trp_pools;
struct trp_pool;

enum trp_pool_mode { TRP_POOL_FIFO, TRP_POOL_FAIR };

enum { TRP_POOLS_MAX = 65536, TRP_POOLS_DEPTH = 64 };
#define TRP_POOL_DEFAULT "default"

/* A pool as somebody wrote it. Odd input is forgiven as in Spark: NULL, blank or
 * impossible numbers are the defaults, any mode but FAIR is FIFO; case and blanks
 * around do not matter. */
struct trp_pool_spec {
    const char *name;
    const char *mode;      /* "FIFO" (default), "FAIR" */
    const char *weight;    /* default 1 */
    const char *min_share; /* default 0 */
    const char *parent;    /* a pool's name, in any order; NULL: the root */
};

/* What stands for a task set, or a pool, among its siblings. A part of the caller's
 * struct, zeroed before trp_pools_add; its fields are this module's own. */
struct trp_pool_child {
    struct trp_pool *parent;            /* NULL: not added, or the root */
    void *set;                          /* NULL: a pool */
    struct trp_pool_child *next, *prev; /* in the list of those to be placed anew */
    uint64_t key;  /* it stands in its parent's order by key, … */
    uint32_t rank; /* … then by rank among all its siblings */
    uint32_t running, weight, min_share;
    uint32_t job, stage, attempt; /* of a set */
    bool listed, placed, aside, moved;
};

/* `specs` (copied) NULL: no pools were configured, then the pool "default" of FAIR has
 * the mode FAIR itself. FIFO ignores them all. TRP_EINVAL: a pool without a name or
 * inside itself; TRP_EEXIST: two of one name; TRP_ELIMIT: more than TRP_POOLS_MAX, or
 * one inside more than TRP_POOLS_DEPTH. */
int trp_pools_new(enum trp_pool_mode mode, const struct trp_pool_spec *specs,
                  uint32_t nspecs, trp_pools **ret_pools, trp_error *err);
/* All sets must have been removed. NULL is ignored. */
void trp_pools_free(trp_pools *p);

/* Puts a set into the pool of that name, unlisted. NULL or blank is "default"; an
 * unknown one is made (FIFO, weight 1, no minimum share) and goes with its last set.
 * TRP_ENOMEM, TRP_ELIMIT. */
int trp_pools_add(trp_pools *p, struct trp_pool_child *c, void *set, const char *pool,
                  uint32_t job, uint32_t stage, uint32_t attempt, trp_error *err);
/* Takes it out, with what it still counts as running. One never added is ignored. */
void trp_pools_remove(trp_pools *p, struct trp_pool_child *c);

/* It has something to launch, or has not. Doing it twice is the same as once. */
void trp_pools_list(trp_pools *p, struct trp_pool_child *c);
void trp_pools_unlist(trp_pools *p, struct trp_pool_child *c);

/* `by` more (or fewer) of its tasks are running, here and in all pools around it. */
void trp_pools_count(trp_pools *p, struct trp_pool_child *c, int by);

/* The listed sets in order; NULL after the last. */
void *trp_pools_first(trp_pools *p);
void *trp_pools_next(trp_pools *p);

/* Of the pool a set is in, for explanations: name ("" for the root), running tasks of
 * all its sets, minimum share, weight. */
struct trp_pool_view {
    const char *name;
    uint32_t running, min_share, weight;
    enum trp_pool_mode mode;
};
void trp_pools_view(const struct trp_pool_child *c, struct trp_pool_view *ret_view);

/* Will `a` come before `b` in the next walk, if both are listed then? Both are sets in
 * the same pools. Changes nothing: for explanations. */
bool trp_pools_is_before(const struct trp_pool_child *a,
                         const struct trp_pool_child *b);

/* Checks order, counts and lists the hard way (slow; tests): TRP_ESTATE. */
int trp_pools_check(const trp_pools *p, trp_error *err);

#endif
