/*
 * Columns, writers, and the encoded form of a batch.
 *
 * A column is one growing byte buffer. While all entries have the same width there are
 * no offsets: an entry costs a compare and a copy. The first entry that differs writes
 * the offsets of all before it, once; after that each entry costs one offset more.
 * Clearing keeps the buffers, so a task that runs on a warm thread allocates nothing.
 *
 * The encoded form is a header of 40 bytes, then the arrays as they are in memory, with
 * the 8-byte ones first so that a decoder can borrow them all. Both ends run the same
 * binary (the channel checks), and only little-endian machines are built for. A text
 * form or per-record lengths would be smaller for tiny records, but would need a second
 * pass over every record at the reader.
 */
#include "api/batch.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns travel as they are");

struct batch_header {
    uint64_t count;
    uint64_t value_size, key_size;
    uint32_t value_width, key_width;
    uint32_t keyed, reserved;
};

/* ---- columns ---- */

/* A larger buffer of at least `want` elements, or NULL. */
static void *grow_column(void *p, size_t *capacity, size_t want, size_t element)
{
    size_t n = *capacity ? *capacity : 4096 / element;
    while (n < want)
        n *= 2;
    void *q = realloc(p, n * element);
    if (q)
        *capacity = n;
    return q;
}

static int column_reserve(struct trp_column *c, size_t more)
{
    if (c->capacity - c->size >= more)
        return 0;
    if (more > SIZE_MAX / 4)
        return TRP_ENOMEM;
    uint8_t *p = grow_column(c->data, &c->capacity, c->size + more, 1);
    if (!p)
        return TRP_ENOMEM;
    c->data = p;
    return 0;
}

/* Room for the offsets of `entries` entries. */
static int column_reserve_offsets(struct trp_column *c, size_t entries)
{
    if (c->offsets_capacity > entries)
        return 0;
    uint64_t *p =
        grow_column(c->offsets, &c->offsets_capacity, entries + 1, sizeof(*p));
    if (!p)
        return TRP_ENOMEM;
    c->offsets = p;
    return 0;
}

/* From one width to an offset for each of the `count` entries there are. */
static int column_unfix(struct trp_column *c, size_t count)
{
    int rc = column_reserve_offsets(c, count + 1);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i <= count; i++)
        c->offsets[i] = (uint64_t)i * c->width;
    c->fixed = false;
    c->width = 0;
    return 0;
}

static inline int column_add(struct trp_column *c, size_t count, const void *p,
                             size_t n)
{
    if (__builtin_expect(c->capacity - c->size < n, 0) && column_reserve(c, n) < 0)
        return TRP_ENOMEM;
    if (c->fixed && count == 0)
        c->width = n <= UINT32_MAX ? (uint32_t)n : 0;
    if (c->fixed && (n != c->width || n == 0) && column_unfix(c, count) < 0)
        return TRP_ENOMEM;
    if (!c->fixed) {
        if (__builtin_expect(c->offsets_capacity <= count + 1, 0) &&
            column_reserve_offsets(c, count + 1) < 0)
            return TRP_ENOMEM;
        c->offsets[count + 1] = c->size + n;
    }
    if (n)
        memcpy(c->data + c->size, p, n);
    c->size += n;
    return 0;
}

/* Appends `n` entries of another column: `width`, or `offsets` when 0. */
static int column_add_many(struct trp_column *c, size_t count, const uint8_t *data,
                           const uint64_t *offsets, uint32_t width, size_t n)
{
    uint64_t size = width ? (uint64_t)n * width : offsets[n] - offsets[0];
    if (column_reserve(c, size) < 0)
        return TRP_ENOMEM;
    if (c->fixed && count == 0)
        c->width = width;
    if (c->fixed && (width == 0 || width != c->width) && column_unfix(c, count) < 0)
        return TRP_ENOMEM;
    if (!c->fixed) {
        if (column_reserve_offsets(c, count + n) < 0)
            return TRP_ENOMEM;
        for (size_t i = 1; i <= n; i++)
            c->offsets[count + i] =
                c->size + (width ? (uint64_t)i * width : offsets[i] - offsets[0]);
    }
    if (size)
        memcpy(c->data + c->size, width ? data : data + offsets[0], size);
    c->size += size;
    return 0;
}

static void column_clear(struct trp_column *c)
{
    c->size = 0;
    c->width = 0;
    c->fixed = true;
}

static void column_free(struct trp_column *c)
{
    free(c->data);
    free(c->offsets);
    *c = (struct trp_column){.fixed = true};
}

static void column_reset(struct trp_column *c)
{
    if (c->capacity > TRP_KEEP_BYTES || c->offsets_capacity > TRP_KEEP_BYTES / 8)
        column_free(c);
    column_clear(c);
}

/* ---- writers ---- */

void trp_writer_init(trp_writer *w)
{
    *w = (trp_writer){.values.fixed = true, .keys.fixed = true};
}

void trp_writer_free(trp_writer *w)
{
    column_free(&w->values);
    column_free(&w->keys);
    w->count = 0;
}

void trp_writer_reset(trp_writer *w)
{
    column_reset(&w->values);
    column_reset(&w->keys);
    w->count = 0;
    w->emitted = 0;
    w->keyed = TRP_KEYED_OPEN;
    w->drop = false;
    w->failed = NULL;
    w->mistake = false;
    w->killed = NULL;
    w->flush = NULL;
    w->context = NULL;
}

void trp_writer_clear(trp_writer *w)
{
    column_clear(&w->values);
    column_clear(&w->keys);
    w->count = 0;
}

static int writer_fail(trp_writer *w, const char *why)
{
    w->failed = why;
    return -1;
}

int trp_emit(trp_writer *w, const void *key, size_t key_size, const void *value,
             size_t value_size)
{
    if (w->failed)
        return -1;
    if (w->killed && *w->killed)
        return writer_fail(w, "the attempt was killed");
    enum trp_keyed keyed = key ? TRP_KEYED_YES : TRP_KEYED_NO;
    if (w->keyed != keyed) {
        if (w->keyed != TRP_KEYED_OPEN) {
            w->mistake = true;
            return writer_fail(w, "some records have a key and some have none");
        }
        w->keyed = keyed;
    }
    w->emitted++;
    if (w->drop)
        return 0;
    if (column_add(&w->values, w->count, value, value_size) < 0 ||
        (key && column_add(&w->keys, w->count, key, key_size) < 0))
        return writer_fail(w, "out of memory");
    w->count++;
    if (w->flush && (w->count >= TRP_BATCH_RECORDS ||
                     w->values.size + w->keys.size >= TRP_BATCH_BYTES)) {
        if (w->flush(w, w->context) < 0)
            return writer_fail(w, "a later function of the chain failed");
        trp_writer_clear(w);
    }
    return 0;
}

trp_batch trp_writer_batch(const trp_writer *w)
{
    trp_batch b = {.count = w->count};
    static const uint64_t none[1] = {0};
    static const uint8_t empty[1] = {0};
    b.values = w->values.data ? w->values.data : empty;
    if (w->count && w->values.fixed)
        b.value_width = w->values.width;
    else
        b.value_offsets = w->count ? w->values.offsets : none;
    if (w->keyed != TRP_KEYED_YES)
        return b;
    b.keys = w->keys.data ? w->keys.data : empty;
    if (w->count && w->keys.fixed)
        b.key_width = w->keys.width;
    else
        b.key_offsets = w->count ? w->keys.offsets : none;
    return b;
}

int trp_writer_add_batch(trp_writer *w, const trp_batch *b)
{
    if (b->count == 0)
        return 0;
    if (w->keyed == TRP_KEYED_OPEN)
        w->keyed = b->keys ? TRP_KEYED_YES : TRP_KEYED_NO;
    if (column_add_many(&w->values, w->count, b->values, b->value_offsets,
                        b->value_width, b->count) < 0)
        return TRP_ENOMEM;
    if (w->keyed == TRP_KEYED_YES && b->keys &&
        column_add_many(&w->keys, w->count, b->keys, b->key_offsets, b->key_width,
                        b->count) < 0)
        return TRP_ENOMEM;
    for (size_t i = 0; w->keyed == TRP_KEYED_YES && !b->keys && i < b->count; i++)
        if (column_add(&w->keys, w->count + i, "", 0) < 0)
            return TRP_ENOMEM;
    w->count += b->count;
    w->emitted += b->count;
    return 0;
}

/* ---- the encoded form ---- */

static uint64_t bytes_of(size_t count, const uint64_t *offsets, uint32_t width)
{
    return width ? (uint64_t)count * width : offsets[count] - offsets[0];
}

uint64_t trp_batch_size(const trp_batch *b)
{
    return bytes_of(b->count, b->value_offsets, b->value_width) +
           (b->keys ? bytes_of(b->count, b->key_offsets, b->key_width) : 0);
}

static uint8_t *put(uint8_t *at, const void *p, size_t n)
{
    if (n)
        memcpy(at, p, n);
    return at + n;
}

static uint8_t *put_offsets(uint8_t *at, const uint64_t *offsets, size_t count)
{
    for (size_t i = 0; i <= count; i++) {
        uint64_t o = offsets[i] - offsets[0];
        at = put(at, &o, sizeof(o));
    }
    return at;
}

int trp_batch_encode(const trp_batch *b, uint8_t **ret_data, uint32_t *ret_size)
{
    struct batch_header h = {.count = b->count,
                             .value_width = b->value_width,
                             .key_width = b->key_width,
                             .keyed = b->keys != NULL};
    h.value_size = bytes_of(b->count, b->value_offsets, b->value_width);
    h.key_size = trp_batch_size(b) - h.value_size;
    uint64_t offsets = b->value_width ? 0 : (h.count + 1) * 8;
    if (b->keys && !b->key_width)
        offsets += (h.count + 1) * 8;
    uint64_t total = sizeof(h) + offsets + h.value_size + h.key_size;
    if (total > TRP_RESULT_MAX)
        return TRP_ELIMIT;
    uint8_t *data = malloc(total);
    if (!data)
        return TRP_ENOMEM;
    uint8_t *at = put(data, &h, sizeof(h));
    if (!b->value_width)
        at = put_offsets(at, b->value_offsets, b->count);
    if (b->keys && !b->key_width)
        at = put_offsets(at, b->key_offsets, b->count);
    at = put(at, b->values + (b->value_width ? 0 : b->value_offsets[0]), h.value_size);
    if (b->keys)
        put(at, b->keys + (b->key_width ? 0 : b->key_offsets[0]), h.key_size);
    *ret_data = data;
    *ret_size = (uint32_t)total;
    return 0;
}

/* Takes `count + 1` offsets that begin at 0, never fall and end at `size`. */
static const uint64_t *take_offsets(const uint8_t **at, const uint8_t *end,
                                    uint64_t count, uint64_t size)
{
    if ((uint64_t)(end - *at) / 8 <= count)
        return NULL;
    const uint64_t *v = (const uint64_t *)(const void *)*at;
    if (v[0] != 0 || v[count] != size)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        if (v[i] > v[i + 1])
            return NULL;
    *at += (count + 1) * 8;
    return v;
}

int trp_batch_decode(const void *data, size_t size, trp_batch *ret)
{
    struct batch_header h;
    if (size < sizeof(h) || size > TRP_RESULT_MAX)
        return TRP_EPROTO;
    memcpy(&h, data, sizeof(h));
    const uint8_t *at = (const uint8_t *)data + sizeof(h), *end = at - sizeof(h) + size;
    if (h.count > TRP_RESULT_MAX || h.value_size > size || h.key_size > size)
        return TRP_EPROTO;
    trp_batch b = {.count = h.count,
                   .value_width = h.value_width,
                   .key_width = h.keyed ? h.key_width : 0};
    if (h.value_width && h.value_size != h.count * h.value_width)
        return TRP_EPROTO;
    if (!h.value_width &&
        !(b.value_offsets = take_offsets(&at, end, h.count, h.value_size)))
        return TRP_EPROTO;
    if (h.keyed && h.key_width && h.key_size != h.count * h.key_width)
        return TRP_EPROTO;
    if (h.keyed && !h.key_width &&
        !(b.key_offsets = take_offsets(&at, end, h.count, h.key_size)))
        return TRP_EPROTO;
    if ((uint64_t)(end - at) != h.value_size + h.key_size)
        return TRP_EPROTO;
    b.values = at;
    b.keys = h.keyed ? at + h.value_size : NULL;
    *ret = b;
    return 0;
}

/* ---- reducing ---- */

void trp_reducer_init(struct trp_reducer *r)
{
    *r = (struct trp_reducer){0};
    trp_writer_init(&r->held[0]);
    trp_writer_init(&r->held[1]);
}

void trp_reducer_free(struct trp_reducer *r)
{
    trp_writer_free(&r->held[0]);
    trp_writer_free(&r->held[1]);
}

void trp_reducer_reset(struct trp_reducer *r, trp_combine combine, const void *arg)
{
    trp_writer_reset(&r->held[0]);
    trp_writer_reset(&r->held[1]);
    r->combine = combine;
    r->arg = arg;
    r->tasked = false;
    r->task = NULL;
    r->at = 0;
    r->any = r->mistake = false;
    r->failed = NULL;
}

int trp_reducer_add(struct trp_reducer *r, const void *value, size_t size)
{
    if (!r->any) {
        if (trp_emit(&r->held[r->at], NULL, 0, value, size) < 0) {
            r->failed = r->held[r->at].failed;
            return TRP_ENOMEM;
        }
        r->any = true;
        return 0;
    }
    size_t n;
    const void *so_far = trp_reducer_value(r, &n);
    trp_writer *next = &r->held[!r->at];
    trp_writer_clear(next);
    next->keyed = TRP_KEYED_OPEN;
    int rc = r->tasked ? ((trp_task_combine)(void (*)(void))r->combine)(
                             r->task, so_far, n, value, size, next, r->arg)
                       : r->combine(so_far, n, value, size, next, r->arg);
    if (rc != 0)
        return rc;
    if (next->failed) {
        r->failed = next->failed;
        r->mistake = next->mistake;
        return next->mistake ? TRP_EINVAL : TRP_ENOMEM;
    }
    if (next->count != 1) {
        r->failed = "a combine function must emit exactly one value";
        r->mistake = true;
        return TRP_EINVAL;
    }
    r->at = !r->at;
    return 0;
}

const void *trp_reducer_value(const struct trp_reducer *r, size_t *ret_size)
{
    *ret_size = 0;
    if (!r->any)
        return NULL;
    const trp_writer *w = &r->held[r->at];
    *ret_size = w->values.size;
    return w->values.data ? (const void *)w->values.data : "";
}
