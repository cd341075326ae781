/*
 * Streams: records in order, one after the other, from memory, a file or another host.
 * Internal to lib/data.
 *
 * A stream has a *present* record, borrowed from it until trp_stream_next. What it is
 * made of says how the next piece of records is had (`refill`).
 */
#ifndef TRP_DATA_STREAM_H
#define TRP_DATA_STREAM_H

#include "data/block_file.h"
#include "data/sorter.h"

struct trp_stream {
    const uint8_t *at, *end; /* records that are here and not taken yet */
    uint32_t partition;      /* of these and of the present one */
    struct trp_record record;
    uint64_t prefix; /* of its key (key_order.h), for who merges it */
    uint32_t source; /* in trp_shuffle_read.sources; TRP_NO_SOURCE */
    /* 1: there are more records at `at`; 0: the stream has ended. TRP_EPROTO: what is
     * read is damaged; TRP_ENOENT: it is not there. The text says why. */
    int (*refill)(struct trp_stream *s, trp_error *err);
    void (*free)(struct trp_stream *s);
};
#define TRP_NO_SOURCE UINT32_MAX

/* 1: the next record is present; else as `refill`. */
static inline int trp_stream_next(struct trp_stream *s, trp_error *err)
{
    if (s->at == s->end) {
        int rc = s->refill(s, err);
        if (rc <= 0)
            return rc;
    }
    s->at = trp_record_get(s->at, s->end, &s->record);
    if (__builtin_expect(!s->at, 0)) {
        s->at = s->end;
        return trp_error_set(err, TRP_EPROTO, "a record is not whole");
    }
    return 1;
}

/* The sorted records of `s`, which is borrowed. NULL: out of memory. */
struct trp_stream *trp_stream_of_memory(const struct trp_sorter *s);

/* ---- streams of parts ------------------------------------------------------------ */

/* Where the bytes of a block or a spill come from. */
struct trp_bytes_source {
    /* The next n bytes, which there are: 0, or a code as of `refill`. */
    int (*read)(struct trp_bytes_source *b, uint8_t *to, size_t n, trp_error *err);
    void (*free)(struct trp_bytes_source *b);
};

/* What all streams of one reader or writer share, since one at a time uses it. */
struct trp_unpacker {
    ZSTD_DCtx *zstd;
};

/* Memory of a stream of parts with `bytes` to come. */
static inline size_t trp_stream_memory(uint64_t bytes)
{
    const size_t most = (size_t)2 * (TRP_PART_SIZE + TRP_PART_HEAD);
    return bytes < most ? (size_t)bytes : most;
}

/* The records of the parts in the `bytes` bytes of a source, which is freed with the
 * stream (also when NULL is returned: out of memory). `partition`: of all of them, or
 * TRP_ANY_PARTITION. `unpacker` is borrowed. */
struct trp_stream *trp_stream_of_parts(struct trp_bytes_source *take_source,
                                       uint64_t bytes, uint64_t seed,
                                       uint32_t partition,
                                       struct trp_unpacker *unpacker);
#define TRP_ANY_PARTITION UINT32_MAX

/* The bytes of a file from `begin` on; the descriptor is borrowed. NULL: out of memory.
 */
struct trp_bytes_source *trp_source_of_file(int fd, uint64_t begin);
/* A map output's block. `take_fd` is the open file, or -1: it is opened for each read
 * in `folder`, which is borrowed. NULL: out of memory. */
struct trp_bytes_source *trp_source_of_block(int folder, const struct trp_output_id *id,
                                             int take_fd, uint64_t begin);

#endif
