/*
 * The application's tracker: a table of executors and one of nodes that something is
 * known of, and for each a list of the excluded ones. All exclusions last equally long
 * and time never decreases, so a list is sorted by the time of expiry: what has expired
 * is at its head, and asking for the next expiry looks at two heads.
 *
 * An entry lives as long as it says something: an executor's while it has failures or
 * is excluded; a node's while it is excluded or has excluded executors. Failures of an
 * excluded executor are still noted: they count once its exclusion is over.
 */
#include <stdlib.h>
#include <utlist.h>

#define HASH_FUNCTION(key, size, hash) ((hash) = hash_of(key))
#include "core/base/array.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/sched/health_record.h"

static inline unsigned hash_of(const uint32_t *number)
{
    return (unsigned)(*number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

struct place {
    uint32_t number; /* of the executor or the node */
    uint32_t node;
    bool excluded;
    int64_t expiry_ns;
    struct place *next, *prev; /* in the list of excluded ones */
    uint32_t executors;        /* of a node: excluded ones, also if gone */
    int64_t *failures;         /* of an executor: when each is forgotten */
    uint32_t nfailures, failures_cap;
    UT_hash_handle hh;
};

struct places {
    struct place *table, *excluded;
    uint32_t nexcluded;
    uint32_t *news;
    uint32_t nnews, news_cap; /* room for all that are excluded and one more */
};

struct trp_health_tracker {
    struct trp_health_config config;
    struct places executors, nodes;
};

/* ---- places ---- */

static struct place *find_place(const struct places *p, uint32_t number)
{
    struct place *e;
    HASH_FIND(hh, p->table, &number, sizeof(number), e);
    return e;
}

static struct place *find_or_add(struct places *p, uint32_t number, uint32_t node)
{
    struct place *e = find_place(p, number);
    if (e)
        return e;
    e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->number = number;
    e->node = node;
    HASH_ADD(hh, p->table, number, sizeof(e->number), e);
    if (e->hh.tbl)
        return e;
    free(e);
    return NULL;
}

static void place_free(struct places *p, struct place *e)
{
    HASH_DEL(p->table, e);
    free(e->failures);
    free(e);
}

static void free_if_empty(struct places *p, struct place *e)
{
    if (!e->excluded && !e->executors && !e->nfailures)
        place_free(p, e);
}

static void places_free(struct places *p)
{
    struct place *e, *next;
    HASH_ITER(hh, p->table, e, next)
        place_free(p, e);
    free(p->news);
}

static bool has_room(struct places *p)
{
    return TRP_ARRAY_GROW(p->news, p->nexcluded, p->news_cap);
}

/* There is room. */
static void exclude_place(struct places *p, struct place *e, int64_t expiry_ns)
{
    e->excluded = true;
    e->expiry_ns = expiry_ns;
    DL_APPEND(p->excluded, e);
    p->nexcluded++;
    p->news[p->nnews++] = e->number;
}

static void include(struct places *p, struct place *e)
{
    e->excluded = false;
    DL_DELETE(p->excluded, e);
    p->nexcluded--;
    p->news[p->nnews++] = e->number;
}

/* ---- the tracker ---- */

trp_health_tracker *trp_health_tracker_new(const struct trp_health_config *config)
{
    trp_health_tracker *t = calloc(1, sizeof(*t));
    if (t)
        t->config = *config;
    return t;
}

void trp_health_tracker_free(trp_health_tracker *t)
{
    if (!t)
        return;
    places_free(&t->executors);
    places_free(&t->nodes);
    free(t);
}

static int64_t expiry_of(const trp_health_tracker *t, int64_t since_ns)
{
    return trp_time_after(since_ns, t->config.timeout_ns);
}

static void no_news(trp_health_tracker *t)
{
    t->executors.nnews = t->nodes.nnews = 0;
}

static void return_news(const trp_health_tracker *t, struct trp_health_news *ret_news)
{
    if (ret_news)
        *ret_news = (struct trp_health_news){t->executors.news, t->nodes.news,
                                             t->executors.nnews, t->nodes.nnews};
}

/* Excludes an executor that is not, and counts it for its node, which is returned:
 * NULL when out of memory. */
static struct place *executor_out(trp_health_tracker *t, struct place *x,
                                  int64_t expiry_ns)
{
    struct place *node = find_or_add(&t->nodes, x->node, x->node);
    if (!node)
        return NULL;
    if (!has_room(&t->executors)) {
        free_if_empty(&t->nodes, node);
        return NULL;
    }
    exclude_place(&t->executors, x, expiry_ns);
    node->executors++;
    return node;
}

static int node_out(trp_health_tracker *t, uint32_t number, int64_t expiry_ns)
{
    struct place *node = find_or_add(&t->nodes, number, number);
    if (!node)
        return TRP_ENOMEM;
    if (node->excluded)
        return 0;
    if (!has_room(&t->nodes)) {
        free_if_empty(&t->nodes, node);
        return TRP_ENOMEM;
    }
    exclude_place(&t->nodes, node, expiry_ns);
    return 0;
}

/* Forgets failures that are too old; 0 of them may remain. */
static void drop_old_failures(struct place *x, int64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->nfailures; i++)
        if (x->failures[i] >= now_ns)
            x->failures[kept++] = x->failures[i];
    x->nfailures = kept;
}

/* Adds what failed on one executor. */
static int add_failures(trp_health_tracker *t, struct place *x,
                        const struct trp_health_entry *on_executor)
{
    if (!TRP_ARRAY_RESERVE(x->failures, x->failures_cap,
                           (uint64_t)x->nfailures + on_executor->count))
        return TRP_ENOMEM;
    for (const struct trp_health_entry *e = on_executor->next; e; e = e->next)
        x->failures[x->nfailures++] = expiry_of(t, e->failed_ns);
    return 0;
}

static int executor_failed(trp_health_tracker *t, int64_t now_ns,
                           const struct trp_health_entry *on_executor)
{
    struct place *x =
        find_or_add(&t->executors, on_executor->key.place, on_executor->node);
    if (!x)
        return TRP_ENOMEM;
    int rc = add_failures(t, x, on_executor);
    drop_old_failures(x, now_ns);
    if (rc == 0 && !x->excluded && x->nfailures >= t->config.app_tasks_per_executor) {
        int64_t expiry = expiry_of(t, now_ns);
        struct place *node = executor_out(t, x, expiry);
        if (!node)
            return TRP_ENOMEM;
        x->nfailures = 0;
        if (node->executors >= t->config.app_executors_per_node)
            rc = node_out(t, node->number, expiry);
    }
    free_if_empty(&t->executors, x);
    return rc;
}

int trp_health_succeeded(trp_health_tracker *t, int64_t now_ns,
                         const struct trp_health *record,
                         struct trp_health_news *ret_news)
{
    int rc = 0;
    no_news(t);
    const struct trp_health_entry *e = record ? record->entries : NULL;
    for (; e && rc == 0; e = e->hh.next)
        if (e->key.kind == TRP_HEALTH_EXECUTOR)
            rc = executor_failed(t, now_ns, e);
    return_news(t, ret_news);
    return rc;
}

static int exclude_executor(trp_health_tracker *t, int64_t now_ns, uint32_t executor,
                            uint32_t node)
{
    struct place *x = find_or_add(&t->executors, executor, node);
    if (!x)
        return TRP_ENOMEM;
    if (x->excluded || executor_out(t, x, expiry_of(t, now_ns)))
        return 0;
    free_if_empty(&t->executors, x);
    return TRP_ENOMEM;
}

int trp_health_fetch_failed(trp_health_tracker *t, int64_t now_ns, uint32_t executor,
                            uint32_t node, bool service,
                            struct trp_health_news *ret_news)
{
    int rc = 0;
    no_news(t);
    if (t->config.enabled && t->config.fetch_failure) {
        if (service && node != TRP_NONE)
            rc = node_out(t, node, expiry_of(t, now_ns));
        else if (!service && executor != TRP_NONE)
            rc = exclude_executor(t, now_ns, executor, node);
    }
    return_news(t, ret_news);
    return rc;
}

int trp_health_exclude_executor(trp_health_tracker *t, int64_t now_ns,
                                uint32_t executor, uint32_t node)
{
    no_news(t);
    return exclude_executor(t, now_ns, executor, node);
}

int trp_health_exclude_node(trp_health_tracker *t, int64_t now_ns, uint32_t node)
{
    no_news(t);
    return node_out(t, node, expiry_of(t, now_ns));
}

void trp_health_executor_gone(trp_health_tracker *t, uint32_t executor)
{
    struct place *x = find_place(&t->executors, executor);
    if (!x)
        return;
    x->nfailures = 0;
    free_if_empty(&t->executors, x);
}

void trp_health_expire(trp_health_tracker *t, int64_t now_ns,
                       struct trp_health_news *ret_news)
{
    no_news(t);
    struct place *e;
    while ((e = t->executors.excluded) && e->expiry_ns < now_ns) {
        struct place *node = find_place(&t->nodes, e->node);
        node->executors--;
        free_if_empty(&t->nodes, node);
        include(&t->executors, e);
        free_if_empty(&t->executors, e);
    }
    while ((e = t->nodes.excluded) && e->expiry_ns < now_ns) {
        include(&t->nodes, e);
        free_if_empty(&t->nodes, e);
    }
    return_news(t, ret_news);
}

static int64_t first_expiry(const struct places *p)
{
    bool never = !p->excluded || p->excluded->expiry_ns == INT64_MAX;
    return never ? INT64_MAX : p->excluded->expiry_ns + 1;
}

int64_t trp_health_next_expiry(const trp_health_tracker *t)
{
    return trp_earlier(first_expiry(&t->executors), first_expiry(&t->nodes));
}

static bool is_excluded(const struct places *p, uint32_t number)
{
    const struct place *e = p->nexcluded ? find_place(p, number) : NULL;
    return e && e->excluded;
}

bool trp_health_executor_excluded(const trp_health_tracker *t, uint32_t executor)
{
    return t && is_excluded(&t->executors, executor);
}

bool trp_health_node_excluded(const trp_health_tracker *t, uint32_t node)
{
    return t && is_excluded(&t->nodes, node);
}

static bool each(const struct places *p, const void **cursor, uint32_t *ret_number)
{
    const struct place *e = *cursor;
    e = e ? e->next : p->excluded;
    if (!e)
        return false;
    *cursor = e;
    *ret_number = e->number;
    return true;
}

bool trp_health_each_executor(const trp_health_tracker *t, const void **cursor,
                              uint32_t *ret_executor)
{
    return t && each(&t->executors, cursor, ret_executor);
}

bool trp_health_each_node(const trp_health_tracker *t, const void **cursor,
                          uint32_t *ret_node)
{
    return t && each(&t->nodes, cursor, ret_node);
}
