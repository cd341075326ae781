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

/* The least in it from `from` on; UINT32_MAX: none. */
static inline uint32_t trp_bits_next(const struct trp_bits *b, uint32_t from)
{
    for (uint32_t w = from / 64; w < b->words; w++) {
        uint64_t v = b->v[w];
        if (w == from / 64)
            v &= ~UINT64_C(0) << from % 64;
        if (v)
            return w * 64 + (uint32_t)__builtin_ctzll(v);
    }
    return UINT32_MAX;
}

/* The greatest in it below `below`; UINT32_MAX: none. */
static inline uint32_t trp_bits_last(const struct trp_bits *b, uint32_t below)
{
    uint32_t w = below / 64 < b->words ? below / 64 : b->words;
    uint64_t v = w < b->words ? b->v[w] & ~(~UINT64_C(0) << below % 64) : 0;
    while (!v && w)
        v = b->v[--w];
    return v ? w * 64 + 63 - (uint32_t)__builtin_clzll(v) : UINT32_MAX;
}

static inline void trp_bits_free(struct trp_bits *b)
{
    free(b->v);
    *b = (struct trp_bits){0};
}

#endif
