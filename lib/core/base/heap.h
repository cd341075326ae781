/*
 * A heap of numbers, the least on top.
 *
 *     struct trp_heap h = {0};
 *     if (!trp_heap_push(&h, x)) return TRP_ENOMEM;
 *     while (h.n) least = trp_heap_pop(&h);
 *     free(h.v);
 */
#ifndef TRP_CORE_BASE_HEAP_H
#define TRP_CORE_BASE_HEAP_H

#include "core/base/array.h"

struct trp_heap {
    int64_t *v;
    uint32_t n, cap;
};

/* False: out of memory. */
static inline bool trp_heap_push(struct trp_heap *h, int64_t x)
{
    if (!TRP_ARRAY_GROW(h->v, h->n, h->cap))
        return false;
    uint32_t i = h->n++;
    for (; i > 0 && h->v[(i - 1) / 2] > x; i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = x;
    return true;
}

/* Of one that is not empty. */
static inline int64_t trp_heap_pop(struct trp_heap *h)
{
    int64_t top = h->v[0], x = h->v[--h->n];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->v[child + 1] < h->v[child])
            child++;
        if (x <= h->v[child])
            break;
        h->v[i] = h->v[child];
    }
    h->v[i] = x;
    return top;
}

#endif
