/*
 * A pool keeps two arrays. `children`: all, sorted by rank, which is arrival in a FIFO
 * pool and the name in a FAIR one. `order`: the listed ones, sorted by (key, rank),
 * both copied into the entries, so that a binary search stays in one array.
 *
 *     FIFO   key = job, stage + 1          (a pool: 0, in front of all sets)
 *     FAIR   key = the bits of running / min_share for a child below its share,
 *                  the bits of running / weight, top bit set, for another
 *
 * The bits of a double that is not negative are ordered as the double is.
 *
 * Counts change with every launch and end, and where shares are alike one change moves
 * a child past half of the others. So a child whose key has changed is set *aside*: it
 * gets an entry in a short sorted list of its own, and the one in `order` is stale; a
 * walk takes the smaller of both heads. A child that is back where it was (a task of
 * its has ended and another been launched) leaves the list again. When the list is
 * full, it is merged into `order` in one pass. That costs a change some 20 moves and
 * comparisons, where two binary searches and a memmove each time cost four times that.
 * Rejected: a heap (walking in order needs a second one), neighbour swaps. `order` has
 * room for all children, so placing cannot fail.
 */
#include "core/sched/pool_tree.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/array.h"

/* ---- order ---- */

static uint64_t fair_key(const struct trp_pool_child *c)
{
    bool needy = c->running < c->min_share;
    double share = (double)c->running / (needy ? c->min_share : c->weight);
    uint64_t bits;
    memcpy(&bits, &share, sizeof(bits));
    return needy ? bits : bits | UINT64_C(1) << 63;
}

static uint64_t key_of(const struct trp_pool_child *c)
{
    if (c->parent->mode == TRP_POOL_FAIR)
        return fair_key(c);
    return c->set ? ((uint64_t)c->job << 32) + c->stage + 1 : 0;
}

static inline bool is_before(uint64_t key, uint32_t rank, uint64_t other_key,
                             uint32_t other_rank)
{
    return (key < other_key) | ((key == other_key) & (rank < other_rank));
}

bool trp_pool_child_is_before(const struct trp_pool_child *a,
                              const struct trp_pool_child *b)
{
    return is_before(key_of(a), a->rank, key_of(b), b->rank);
}

/* The first entry in [from, to) that is not before (key, rank). */
static uint32_t lower_bound(const struct trp_pool *p, uint32_t from, uint32_t to,
                            uint64_t key, uint32_t rank)
{
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        bool lower = is_before(p->order[mid].key, p->order[mid].rank, key, rank);
        from = lower ? mid + 1 : from;
        to = lower ? to : mid;
    }
    return from;
}

static uint32_t place_of(const struct trp_pool_child *c)
{
    const struct trp_pool *p = c->parent;
    uint32_t i = lower_bound(p, 0, p->norder, c->key, c->rank);
    assert(i < p->norder && p->order[i].child == c);
    return i;
}

static void order_remove(struct trp_pool_child *c)
{
    struct trp_pool *p = c->parent;
    uint32_t i = place_of(c);
    p->norder--;
    memmove(&p->order[i], &p->order[i + 1], (p->norder - i) * sizeof(*p->order));
    if (p->at > i)
        p->at--;
    c->placed = false;
}

static void order_insert(struct trp_pool_child *c, uint64_t key)
{
    struct trp_pool *p = c->parent;
    uint32_t i = lower_bound(p, 0, p->norder, key, c->rank);
    memmove(&p->order[i + 1], &p->order[i], (p->norder - i) * sizeof(*p->order));
    p->order[i] = (struct trp_pool_entry){key, c->rank, c};
    p->norder++;
    c->key = key;
    c->placed = true;
}

/* ---- those set aside ---- */

static void aside_remove(struct trp_pool_child *c)
{
    struct trp_pool *p = c->parent;
    uint32_t i = --p->naside;
    struct trp_pool_entry hole = p->aside[i];
    while (hole.child != c) {
        struct trp_pool_entry next = p->aside[--i];
        p->aside[i] = hole;
        hole = next;
    }
    if (p->aside_left > i)
        p->aside_left--;
    c->aside = false;
}

static void aside_insert(struct trp_pool_child *c, uint64_t key)
{
    struct trp_pool *p = c->parent;
    struct trp_pool_entry *e = p->aside + p->naside++;
    for (; e > p->aside && is_before(e[-1].key, e[-1].rank, key, c->rank); e--)
        *e = e[-1];
    *e = (struct trp_pool_entry){key, c->rank, c};
    c->aside = true;
}

/* All get their place in the order: the stale entries go, then from the back. */
static void merge_aside(struct trp_pool *p)
{
    struct trp_pool_entry *v = p->order;
    uint32_t n = 0, to = p->norder;
    for (uint32_t i = 0; i < p->norder; i++)
        if (!v[i].child->aside)
            v[n++] = v[i];
    for (uint32_t i = 0; i < p->naside;) {
        const struct trp_pool_entry *e = &p->aside[i];
        if (n && is_before(e->key, e->rank, v[n - 1].key, v[n - 1].rank)) {
            v[--to] = v[--n];
            continue;
        }
        v[--to] = *e;
        e->child->key = e->key;
        e->child->aside = false;
        i++;
    }
    p->naside = 0;
}

static void unplace(struct trp_pool_child *c)
{
    if (c->aside)
        aside_remove(c);
    if (c->placed)
        order_remove(c);
}

void trp_pool_child_place(struct trp_pool_child *c)
{
    if (!c->listed) {
        unplace(c);
        return;
    }
    uint64_t key = key_of(c);
    if (!c->placed) {
        order_insert(c, key);
        return;
    }
    if (c->aside)
        aside_remove(c);
    if (key == c->key)
        return;
    if (c->parent->naside == TRP_POOL_ASIDE)
        merge_aside(c->parent);
    aside_insert(c, key);
}

/* ---- walks ---- */

void trp_pool_enter(struct trp_pool *p)
{
    p->at = 0;
    p->aside_left = p->naside;
}

struct trp_pool_child *trp_pool_step(struct trp_pool *p)
{
    while (p->naside && p->at < p->norder && p->order[p->at].child->aside)
        p->at++;
    const struct trp_pool_entry *e = p->at < p->norder ? &p->order[p->at] : NULL;
    if (p->aside_left) {
        const struct trp_pool_entry *a = &p->aside[p->aside_left - 1];
        if (!e || is_before(a->key, a->rank, e->key, e->rank)) {
            p->aside_left--;
            return a->child;
        }
    }
    if (!e)
        return NULL;
    p->at++;
    return e->child;
}

/* ---- children ---- */

/* Its name among its siblings; a set's is written to buf. */
enum { SET_NAME = 32 };
static const char *name_of(const struct trp_pool_child *c, char *buf)
{
    if (!c->set)
        return ((const struct trp_pool *)c)->name;
    snprintf(buf, SET_NAME, "TaskSet_%u.%u", c->stage, c->attempt);
    return buf;
}

/* Behind all children whose names are not after its own. */
static uint32_t rank_by_name(const struct trp_pool *p, const struct trp_pool_child *c)
{
    char buf[SET_NAME], other[SET_NAME];
    const char *name = name_of(c, buf);
    uint32_t from = 0, to = p->nchildren;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (strcmp(name_of(p->children[mid], other), name) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Gives ranks that grow from children[i] on and copies them into the order. */
static void rank_again(struct trp_pool *p, uint32_t i)
{
    for (; i < p->nchildren; i++)
        p->children[i]->rank = i ? p->children[i - 1]->rank + 1 : 0;
    for (uint32_t k = 0; k < p->norder; k++)
        p->order[k].rank = p->order[k].child->rank;
    for (uint32_t k = 0; k < p->naside; k++)
        p->aside[k].rank = p->aside[k].child->rank;
}

bool trp_pool_child_add(struct trp_pool *p, struct trp_pool_child *c)
{
    uint64_t need = (uint64_t)p->nchildren + 1;
    if (!TRP_ARRAY_RESERVE(p->children, p->children_cap, need) ||
        !TRP_ARRAY_RESERVE(p->order, p->order_cap, need))
        return false;
    uint32_t i = p->mode == TRP_POOL_FAIR ? rank_by_name(p, c) : p->nchildren;
    memmove(&p->children[i + 1], &p->children[i],
            (p->nchildren - i) * sizeof(struct trp_pool_child *));
    p->children[i] = c;
    p->nchildren++;
    c->parent = p;
    if (i + 1 == p->nchildren)
        c->rank = i ? p->children[i - 1]->rank + 1 : 0;
    else
        rank_again(p, i);
    return true;
}

static uint32_t child_index(const struct trp_pool *p, const struct trp_pool_child *c)
{
    uint32_t from = 0, to = p->nchildren;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (p->children[mid]->rank < c->rank)
            from = mid + 1;
        else
            to = mid;
    }
    assert(from < p->nchildren && p->children[from] == c);
    return from;
}

void trp_pool_child_remove(struct trp_pool_child *c)
{
    struct trp_pool *p = c->parent;
    unplace(c);
    uint32_t i = child_index(p, c);
    p->nchildren--;
    memmove(&p->children[i], &p->children[i + 1],
            (p->nchildren - i) * sizeof(struct trp_pool_child *));
}

/* ---- checks ---- */

static bool is_sorted(const struct trp_pool_entry *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].key != v[i].child->key || v[i].rank != v[i].child->rank ||
            (i && !is_before(v[i - 1].key, v[i - 1].rank, v[i].key, v[i].rank)))
            return false;
    return true;
}

static bool is_aside(const struct trp_pool *p)
{
    const struct trp_pool_entry *v = p->aside;
    for (uint32_t i = 0; i < p->naside; i++)
        if (!v[i].child->aside || v[i].rank != v[i].child->rank ||
            (!v[i].child->moved && v[i].key != key_of(v[i].child)) ||
            (i && !is_before(v[i].key, v[i].rank, v[i - 1].key, v[i - 1].rank)))
            return false;
    return true;
}

int trp_pool_check(const struct trp_pool *p, trp_error *err)
{
    uint32_t running = 0, listed = 0, placed = 0, aside = 0;
    for (uint32_t i = 0; i < p->nchildren; i++) {
        const struct trp_pool_child *c = p->children[i];
        running += c->running;
        listed += c->listed;
        placed += c->placed;
        aside += c->aside;
        if (c->parent != p || (i && p->children[i - 1]->rank >= c->rank))
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u has no rank",
                                 p->name, i);
        if (c->listed != c->placed && !c->moved)
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u not placed",
                                 p->name, i);
        if (c->placed && !c->moved && !c->aside && c->key != key_of(c))
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u has an old key",
                                 p->name, i);
        if (!c->set && trp_pool_check((const struct trp_pool *)c, err) < 0)
            return TRP_ESTATE;
    }
    if (p->nchildren && (running != p->self.running || listed != p->nlisted))
        return trp_error_set(err, TRP_ESTATE,
                             "pool '%s': %u running and %u listed, children %u and %u",
                             p->name, p->self.running, p->nlisted, running, listed);
    if (placed != p->norder || aside != p->naside)
        return trp_error_set(err, TRP_ESTATE,
                             "pool '%s': %u in order, %u aside, children %u and %u",
                             p->name, p->norder, p->naside, placed, aside);
    if (!is_sorted(p->order, p->norder) || !is_aside(p))
        return trp_error_set(err, TRP_ESTATE, "pool '%s' is out of order", p->name);
    return 0;
}
