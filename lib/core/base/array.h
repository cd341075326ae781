/*
 * Growing arrays: `T *v; uint32_t n, cap;` in any struct, grown by doubling.
 *
 *     if (!TRP_ARRAY_GROW(s->v, s->n, s->cap))
 *         return TRP_ENOMEM;
 *     s->v[s->n++] = x;
 */
#ifndef TRP_CORE_BASE_ARRAY_H
#define TRP_CORE_BASE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `need` elements of `size` bytes. False: out of memory or above 2^31
 * elements; the array is as before. */
static inline bool trp_array_reserve(void **v, uint32_t *cap, uint64_t need,
                                     size_t size)
{
    if (need <= *cap)
        return true;
    if (need > UINT32_C(1) << 31)
        return false;
    uint64_t grown = *cap ? (uint64_t)*cap * 2 : 8;
    while (grown < need)
        grown *= 2;
    void *p = realloc(*v, grown * size);
    if (!p)
        return false;
    *v = p;
    *cap = (uint32_t)grown;
    return true;
}

/* The same with what is new zeroed. */
static inline bool trp_array_reserve_zeroed(void **v, uint32_t *cap, uint64_t need,
                                            size_t size)
{
    uint32_t had = *cap;
    if (!trp_array_reserve(v, cap, need, size))
        return false;
    memset((char *)*v + had * size, 0, (*cap - had) * size);
    return true;
}

/* Room for `need` elements in the array `v`, for one more than `n`, and with what is
 * new zeroed. False as above. */
#define TRP_ARRAY_RESERVE(v, cap, need)                                                \
    trp_array_reserve((void **)&(v), &(cap), (need), sizeof((v)[0]))
#define TRP_ARRAY_GROW(v, n, cap) TRP_ARRAY_RESERVE(v, cap, (uint64_t)(n) + 1)
#define TRP_ARRAY_RESERVE_ZEROED(v, cap, need)                                         \
    trp_array_reserve_zeroed((void **)&(v), &(cap), (need), sizeof((v)[0]))

/* A stack of 32-bit indices. */
struct trp_stack {
    uint32_t *v;
    uint32_t n, cap;
};

static inline bool trp_stack_push(struct trp_stack *s, uint32_t x)
{
    if (!TRP_ARRAY_GROW(s->v, s->n, s->cap))
        return false;
    s->v[s->n++] = x;
    return true;
}

static inline int trp_stack_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Of a stack that is not empty. */
static inline void trp_stack_sort(struct trp_stack *s)
{
    qsort(s->v, s->n, sizeof(*s->v), trp_stack_order);
}

#endif
