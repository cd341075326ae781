/*
 * Reading and writing message bytes: fixed little-endian integers and counted bytes.
 *
 * A writer grows its buffer; the first failure (no memory, a count beyond 32 bits)
 * sticks in `failed`, which the caller looks at once when all is written. A reader
 * never reads past its end: the first short or bad field makes it *bad*, after which
 * every get returns 0 / empty, so that a decoder reads all fields and checks once. No
 * count is trusted: trp_get_count refuses one whose elements could not fit in what is
 * left.
 *
 *     struct trp_buf w = {0};
 *     trp_put_u32(&w, stage); trp_put_bytes(&w, name, strlen(name));
 *     struct trp_view r = trp_view_of(w.data, w.size);
 *     stage = trp_get_u32(&r); name = trp_get_bytes(&r, &len);
 *     if (!trp_view_end(&r)) return TRP_EPROTO;
 */
#ifndef TRP_CORE_BASE_BYTES_H
#define TRP_CORE_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing buffer; zero-initialise, free with trp_buf_free. */
struct trp_buf {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* out of memory: nothing was added since */
};
void trp_buf_free(struct trp_buf *b);
void trp_buf_clear(struct trp_buf *b); /* keeps the memory */
/* Makes room for n more bytes without adding them; false: failed. */
bool trp_buf_grow(struct trp_buf *b, size_t n);

/* n more bytes at the end (counted in size); NULL when failed. Inline, as are the
 * fixed-size gets below: a launch and an end pass here at millions a second. */
static inline uint8_t *trp_buf_reserve(struct trp_buf *b, size_t n)
{
    if (__builtin_expect(b->failed || n > b->capacity - b->size, 0) &&
        !trp_buf_grow(b, n))
        return NULL;
    uint8_t *p = b->data + b->size;
    b->size += n;
    return p;
}
void trp_put_u8(struct trp_buf *b, uint8_t v);
void trp_put_u16(struct trp_buf *b, uint16_t v);
void trp_put_u32(struct trp_buf *b, uint32_t v);
void trp_put_u64(struct trp_buf *b, uint64_t v);
void trp_put_s64(struct trp_buf *b, int64_t v);
void trp_put_raw(struct trp_buf *b, const void *p, size_t n);   /* no count */
void trp_put_bytes(struct trp_buf *b, const void *p, size_t n); /* u32 count, bytes */
void trp_put_text(struct trp_buf *b,
                  const char *s); /* counted, without the NUL; NULL: "" */

/* A reader over borrowed bytes. */
struct trp_view {
    const uint8_t *at, *end;
    bool bad;
};
static inline struct trp_view trp_view_of(const void *p, size_t n)
{
    const uint8_t *at = (const uint8_t *)p;
    return (struct trp_view){at, n > 0 ? at + n : at, false};
}
/* n bytes without a count, borrowed; NULL when bad. */
static inline const uint8_t *trp_get_raw(struct trp_view *v, size_t n)
{
    if (__builtin_expect(v->bad || n > (size_t)(v->end - v->at), 0)) {
        v->bad = true;
        return NULL;
    }
    const uint8_t *p = v->at;
    v->at += n;
    return p;
}
uint8_t trp_get_u8(struct trp_view *v);
uint16_t trp_get_u16(struct trp_view *v);
uint32_t trp_get_u32(struct trp_view *v);
uint64_t trp_get_u64(struct trp_view *v);
int64_t trp_get_s64(struct trp_view *v);
/* A byte that is 0 or 1; any other makes the view bad. */
bool trp_get_flag(struct trp_view *v);
/* Counted bytes, borrowed from the view; length in *ret_n. */
const uint8_t *trp_get_bytes(struct trp_view *v, size_t *ret_n);
/* Counted text copied to a new NUL-terminated string (a NUL inside makes the view bad).
 * Free with free; NULL when bad or out of memory. */
char *trp_get_text(struct trp_view *v);
/* A u32 count of elements of at least `min_size` bytes each. */
uint32_t trp_get_count(struct trp_view *v, size_t min_size);
/* All was read and nothing was bad. */
bool trp_view_end(const struct trp_view *v);

#endif
