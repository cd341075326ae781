/*
 * The pending tasks of a set, by place, and which of them an offer gets.
 *
 * Pending tasks stand on stacks: one for each preferred executor, host and rack, one
 * for tasks without preference, one for all. They are filled in reverse order and
 * scanned from the tail, so the lowest index comes first and a task that failed, pushed
 * on top, is the next to be tried. A task is taken from one stack and stays on the
 * others as a stale entry that is dropped when a scan meets it: each entry is dropped
 * once, so a pick costs O(1) amortised. Entries that are excluded from the executor are
 * skipped and kept (in scenarios stale ones too, as in Spark, where they make an offer
 * count as refused). A place has a list from the first task that prefers it until no
 * pending task prefers any place of that kind, which a set notices when it passes the
 * level (locality.c); its `cap` is above 0 as long. Tasks that are to get a copy stand
 * on stacks of the same kind of their own. How many pending tasks have an executor,
 * host or rack preference is counted exactly, so "does a task still need this level"
 * (7.3) needs no scan. (Spark's TaskSetManager; semantics, section 8.)
 */
#include <string.h>
#include <uthash.h>

#include "core/engine_state.h"

struct trp_executor_list {
    uint32_t executor;
    struct trp_stack stack;
    UT_hash_handle hh;
};

static struct trp_executor_list *executor_list(const struct trp_pending *p, uint32_t n)
{
    struct trp_executor_list *l;
    HASH_FIND(hh, p->executors, &n, sizeof(n), l);
    return l;
}

static struct trp_executor_list *executor_list_make(struct trp_pending *p, uint32_t n)
{
    struct trp_executor_list *l = executor_list(p, n);
    if (l)
        return l;
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->executor = n;
    HASH_ADD(hh, p->executors, executor, sizeof(l->executor), l);
    if (!l->hh.tbl) {
        free(l);
        return NULL;
    }
    return l;
}

bool trp_pending_add_executor(struct trp_pending *p, uint32_t executor)
{
    return executor_list_make(p, executor) != NULL;
}

bool trp_pending_has_executor(const struct trp_task_set *s, uint32_t executor)
{
    return s->lists.executors && executor_list(&s->lists, executor);
}

uint32_t trp_pending_executors_alive(const struct trp_engine *e,
                                     const struct trp_task_set *s)
{
    struct trp_executor_list *l, *next;
    uint32_t n = 0;
    HASH_ITER(hh, s->lists.executors, l, next) {
        struct trp_executor *x = trp_executor_find(e, (trp_executor_id){l->executor});
        n += x && trp_executor_is_alive(x);
    }
    return n;
}

static void free_executor_lists(struct trp_pending *p)
{
    struct trp_executor_list *l, *next;
    HASH_ITER(hh, p->executors, l, next) {
        HASH_DEL(p->executors, l);
        free(l->stack.v);
        free(l);
    }
}

void trp_pending_drop(struct trp_task_set *s, enum trp_level level)
{
    struct trp_pending *p = &s->lists;
    if (level == TRP_PROCESS_LOCAL) {
        free_executor_lists(p);
        s->alive_executors = 0;
    } else if (level == TRP_NODE_LOCAL && p->has_hosts) {
        for (uint32_t i = 0; i < s->nhosts; i++)
            p->hosts[i].n = p->hosts[i].cap = 0;
        p->has_hosts = false;
        s->alive_hosts = 0;
    } else if (level == TRP_RACK_LOCAL && p->has_racks) {
        for (uint32_t i = 0; i < s->nracks; i++)
            p->racks[i].n = p->racks[i].cap = 0;
        p->has_racks = false;
        s->alive_racks = 0;
    }
}

bool trp_pending_make(struct trp_task_set *s, struct trp_pending *p)
{
    p->hosts = calloc(s->nhosts ? s->nhosts : 1, sizeof(*p->hosts));
    p->racks = calloc(s->nracks ? s->nracks : 1, sizeof(*p->racks));
    return p->hosts && p->racks;
}

/* Hands parts of the block to stacks whose `cap` says how much each needs. */
static uint32_t *hand_out(uint32_t *block, struct trp_stack *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        v[i].v = v[i].cap ? block : NULL;
        block += v[i].cap;
    }
    return block;
}

/* Room for all preferences of the pending tasks, in one piece. */
static bool reserve(struct trp_task_set *s)
{
    struct trp_pending *p = &s->lists;
    for (uint32_t t = 0; t < s->ntasks; t++) {
        uint32_t end = trp_task_is_pending(&s->tasks[t]) ? s->prefer_first[t + 1] : 0;
        for (uint32_t i = s->prefer_first[t]; i < end; i++) {
            const struct trp_set_place *at = &s->preferred[i];
            p->hosts[at->host].cap++;
            p->nblock++;
            if (at->rack == TRP_NONE)
                continue;
            p->racks[at->rack].cap++;
            p->nblock++;
        }
    }
    p->block = malloc((p->nblock ? p->nblock : 1) * sizeof(*p->block));
    if (!p->block)
        return false;
    p->has_hosts = p->has_racks = true;
    hand_out(hand_out(p->block, p->hosts, s->nhosts), p->racks, s->nracks);
    return true;
}

static bool is_in_block(const struct trp_pending *p, const struct trp_stack *stack)
{
    return p->block && stack->v >= p->block && stack->v < p->block + p->nblock;
}

/* Onto a stack of a host or rack. */
static bool push_at(const struct trp_pending *p, struct trp_stack *stack, uint32_t task)
{
    if (stack->n == stack->cap && is_in_block(p, stack)) {
        struct trp_stack own = {.n = stack->n};
        if (!TRP_ARRAY_GROW(own.v, own.n, own.cap))
            return false;
        memcpy(own.v, stack->v, own.n * sizeof(*own.v));
        *stack = own;
    }
    return trp_stack_push(stack, task);
}

static void free_stacks(const struct trp_pending *p, struct trp_stack *v, uint32_t n)
{
    for (uint32_t i = 0; v && i < n; i++)
        if (v[i].v && !is_in_block(p, &v[i]))
            free(v[i].v);
    free(v);
}

void trp_pending_free(const struct trp_task_set *s, struct trp_pending *p)
{
    free_executor_lists(p);
    free_stacks(p, p->hosts, s->nhosts);
    free_stacks(p, p->racks, s->nracks);
    free(p->block);
    free(p->all.v);
    free(p->no_pref.v);
}

/* ---- onto the lists ---- */

/* Which levels a task's preferences reach, for the exact counts. */
static void preference_kinds(const struct trp_task_set *s, uint32_t task,
                             bool *ret_executor, bool *ret_rack)
{
    *ret_executor = *ret_rack = false;
    for (uint32_t i = s->prefer_first[task]; i < s->prefer_first[task + 1]; i++) {
        *ret_executor |= s->preferred[i].executor != TRP_NONE;
        *ret_rack |= s->preferred[i].rack != TRP_NONE;
    }
}

static void count_pending(struct trp_task_set *s, uint32_t task, int by)
{
    s->pending += (uint32_t)by;
    if (!trp_set_prefers(s, task))
        return;
    bool executor, rack;
    preference_kinds(s, task, &executor, &rack);
    s->pending_host += (uint32_t)by;
    if (executor)
        s->pending_executor += (uint32_t)by;
    if (rack)
        s->pending_rack += (uint32_t)by;
}

/* Lists that were dropped, and come back with the task, count for the levels again. */
static void enliven(const struct trp_engine *e, struct trp_task_set *s,
                    const struct trp_set_place *at)
{
    const struct trp_executor *x =
        trp_executor_find(e, (trp_executor_id){at->executor});
    s->alive_hosts +=
        !s->lists.hosts[at->host].cap && e->hosts.hosts[at->host].executors;
    if (at->rack != TRP_NONE)
        s->alive_racks +=
            !s->lists.racks[at->rack].cap && e->hosts.racks[at->rack].executors;
    if (x && trp_executor_is_alive(x))
        s->alive_executors += !trp_pending_has_executor(s, at->executor);
}

bool trp_pending_push(const struct trp_engine *e, struct trp_task_set *s,
                      struct trp_pending *p, uint32_t task)
{
    bool ok = trp_stack_push(&p->all, task);
    if (!trp_set_prefers(s, task))
        return ok && trp_stack_push(&p->no_pref, task);
    p->has_hosts = p->has_racks = true;
    for (uint32_t i = s->prefer_first[task]; i < s->prefer_first[task + 1]; i++) {
        const struct trp_set_place *at = &s->preferred[i];
        if (p == &s->lists)
            enliven(e, s, at);
        ok = ok && push_at(p, &p->hosts[at->host], task);
        if (at->rack != TRP_NONE)
            ok = ok && push_at(p, &p->racks[at->rack], task);
        if (at->executor == TRP_NONE)
            continue;
        struct trp_executor_list *l = executor_list_make(p, at->executor);
        ok = ok && l && trp_stack_push(&l->stack, task);
    }
    return ok;
}

/* Everything is reserved: nothing to check, but for the lists of executors. */
static bool fill_places(struct trp_task_set *s, uint32_t task)
{
    struct trp_pending *p = &s->lists;
    const struct trp_set_place *at = &s->preferred[s->prefer_first[task]];
    const struct trp_set_place *end = &s->preferred[s->prefer_first[task + 1]];
    bool executor = false, rack = false, ok = true;
    for (; at < end; at++) {
        struct trp_stack *host = &p->hosts[at->host];
        host->v[host->n++] = task;
        if (at->rack != TRP_NONE) {
            struct trp_stack *in = &p->racks[at->rack];
            in->v[in->n++] = task;
            rack = true;
        }
        if (at->executor != TRP_NONE) {
            struct trp_executor_list *l = executor_list_make(p, at->executor);
            ok = ok && l && trp_stack_push(&l->stack, task);
            executor = true;
        }
    }
    s->pending_host++;
    s->pending_rack += rack;
    s->pending_executor += executor;
    return ok;
}

bool trp_pending_fill(struct trp_task_set *s)
{
    struct trp_stack *all = &s->lists.all;
    if (!TRP_ARRAY_RESERVE(all->v, all->cap, s->ntasks) ||
        (s->prefer_first && !reserve(s)))
        return false;
    for (uint32_t i = s->ntasks; i-- > 0;) {
        if (!trp_task_is_pending(&s->tasks[i]))
            continue;
        all->v[all->n++] = i;
        if (trp_set_prefers(s, i) ? !fill_places(s, i)
                                  : !trp_stack_push(&s->lists.no_pref, i))
            return false;
    }
    s->pending = all->n;
    return true;
}

bool trp_task_set_push(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    if (!trp_pending_push(e, s, &s->lists, task)) {
        e->out_of_memory = true;
        return false;
    }
    count_pending(s, task, 1);
    if (s->class && !s->zombie)
        trp_task_set_list(e, s);
    return true;
}

void trp_task_set_take(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    count_pending(s, task, -1);
    trp_set_liven(s);
    if (!trp_set_has_work(s) && !e->sched_alone)
        trp_task_set_unlist(e, s);
}

/* ---- off the lists ---- */

/* What is looked for in the lists. An entry is stale too when the task has moved on to
 * an overflow set, and pends there. */
struct search {
    const struct trp_engine *e;
    const struct trp_task_set *s;
    const struct trp_executor *x;
    bool copy;
    bool some_out; /* tasks may be excluded here */
};

static bool is_wanted(const struct search *q, uint32_t task)
{
    const struct trp_task *t = &q->s->tasks[task];
    if (t->grown != q->s->grown)
        return false;
    if (!q->copy)
        return trp_task_is_pending(t);
    return (t->flags & TRP_TASK_SPECULATABLE) && !(t->flags & TRP_TASK_OVER);
}

static bool is_kept_away(const struct search *q, uint32_t task)
{
    if (q->copy && trp_copies_ran_on(q->e, q->s, task, q->x->host))
        return true;
    return q->some_out && q->s->tasks[task].attempts &&
           trp_health_task_out(q->s->health, task, q->x->id.n, q->x->host);
}

/* Scans from the tail; drops stale entries, passes over those kept away (in scenarios,
 * as in Spark, whether they are stale or not). */
static uint32_t pop_allowed(const struct search *q, struct trp_stack *stack)
{
    uint32_t kept = 0;
    for (uint32_t i = stack->n; i-- > 0;) {
        uint32_t task = stack->v[i];
        bool wanted = is_wanted(q, task);
        if ((wanted || q->e->sched_alone) && is_kept_away(q, task)) {
            kept++;
            continue;
        }
        if (kept)
            memmove(&stack->v[i], &stack->v[i + 1], kept * sizeof(*stack->v));
        stack->n--;
        if (wanted)
            return task;
    }
    return TRP_NONE;
}

/* The first wanted task, taken off, or TRP_NONE. */
static inline uint32_t pop(const struct search *q, struct trp_stack *stack)
{
    if (q->copy || q->some_out)
        return pop_allowed(q, stack);
    while (stack->n) {
        uint32_t task = stack->v[--stack->n];
        if (is_wanted(q, task))
            return task;
    }
    return TRP_NONE;
}

static uint32_t find(const struct search *q, struct trp_pending *p,
                     enum trp_level level, enum trp_level *ret_level)
{
    const struct trp_task_set *s = q->s;
    uint32_t task = TRP_NONE;
    if (s->prefer_first) {
        struct trp_executor_list *l =
            p->executors ? executor_list(p, q->x->id.n) : NULL;
        *ret_level = TRP_PROCESS_LOCAL;
        if (l && (task = pop(q, &l->stack)) != TRP_NONE)
            return task;
        *ret_level = TRP_NODE_LOCAL;
        if (level >= TRP_NODE_LOCAL && q->x->host < s->nhosts &&
            (task = pop(q, &p->hosts[q->x->host])) != TRP_NONE)
            return task;
    }
    *ret_level = TRP_PROCESS_LOCAL; /* Spark reports tasks without preference so */
    if (level >= TRP_NO_PREF && (task = pop(q, &p->no_pref)) != TRP_NONE)
        return task;
    if (!s->prefer_first)
        return TRP_NONE;
    uint32_t rack = q->e->hosts.hosts[q->x->host].rack.n;
    *ret_level = TRP_RACK_LOCAL;
    if (level >= TRP_RACK_LOCAL && rack < s->nracks &&
        (task = pop(q, &p->racks[rack])) != TRP_NONE)
        return task;
    *ret_level = TRP_ANY;
    return level >= TRP_ANY ? pop(q, &p->all) : TRP_NONE;
}

uint32_t trp_task_set_pick(struct trp_engine *e, struct trp_task_set *s,
                           const struct trp_executor *x, enum trp_level level,
                           enum trp_level *ret_level, bool *ret_copy)
{
    struct search q = {.e = e, .s = s, .x = x};
    uint32_t task = TRP_NONE;
    if (ret_copy)
        *ret_copy = false;
    if (s->health)
        q.some_out = trp_health_at(s->health, x->id.n, x->host) == TRP_HEALTH_SOME;
    if (s->pending ||
        e->sched_alone) /* scenarios: stale entries are dropped as in Spark */
        task = find(&q, &s->lists, level, ret_level);
    if (task != TRP_NONE || !s->copy_lists.all.n || !ret_copy)
        return task;
    q.copy = *ret_copy = true;
    return find(&q, &s->copy_lists, level, ret_level);
}
