/*
 * Message bytes.
 *
 * A buffer doubles, so that n bytes cost O(n) however they are put. It begins with what
 * most have in the end: a line of the event log, a stage's description. Every put is one
 * reserve and one copy; a failed buffer stays failed until it is freed, so a writer
 * checks once. Only trp_buf_reserve and trp_get_raw touch sizes: everything else is
 * written with them, and so cannot pass an end. Byte order is turned by endian.h,
 * which is nothing on the machines this runs on. Rejected: a schema compiler and
 * variable-length integers (slower than memory, and nothing here is sent far).
 */
#include "core/base/bytes.h"

#include <stdlib.h>

enum { FIRST = 512 };

void trp_buf_free(struct trp_buf *b)
{
    free(b->data);
    *b = (struct trp_buf){0};
}

void trp_buf_clear(struct trp_buf *b)
{
    b->size = 0;
    b->failed = false;
}

bool trp_buf_grow(struct trp_buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (n <= b->capacity - b->size)
        return true;
    b->failed = true;
    if (n > SIZE_MAX / 4 || b->size > SIZE_MAX / 4)
        return false;
    size_t capacity = b->capacity < FIRST ? FIRST : b->capacity;
    while (capacity < b->size + n)
        capacity *= 2;
    uint8_t *data = (uint8_t *)realloc(b->data, capacity);
    if (!data)
        return false;
    b->data = data;
    b->capacity = capacity;
    b->failed = false;
    return true;
}

void trp_put_raw(struct trp_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return; /* perhaps there is no memory yet */
    uint8_t *at = trp_buf_reserve(b, n);
    if (at)
        memcpy(at, p, n);
}

void trp_put_u8(struct trp_buf *b, uint8_t v)
{
    trp_put_raw(b, &v, sizeof v);
}

void trp_put_u16(struct trp_buf *b, uint16_t v)
{
    v = htole16(v);
    trp_put_raw(b, &v, sizeof v);
}

void trp_put_u32(struct trp_buf *b, uint32_t v)
{
    v = htole32(v);
    trp_put_raw(b, &v, sizeof v);
}

void trp_put_u64(struct trp_buf *b, uint64_t v)
{
    v = htole64(v);
    trp_put_raw(b, &v, sizeof v);
}

void trp_put_s64(struct trp_buf *b, int64_t v)
{
    trp_put_u64(b, (uint64_t)v);
}

void trp_put_bytes(struct trp_buf *b, const void *p, size_t n)
{
    if (n > UINT32_MAX) {
        b->failed = true;
        return;
    }
    trp_put_u32(b, (uint32_t)n);
    trp_put_raw(b, p, n);
}

void trp_put_text(struct trp_buf *b, const char *s)
{
    trp_put_bytes(b, s, s ? strlen(s) : 0);
}

uint8_t trp_get_u8(struct trp_view *v)
{
    const uint8_t *p = trp_get_raw(v, 1);
    return p ? *p : 0;
}

bool trp_get_flag(struct trp_view *v)
{
    uint8_t flag = trp_get_u8(v);
    v->bad = v->bad || flag > 1;
    return flag == 1;
}

uint16_t trp_get_u16(struct trp_view *v)
{
    uint16_t x = 0;
    const uint8_t *p = trp_get_raw(v, sizeof x);
    if (p)
        memcpy(&x, p, sizeof x);
    return le16toh(x);
}

uint32_t trp_get_u32(struct trp_view *v)
{
    uint32_t x = 0;
    const uint8_t *p = trp_get_raw(v, sizeof x);
    if (p)
        memcpy(&x, p, sizeof x);
    return le32toh(x);
}

uint64_t trp_get_u64(struct trp_view *v)
{
    uint64_t x = 0;
    const uint8_t *p = trp_get_raw(v, sizeof x);
    if (p)
        memcpy(&x, p, sizeof x);
    return le64toh(x);
}

int64_t trp_get_s64(struct trp_view *v)
{
    return (int64_t)trp_get_u64(v);
}

const uint8_t *trp_get_bytes(struct trp_view *v, size_t *ret_n)
{
    size_t n = trp_get_u32(v);
    const uint8_t *p = trp_get_raw(v, n);
    *ret_n = p ? n : 0;
    return p;
}

char *trp_get_text(struct trp_view *v)
{
    size_t n;
    const uint8_t *p = trp_get_bytes(v, &n);
    if (!p)
        return NULL;
    if (n > 0 && memchr(p, 0, n)) {
        v->bad = true;
        return NULL;
    }
    char *s = (char *)malloc(n + 1);
    if (!s)
        return NULL;
    if (n > 0)
        memcpy(s, p, n);
    s[n] = 0;
    return s;
}

uint32_t trp_get_count(struct trp_view *v, size_t min_size)
{
    uint32_t n = trp_get_u32(v);
    if (!v->bad && min_size > 0 && n > (size_t)(v->end - v->at) / min_size)
        v->bad = true;
    return v->bad ? 0 : n;
}

bool trp_view_end(const struct trp_view *v)
{
    return !v->bad && v->at == v->end;
}
