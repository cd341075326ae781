/*
 * The paths from a dataset down to what it reads are walked one by one. A *view* says
 * how the partitions of a node on the path are numbered as seen from the dataset at the
 * top: partition begin + i of that dataset is made of the node's partitions starts[i] -
 * skip to starts[i + 1] - skip (exclusive), or, if there is no coalesced node above, of
 * the node's partition i. The two inputs of a union share the starts of their view; a
 * coalesced node makes new ones.
 */
#include "api/narrow.h"

#include <stdlib.h>

#include "api/chain.h"
#include "core/base/array.h"

struct starts {
    uint32_t users;
    uint32_t v[];
};

struct view {
    trp_dataset *node;
    uint32_t begin, n;     /* of the first one's partitions */
    uint32_t at;           /* of `begin` among starts */
    uint32_t skip;         /* partitions of what stands beside the node, before it */
    struct starts *starts; /* NULL: one to one */
};

struct walk {
    struct view *v;
    uint32_t n, capacity;
};

static struct starts *starts_new(uint32_t n)
{
    struct starts *s = malloc(sizeof(*s) + ((size_t)n + 1) * sizeof(s->v[0]));
    if (s)
        s->users = 1;
    return s;
}

static void free_starts(struct starts *s)
{
    if (s && --s->users == 0)
        free(s);
}

/* Takes over the use of the view's starts. */
static int push(struct walk *w, struct view v)
{
    if (v.n > 0 && TRP_ARRAY_GROW(w->v, w->n, w->capacity)) {
        w->v[w->n++] = v;
        return 0;
    }
    free_starts(v.starts);
    return v.n > 0 ? TRP_ENOMEM : 0;
}

/* Where the i-th of the view's partitions begins in its node, or ends. */
static uint32_t start_of(const struct view *v, uint32_t i)
{
    if (!v->starts)
        return i;
    const uint32_t s = v->starts->v[v->at + i];
    const uint32_t last = v->skip + v->node->partitions;
    return (s < v->skip ? v->skip : s < last ? s : last) - v->skip;
}

/* Of how many of the view's partitions the i-th after them (0: they themselves) begins
 * before the node's partition `part`. */
static uint32_t count_before(const struct view *v, uint32_t i, uint32_t part)
{
    uint32_t low = 0, high = v->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (start_of(v, mid + i) < part)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* A partition above that takes some of both halves is in both views. */
static int push_halves(struct walk *w, const struct view *v)
{
    const uint32_t cut = v->node->a->partitions;
    const uint32_t left = count_before(v, 0, cut), /* begin before the cut … */
        right = count_before(v, 1, cut + 1);       /* … end there or before */
    struct view a = *v, b = *v;
    a.node = v->node->a;
    a.n = left;
    b.node = v->node->b;
    b.begin += right;
    b.at += right;
    b.n -= right;
    b.skip += v->starts ? cut : 0;
    if (v->starts)
        v->starts->users++;
    int rc = push(w, b);
    if (rc < 0)
        free_starts(a.starts);
    return rc < 0 ? rc : push(w, a);
}

static int push_members(struct walk *w, const struct view *v)
{
    const trp_dataset *d = v->node;
    struct starts *s = starts_new(v->n);
    struct view below = {.node = d->a, .begin = v->begin, .n = v->n, .starts = s};
    for (uint32_t i = 0; s && i <= v->n; i++) {
        const uint32_t part = start_of(v, i);
        int64_t first = d->a->partitions;
        uint64_t count;
        if (part < d->partitions)
            trp_range_part(0, d->a->partitions, d->partitions, part, &first, &count);
        s->v[i] = (uint32_t)first;
    }
    free_starts(v->starts);
    return s ? push(w, below) : TRP_ENOMEM;
}

int trp_narrow_add(struct trp_narrow *n, struct trp_dataset_parent p)
{
    if (!TRP_ARRAY_GROW(n->parents, n->nparents, n->capacity))
        return TRP_ENOMEM;
    n->parents[n->nparents++] = p;
    return 0;
}

static int add_kept(struct trp_narrow *n, const struct view *v)
{
    struct trp_dataset_parent p = {.dataset = v->node->persist.dataset,
                                   .begin = v->begin};
    const bool runs = v->starts || v->n < v->node->partitions;
    if (runs) { /* or those in front alone */
        uint32_t *first = malloc(((size_t)v->n + 1) * sizeof(*first));
        for (uint32_t i = 0; first && i <= v->n; i++)
            first[i] = start_of(v, i);
        p.first = first;
        p.nfirst = v->n + 1;
    }
    n->one_to_one &= !v->starts && v->node->partitions == n->partitions;
    int rc = runs && !p.first ? TRP_ENOMEM : trp_narrow_add(n, p);
    if (rc < 0)
        free((void *)(uintptr_t)p.first);
    free_starts(v->starts);
    return rc;
}

static int add_sides(struct trp_narrow *n, const struct view *v)
{
    trp_dataset *d = v->node;
    int rc = 0;
    bool seen = d->walk == d->context->walks;
    d->walk = d->context->walks;
    for (uint32_t k = 0; rc == 0 && !seen && k < d->wide.plan.nsides; k++)
        rc =
            trp_narrow_add(n, (struct trp_dataset_parent){
                                  .dataset = d->wide.plan.dataset[k], .shuffle = true});
    free_starts(v->starts);
    return rc;
}

static int visit_dataset(struct walk *w, struct trp_narrow *n, struct view v)
{
    trp_dataset *d = v.node;
    n->prefers |= d->kind == TRP_NODE_PREFER;
    if (trp_dataset_keeps(d))
        return add_kept(n, &v);
    if (d->kind == TRP_NODE_WIDE)
        return add_sides(n, &v);
    if (d->kind == TRP_NODE_UNION)
        return push_halves(w, &v);
    if (d->kind == TRP_NODE_COALESCE)
        return push_members(w, &v);
    if (!d->a) {
        free_starts(v.starts);
        return 0;
    }
    v.node = d->a;
    return push(w, v);
}

int trp_narrow_find(trp_dataset *d, struct trp_narrow *ret)
{
    struct walk w = {0};
    *ret = (struct trp_narrow){.partitions = d->partitions, .one_to_one = true};
    d->context->walks++;
    int rc = push(&w, (struct view){.node = d, .n = d->partitions});
    while (rc == 0 && w.n)
        rc = visit_dataset(&w, ret, w.v[--w.n]);
    while (w.n)
        free_starts(w.v[--w.n].starts);
    free(w.v);
    if (rc < 0)
        trp_narrow_free(ret);
    return rc;
}

void trp_narrow_free(struct trp_narrow *n)
{
    for (uint32_t i = 0; i < n->nparents; i++)
        free((void *)(uintptr_t)n->parents[i].first);
    free(n->parents);
    *n = (struct trp_narrow){0};
}
