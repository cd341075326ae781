/*
 * Block client: a thread that fetches pieces of blocks from the block servers of other
 * hosts, for all tasks of an executor.
 *
 * There is one connection to a host, however many tasks read from it; pieces that are
 * wanted at the same time travel together. A piece is only asked for when there is
 * memory for it, so nothing piles up. What a server does not answer, or answers
 * wrongly, is asked for again after a while, from the next endpoint of the host.
 *
 *     trp_block_client_start(&config, &client, &err);
 *     … trp_shuffle_read.client = client …
 *     trp_block_client_stop(client);
 *
 * Threads: any thread may read. One thread starts and stops the client, while none
 * reads.
 */
#ifndef TRP_DATA_BLOCK_CLIENT_H
#define TRP_DATA_BLOCK_CLIENT_H

#include "data/shuffle.h"

struct trp_block_client_config {
    const uint8_t *secret; /* TRP_SECRET_SIZE bytes (comm/channel.h), copied */
    bool munge, mac;       /* as the servers have them */
    int64_t timeout_ns;    /* without a byte of what was asked for; 0: 30 s */
    int64_t retry_ns;      /* until the first further try; each next waits twice as
                            * long; 0: 500 ms */
    int64_t idle_ns;       /* until an unused connection is closed; 0: 30 s */
    uint32_t tries;        /* 0: 4 */
};

struct trp_block_client_counts {
    uint64_t endpoints; /* that are known now */
    uint64_t calls;     /* connections that were made */
    uint64_t frames;    /* that asked for pieces */
    uint64_t pieces;    /* that were answered */
    uint64_t bytes;     /* of blocks */
    uint64_t retries;   /* pieces that were asked for once more */
};

int trp_block_client_start(const struct trp_block_client_config *config,
                           trp_block_client **ret, trp_error *err);
/* The block servers of a location, in place of those that were known (copied). A reader
 * of a location without servers waits as long as a failed fetch is tried again. If the
 * first endpoint is "", the outputs are being moved: the reader waits, and loses no try.
 * TRP_ENOMEM: nothing is changed. Any thread may call it. */
int trp_block_client_learn(trp_block_client *c, uint32_t location,
                           const char *const *endpoints, uint32_t n);
/* So far. Any thread may call it. */
void trp_block_client_counts(trp_block_client *c, struct trp_block_client_counts *ret);
/* NULL: nothing. */
void trp_block_client_stop(trp_block_client *c);

#endif
