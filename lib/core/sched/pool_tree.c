/*
 * A pool keeps two arrays. `children`: all, sorted by rank, which is arrival in a FIFO
 * pool and the name in a FAIR one. `order`: the listed ones, sorted by (key, rank),
 * both copied into the entries, so that a binary search stays in one array.
 *
 *     FIFO   key = job, stage + 1          (a pool: 0, in front of all sets)
 *     FAIR   key = the bits of running / min_share for a child below its share,
 *                  the bits of running / weight, top bit set, for another
 *
 * The bits of a double that is not negative are ordered as the double is. A new place
 * costs two binary searches and one memmove. Mostly it is not needed: where all pools
 * have work, the one of which a task ends becomes the first, launches and is back where
 * it was. So a child that becomes the first is only noted as `front` and its entry left
 * in its old place. Rejected: a heap (walking in order needs a second one), neighbour
 * swaps (among pools with equal shares one change passes half of them). `order` has
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

/* Moves a placed child to where its new key belongs. */
static void order_move(struct trp_pool_child *c, uint64_t key)
{
    struct trp_pool *p = c->parent;
    struct trp_pool_entry *v = p->order;
    uint32_t from = place_of(c), to;
    if (key > c->key) {
        to = lower_bound(p, from + 1, p->norder, key, c->rank) - 1;
        memmove(&v[from], &v[from + 1], (to - from) * sizeof(*v));
    } else {
        to = lower_bound(p, 0, from, key, c->rank);
        memmove(&v[to + 1], &v[to], (from - to) * sizeof(*v));
    }
    c->key = key;
    v[to] = (struct trp_pool_entry){key, c->rank, c};
}

/* A front that `c` with its key goes before gets its place in the order. */
static void pass_front(const struct trp_pool_child *c, uint64_t key)
{
    struct trp_pool_child *front = c->parent->front;
    if (!front)
        return;
    uint64_t front_key = key_of(front);
    if (!is_before(key, c->rank, front_key, front->rank))
        return;
    c->parent->front = NULL;
    if (front_key != front->key)
        order_move(front, front_key);
}

/* Is it before all others in the order? */
static bool is_first(const struct trp_pool_child *c, uint64_t key)
{
    const struct trp_pool *p = c->parent;
    const struct trp_pool_entry *e = p->order;
    if (e->child == c)
        e++;
    return e == p->order + p->norder || is_before(key, c->rank, e->key, e->rank);
}

void trp_pool_child_place(struct trp_pool_child *c)
{
    struct trp_pool *p = c->parent;
    if (p->front == c)
        p->front = NULL;
    if (!c->listed) {
        if (c->placed)
            order_remove(c);
        return;
    }
    uint64_t key = key_of(c);
    if (c->placed && key == c->key)
        return;
    pass_front(c, key);
    if (!c->placed)
        order_insert(c, key);
    else if (!p->front && is_first(c, key))
        p->front = c;
    else
        order_move(c, key);
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
}

bool trp_pool_child_add(struct trp_pool *p, struct trp_pool_child *c)
{
    uint64_t need = (uint64_t)p->nchildren + 1;
    if (!trp_array_room((void **)&p->children, &p->children_cap, need,
                        sizeof(struct trp_pool_child *)) ||
        !trp_array_room((void **)&p->order, &p->order_cap, need, sizeof(*p->order)))
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
    if (p->front == c)
        p->front = NULL;
    if (c->placed)
        order_remove(c);
    uint32_t i = child_index(p, c);
    p->nchildren--;
    memmove(&p->children[i], &p->children[i + 1],
            (p->nchildren - i) * sizeof(struct trp_pool_child *));
}

/* ---- checks ---- */

int trp_pool_check(const struct trp_pool *p, trp_error *err)
{
    uint32_t running = 0, listed = 0, placed = 0;
    for (uint32_t i = 0; i < p->nchildren; i++) {
        const struct trp_pool_child *c = p->children[i];
        running += c->running;
        listed += c->listed;
        placed += c->placed;
        if (c->parent != p || (i && p->children[i - 1]->rank >= c->rank))
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u has no rank",
                                 p->name, i);
        if (c->listed != c->placed && !c->moved)
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u not placed",
                                 p->name, i);
        if (c->placed && !c->moved && c != p->front && c->key != key_of(c))
            return trp_error_set(err, TRP_ESTATE, "pool '%s': child %u has an old key",
                                 p->name, i);
        if (!c->set && trp_pool_check((const struct trp_pool *)c, err) < 0)
            return TRP_ESTATE;
    }
    if (p->nchildren && (running != p->self.running || listed != p->nlisted))
        return trp_error_set(err, TRP_ESTATE,
                             "pool '%s': %u running and %u listed, children %u and %u",
                             p->name, p->self.running, p->nlisted, running, listed);
    if (placed != p->norder)
        return trp_error_set(err, TRP_ESTATE, "pool '%s': %u in order, placed %u",
                             p->name, p->norder, placed);
    for (uint32_t i = 0; i < p->norder; i++) {
        const struct trp_pool_entry *e = &p->order[i];
        bool is_it = e->key == e->child->key && e->rank == e->child->rank;
        bool sorted =
            !i || e[-1].key < e->key || (e[-1].key == e->key && e[-1].rank < e->rank);
        if (!is_it || !sorted)
            return trp_error_set(err, TRP_ESTATE, "pool '%s': entry %u out of order",
                                 p->name, i);
    }
    return 0;
}
