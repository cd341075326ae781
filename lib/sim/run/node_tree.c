/*
 * A binary tree in an array: leaf `n` is at size + n, the parent of i at i / 2, and an
 * inner vertex has the greatest free amount of each kind below it. What nodes have
 * free is kept apart, so that a closed node (its leaf says -1) keeps its account.
 */
#include "sim/run/node_tree.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/ids.h"

struct trp_node_tree {
    uint32_t nodes, dims, size;
    int64_t *free; /* nodes × dims */
    int64_t *most; /* 2 size × dims */
    uint8_t *closed;
};

trp_node_tree *trp_node_tree_new(uint32_t nodes, uint32_t dims)
{
    trp_node_tree *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    *t = (trp_node_tree){.nodes = nodes, .dims = dims, .size = 1};
    while (t->size < nodes)
        t->size *= 2;
    t->free = calloc((size_t)nodes * dims + 1, sizeof(*t->free));
    t->most = malloc(2 * (size_t)t->size * dims * sizeof(*t->most));
    t->closed = calloc(nodes + 1, 1);
    if (!t->free || !t->most || !t->closed) {
        trp_node_tree_free(t);
        return NULL;
    }
    memset(t->most, 0xff, 2 * (size_t)t->size * dims * sizeof(*t->most)); /* -1 */
    return t;
}

void trp_node_tree_free(trp_node_tree *t)
{
    if (!t)
        return;
    free(t->free);
    free(t->most);
    free(t->closed);
    free(t);
}

const int64_t *trp_node_tree_available(const trp_node_tree *t, uint32_t n)
{
    return &t->free[(size_t)n * t->dims];
}

static void update(trp_node_tree *t, uint32_t n)
{
    uint32_t d = t->dims, i = t->size + n;
    int64_t *leaf = &t->most[(size_t)i * d];
    for (uint32_t k = 0; k < d; k++)
        leaf[k] = t->closed[n] ? -1 : t->free[(size_t)n * d + k];
    for (i /= 2; i > 0; i /= 2) {
        const int64_t *a = &t->most[(size_t)i * 2 * d], *b = a + d;
        int64_t *to = &t->most[(size_t)i * d];
        bool same = true;
        for (uint32_t k = 0; k < d; k++) {
            int64_t m = a[k] > b[k] ? a[k] : b[k];
            same = same && to[k] == m;
            to[k] = m;
        }
        if (same)
            return;
    }
}

void trp_node_tree_add(trp_node_tree *t, uint32_t n, const int64_t *amounts,
                       int64_t times)
{
    for (uint32_t k = 0; k < t->dims; k++)
        t->free[(size_t)n * t->dims + k] += times * amounts[k];
    if (!t->closed[n])
        update(t, n);
}

void trp_node_tree_close(trp_node_tree *t, uint32_t n, bool closed)
{
    t->closed[n] = closed;
    update(t, n);
}

static bool holds(const trp_node_tree *t, uint32_t i, const int64_t *need)
{
    const int64_t *most = &t->most[(size_t)i * t->dims];
    for (uint32_t k = 0; k < t->dims; k++)
        if (most[k] < need[k])
            return false;
    return true;
}

/* In the subtree of vertex i, which covers nodes first … first + width - 1. */
static uint32_t find(const trp_node_tree *t, uint32_t i, uint32_t first, uint32_t width,
                     uint32_t from, uint32_t to, const int64_t *need)
{
    if (first >= to || first + width <= from || !holds(t, i, need))
        return TRP_NONE;
    if (width == 1)
        return first;
    uint32_t n = find(t, i * 2, first, width / 2, from, to, need);
    if (n != TRP_NONE)
        return n;
    return find(t, i * 2 + 1, first + width / 2, width / 2, from, to, need);
}

uint32_t trp_node_tree_find(const trp_node_tree *t, uint32_t from, uint32_t to,
                            const int64_t *need)
{
    return find(t, 1, 0, t->size, from, to, need);
}
