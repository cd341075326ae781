/*
 * A block on another host, as a source of bytes. Internal to lib/data.
 *
 * Its first bytes, and how many there are, are asked for when it is opened. While what
 * has come is used, the next piece is on its way, into a buffer that it keeps.
 */
#ifndef TRP_DATA_REMOTE_H
#define TRP_DATA_REMOTE_H

#include "data/fetch.h"
#include "data/stream.h"

struct trp_remote {
    struct trp_bytes_source source;
    trp_block_client *client;
    const volatile int *killed;
    int64_t *wait_ns; /* counted here */
    struct trp_fetch fetch;
    uint8_t *buffer;
    uint32_t piece;      /* bytes that are asked for at a time, from the second on */
    uint32_t have, used; /* of the buffer */
    uint64_t size;       /* of the block */
};

/* Asks for the first `first` bytes (0: its size alone). All is borrowed but `wanted`'s
 * id and partition. NULL: out of memory. */
struct trp_remote *trp_remote_open(trp_block_client *client,
                                   const struct trp_data_host *host,
                                   const struct trp_wanted *wanted, uint32_t first,
                                   const volatile int *killed, int64_t *wait_ns);
/* Waits for them. TRP_ENOENT: it cannot be had; TRP_ECANCELLED. */
int trp_remote_size(struct trp_remote *r, uint64_t *ret_size, trp_error *err);
void trp_remote_free(struct trp_remote *r);

#endif
