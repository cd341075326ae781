/*
 * A set of small numbers: a bit each, up to the largest that was put in. All zero is
 * empty.
 */
#ifndef TRP_CORE_BASE_BITS_H
#define TRP_CORE_BASE_BITS_H

#include <string.h>

#include "core/base/array.h"

struct trp_bits {
    uint64_t *v;
    uint32_t words;
    uint32_t n; /* that are in it */
};

static inline bool trp_bits_has(const struct trp_bits *b, uint32_t i)
{
    return i / 64 < b->words && b->v[i / 64] >> i % 64 & 1;
}

/* Puts it in: 1, 0 when it was in it, -1 without memory. */
static inline int trp_bits_put(struct trp_bits *b, uint32_t i)
{
    uint32_t old = b->words;
    if (!TRP_ARRAY_RESERVE(b->v, b->words, (uint64_t)i / 64 + 1))
        return -1;
    memset(b->v + old, 0, (b->words - old) * sizeof(*b->v));
    if (trp_bits_has(b, i))
        return 0;
    b->v[i / 64] |= UINT64_C(1) << i % 64;
    b->n++;
    return 1;
}

/* Whether it was in it. */
static inline bool trp_bits_remove(struct trp_bits *b, uint32_t i)
{
    if (!trp_bits_has(b, i))
        return false;
    b->v[i / 64] &= ~(UINT64_C(1) << i % 64);
    b->n--;
    return true;
}

static inline void trp_bits_free(struct trp_bits *b)
{
    free(b->v);
    *b = (struct trp_bits){0};
}

#endif
