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
    TRP_WIDE_REDUCE = 1,  /* one record a key, by a typed sum */
    TRP_WIDE_COMBINE,     /* … by a function of the program */
    TRP_WIDE_GROUP,       /* one record a key, with all its values */
    TRP_WIDE_DISTINCT,    /* each record once */
    TRP_WIDE_REPARTITION, /* dealt out in turn */
    TRP_WIDE_SORT,        /* dealt out by ranges of keys */
    TRP_WIDE_JOIN,        /* pairs of values of one key */
    TRP_WIDE_COGROUP,     /* a function gets all values of one key */
    TRP_WIDE_PARTITION,   /* dealt out by a function of the program */
    TRP_WIDE_KINDS,       /* one more than the last */
};

enum { TRP_SIDES_MAX = 2 };

struct trp_wide_key {
    const uint8_t *data;
    size_t size;
    uint64_t prefix; /* of a range: trp_shuffle_prefix */
};

/* The same on the driver, which puts it, and on an executor, which gets it. */
struct trp_wide_plan {
    enum trp_wide_kind kind;
    enum trp_sum sum;   /* REDUCE */
    unsigned order;     /* SORT: enum trp_order; 0: by `function` */
    enum trp_join join; /* JOIN */
    unsigned values; /* GROUP: enum trp_order of values; 0: by `function`, if there is
                           * one, else as they came */
    bool tasked;     /* the function gets its task */
    const char *function; /* COMBINE, SORT, COGROUP, PARTITION, GROUP: registered name;
                           * NULL: none */
    const void *arg;
    size_t arg_size;
    void (*code)(void);    /* the function, on an executor */
    struct trp_buf bounds; /* SORT: the first key of each range but the first, counted
                            * bytes; there may be fewer than partitions */
    bool bounded;          /* they are known */
    struct trp_wide_key *ranges; /* bounds, on an executor */
    uint32_t nranges;
    uint32_t partitions;
    uint32_t nsides;
    uint32_t dataset[TRP_SIDES_MAX]; /* the driver's ids of the sides; TRP_NONE: not
                                      * told yet */
};

/* ---- wide_plan.c ---- */

void trp_wide_plan_put(struct trp_buf *b, const struct trp_wide_plan *p);
/* False: broken, or out of memory; what it has is to be freed in any case. */
bool trp_wide_plan_get(struct trp_view *v, struct trp_wide_plan *ret);
void trp_wide_plan_free(struct trp_wide_plan *p); /* of one that was got */
/* Whether what a side computes is dealt out, ordered and combined alike by both, before
 * their sides are told. */
bool trp_wide_deals_alike(const struct trp_wide_plan *a, const struct trp_wide_plan *b);
/* "trp_reduce_by_key": what the program called. */
const char *trp_wide_name(const struct trp_wide_plan *p);

/* ---- wide_order.c: how records of a plan are ordered and combined ---- */

/* Work memory of one writer or reader. */
struct trp_combining {
    const struct trp_wide_plan *plan;
    uint64_t value;     /* of a sum, when it was lent */
    trp_writer out;     /* of a function */
    int code;           /* that the function returned, 0: none */
    const char *failed; /* what it did wrong */
    trp_task *task;     /* that calls it; NULL: the driver does */
    bool raised;        /* it has said that it fails, and could not return that */
};
void trp_combining_free(struct trp_combining *c);
/* `c` is lent to it. */
struct trp_shuffle_order trp_wide_order(const struct trp_wide_plan *p,
                                        struct trp_combining *c);

/* Calls a compare function; whether it says that it fails is noted in `c`. */
int trp_wide_compare(struct trp_combining *c, const void *a, size_t na, const void *b,
                     size_t nb);

/* ---- sums.c ---- */

/* Bytes that a value of this sum has. */
uint32_t trp_sum_width(enum trp_sum sum);
bool trp_sum_known(unsigned sum);
/* *ret: of two values of that width. */
void trp_sum_combine(enum trp_sum sum, const void *a, const void *b, uint64_t *ret);

#endif
