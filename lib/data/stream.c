/*
 * Streams from memory and from parts.
 *
 * A stream of parts reads as much at a time as a part of usual size takes, and grows
 * for a larger one, once its head has been checked. What is left of the bytes behind a
 * part is moved to the front, which is less than a head mostly.
 */
#include "data/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- memory ---------------------------------------------------------------------- */

struct memory_stream {
    struct trp_stream stream;
    const struct trp_sorter *sorter;
    size_t next;
};

static int refill_from_memory(struct trp_stream *stream, trp_error *err)
{
    struct memory_stream *m = (struct memory_stream *)stream;
    size_t size;
    (void)err;
    if (m->next == m->sorter->n)
        return 0;
    const struct trp_entry *e = &m->sorter->entries[m->next++];
    stream->at = trp_sorter_record(m->sorter, e, &size);
    stream->end = stream->at + size;
    stream->partition = e->partition;
    return 1;
}

static void free_memory_stream(struct trp_stream *stream)
{
    free(stream);
}

struct trp_stream *trp_stream_of_memory(const struct trp_sorter *s)
{
    struct memory_stream *m = (struct memory_stream *)calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->sorter = s;
    m->stream.source = TRP_NO_SOURCE;
    m->stream.refill = refill_from_memory;
    m->stream.free = free_memory_stream;
    return &m->stream;
}

/* ---- parts ----------------------------------------------------------------------- */

struct part_stream {
    struct trp_stream stream;
    struct trp_bytes_source *source;
    uint64_t left; /* bytes that the source still has */
    uint64_t seed;
    uint32_t partition;
    struct trp_unpacker *unpacker;
    uint8_t *buffer, *unpacked;
    size_t capacity, unpacked_capacity;
    size_t begin, filled; /* of what is in the buffer */
};

static int no_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Makes `need` bytes be in the buffer, which there are. */
static int fill(struct part_stream *p, size_t need, trp_error *err)
{
    if (p->filled - p->begin >= need)
        return 0;
    memmove(p->buffer, p->buffer + p->begin, p->filled - p->begin);
    p->filled -= p->begin;
    p->begin = 0;
    if (need > p->capacity) {
        uint8_t *grown = (uint8_t *)realloc(p->buffer, need);
        if (!grown)
            return no_memory(err);
        p->buffer = grown;
        p->capacity = need;
    }
    size_t room = p->capacity - p->filled, n = room < p->left ? room : (size_t)p->left;
    int rc = p->source->read(p->source, p->buffer + p->filled, n, err);
    if (rc < 0)
        return rc;
    p->filled += n;
    p->left -= n;
    return 0;
}

static int unpack(struct part_stream *p, const struct trp_part_head *h,
                  const uint8_t *stored, trp_error *err)
{
    if (!p->unpacker->zstd)
        p->unpacker->zstd = ZSTD_createDCtx();
    if (p->unpacked_capacity < h->raw) {
        free(p->unpacked);
        p->unpacked = (uint8_t *)malloc(h->raw);
        p->unpacked_capacity = p->unpacked ? h->raw : 0;
    }
    if (!p->unpacker->zstd || !p->unpacked)
        return no_memory(err);
    size_t n =
        ZSTD_decompressDCtx(p->unpacker->zstd, p->unpacked, h->raw, stored, h->stored);
    if (n != h->raw)
        return trp_error_set(err, TRP_EPROTO, "a compressed part is damaged");
    p->stream.at = p->unpacked;
    p->stream.end = p->unpacked + n;
    return 1;
}

/* A large record that has gone leaves a large buffer, which is given back. */
static void shrink(struct part_stream *p)
{
    size_t usual = trp_stream_memory(UINT64_MAX);
    if (p->capacity > usual && p->filled - p->begin <= usual / 2) {
        uint8_t *small = (uint8_t *)malloc(usual);
        if (!small)
            return;
        memcpy(small, p->buffer + p->begin, p->filled - p->begin);
        free(p->buffer);
        p->buffer = small;
        p->capacity = usual;
        p->filled -= p->begin;
        p->begin = 0;
    }
    if (p->unpacked_capacity > usual) {
        free(p->unpacked);
        p->unpacked = NULL;
        p->unpacked_capacity = 0;
    }
}

static int refill_from_parts(struct trp_stream *stream, trp_error *err)
{
    struct part_stream *p = (struct part_stream *)stream;
    struct trp_part_head h;
    uint64_t left = p->left + (p->filled - p->begin);
    if (left == 0)
        return 0;
    if (left < TRP_PART_HEAD)
        return trp_error_set(err, TRP_EPROTO, "a part is cut off");
    shrink(p);
    int rc = fill(p, TRP_PART_HEAD, err);
    if (rc < 0)
        return rc;
    if (trp_part_head_get(p->buffer + p->begin, p->seed, left, &h) < 0)
        return trp_error_set(err, TRP_EPROTO, "the head of a part is damaged");
    if (p->partition != TRP_ANY_PARTITION && h.partition != p->partition)
        return trp_error_set(err, TRP_EPROTO, "a part is of another partition");
    rc = fill(p, TRP_PART_HEAD + (size_t)h.stored, err);
    if (rc < 0)
        return rc;
    const uint8_t *stored = p->buffer + p->begin + TRP_PART_HEAD;
    if (!trp_part_is_whole(&h, stored, p->seed))
        return trp_error_set(err, TRP_EPROTO, "the checksum of a part is wrong");
    p->begin += TRP_PART_HEAD + (size_t)h.stored;
    stream->partition = h.partition;
    if (h.raw == 0)
        return trp_error_set(err, TRP_EPROTO, "a part is empty");
    if (h.compressed)
        return unpack(p, &h, stored, err);
    stream->at = stored;
    stream->end = stored + h.stored;
    return 1;
}

static void free_part_stream(struct trp_stream *stream)
{
    struct part_stream *p = (struct part_stream *)stream;
    p->source->free(p->source);
    free(p->buffer);
    free(p->unpacked);
    free(p);
}

struct trp_stream *trp_stream_of_parts(struct trp_bytes_source *take_source,
                                       uint64_t bytes, uint64_t seed,
                                       uint32_t partition,
                                       struct trp_unpacker *unpacker)
{
    size_t capacity = TRP_PART_SIZE + 2 * TRP_PART_HEAD;
    struct part_stream *p = (struct part_stream *)calloc(1, sizeof *p);
    if (bytes < capacity)
        capacity = bytes > 0 ? (size_t)bytes : 1;
    if (p)
        p->buffer = (uint8_t *)malloc(capacity);
    if (!p || !p->buffer) {
        take_source->free(take_source);
        free(p);
        return NULL;
    }
    p->stream = (struct trp_stream){
        .source = TRP_NO_SOURCE, .refill = refill_from_parts, .free = free_part_stream};
    p->source = take_source;
    p->left = bytes;
    p->seed = seed;
    p->partition = partition;
    p->unpacker = unpacker;
    p->capacity = capacity;
    return &p->stream;
}

/* ---- bytes of a file ------------------------------------------------------------- */

struct file_source {
    struct trp_bytes_source source;
    int fd; /* -1: opened for each read, … */
    int folder;
    struct trp_output_id id; /* … by this name */
    uint64_t at;
};

static int read_all(int fd, uint8_t *to, size_t n, uint64_t at, trp_error *err)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return trp_error_set(err, TRP_EPROTO, "it cannot be read: %m");
        if (got == 0)
            return trp_error_set(err, TRP_EPROTO, "it is cut off");
        at += (uint64_t)got;
        to += got;
        n -= (size_t)got;
    }
    return 0;
}

static int read_file(struct trp_bytes_source *source, uint8_t *to, size_t n,
                     trp_error *err)
{
    struct file_source *f = (struct file_source *)source;
    int fd = f->fd >= 0 ? f->fd : trp_block_file_reopen(f->folder, &f->id, err);
    if (fd < 0)
        return fd;
    int rc = read_all(fd, to, n, f->at, err);
    f->at += n;
    if (f->fd < 0)
        close(fd);
    return rc;
}

static void free_file(struct trp_bytes_source *source)
{
    free(source);
}

static void free_block(struct trp_bytes_source *source)
{
    struct file_source *f = (struct file_source *)source;
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static struct trp_bytes_source *make_file_source(const struct file_source *like)
{
    struct file_source *f = (struct file_source *)malloc(sizeof *f);
    if (f)
        *f = *like;
    return f ? &f->source : NULL;
}

struct trp_bytes_source *trp_source_of_file(int fd, uint64_t begin)
{
    return make_file_source(&(struct file_source){
        .source = {read_file, free_file},
          .fd = fd, .at = begin
    });
}

struct trp_bytes_source *trp_source_of_block(int folder, const struct trp_output_id *id,
                                             int take_fd, uint64_t begin)
{
    struct trp_bytes_source *b = make_file_source(&(struct file_source){
        .source = {read_file, free_block},
        .fd = take_fd,
        .folder = folder,
        .id = *id,
        .at = begin
    });
    if (!b && take_fd >= 0)
        close(take_fd);
    return b;
}
