/*
 * Parts: what blocks and spills are made of. Internal to lib/data.
 *
 * A part is a head and whole records of one partition, about TRP_PART_SIZE bytes of
 * them (one record, where that is larger), which may be compressed as one. The head
 * has its own check, so that its lengths are believed before what they count is read,
 * and a checksum of the rest. Both begin with a *seed*, which is another one for each
 * map output: a part of another file is none of this one.
 *
 *     u64 checksum of what follows the head
 *     u32 bytes that follow
 *     u32 bytes of records
 *     u32 partition; the highest bit: compressed
 *     u32 check of the 20 bytes before it
 */
#ifndef TRP_DATA_PARTS_H
#define TRP_DATA_PARTS_H

#include <sys/types.h>
#include <zstd.h>

#include "data/record.h"

enum {
    TRP_PART_HEAD = 24,
    TRP_PART_SIZE = 64 << 10,
    TRP_PARTS_BUFFER = 256 << 10, /* what is written at a time */
};
/* Records of one part. */
#define TRP_PART_MAX (TRP_SHUFFLE_RECORD_MAX + TRP_RECORD_HEAD_MAX)

uint64_t trp_parts_seed(uint32_t shuffle, uint32_t map, uint64_t attempt);

/* ---- writing --------------------------------------------------------------------- */

struct trp_parts_writer {
    int fd;
    const char *where; /* of messages: the folder */
    uint64_t seed;
    ZSTD_CCtx *zstd; /* NULL: nothing is compressed */
    int level;
    uint8_t *packed; /* room for a compressed part */
    size_t packed_capacity;
    uint8_t *buffer;
    size_t size, capacity;
    size_t open_at;     /* where in it the open part begins; TRP_NO_PART */
    uint32_t partition; /* of the open part */
    uint64_t bytes;     /* closed so far */
    uint64_t records;
    uint64_t *sizes; /* of the partitions, counted here; NULL: nobody wants them */
};
#define TRP_NO_PART SIZE_MAX

/* `fd` and `where` are borrowed. `level` 0: nothing is compressed. TRP_ENOMEM. */
int trp_parts_writer_open(struct trp_parts_writer *p, int fd, const char *where,
                          uint64_t seed, int level, trp_error *err);
void trp_parts_writer_close(struct trp_parts_writer *p); /* writes nothing */

/* Adds a record in its form of record.h, `n` bytes. TRP_ENOMEM, TRP_ESYSTEM. */
int trp_parts_put(struct trp_parts_writer *p, uint32_t partition, const void *record,
                  size_t n, trp_error *err);
/* The same of a key and a value. */
int trp_parts_put_record(struct trp_parts_writer *p, uint32_t partition,
                         const struct trp_shuffle_record *r, trp_error *err);
/* Closes the open part and writes all there is. */
int trp_parts_flush(struct trp_parts_writer *p, trp_error *err);
/* Adds bytes that are no part, when none is open. */
int trp_parts_put_raw(struct trp_parts_writer *p, const void *bytes, size_t n,
                      trp_error *err);

/* ---- reading --------------------------------------------------------------------- */

struct trp_part_head {
    uint64_t checksum;
    uint32_t stored, raw, partition;
    bool compressed;
};

/* TRP_EPROTO: it is no head of a part of this seed, or of more than `left` bytes with
 * it. `bytes` has TRP_PART_HEAD. */
int trp_part_head_get(const uint8_t *bytes, uint64_t seed, uint64_t left,
                      struct trp_part_head *ret);
/* Whether the `stored` bytes behind a head are those it was made for. */
bool trp_part_is_whole(const struct trp_part_head *h, const uint8_t *stored,
                       uint64_t seed);

#endif
