/*
 * What block client and block server say to each other. Internal to lib/data.
 *
 * On a connection that both sides have proved (comm/handshake.h) the client sends
 * WANTED frames: a u32 count and as many pieces of blocks. The server answers each
 * piece, in this order, by a BLOCK frame and as many bytes of the block, raw, as the
 * frame says. A check (TRP_WANTED_CHECK) is answered without bytes. Frames have tags,
 * the bytes have not: they are parts, with checksums of their own (data/parts.h).
 */
#ifndef TRP_DATA_BLOCK_WIRE_H
#define TRP_DATA_BLOCK_WIRE_H

#include "core/base/bytes.h"
#include "data/block_file.h"

enum {
    TRP_WANTED_SIZE = 36,
    TRP_WANTED_FRAME = 100,     /* pieces of one frame */
    TRP_WANTED_PENDING = 1024,  /* unanswered pieces of one connection */
    TRP_WANTED_BYTES = 1 << 20, /* of one piece */
    TRP_BLOCK_WHY = 200,        /* bytes of a text */
};

/* A piece of a block. */
struct trp_wanted {
    struct trp_output_id id;
    uint32_t partition, partitions; /* of how many */
    uint64_t offset;                /* in the block */
    uint32_t size; /* as many bytes, or as there are; 0: its size alone */
};
/* With size 0: whether the whole map output is what it should be; its size is told. */
#define TRP_WANTED_CHECK UINT64_MAX

enum trp_block_status {
    TRP_BLOCK_HERE,
    TRP_BLOCK_GONE,    /* there is no such map output */
    TRP_BLOCK_DAMAGED, /* the file is not what it should be */
    TRP_BLOCK_LATER,   /* the server is short of something */
};

struct trp_block_head {
    uint8_t status;
    uint32_t number; /* of the answer, from 0 on this connection */
    uint64_t size;   /* of the whole block */
    uint32_t bytes;  /* that follow */
    char why[TRP_BLOCK_WHY + 1];
};

void trp_wanted_put(struct trp_buf *to, const struct trp_wanted *w);
/* One of a frame's. TRP_EPROTO: no client of ours sends that. */
int trp_wanted_get(struct trp_view *v, struct trp_wanted *ret);
/* How many follow; TRP_EPROTO. */
int trp_wanted_count(struct trp_view *v);

void trp_block_head_put(struct trp_buf *to, const struct trp_block_head *h);
/* The answer to `w`. TRP_EPROTO: it is none. */
int trp_block_head_get(struct trp_view *v, const struct trp_wanted *w, uint32_t number,
                       struct trp_block_head *ret);

#endif
