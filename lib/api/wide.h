/*
 * Wide operations: datasets whose partitions need records of all partitions of another.
 *
 * A *wide* node is a source of the chain that it stands in: its partitions are read
 * from map outputs. What it is made of is computed in stages of their own, *sides* (a
 * join has two), whose tasks end in a shuffle writer instead of an action. What a side
 * writes and what the node reads is told by one *plan*, which both stages have in their
 * bodies: how keys are dealt out to partitions, in what order they are, how values of
 * one key are combined.
 *
 *     side 0: … → f → g → shuffle_out        one map output a task
 *     wide node: shuffle_in → h → …          one partition a task, merged by key
 *
 * Every record of a shuffle is a key and a value to lib/data. What the program sees as
 * its key, or that it has none, is packed here (shuffle_out.c) and unpacked there
 * (shuffle_in.c).
 */
#ifndef TRP_API_WIDE_H
#define TRP_API_WIDE_H

#include "core/base/bytes.h"
#include "data/shuffle.h"

#include "api/batch.h"

enum trp_wide_kind {
    TRP_WIDE_REDUCE = 1, /* one record a key, by a typed sum */
    TRP_WIDE_KINDS,      /* one more than the last */
};

enum { TRP_SIDES_MAX = 2 };

/* The same on the driver, which puts it, and on an executor, which gets it. */
struct trp_wide_plan {
    enum trp_wide_kind kind;
    enum trp_sum sum;
    uint32_t partitions;
    uint32_t nsides;
    uint32_t dataset[TRP_SIDES_MAX]; /* the driver's ids of the sides; TRP_NONE: not
                                      * told yet */
};

void trp_wide_plan_put(struct trp_buf *b, const struct trp_wide_plan *p);
bool trp_wide_plan_get(struct trp_view *v, struct trp_wide_plan *ret);
/* "trp_reduce_by_key": what the program called. */
const char *trp_wide_name(const struct trp_wide_plan *p);

/* ---- sums.c ---- */

/* Combines two values by a typed sum into `ret`. */
struct trp_summing {
    enum trp_sum sum;
    uint64_t value; /* what was lent */
};
/* Bytes that a value of this sum has. */
uint32_t trp_sum_width(enum trp_sum sum);
bool trp_sum_known(unsigned sum);
int trp_sum_combine(void *context, const void *a, size_t na, const void *b, size_t nb,
                    const void **ret, size_t *ret_size);

#endif
