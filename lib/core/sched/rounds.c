/*
 * Offer rounds: free cores meet pending tasks. Semantics 6 to 8, decisions 3 and 16.
 *
 * A *full* round offers every executor of a class that has a free core (after a stage
 * was submitted, a wait for locality passed, a task came back); a *partial* round
 * offers one (after a task ended there, or when it came). Sets are taken in the class's
 * order; for each of a set's levels, most local first, the executors are passed over,
 * one task an executor a pass, until a pass launches nothing. A pass at a level that
 * allows no more than the pass before, which launched nothing, is skipped: that keeps a
 * round at O(executors with free cores), whatever the number of levels.
 *
 * Queue ahead. When an executor is full of one set's short tasks, further ones of the
 * set are sent there to wait: as many as keep it busy for `queue_ahead_ns` by the set's
 * mean, but no more than half an executor's share of what is left, so that the tail
 * stays balanced. When a slot is free elsewhere and nothing is pending, one is
 * recalled.
 */
#include <string.h>

#include "core/engine_state.h"

enum { GRANTS_MAX = 256 }; /* addresses one task may be given */

/* What a round did for one set. */
struct visit {
    bool full;
    uint32_t launched;
    enum trp_level best; /* most local level launched at */
    bool rejected;       /* an offer at ANY was presented and launched nothing */
};

static bool may_launch(const struct trp_task_set *s)
{
    uint32_t max = s->stage->max_running;
    return s->pending && (!max || s->running + s->queued < max);
}

/* Takes the task off its lists and makes its attempt. */
static uint32_t attempt_make(struct trp_engine *e, struct trp_task_set *s,
                             uint32_t task, enum trp_level level)
{
    uint32_t slot = trp_attempt_new(e);
    if (slot == TRP_NONE)
        return TRP_NONE;
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task *t = &s->tasks[task];
    trp_task_set_take(s, task);
    t->attempt = slot;
    a->set = s;
    a->task = task;
    a->number = t->attempts++;
    a->level = (uint8_t)level;
    a->launched_ns = e->now;
    trp_task_set_main(s)->attempts++;
    s->stage->job->attempts++;
    e->launches++;
    return slot;
}

static bool grants_keep(struct trp_attempt *a, const struct trp_grant *grants,
                        uint32_t n)
{
    if (!n)
        return true;
    a->grants = malloc(n * sizeof(*grants));
    if (!a->grants)
        return false;
    memcpy(a->grants, grants, n * sizeof(*grants));
    a->ngrants = (uint8_t)n;
    return true;
}

/* Can `x` take one more task of `s` now? Fills the addresses it would get. */
static bool fits(const struct trp_engine *e, const struct trp_task_set *s,
                 const struct trp_executor *x, struct trp_grant *grants, int *ret_n)
{
    *ret_n = 0;
    if (x->cores_free < s->profile->task_cpus)
        return false;
    if (!s->takes_custom)
        return true;
    *ret_n =
        trp_books_propose(x->books, s->profile, e->config.pack, grants, GRANTS_MAX - 1);
    return *ret_n >= 0;
}

/* One offer. 1 launched, 0 presented without a launch, -1 not presented. */
static int offer(struct trp_engine *e, struct trp_task_set *s, struct trp_executor *x,
                 enum trp_level max, struct visit *v)
{
    struct trp_grant grants[GRANTS_MAX];
    int ngrants;
    if (!fits(e, s, x, grants, &ngrants))
        return -1;
    enum trp_level level = s->prefer_first ? trp_task_set_allowed(e, s, max) : max, at;
    uint32_t task = trp_task_set_pick(e, s, x, level, &at);
    if (task == TRP_NONE)
        return 0;
    uint32_t slot = attempt_make(e, s, task, at);
    if (slot == TRP_NONE)
        return 0;
    struct trp_attempt *a = &e->attempts.v[slot];
    if (ngrants && (!grants_keep(a, grants, (uint32_t)ngrants) ||
                    trp_books_take(x->books, grants, (uint32_t)ngrants) < 0))
        e->out_of_memory = true;
    x->cores_free -= s->profile->task_cpus;
    s->running++;
    trp_executor_attach(e, x, slot, false);
    if (x->free_next)
        trp_executor_set_free(e, x);
    trp_action_launch(e, a, slot);
    v->launched++;
    if (at < v->best)
        v->best = at;
    return 1;
}

/* Section 7.4, after all levels were tried. */
static void visit_finish(struct trp_engine *e, struct trp_task_set *s,
                         const struct visit *v)
{
    if (v->rejected) {
        s->no_reject = false;
        enum trp_level level = s->levels[s->current];
        int64_t due = s->last + e->config.locality_wait_ns[level];
        if (s->current + 1 < s->nlevels && due < e->locality_due)
            e->locality_due = due;
        return;
    }
    if (!v->launched || !(v->full || s->no_reject))
        return;
    s->last = e->now;
    s->no_reject = true;
    s->current = 0;
    while (s->levels[s->current] < v->best)
        s->current++;
}

/* ---- queue ahead ---- */

/* How many attempts of `s` should wait on `x`. */
static uint32_t queue_depth(const struct trp_engine *e, const struct trp_task_set *s,
                            const struct trp_executor *x)
{
    if (!e->config.queue_ahead_ns || s->timed < 2)
        return 0;
    uint64_t mean = s->mean_ns > 0 ? (uint64_t)s->mean_ns : 1;
    uint64_t depth = (uint64_t)e->config.queue_ahead_ns * x->nrunning / mean;
    uint64_t share = s->pending / (2 * (uint64_t)s->class->live) + 1;
    if (depth > share)
        depth = share;
    return depth < e->config.queue_ahead_max ? (uint32_t)depth
                                             : e->config.queue_ahead_max;
}

/* Fills the queue of an executor that is full of one set's tasks: in one go when it has
 * run half empty, so that launches travel in batches. */
static void queue_fill(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_task_set *s = x->one_set;
    if (s->ended || s->class->first != s || s->stage->max_running)
        return;
    struct trp_grant grants[GRANTS_MAX];
    int ngrants;
    if (x->nqueued && e->attempts.v[x->queue_first].set != s)
        return;
    uint32_t depth = queue_depth(e, s, x);
    if (x->nqueued * 2 > depth || fits(e, s, x, grants, &ngrants))
        return;
    while (x->nqueued < depth && s->pending) {
        enum trp_level at;
        uint32_t task = trp_task_set_pick(e, s, x, TRP_NO_PREF, &at);
        uint32_t slot = task == TRP_NONE ? TRP_NONE : attempt_make(e, s, task, at);
        if (slot == TRP_NONE)
            return;
        s->queued++;
        trp_executor_attach(e, x, slot, true);
        trp_action_launch(e, &e->attempts.v[slot], slot);
    }
}

/* A core of `x` is free and nothing of its class is pending: takes the last one back
 * from the executor whose turn it is, one for each free executor at a time. */
static void recall(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    struct trp_executor *from = c->queued;
    if (!from || c->recalls >= c->nfree)
        return;
    struct trp_attempt *a = &e->attempts.v[from->queue_last];
    c->queued = from->queued_next;
    if (a->kill_sent)
        return;
    a->kill_sent = true;
    c->recalls++;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_KILL);
    act->kill.attempt = trp_attempt_id_of(e, from->queue_last);
    act->kill.executor = from->id;
    act->kill.recall = true;
}

/* ---- rounds ---- */

static bool has_room(const struct trp_executor *x, const struct trp_task_set *s)
{
    return x->cores_free >= s->profile->task_cpus;
}

static void visit_partial(struct trp_engine *e, struct trp_task_set *s,
                          struct trp_executor *x)
{
    struct visit v = {.best = TRP_LEVELS};
    if (!s->prefer_first) { /* nothing to wait for: no levels, no clock */
        while (may_launch(s) && has_room(x, s) && offer(e, s, x, TRP_NO_PREF, &v) > 0)
            ;
        return;
    }
    uint8_t levels[TRP_LEVELS], n = s->nlevels;
    memcpy(levels, s->levels, sizeof(levels));
    for (uint8_t i = 0; i < n; i++) {
        int got = 1;
        while (got > 0 && may_launch(s))
            got = has_room(x, s) ? offer(e, s, x, levels[i], &v) : -1;
        if (got < 0 || !may_launch(s))
            break;
        v.rejected = got == 0 && levels[i] == TRP_ANY;
    }
    visit_finish(e, s, &v);
}

void trp_round_partial(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    bool takes_part = x->state == TRP_EXECUTOR_LIVE && !e->draining;
    for (struct trp_task_set *s = c->first, *next; takes_part && s && x->cores_free > 0;
         s = next) {
        next = s->next;
        if (may_launch(s))
            visit_partial(e, s, x);
    }
    if ((x->cores_free > 0) != (x->free_next != NULL))
        trp_executor_set_free(e, x);
    if (!takes_part)
        return;
    if (c->first && x->one_set && x->one_set->mean_ns <= e->config.queue_ahead_ns)
        queue_fill(e, x);
    else if (!c->first && c->queued && x->cores_free > 0)
        recall(e, x);
}

/* One pass over the free ring at one level. Returns launches; *ret_presented offers
 * that were presented without one. */
static uint32_t pass(struct trp_engine *e, struct trp_task_set *s, enum trp_level level,
                     struct visit *v, uint32_t *ret_presented)
{
    struct trp_class *c = s->class;
    struct trp_executor *x = c->free;
    uint32_t launched = 0;
    *ret_presented = 0;
    for (uint32_t n = c->nfree; n && c->free && may_launch(s); n--) {
        struct trp_executor *next = x->free_next;
        int got = offer(e, s, x, level, v);
        launched += got > 0;
        *ret_presented += got == 0;
        if (c->free)
            c->free = next->free_next ? next : c->free;
        x = c->free;
    }
    return launched;
}

static void visit_full(struct trp_engine *e, struct trp_task_set *s)
{
    struct visit v = {.full = true, .best = TRP_LEVELS};
    uint8_t levels[TRP_LEVELS], n = s->nlevels;
    memcpy(levels, s->levels, sizeof(levels));
    int tried = -1; /* the level at which nothing more can be launched */
    uint32_t presented = 0;
    for (uint8_t i = 0; i < n && may_launch(s) && s->class->free; i++) {
        bool same = (int)trp_task_set_allowed(e, s, levels[i]) == tried;
        while (!same && pass(e, s, levels[i], &v, &presented) > 0)
            ;
        if (!may_launch(s) || !s->class->free)
            break;
        tried = (int)trp_task_set_allowed(e, s, levels[i]);
        v.rejected = levels[i] == TRP_ANY && presented > 0;
    }
    visit_finish(e, s, &v);
}

void trp_round_full(struct trp_engine *e, struct trp_class *c)
{
    if (e->draining)
        return;
    for (struct trp_task_set *s = c->first, *next; s && c->free; s = next) {
        next = s->next;
        if (may_launch(s))
            visit_full(e, s);
    }
    for (uint32_t n = c->nfree; n && c->free && !c->first && c->queued; n--)
        recall(e, c->free);
}

/* ---- a place becomes free ---- */

void trp_round_replace(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_executor *x = e->executors[a->executor];
    struct trp_task_set *s = a->set;
    trp_executor_detach(e, x, slot);
    uint32_t head = x->queue_first;
    if (head != TRP_NONE && e->attempts.v[head].set == s) {
        struct trp_attempt *b = &e->attempts.v[head];
        trp_executor_detach(e, x, head);
        b->grants = a->grants;
        b->ngrants = a->ngrants;
        a->grants = NULL;
        a->ngrants = 0;
        b->launched_ns = e->now;
        s->queued--;
        s->running++;
        trp_executor_attach(e, x, head, false);
        return;
    }
    x->cores_free += s->profile->task_cpus;
    if (a->ngrants)
        trp_books_give(x->books, a->grants, a->ngrants);
}
