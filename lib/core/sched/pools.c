/*
 * A tree of pools (pool_tree.h) with a table of names, and the walk over it.
 *
 * A count that changes in a FAIR pool only puts the child on the list of those to be
 * placed anew; a walk begins by placing them. So order stays what it was while a round
 * continues, counts that cancel out between two rounds cost no move, and in FIFO
 * nothing is ever moved by a count. A pool is listed while one of its children is.
 *
 * The walk's position is an index in each pool on its path; a removal in front of it
 * moves it back.
 */
#include "core/sched/pools.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/sched/pool_tree.h"

struct trp_pools {
    struct trp_pool *root;
    struct trp_pool *names; /* all but the root, by name */
    struct trp_pool_child *moved;
    struct trp_pool *walk; /* the pool the walk is in */
};

/* ---- who is to be placed ---- */

static inline void mark_moved(trp_pools *p, struct trp_pool_child *c)
{
    if (c->moved)
        return;
    c->moved = true;
    DL_PREPEND(p->moved, c);
}

static void unmark_moved(trp_pools *p, struct trp_pool_child *c)
{
    DL_DELETE(p->moved, c);
    c->moved = false;
}

/* Places all that moved, were listed or unlisted. */
static void place_moved(trp_pools *p)
{
    for (struct trp_pool_child *c; (c = p->moved);) {
        unmark_moved(p, c);
        trp_pool_child_place(c);
    }
}

/* ---- pools ---- */

static struct trp_pool *pool_find(const trp_pools *p, const char *name)
{
    struct trp_pool *pool;
    HASH_FIND_STR(p->names, name, pool);
    return pool;
}

static void pool_free(trp_pools *p, struct trp_pool *pool)
{
    if (pool != p->root)
        HASH_DEL(p->names, pool);
    free(pool->children);
    free(pool->order);
    free(pool);
}

/* A pool without a parent; NULL when out of memory. */
static struct trp_pool *pool_new(trp_pools *p, const char *name,
                                 enum trp_pool_mode mode)
{
    size_t size = strlen(name) + 1;
    struct trp_pool *pool = calloc(1, sizeof(*pool) + size);
    if (!pool)
        return NULL;
    memcpy(pool->name, name, size);
    pool->mode = mode;
    pool->self.weight = 1;
    if (!p->root)
        return p->root = pool;
    HASH_ADD_STR(p->names, name, pool);
    if (!pool->hh.tbl) {
        free(pool);
        return NULL;
    }
    return pool;
}

/* A child of the root with default values; NULL when out of memory. */
static struct trp_pool *pool_new_in_root(trp_pools *p, const char *name,
                                         enum trp_pool_mode mode)
{
    struct trp_pool *pool = pool_new(p, name, mode);
    if (pool && !trp_pool_child_add(p->root, &pool->self)) {
        pool_free(p, pool);
        return NULL;
    }
    return pool;
}

static const char *skip_blanks(const char *s)
{
    return s ? s + strspn(s, " \t\r\n\f\v") : "";
}

static enum trp_pool_mode mode_of(const char *text)
{
    text = skip_blanks(text);
    for (const char *w = "fair"; *w; w++, text++)
        if ((*text | 0x20) != *w)
            return TRP_POOL_FIFO;
    return *skip_blanks(text) ? TRP_POOL_FIFO : TRP_POOL_FAIR;
}

/* A whole number from `least` to INT32_MAX, or `otherwise`. */
static uint32_t number_of(const char *text, long least, uint32_t otherwise)
{
    text = skip_blanks(text);
    char *end;
    long n = strtol(text, &end, 10);
    bool is_it = end != text && !*skip_blanks(end) && n >= least && n <= INT32_MAX;
    return is_it ? (uint32_t)n : otherwise;
}

static int out_of_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory for pools");
}

/* All pools of the file, without parents yet. */
static int make_pools(trp_pools *p, const struct trp_pool_spec *specs, uint32_t n,
                      trp_error *err)
{
    if (n > TRP_POOLS_MAX)
        return trp_error_set(err, TRP_ELIMIT, "%u pools, at most %d are possible", n,
                             TRP_POOLS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_pool_spec *s = &specs[i];
        if (!*skip_blanks(s->name))
            return trp_error_set(err, TRP_EINVAL, "pool number %u has no name", i + 1);
        if (pool_find(p, s->name))
            return trp_error_set(err, TRP_EEXIST, "pool %s is declared twice", s->name);
        struct trp_pool *pool = pool_new(p, s->name, mode_of(s->mode));
        if (!pool)
            return out_of_memory(err);
        pool->self.weight = number_of(s->weight, 1, 1);
        pool->self.min_share = number_of(s->min_share, 0, 0);
    }
    return 0;
}

/* Puts the pools into their parents; one that is not declared is made. */
static int join_pools(trp_pools *p, const struct trp_pool_spec *specs, uint32_t n,
                      trp_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        struct trp_pool *pool = pool_find(p, specs[i].name), *parent = p->root;
        if (*skip_blanks(specs[i].parent)) {
            parent = pool_find(p, specs[i].parent);
            if (!parent)
                parent = pool_new_in_root(p, specs[i].parent, TRP_POOL_FIFO);
        }
        if (!parent || !trp_pool_child_add(parent, &pool->self))
            return out_of_memory(err);
    }
    return 0;
}

/* From each pool the root must be near. */
static int check_depth(const trp_pools *p, const struct trp_pool_spec *specs,
                       uint32_t n, trp_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_pool *pool = pool_find(p, specs[i].name), *up = pool;
        uint32_t depth = 0;
        while (up != p->root && depth <= TRP_POOLS_DEPTH) {
            up = up->self.parent;
            depth++;
            if (up == pool)
                return trp_error_set(err, TRP_EINVAL,
                                     "pool %s lies inside itself: its parent is %s",
                                     specs[i].name, specs[i].parent);
        }
        if (depth > TRP_POOLS_DEPTH)
            return trp_error_set(err, TRP_ELIMIT,
                                 "pool %s lies deeper than the %d levels possible",
                                 specs[i].name, TRP_POOLS_DEPTH);
    }
    return 0;
}

static int build(trp_pools *p, enum trp_pool_mode mode,
                 const struct trp_pool_spec *specs, uint32_t n, trp_error *err)
{
    if (!pool_new(p, "", mode))
        return out_of_memory(err);
    if (mode == TRP_POOL_FIFO)
        return 0;
    int rc = make_pools(p, specs, specs ? n : 0, err);
    if (rc == 0 && specs)
        rc = join_pools(p, specs, n, err);
    if (rc == 0 && specs)
        rc = check_depth(p, specs, n, err);
    if (rc < 0 || pool_find(p, TRP_POOL_DEFAULT))
        return rc;
    if (!pool_new_in_root(p, TRP_POOL_DEFAULT, specs ? TRP_POOL_FIFO : mode))
        return out_of_memory(err);
    return 0;
}

int trp_pools_new(enum trp_pool_mode mode, const struct trp_pool_spec *specs,
                  uint32_t nspecs, trp_pools **ret_pools, trp_error *err)
{
    trp_pools *p = calloc(1, sizeof(*p));
    if (!p)
        return out_of_memory(err);
    int rc = build(p, mode, specs, nspecs, err);
    if (rc < 0) {
        trp_pools_free(p);
        return rc;
    }
    *ret_pools = p;
    return 0;
}

void trp_pools_free(trp_pools *p)
{
    if (!p)
        return;
    struct trp_pool *pool, *next;
    HASH_ITER(hh, p->names, pool, next)
        pool_free(p, pool);
    if (p->root)
        pool_free(p, p->root);
    free(p);
}

/* ---- sets ---- */

/* The pool a set asks for; NULL: it cannot be made (rc tells why). */
static struct trp_pool *pool_for(trp_pools *p, const char *name, int *rc,
                                 trp_error *err)
{
    if (p->root->mode == TRP_POOL_FIFO)
        return p->root;
    if (!*skip_blanks(name))
        name = TRP_POOL_DEFAULT;
    struct trp_pool *pool = pool_find(p, name);
    if (pool)
        return pool;
    if (HASH_COUNT(p->names) >= TRP_POOLS_MAX) {
        *rc = trp_error_set(err, TRP_ELIMIT,
                            "pool %s would be one more than the %d that are possible",
                            name, TRP_POOLS_MAX);
        return NULL;
    }
    pool = pool_new_in_root(p, name, TRP_POOL_FIFO);
    if (!pool)
        *rc = out_of_memory(err);
    else
        pool->silent = true;
    return pool;
}

static void detach(trp_pools *p, struct trp_pool_child *c)
{
    if (c->moved)
        unmark_moved(p, c);
    trp_pool_child_remove(c);
}

static void drop_if_silent(trp_pools *p, struct trp_pool *pool)
{
    if (!pool->silent || pool->nchildren)
        return;
    if (p->walk == pool)
        p->walk = pool->self.parent;
    detach(p, &pool->self);
    pool_free(p, pool);
}

int trp_pools_add(trp_pools *p, struct trp_pool_child *c, void *set, const char *pool,
                  uint32_t job, uint32_t stage, uint32_t attempt, trp_error *err)
{
    assert(!c->parent && set);
    int rc = 0;
    struct trp_pool *in = pool_for(p, pool, &rc, err);
    if (!in)
        return rc;
    *c = (struct trp_pool_child){
        .set = set, .weight = 1, .job = job, .stage = stage, .attempt = attempt};
    if (!trp_pool_child_add(in, c)) {
        drop_if_silent(p, in);
        return out_of_memory(err);
    }
    return 0;
}

void trp_pools_remove(trp_pools *p, struct trp_pool_child *c)
{
    struct trp_pool *in = c->parent;
    if (!in)
        return;
    trp_pools_unlist(p, c);
    trp_pools_count(p, c, -(int)c->running);
    detach(p, c);
    c->parent = NULL;
    drop_if_silent(p, in);
}

void trp_pools_list(trp_pools *p, struct trp_pool_child *c)
{
    while (c->parent && !c->listed) {
        c->listed = true;
        mark_moved(p, c);
        struct trp_pool *up = c->parent;
        up->nlisted++;
        c = &up->self;
    }
}

void trp_pools_unlist(trp_pools *p, struct trp_pool_child *c)
{
    while (c->parent && c->listed) {
        c->listed = false;
        mark_moved(p, c);
        struct trp_pool *up = c->parent;
        if (--up->nlisted)
            return;
        c = &up->self;
    }
}

void trp_pools_count(trp_pools *p, struct trp_pool_child *c, int by)
{
    for (; c->parent; c = &c->parent->self) {
        c->running += (uint32_t)by;
        if (c->parent->mode == TRP_POOL_FAIR && c->listed)
            mark_moved(p, c);
    }
    c->running += (uint32_t)by;
}

/* ---- walks ---- */

void *trp_pools_first(trp_pools *p)
{
    place_moved(p);
    p->walk = p->root;
    trp_pool_enter(p->root);
    return trp_pools_next(p);
}

void *trp_pools_next(trp_pools *p)
{
    while (p->walk) {
        struct trp_pool_child *c = trp_pool_step(p->walk);
        if (!c) {
            p->walk = p->walk->self.parent;
        } else if (c->listed && c->set) {
            return c->set;
        } else if (c->listed) {
            struct trp_pool *in = (struct trp_pool *)c;
            void *only = trp_pool_only_set(in);
            if (only)
                return only;
            p->walk = in;
            trp_pool_enter(in);
        }
    }
    return NULL;
}

void trp_pools_view(const struct trp_pool_child *c, struct trp_pool_view *ret_view)
{
    const struct trp_pool *p = c->parent;
    *ret_view = (struct trp_pool_view){p->name, p->self.running, p->self.min_share,
                                       p->self.weight, p->mode};
}

static uint32_t depth_of(const struct trp_pool_child *c)
{
    uint32_t n = 0;
    for (; c->parent; c = &c->parent->self)
        n++;
    return n;
}

bool trp_pools_is_before(const struct trp_pool_child *a, const struct trp_pool_child *b)
{
    uint32_t da = depth_of(a), db = depth_of(b);
    for (; da > db; da--)
        a = &a->parent->self;
    for (; db > da; db--)
        b = &b->parent->self;
    while (a->parent != b->parent) {
        a = &a->parent->self;
        b = &b->parent->self;
    }
    return trp_pool_child_is_before(a, b);
}

int trp_pools_check(const trp_pools *p, trp_error *err)
{
    return trp_pool_check(p->root, err);
}
