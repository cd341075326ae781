/* A heap of four children a vertex: half as deep as a binary one, and as quick. */
#include "sim/run/virtual_heap.h"

#include "core/base/array.h"

static bool before(const struct trp_virtual_due *a, const struct trp_virtual_due *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

bool trp_virtual_heap_put(struct trp_virtual_heap *h, int64_t at,
                          enum trp_virtual_due_kind kind, uint32_t a, uint64_t b)
{
    if (!TRP_ARRAY_GROW(h->v, h->n, h->cap))
        return false;
    struct trp_virtual_due due = {at, h->order++, b, kind, a};
    uint32_t i = h->n++;
    for (; i > 0 && before(&due, &h->v[(i - 1) / 4]); i = (i - 1) / 4)
        h->v[i] = h->v[(i - 1) / 4];
    h->v[i] = due;
    return true;
}

struct trp_virtual_due trp_virtual_heap_take(struct trp_virtual_heap *h)
{
    struct trp_virtual_due top = h->v[0], due = h->v[--h->n];
    uint32_t i = 0;
    for (;;) {
        uint32_t first = i * 4 + 1, best = first;
        if (first >= h->n)
            break;
        for (uint32_t k = first + 1; k < first + 4 && k < h->n; k++)
            if (before(&h->v[k], &h->v[best]))
                best = k;
        if (!before(&h->v[best], &due))
            break;
        h->v[i] = h->v[best];
        i = best;
    }
    h->v[i] = due;
    return top;
}
