/*
 * One running stage: which of its tasks are pending, and which of them an offer gets.
 *
 * Pending tasks stand on stacks: one for each preferred executor, host and rack, one
 * for tasks without preference, one for all. They are filled in reverse order and
 * scanned from the tail, so the lowest index comes first and a task that failed, pushed
 * on top, is the next to be tried. A task is taken from one stack and stays on the
 * others as a stale entry that is dropped when a scan meets it: each entry is dropped
 * once, so a pick costs O(1) amortised. How many pending tasks have an executor, host
 * or rack preference is counted exactly, so "does a task still need this level" (7.3)
 * needs no scan. (Spark's TaskSetManager; semantics 7 and 8.)
 *
 * Whether a key of a list has a live executor is counted when executors come and go, at
 * O(sets with preferences) each, never per launch.
 */
#include <string.h>
#include <uthash.h>

#include "core/engine_state.h"

struct trp_executor_list {
    uint32_t executor;
    struct trp_stack stack;
    UT_hash_handle hh;
};

static struct trp_executor_list *executor_list(const struct trp_task_set *s, uint32_t n)
{
    struct trp_executor_list *l;
    HASH_FIND(hh, s->executors, &n, sizeof(n), l);
    return l;
}

static struct trp_executor_list *executor_list_make(struct trp_task_set *s, uint32_t n)
{
    struct trp_executor_list *l = executor_list(s, n);
    if (l)
        return l;
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->executor = n;
    HASH_ADD(hh, s->executors, executor, sizeof(l->executor), l);
    if (!l->hh.tbl) {
        free(l);
        return NULL;
    }
    return l;
}

static bool has_preference(const struct trp_task_set *s, uint32_t task)
{
    return s->prefer_first && s->prefer_first[task] != s->prefer_first[task + 1];
}

static uint32_t rack_of(const struct trp_engine *e, uint32_t host)
{
    return e->hosts.hosts[host].rack.n;
}

/* Which levels a task's preferences reach, for the exact counts. */
static void preference_kinds(const struct trp_task_set *s, uint32_t task,
                             bool *ret_executor, bool *ret_rack)
{
    *ret_executor = *ret_rack = false;
    for (uint32_t i = s->prefer_first[task]; i < s->prefer_first[task + 1]; i++) {
        *ret_executor |= s->places[i].executor != TRP_NONE;
        *ret_rack |= s->places[i].rack != TRP_NONE;
    }
}

static void count_pending(struct trp_task_set *s, uint32_t task, int by)
{
    s->pending += (uint32_t)by;
    if (!has_preference(s, task))
        return;
    bool executor, rack;
    preference_kinds(s, task, &executor, &rack);
    s->pending_host += (uint32_t)by;
    if (executor)
        s->pending_executor += (uint32_t)by;
    if (rack)
        s->pending_rack += (uint32_t)by;
}

static bool push_lists(struct trp_task_set *s, uint32_t task)
{
    bool ok = trp_stack_push(&s->all, task);
    if (!has_preference(s, task))
        return ok && trp_stack_push(&s->no_pref, task);
    for (uint32_t i = s->prefer_first[task]; i < s->prefer_first[task + 1]; i++) {
        const struct trp_set_place *p = &s->places[i];
        ok = ok && trp_stack_push(&s->hosts[p->host], task);
        if (p->rack != TRP_NONE)
            ok = ok && trp_stack_push(&s->racks[p->rack], task);
        if (p->executor == TRP_NONE)
            continue;
        struct trp_executor_list *l = executor_list(s, p->executor);
        ok = ok && l && trp_stack_push(&l->stack, task);
    }
    return ok;
}

bool trp_task_set_push(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    if (!push_lists(s, task)) {
        e->out_of_memory = true;
        return false;
    }
    count_pending(s, task, 1);
    if (s->class && !s->ended)
        trp_task_set_list(s);
    return true;
}

void trp_task_set_take(struct trp_task_set *s, uint32_t task)
{
    count_pending(s, task, -1);
    if (!s->pending)
        trp_task_set_unlist(s);
}

/* Pops stale entries; returns the pending task on top, taken off, or TRP_NONE. */
static uint32_t pop(struct trp_task_set *s, struct trp_stack *stack)
{
    while (stack->n) {
        uint32_t task = stack->v[--stack->n];
        if (trp_task_is_pending(&s->tasks[task]))
            return task;
    }
    return TRP_NONE;
}

uint32_t trp_task_set_pick(struct trp_engine *e, struct trp_task_set *s,
                           const struct trp_executor *x, enum trp_level level,
                           enum trp_level *ret_level)
{
    uint32_t task = TRP_NONE;
    if (s->prefer_first) {
        struct trp_executor_list *l = s->executors ? executor_list(s, x->id.n) : NULL;
        *ret_level = TRP_PROCESS_LOCAL;
        if (l && (task = pop(s, &l->stack)) != TRP_NONE)
            return task;
        *ret_level = TRP_NODE_LOCAL;
        if (level >= TRP_NODE_LOCAL && x->host < s->nhosts &&
            (task = pop(s, &s->hosts[x->host])) != TRP_NONE)
            return task;
    }
    *ret_level = TRP_PROCESS_LOCAL; /* Spark reports tasks without preference so */
    if (level >= TRP_NO_PREF && (task = pop(s, &s->no_pref)) != TRP_NONE)
        return task;
    if (!s->prefer_first)
        return TRP_NONE;
    uint32_t rack = rack_of(e, x->host);
    *ret_level = TRP_RACK_LOCAL;
    if (level >= TRP_RACK_LOCAL && rack < s->nracks &&
        (task = pop(s, &s->racks[rack])) != TRP_NONE)
        return task;
    *ret_level = TRP_ANY;
    return level >= TRP_ANY ? pop(s, &s->all) : TRP_NONE;
}

static bool needs_level(const struct trp_task_set *s, enum trp_level level)
{
    switch (level) {
    case TRP_PROCESS_LOCAL:
        return s->pending_executor > 0;
    case TRP_NODE_LOCAL:
        return s->pending_host > 0;
    case TRP_NO_PREF:
        return s->no_pref.n > 0;
    case TRP_RACK_LOCAL:
        return s->pending_rack > 0;
    default:
        return true;
    }
}

enum trp_level trp_task_set_allowed(struct trp_engine *e, struct trp_task_set *s,
                                    enum trp_level max)
{
    if (max == TRP_NO_PREF)
        return TRP_NO_PREF;
    while (s->current + 1 < s->nlevels) {
        enum trp_level level = s->levels[s->current];
        int64_t wait = e->config.locality_wait_ns[level];
        if (!needs_level(s, level))
            s->last = e->now;
        else if (e->now - s->last >= wait)
            s->last += wait;
        else
            break;
        s->current++;
    }
    enum trp_level allowed = s->levels[s->current];
    return allowed < max ? allowed : max;
}

static uint32_t compute_levels(const struct trp_task_set *s, uint8_t *levels)
{
    uint32_t n = 0;
    if (s->alive_executors)
        levels[n++] = TRP_PROCESS_LOCAL;
    if (s->alive_hosts)
        levels[n++] = TRP_NODE_LOCAL;
    if (s->no_pref.n)
        levels[n++] = TRP_NO_PREF;
    if (s->alive_racks)
        levels[n++] = TRP_RACK_LOCAL;
    levels[n++] = TRP_ANY;
    return n;
}

static uint8_t index_of(const uint8_t *levels, uint8_t level)
{
    uint8_t i = 0;
    while (levels[i] < level)
        i++;
    return i;
}

void trp_task_set_recompute(struct trp_task_set *s)
{
    uint8_t old[TRP_LEVELS], nold = s->nlevels, was = s->current;
    uint8_t level = s->levels[s->current];
    memcpy(old, s->levels, sizeof(old));
    s->nlevels = (uint8_t)compute_levels(s, s->levels);
    s->current = index_of(s->levels, level);
    if (s->current <= was)
        return;
    /* More local levels appeared in front: go to the most local new one. */
    for (uint8_t i = 0; i < s->nlevels; i++)
        if (!memchr(old, s->levels[i], nold)) {
            s->current = i;
            return;
        }
}

void trp_task_sets_executor_changed(struct trp_engine *e, const struct trp_executor *x,
                                    bool host_changed, bool rack_changed, int by)
{
    uint32_t rack = rack_of(e, x->host);
    for (struct trp_task_set *s = e->preferring; s; s = s->preferring_next) {
        if (s->executors && executor_list(s, x->id.n))
            s->alive_executors += (uint32_t)by;
        if (host_changed && x->host < s->nhosts && s->hosts[x->host].cap)
            s->alive_hosts += (uint32_t)by;
        if (rack_changed && rack < s->nracks && s->racks[rack].cap)
            s->alive_racks += (uint32_t)by;
        trp_task_set_recompute(s);
    }
}

/* ---- making and freeing ---- */

static bool copy_preferences(struct trp_engine *e, struct trp_task_set *s,
                             const struct trp_preferences *p)
{
    uint32_t n = p->first[s->ntasks];
    s->prefer_first = malloc(((size_t)s->ntasks + 1) * sizeof(*s->prefer_first));
    s->places = malloc((n ? n : 1) * sizeof(*s->places));
    if (!s->prefer_first || !s->places)
        return false;
    memcpy(s->prefer_first, p->first, ((size_t)s->ntasks + 1) * sizeof(*p->first));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t host = trp_hosts_intern(&e->hosts, p->places[i].host, NULL);
        if (host == TRP_NONE)
            return false;
        s->places[i].host = host;
        s->places[i].rack = rack_of(e, host);
        s->places[i].executor = p->places[i].executor;
        if (s->places[i].executor != TRP_NONE &&
            !executor_list_make(s, s->places[i].executor))
            return false;
    }
    s->nhosts = e->hosts.nhosts;
    s->nracks = e->hosts.nracks;
    s->hosts = calloc(s->nhosts ? s->nhosts : 1, sizeof(*s->hosts));
    s->racks = calloc(s->nracks ? s->nracks : 1, sizeof(*s->racks));
    return s->hosts && s->racks;
}

/* Counts the keys of lists that have live executors now. */
static void count_alive(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_executor_list *l, *next;
    HASH_ITER(hh, s->executors, l, next)
    {
        struct trp_executor *x = trp_executor_find(e, (trp_executor_id){l->executor});
        s->alive_executors += x && x->state != TRP_EXECUTOR_REQUESTED;
    }
    for (uint32_t i = 0; i < s->nhosts; i++)
        s->alive_hosts += s->hosts[i].cap && e->hosts.hosts[i].executors;
    for (uint32_t i = 0; i < s->nracks; i++)
        s->alive_racks += s->racks[i].cap && e->hosts.racks[i].executors;
}

/* Tasks of the parents (after … each) that task i still waits for. */
static uint16_t held_by(const struct trp_stage *stage, uint32_t task)
{
    uint16_t held = 0;
    for (uint32_t i = 0; i < stage->nparents; i++) {
        const struct trp_task_set *p = stage->parents[i].stage->set;
        if (stage->parents[i].each && p && !p->ended && !p->tasks[task].flags)
            held++;
    }
    return held;
}

/* The common case, written straight down: nobody prefers, is done or waits. */
static bool fill_plain(struct trp_task_set *s)
{
    uint32_t n = s->ntasks;
    if (!trp_array_room((void **)&s->all.v, &s->all.cap, n, sizeof(*s->all.v)) ||
        !trp_array_room((void **)&s->no_pref.v, &s->no_pref.cap, n,
                        sizeof(*s->no_pref.v)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        s->tasks[i] = (struct trp_task){.attempt = TRP_NONE};
        s->all.v[i] = s->no_pref.v[i] = n - 1 - i;
    }
    s->pending = s->all.n = s->no_pref.n = n;
    return true;
}

static bool fill(struct trp_task_set *s, const uint8_t *done)
{
    if (!s->prefer_first && !done && !s->stage->nparents)
        return fill_plain(s);
    for (uint32_t i = 0; i < s->ntasks; i++)
        s->tasks[i] =
            (struct trp_task){.attempt = TRP_NONE, .held = held_by(s->stage, i)};
    for (uint32_t i = s->ntasks; i-- > 0;) {
        if (done && done[i]) {
            s->tasks[i].flags = TRP_TASK_DONE;
            s->done++;
            continue;
        }
        if (s->tasks[i].held)
            continue;
        if (!push_lists(s, i))
            return false;
        count_pending(s, i, 1);
    }
    return true;
}

struct trp_task_set *trp_task_set_new(struct trp_engine *e, struct trp_stage *stage,
                                      uint32_t ntasks,
                                      const struct trp_preferences *prefer,
                                      const uint8_t *done, trp_error *err)
{
    struct trp_task_set *s = calloc(1, sizeof(*s));
    if (!s)
        goto no_memory;
    s->stage = stage;
    s->profile = trp_profiles_get(e->profiles, stage->profile);
    s->ntasks = ntasks;
    for (uint32_t i = 0; i < s->profile->ncustom; i++)
        s->takes_custom |= s->profile->custom[i].task > 0;
    s->last = e->now;
    s->no_reject = true;
    s->tasks = malloc((ntasks ? ntasks : 1) * sizeof(*s->tasks));
    if (!s->tasks)
        goto no_memory;
    bool prefers = prefer && prefer->first && prefer->first[ntasks];
    if (prefers && !copy_preferences(e, s, prefer))
        goto no_memory;
    if (!fill(s, done))
        goto no_memory;
    if (prefers) {
        count_alive(e, s);
        s->preferring_next = e->preferring;
        if (e->preferring)
            e->preferring->preferring_prev = s;
        e->preferring = s;
    }
    s->nlevels = (uint8_t)compute_levels(s, s->levels);
    return s;
no_memory:
    trp_task_set_free(e, s);
    trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", ntasks);
    return NULL;
}

void trp_task_set_free(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s)
        return;
    trp_task_set_free(e, s->overflow);
    trp_task_set_unlist(s);
    if (s->preferring_prev)
        s->preferring_prev->preferring_next = s->preferring_next;
    else if (e->preferring == s)
        e->preferring = s->preferring_next;
    if (s->preferring_next)
        s->preferring_next->preferring_prev = s->preferring_prev;
    struct trp_executor_list *l, *next;
    HASH_ITER(hh, s->executors, l, next)
    {
        HASH_DEL(s->executors, l);
        free(l->stack.v);
        free(l);
    }
    for (uint32_t i = 0; s->hosts && i < s->nhosts; i++)
        free(s->hosts[i].v);
    for (uint32_t i = 0; s->racks && i < s->nracks; i++)
        free(s->racks[i].v);
    free(s->hosts);
    free(s->racks);
    free(s->prefer_first);
    free(s->places);
    free(s->all.v);
    free(s->no_pref.v);
    if (!s->owner)
        free(s->tasks);
    free(s);
}

/* ---- the class's order ---- */

static bool before(const struct trp_task_set *a, const struct trp_task_set *b)
{
    if (a->stage->job->id.n != b->stage->job->id.n)
        return a->stage->job->id.n < b->stage->job->id.n;
    return a->stage->id.n < b->stage->id.n;
}

void trp_task_set_list(struct trp_task_set *s)
{
    struct trp_class *c = s->class;
    if (s->listed)
        return;
    struct trp_task_set *after = c->last; /* new sets mostly go last */
    while (after && before(s, after))
        after = after->prev;
    s->prev = after;
    s->next = after ? after->next : c->first;
    if (s->next)
        s->next->prev = s;
    else
        c->last = s;
    if (after)
        after->next = s;
    else
        c->first = s;
    s->listed = true;
}

void trp_task_set_unlist(struct trp_task_set *s)
{
    if (!s->listed)
        return;
    if (s->next)
        s->next->prev = s->prev;
    else
        s->class->last = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else
        s->class->first = s->next;
    s->next = s->prev = NULL;
    s->listed = false;
}
