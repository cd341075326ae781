/*
 * Two passes over the profiles in order: for the work, then for what is kept.
 */
#include "core/alloc/shares.h"

#include <stdlib.h>

static int by_order(const void *a, const void *b)
{
    const struct trp_share *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return (x->profile > y->profile) - (x->profile < y->profile);
}

/* As many of `n` more as there is room for. */
static uint32_t take_room(const struct trp_caps *caps, int64_t *used,
                          struct trp_share *s, uint32_t n, uint32_t least)
{
    uint32_t room = trp_caps_left(caps, used, s->cost, NULL);
    uint32_t got = n < room ? n : room;
    if (got < least)
        return 0;
    trp_caps_add(caps, used, s->cost, got);
    return got;
}

void trp_shares_divide(const struct trp_caps *caps, struct trp_share *v, uint32_t n)
{
    int64_t used[TRP_CAPS] = {0};
    if (n > 1)
        qsort(v, n, sizeof(*v), by_order);
    for (uint32_t i = 0; i < n; i++)
        v[i].share = take_room(caps, used, &v[i], v[i].work, v[i].least);
    for (uint32_t i = 0; i < n; i++)
        v[i].share += take_room(caps, used, &v[i], v[i].all - v[i].share, 0);
}
