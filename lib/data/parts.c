/*
 * Parts.
 *
 * Records are copied once, into the buffer that is written; a part is closed in place:
 * its checksum is made while it is in the cache. One that is compressed is copied back
 * over itself, when it has become smaller.
 */
#include "data/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#define COMPRESSED (UINT32_C(1) << 31)
enum { CHECKED = 20 };

uint64_t trp_parts_seed(uint32_t shuffle, uint32_t map, uint64_t attempt)
{
    uint64_t words[2] = {htole64((uint64_t)shuffle << 32 | map), htole64(attempt)};
    return XXH3_64bits(words, sizeof words);
}

/* ---- writing --------------------------------------------------------------------- */

int trp_parts_writer_open(struct trp_parts_writer *p, int fd, const char *where,
                          uint64_t seed, int level, trp_error *err)
{
    *p = (struct trp_parts_writer){.fd = fd,
                                   .where = where,
                                   .seed = seed,
                                   .level = level,
                                   .capacity = TRP_PARTS_BUFFER,
                                   .open_at = TRP_NO_PART};
    p->buffer = (uint8_t *)malloc(p->capacity);
    p->zstd = level != 0 ? ZSTD_createCCtx() : NULL;
    if (p->buffer && (p->zstd || level == 0))
        return 0;
    trp_parts_writer_close(p);
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

void trp_parts_writer_close(struct trp_parts_writer *p)
{
    ZSTD_freeCCtx(p->zstd);
    free(p->packed);
    free(p->buffer);
    *p = (struct trp_parts_writer){.fd = -1, .open_at = TRP_NO_PART};
}

static int write_out(struct trp_parts_writer *p, trp_error *err)
{
    for (size_t done = 0; done < p->size;) {
        ssize_t n = write(p->fd, p->buffer + done, p->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return trp_error_set(err, TRP_ESYSTEM,
                                 "%s: shuffle data cannot be written: %s", p->where,
                                 n < 0 ? strerror(errno) : "nothing is taken");
        done += (size_t)n;
    }
    p->size = 0;
    return 0;
}

/* The bytes that the open part's records become, in `packed`; 0: leave them. */
static size_t pack(struct trp_parts_writer *p, const uint8_t *records, size_t n)
{
    size_t bound = ZSTD_compressBound(n);
    if (p->packed_capacity < bound) {
        free(p->packed);
        p->packed = (uint8_t *)malloc(bound);
        p->packed_capacity = p->packed ? bound : 0;
    }
    if (!p->packed)
        return 0;
    size_t size = ZSTD_compressCCtx(p->zstd, p->packed, bound, records, n, p->level);
    return ZSTD_isError(size) || size >= n ? 0 : size;
}

static void put_head(uint8_t *to, const struct trp_part_head *h, uint64_t seed)
{
    uint64_t checksum = htole64(h->checksum);
    uint32_t words[3] = {htole32(h->stored), htole32(h->raw),
                         htole32(h->partition | (h->compressed ? COMPRESSED : 0))};
    memcpy(to, &checksum, sizeof checksum);
    memcpy(to + sizeof checksum, words, sizeof words);
    uint32_t check = htole32((uint32_t)XXH3_64bits_withSeed(to, CHECKED, seed));
    memcpy(to + CHECKED, &check, sizeof check);
}

static void close_part(struct trp_parts_writer *p)
{
    if (p->open_at == TRP_NO_PART)
        return;
    uint8_t *head = p->buffer + p->open_at, *records = head + TRP_PART_HEAD;
    size_t raw = p->size - p->open_at - TRP_PART_HEAD;
    size_t packed = p->zstd ? pack(p, records, raw) : 0;
    if (packed > 0)
        memcpy(records, p->packed, packed);
    struct trp_part_head h = {.stored = (uint32_t)(packed > 0 ? packed : raw),
                              .raw = (uint32_t)raw,
                              .partition = p->partition,
                              .compressed = packed > 0};
    h.checksum = XXH3_64bits_withSeed(records, h.stored, p->seed);
    put_head(head, &h, p->seed);
    p->size = p->open_at + TRP_PART_HEAD + h.stored;
    p->bytes += TRP_PART_HEAD + h.stored;
    if (p->sizes)
        p->sizes[p->partition] += TRP_PART_HEAD + h.stored;
    p->open_at = TRP_NO_PART;
}

/* Room for n bytes more in the buffer; the open part is closed. */
static int make_room(struct trp_parts_writer *p, size_t n, trp_error *err)
{
    close_part(p);
    if (n <= p->capacity - p->size && p->capacity == TRP_PARTS_BUFFER)
        return 0;
    int rc = write_out(p, err);
    size_t capacity = n < TRP_PARTS_BUFFER ? TRP_PARTS_BUFFER : n;
    if (rc < 0 || capacity == p->capacity)
        return rc;
    free(p->buffer); /* one large record has come, or gone */
    p->capacity = capacity;
    p->buffer = (uint8_t *)malloc(capacity);
    return p->buffer ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Room for a record of `n` bytes in an open part of `partition`. Inline: every record
 * passes here. */
static inline uint8_t *reserve(struct trp_parts_writer *p, uint32_t partition, size_t n,
                               trp_error *err, int *ret_rc)
{
    bool fits = p->open_at != TRP_NO_PART && p->partition == partition &&
                n <= p->capacity - p->size &&
                p->size - p->open_at + n <= TRP_PART_HEAD + TRP_PART_SIZE;
    if (__builtin_expect(!fits, 0)) {
        *ret_rc = make_room(p, TRP_PART_HEAD + n, err);
        if (*ret_rc < 0)
            return NULL;
        p->open_at = p->size;
        p->partition = partition;
        p->size += TRP_PART_HEAD;
    }
    uint8_t *to = p->buffer + p->size;
    p->size += n;
    p->records++;
    return to;
}

int trp_parts_put(struct trp_parts_writer *p, uint32_t partition, const void *record,
                  size_t n, trp_error *err)
{
    int rc = 0;
    uint8_t *to = reserve(p, partition, n, err, &rc);
    if (to)
        memcpy(to, record, n);
    return rc;
}

int trp_parts_put_record(struct trp_parts_writer *p, uint32_t partition,
                         const struct trp_shuffle_record *r, trp_error *err)
{
    uint8_t head[TRP_RECORD_HEAD_MAX];
    size_t n = trp_record_head(head, (uint32_t)r->nk, (uint32_t)r->nv);
    int rc = 0;
    uint8_t *to = reserve(p, partition, n + r->nk + r->nv, err, &rc);
    if (!to)
        return rc;
    memcpy(to, head, n);
    if (r->nk > 0)
        memcpy(to + n, r->key, r->nk);
    if (r->nv > 0)
        memcpy(to + n + r->nk, r->value, r->nv);
    return 0;
}

int trp_parts_flush(struct trp_parts_writer *p, trp_error *err)
{
    close_part(p);
    return write_out(p, err);
}

int trp_parts_put_raw(struct trp_parts_writer *p, const void *bytes, size_t n,
                      trp_error *err)
{
    int rc = make_room(p, n, err);
    if (rc < 0)
        return rc;
    memcpy(p->buffer + p->size, bytes, n);
    p->size += n;
    p->bytes += n;
    return 0;
}

/* ---- reading --------------------------------------------------------------------- */

int trp_part_head_get(const uint8_t *bytes, uint64_t seed, uint64_t left,
                      struct trp_part_head *ret)
{
    uint64_t checksum;
    uint32_t words[4];
    memcpy(&checksum, bytes, sizeof checksum);
    memcpy(words, bytes + sizeof checksum, sizeof words);
    uint32_t partition = le32toh(words[2]);
    *ret = (struct trp_part_head){.checksum = le64toh(checksum),
                                  .stored = le32toh(words[0]),
                                  .raw = le32toh(words[1]),
                                  .partition = partition & ~COMPRESSED,
                                  .compressed = (partition & COMPRESSED) != 0};
    bool good =
        le32toh(words[3]) == (uint32_t)XXH3_64bits_withSeed(bytes, CHECKED, seed) &&
        left >= TRP_PART_HEAD && ret->stored <= left - TRP_PART_HEAD &&
        ret->raw <= TRP_PART_MAX && (ret->compressed || ret->stored == ret->raw);
    return good ? 0 : TRP_EPROTO;
}

bool trp_part_is_whole(const struct trp_part_head *h, const uint8_t *stored,
                       uint64_t seed)
{
    return XXH3_64bits_withSeed(stored, h->stored, seed) == h->checksum;
}
