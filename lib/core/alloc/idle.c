/*
 * A heap of those that will expire, and a list of those that have.
 *
 * The heap is lazy: an executor's key there may be earlier than its deadline, for tasks
 * start and end far more often than deadlines pass. A start only notes that the
 * executor is busy; the end after it moves the deadline back, and the key stays. What
 * comes up at the heap's top with a key that is too early is put where it belongs. Keys
 * move forward only when data is dropped.
 */
#include "core/alloc/idle.h"
#include "core/base/time.h"

#include <string.h>
#include <utlist.h>

enum place { NOWHERE, IN_HEAP, EXPIRED };

struct list {
    struct trp_idle_item **v;
    uint32_t n, cap;
};

struct trp_idle {
    struct trp_idle_config config;
    struct list heap, expired;
    bool sorted;                   /* the expired are, by id */
    struct trp_bits used;          /* shuffles that active jobs use */
    struct trp_idle_item *holders; /* of shuffle data */
};

int trp_idle_new(const struct trp_idle_config *config, trp_idle **ret_idle)
{
    trp_idle *m = calloc(1, sizeof(*m));
    if (!m)
        return TRP_ENOMEM;
    m->config = *config;
    *ret_idle = m;
    return 0;
}

void trp_idle_free(trp_idle *m)
{
    if (!m)
        return;
    free(m->heap.v);
    free(m->expired.v);
    trp_bits_free(&m->used);
    free(m);
}

/* ---- deadlines ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t trp_idle_deadline(const trp_idle *m, const struct trp_idle_item *x)
{
    int64_t timeout = m->config.plain_ns;
    if (x->running || x->in_use || !x->registered)
        return INT64_MAX;
    if (x->cached)
        timeout = later(timeout, m->config.cached_ns);
    if (x->shuffles.n)
        timeout = later(timeout, m->config.shuffle_ns);
    return trp_time_after(x->since, timeout);
}

/* When it may be taken for expired. */
static int64_t expires(const trp_idle *m, const struct trp_idle_item *x)
{
    return x->leaving ? INT64_MAX : trp_idle_deadline(m, x);
}

/* ---- heap and list ---- */

static void put_item(struct list *l, uint32_t at, struct trp_idle_item *x)
{
    l->v[at] = x;
    x->at = at;
}

static void sift_up(struct list *heap, struct trp_idle_item *x)
{
    uint32_t at = x->at;
    for (; at && heap->v[(at - 1) / 2]->key > x->key; at = (at - 1) / 2)
        put_item(heap, at, heap->v[(at - 1) / 2]);
    put_item(heap, at, x);
}

static void sift_down(struct list *heap, struct trp_idle_item *x)
{
    uint32_t at = x->at;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < heap->n && heap->v[child + 1]->key < heap->v[child]->key)
            child++;
        if (child >= heap->n || heap->v[child]->key >= x->key)
            break;
        put_item(heap, at, heap->v[child]);
        at = child;
    }
    put_item(heap, at, x);
}

static int append_item(struct list *l, struct trp_idle_item *x, enum place place)
{
    if (!TRP_ARRAY_GROW(l->v, l->n, l->cap))
        return TRP_ENOMEM;
    put_item(l, l->n++, x);
    x->place = place;
    return 0;
}

static void take_out(trp_idle *m, struct trp_idle_item *x)
{
    struct list *l = x->place == IN_HEAP ? &m->heap : &m->expired;
    if (x->place == NOWHERE)
        return;
    struct trp_idle_item *last = l->v[--l->n];
    if (last != x) {
        put_item(l, x->at, last);
        if (x->place == IN_HEAP) {
            sift_down(l, last);
            sift_up(l, last);
        }
    }
    if (x->place == EXPIRED)
        m->sorted = false;
    x->place = NOWHERE;
}

/* Something about it changed: it is put where its deadline is found in time. */
static int update_deadline(trp_idle *m, struct trp_idle_item *x)
{
    int64_t due = expires(m, x);
    if (x->place == IN_HEAP && due < x->key) {
        x->key = due;
        sift_up(&m->heap, x);
    }
    if (due == INT64_MAX || (x->place == EXPIRED && due > x->key))
        take_out(m, x);
    if (due == INT64_MAX || x->place != NOWHERE)
        return 0;
    x->key = due;
    if (append_item(&m->heap, x, IN_HEAP) < 0)
        return TRP_ENOMEM;
    sift_up(&m->heap, x);
    return 0;
}

/* Brings the one that expires first to the top; NULL: none will. */
static struct trp_idle_item *first(trp_idle *m)
{
    while (m->heap.n) {
        struct trp_idle_item *x = m->heap.v[0];
        int64_t due = expires(m, x);
        if (due == INT64_MAX) {
            take_out(m, x);
        } else if (due > x->key) {
            x->key = due;
            sift_down(&m->heap, x);
        } else {
            return x;
        }
    }
    return NULL;
}

int64_t trp_idle_due(trp_idle *m)
{
    const struct trp_idle_item *x = first(m);
    return x ? x->key : INT64_MAX;
}

static int by_id(const void *a, const void *b)
{
    const struct trp_idle_item *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

uint32_t trp_idle_expired(trp_idle *m, int64_t now_ns,
                          struct trp_idle_item *const **ret_list)
{
    struct trp_idle_item *x;
    while ((x = first(m)) && x->key <= now_ns) {
        take_out(m, x);
        m->sorted = false;
        if (append_item(&m->expired, x, EXPIRED) < 0)
            break;
    }
    if (!m->sorted && m->expired.n) {
        qsort(m->expired.v, m->expired.n, sizeof(*m->expired.v), by_id);
        for (uint32_t i = 0; i < m->expired.n; i++)
            m->expired.v[i]->at = i;
    }
    m->sorted = true;
    *ret_list = m->expired.v;
    return m->expired.n;
}

/* ---- what happens ---- */

static void get_to_know(struct trp_idle_item *x, int64_t now_ns)
{
    if (!x->known)
        x->since = now_ns;
    x->known = true;
}

int trp_idle_added(trp_idle *m, struct trp_idle_item *x, int64_t now_ns)
{
    if (x->registered)
        return 0;
    get_to_know(x, now_ns);
    x->registered = true;
    return update_deadline(m, x) < 0 ? TRP_ENOMEM : 1;
}

void trp_idle_leaving(trp_idle *m, struct trp_idle_item *x)
{
    x->leaving = true;
    take_out(m, x);
}

static void let_go_of_shuffles(trp_idle *m, struct trp_idle_item *x)
{
    if (!x->shuffles.v)
        return;
    DL_DELETE(m->holders, x);
    trp_bits_free(&x->shuffles);
}

void trp_idle_gone(trp_idle *m, struct trp_idle_item *x)
{
    take_out(m, x);
    let_go_of_shuffles(m, x);
    *x = (struct trp_idle_item){.id = x->id};
}

int trp_idle_started(trp_idle *m, struct trp_idle_item *x, int64_t now_ns)
{
    get_to_know(x, now_ns);
    x->running++;
    return x->place == EXPIRED ? update_deadline(m, x) : 0;
}

int trp_idle_ended(trp_idle *m, struct trp_idle_item *x, int64_t now_ns)
{
    if (!x->known)
        return 0;
    if (x->running && --x->running)
        return 0;
    x->since = now_ns;
    /* Where its timeout changed while it was busy, it is not there. */
    return x->place == IN_HEAP ? 0 : update_deadline(m, x);
}

int trp_idle_cached(trp_idle *m, struct trp_idle_item *x, uint32_t blocks)
{
    x->cached = blocks;
    return x->known ? update_deadline(m, x) : 0;
}

/* ---- shuffle data ---- */

int trp_idle_shuffle_data(trp_idle *m, struct trp_idle_item *x, uint32_t shuffle)
{
    bool first_data = !x->shuffles.v;
    if (!m->config.tracking || !x->known)
        return 0;
    int fresh = trp_bits_put(&x->shuffles, shuffle);
    if (fresh <= 0)
        return fresh < 0 ? TRP_ENOMEM : 0;
    if (first_data)
        DL_PREPEND(m->holders, x);
    x->in_use |= trp_bits_has(&m->used, shuffle);
    return update_deadline(m, x);
}

static bool holds_used(const trp_idle *m, const struct trp_idle_item *x)
{
    uint32_t words =
        m->used.words < x->shuffles.words ? m->used.words : x->shuffles.words;
    for (uint32_t i = 0; i < words; i++)
        if (m->used.v[i] & x->shuffles.v[i])
            return true;
    return false;
}

/* Of an executor that holds outputs of some: which of them are in use has changed. */
static int look_at_used(trp_idle *m, struct trp_idle_item *x)
{
    x->in_use = holds_used(m, x);
    return update_deadline(m, x);
}

int trp_idle_shuffle_use(trp_idle *m, uint32_t shuffle, bool in_use)
{
    if (!m->config.tracking)
        return 0;
    if (in_use && trp_bits_put(&m->used, shuffle) < 0)
        return TRP_ENOMEM;
    if (!in_use)
        trp_bits_remove(&m->used, shuffle);
    for (struct trp_idle_item *x = m->holders; x; x = x->next)
        if (trp_bits_has(&x->shuffles, shuffle) && look_at_used(m, x) < 0)
            return TRP_ENOMEM;
    return 0;
}

int trp_idle_shuffle_gone(trp_idle *m, uint32_t shuffle)
{
    trp_bits_remove(&m->used, shuffle);
    for (struct trp_idle_item *x = m->holders; x; x = x->next)
        if (trp_bits_remove(&x->shuffles, shuffle) && look_at_used(m, x) < 0)
            return TRP_ENOMEM;
    return 0;
}
