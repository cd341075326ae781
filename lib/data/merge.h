/*
 * Many streams made one, in order of partition and key; of equal keys the records of
 * the lower stream first. Internal to lib/data.
 *
 *     trp_merge_open(&m, streams, n, &order, &err);
 *     while ((rc = trp_merge_next(&m, &record, &err)) > 0)
 *         … m.partition …
 *     trp_merge_close(&m);
 *
 * Where the order has `combine`, the records of a key become one. Where it is
 * unordered, streams come one after the other in each partition.
 */
#ifndef TRP_DATA_MERGE_H
#define TRP_DATA_MERGE_H

#include "core/base/bytes.h"
#include "data/stream.h"

struct trp_merge {
    const struct trp_shuffle_order *order;
    struct trp_stream **streams; /* n of them, freed with it; NULL: ended */
    uint32_t n;
    uint32_t *losers; /* a tree of streams: losers[0] has won */
    bool started;
    uint32_t partition; /* of what came last */
    uint32_t failed;    /* the stream that a failure came from; TRP_NO_SOURCE: none */
    uint64_t read;      /* records that streams of sources had; spills do not count */
    struct {            /* what is combined: */
        bool ahead;     /* the streams' first record is the next key's */
        struct trp_buf key, value;
    } fold;
};

/* `take_streams` is freed by trp_merge_close, also after a failure. TRP_ENOMEM. */
int trp_merge_open(struct trp_merge *m, struct trp_stream **take_streams, uint32_t n,
                   const struct trp_shuffle_order *order, trp_error *err);
/* 1: a record, borrowed until the next call; 0: there are no more. Failures of streams
 * and of `combine`; it can only be closed then. */
int trp_merge_next(struct trp_merge *m, struct trp_shuffle_record *ret, trp_error *err);
void trp_merge_close(struct trp_merge *m);

#endif
