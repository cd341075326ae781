/*
 * The record of a task set: one hash table with an entry for each place where
 * something failed, of four kinds.
 *
 *     task, executor   count: failures; excluded at task_attempts_per_executor
 *     task, node       count: failures; excluded at task_attempts_per_node
 *     executor         count: distinct tasks; excluded at stage_tasks_per_executor
 *     node             count: executors excluded; excluded at stage_executors_per_node
 *
 * Each failure touches the four in this order, so a node is looked at only when one of
 * its executors is excluded just now. The table keeps insertion order, which makes all
 * lists the same in every run. `tasks` of an executor or a node counts its excluded
 * tasks: an offer asks two entries, and tasks are asked for one by one only where there
 * is one.
 */
#include <stdlib.h>
#include <string.h>

#define HASH_FUNCTION(key, size, hash) ((hash) = hash_of(key))
#include "core/base/ids.h"
#include "core/sched/health_record.h"

enum { WHY_SIZE = 512 };

static inline unsigned hash_of(const void *key)
{
    const struct trp_health_key *k = key;
    uint64_t h = ((uint64_t)k->task << 32 | k->place) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ k->kind) * UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned)(h >> 32);
}

static struct trp_health_entry *find_entry(const struct trp_health *r,
                                           enum trp_health_kind kind, uint32_t task,
                                           uint32_t place)
{
    struct trp_health_key key = {kind, task, place};
    struct trp_health_entry *e;
    HASH_FIND(hh, r->entries, &key, sizeof(key), e);
    return e;
}

static struct trp_health_entry *find_or_add(struct trp_health *r,
                                            enum trp_health_kind kind, uint32_t task,
                                            uint32_t place, uint32_t node)
{
    struct trp_health_entry *e = find_entry(r, kind, task, place);
    if (e)
        return e;
    e = calloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->key = (struct trp_health_key){kind, task, place};
    e->node = node;
    HASH_ADD(hh, r->entries, key, sizeof(e->key), e);
    if (e->hh.tbl)
        return e;
    free(e);
    return NULL;
}

static void keep_why(struct trp_health *r, const char *why)
{
    char *copy = why && *why ? strndup(why, WHY_SIZE - 1) : NULL;
    free(r->why);
    r->why = copy;
}

/* The executor was excluded just now: is its node? */
static void executor_out(const struct trp_health_config *c,
                         struct trp_health_entry *node)
{
    node->count++;
    if (node->count >= c->stage_executors_per_node)
        node->excluded = true;
}

int trp_health_failed(const struct trp_health_config *c, struct trp_health **record,
                      int64_t now_ns, uint32_t task, uint32_t executor, uint32_t node,
                      const char *why)
{
    if (!c->enabled)
        return 0;
    if (!*record && !(*record = calloc(1, sizeof(**record))))
        return TRP_ENOMEM;
    struct trp_health *r = *record;
    keep_why(r, why);
    struct trp_health_entry *at_executor =
        find_or_add(r, TRP_HEALTH_TASK_EXECUTOR, task, executor, node);
    struct trp_health_entry *at_node =
        find_or_add(r, TRP_HEALTH_TASK_NODE, task, node, node);
    struct trp_health_entry *on_executor =
        find_or_add(r, TRP_HEALTH_EXECUTOR, TRP_NONE, executor, node);
    struct trp_health_entry *on_node =
        find_or_add(r, TRP_HEALTH_NODE, TRP_NONE, node, node);
    if (!at_executor || !at_node || !on_executor || !on_node)
        return TRP_ENOMEM;

    at_executor->failed_ns = now_ns;
    if (at_executor->count++ == 0) {
        on_executor->count++;
        at_executor->next = on_executor->next;
        on_executor->next = at_executor;
    }
    if (!at_executor->excluded && at_executor->count >= c->task_attempts_per_executor) {
        at_executor->excluded = true;
        on_executor->tasks++;
    }
    at_node->count++;
    if (!at_node->excluded && at_node->count >= c->task_attempts_per_node) {
        at_node->excluded = true;
        on_node->tasks++;
    }
    if (!on_executor->excluded && on_executor->count >= c->stage_tasks_per_executor) {
        on_executor->excluded = true;
        executor_out(c, on_node);
    }
    return 0;
}

void trp_health_free(struct trp_health *r)
{
    if (!r)
        return;
    struct trp_health_entry *e, *next;
    HASH_ITER(hh, r->entries, e, next) {
        HASH_DEL(r->entries, e);
        free(e);
    }
    free(r->why);
    free(r);
}

enum trp_health_verdict trp_health_look(const struct trp_health *r, uint32_t executor,
                                        uint32_t node)
{
    const struct trp_health_entry *n = find_entry(r, TRP_HEALTH_NODE, TRP_NONE, node);
    if (!n)
        return TRP_HEALTH_IN;
    if (n->excluded)
        return TRP_HEALTH_OUT;
    const struct trp_health_entry *x =
        find_entry(r, TRP_HEALTH_EXECUTOR, TRP_NONE, executor);
    if (x && x->excluded)
        return TRP_HEALTH_OUT;
    return n->tasks || (x && x->tasks) ? TRP_HEALTH_SOME : TRP_HEALTH_IN;
}

bool trp_health_stage_node_out(const struct trp_health *r, uint32_t node)
{
    const struct trp_health_entry *n = find_entry(r, TRP_HEALTH_NODE, TRP_NONE, node);
    return n && n->excluded;
}

bool trp_health_look_task(const struct trp_health *r, uint32_t task, uint32_t executor,
                          uint32_t node)
{
    const struct trp_health_entry *n = find_entry(r, TRP_HEALTH_TASK_NODE, task, node);
    if (!n)
        return false;
    if (n->excluded)
        return true;
    const struct trp_health_entry *x =
        find_entry(r, TRP_HEALTH_TASK_EXECUTOR, task, executor);
    return x && x->excluded;
}

const char *trp_health_latest(const struct trp_health *r)
{
    return r && r->why ? r->why : "";
}

bool trp_health_each(const struct trp_health *r, const void **cursor,
                     struct trp_exclusion *ret_exclusion)
{
    const struct trp_health_entry *e = *cursor;
    e = e ? e->hh.next : r ? r->entries : NULL;
    while (e && !e->excluded)
        e = e->hh.next;
    if (!e)
        return false;
    *cursor = e;
    bool is_node =
        e->key.kind == TRP_HEALTH_TASK_NODE || e->key.kind == TRP_HEALTH_NODE;
    *ret_exclusion = (struct trp_exclusion){
        .task = e->key.task,
        .executor = is_node ? TRP_NONE : e->key.place,
        .node = e->node,
        .is_node = is_node,
    };
    return true;
}
