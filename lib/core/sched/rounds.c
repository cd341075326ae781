/*
 * Rounds of real runs: free cores meet pending tasks. Semantics, sections 6 to 8,
 * differences 3 and 16; one offer is made in offers.c.
 *
 * A *full* round offers every executor of a class that has a free core (after a stage
 * was submitted, a wait for locality passed, a task came back). A *partial* round
 * offers one executor (after a task ended there, or when it came). Sets are visited in
 * the class's order, or with FAIR in that of the pools. For each locality level of a
 * set, most local first, the executors are passed over, one task an executor a pass,
 * until a pass launches nothing. A pass is skipped if its level allows no more than the
 * pass before, which launched nothing. So a round is O(executors with free cores),
 * whatever the number of levels. Barrier sets are visited with all free executors in
 * either round, since one executor is not enough for them.
 *
 * Dull sets. While tasks wait for their hosts, most partial rounds visit all sets and
 * launch nothing. A set that was visited so is *dull* until something about it changes.
 * It still waits at the same level, and the end of its wait is noted (e->locality_due),
 * so only an executor that its tasks prefer can be of use to it; rounds of others skip
 * it. An executor that was of use to no set is a *stranger* to all dull sets until a
 * task becomes pending again, since lists only shrink meanwhile: its rounds skip all
 * dull sets. So a round that launches nothing costs O(1), and not O(sets).
 *
 * Queue ahead. When all slots of an executor run short tasks of one set, more tasks of
 * the set are sent there to wait: as many as keep it busy for `queue_ahead_ns` by the
 * set's mean, but at most half of an executor's share of the tasks that are left, so
 * that the set's last tasks are spread evenly. When a slot becomes free elsewhere and
 * nothing of the set is pending, a waiting task is recalled, also while tasks of other
 * sets are pending that cannot start there (a barrier set's). If it has begun before the
 * recall comes to its executor, another one is recalled.
 */
#include <string.h>

#include "core/engine_state.h"

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
    if (s->zombie || s->class->first != s || s->stage->max_running || s->barrier ||
        s->health || e->pools)
        return;
    struct trp_grant grants[TRP_GRANTS_MAX];
    int ngrants;
    if (x->nqueued && e->attempts.v[x->queue_first].set != s)
        return;
    uint32_t depth = queue_depth(e, s, x);
    if (x->nqueued * 2 > depth || trp_offer_fits(e, s, x, grants, &ngrants) ||
        (e->has_ends && trp_ends_outlive(e, s, x)))
        return;
    while (x->nqueued < depth && s->pending) {
        /* What is kept by another executor waits for that one. */
        enum trp_level at, most = s->pending_executor ? TRP_PROCESS_LOCAL : TRP_NO_PREF;
        /* no copies: one that waits cannot win */
        uint32_t task = trp_task_set_pick(e, s, x, most, &at, NULL);
        if (task == TRP_NONE)
            return;
        uint32_t slot = trp_attempt_make(e, s, task, at, false);
        if (slot == TRP_NONE)
            return;
        s->queued++;
        trp_executor_attach(e, x, slot, true);
        trp_action_launch(e, &e->attempts.v[slot], slot);
    }
}

/* What `x` has free after its round was of use to no pending task: takes the last one
 * back from the executor whose turn it is, if it could start on `x`, one for each free
 * executor at a time. Others of its set that pend would have started first. */
TRP_RARE static void recall(struct trp_engine *e, struct trp_class *c,
                            const struct trp_executor *x)
{
    struct trp_executor *from = c->queued;
    struct trp_grant grants[TRP_GRANTS_MAX];
    int ngrants;
    if (!from || c->recalls >= c->nfree)
        return;
    const struct trp_task_set *s = e->attempts.v[from->queue_last].set;
    c->queued = from->queued_next;
    if (!s->pending && trp_offer_fits(e, s, x, grants, &ngrants))
        trp_attempt_recall(e, from->queue_last);
}

/* ---- rounds ---- */

/* The sets of a class in order. The pools order the sets of all classes. */
static struct trp_task_set *first_set(struct trp_engine *e, const struct trp_class *c)
{
    if (!e->pools)
        return c->first;
    struct trp_task_set *s = c->first ? trp_pools_first(e->pools) : NULL;
    while (s && s->class != c)
        s = trp_pools_next(e->pools);
    return s;
}

/* The one behind a set, which was `next` before its visit. A set that was `given_up` in
 * its visit may have taken others with it: then all over again. */
static struct trp_task_set *next_set(struct trp_engine *e, const struct trp_class *c,
                                     struct trp_task_set *next, bool given_up)
{
    if (given_up)
        return first_set(e, c);
    if (!e->pools)
        return next;
    next = trp_pools_next(e->pools);
    while (next && next->class != c)
        next = trp_pools_next(e->pools);
    return next;
}

/* All over again. */
static void begin_round(struct trp_class *c, bool *first)
{
    c->keeper = NULL;
    *first = true;
}

static bool has_room(const struct trp_executor *x, const struct trp_task_set *s)
{
    return x->cores_free >= s->profile->task_cpus;
}

TRP_RARE static void visit_full(struct trp_engine *e, struct trp_task_set *s);

/* ---- dull sets ---- */

void trp_sets_liven(struct trp_engine *e)
{
    for (struct trp_task_set *s = e->preferring; s; s = s->preferring_next)
        trp_set_liven(s);
}

/* After a visit with a rejection: would the next do nothing, too? */
static void dull_if_waits(struct trp_engine *e, struct trp_task_set *s)
{
    enum trp_level level = s->levels[s->current];
    if (s->only_preferred || !s->listed || level > TRP_NODE_LOCAL ||
        s->nothing_rejected || s->health || s->copies || s->lists.no_pref.n ||
        s->stage->max_running ||
        (level == TRP_NODE_LOCAL ? !s->pending_host : !s->pending_executor) ||
        e->now - s->locality_clock_ns >= e->config.locality_wait_ns[level])
        return;
    s->only_preferred = true;
    s->class->ndull++;
}

/* Can `x` do nothing with it? */
static inline bool is_dull_for(const struct trp_engine *e, const struct trp_task_set *s,
                               const struct trp_executor *x)
{
    return s->only_preferred && e->now < e->locality_due &&
           (x->stranger == e->listings ||
            ((x->host >= s->nhosts || !s->lists.hosts[x->host].n) &&
             !s->lists.executors));
}

/* ---- visits ---- */

/* Without preferences there is nothing to wait for: no levels, no clock. */
static inline void visit_plain(struct trp_engine *e, struct trp_task_set *s,
                               struct trp_executor *x)
{
    struct trp_visit v = {.best = TRP_LEVELS};
    while (trp_offer(e, s, x, TRP_NO_PREF, &v) > 0 && has_room(x, s) &&
           trp_set_may_launch(s))
        ;
    if (e->tracker) {
        const struct trp_visit told = v; /* so that `v` can stay in registers */
        trp_visit_finish(e, s, &told, x);
    }
}

/* True: nothing on its lists is left that could start on `x` at home. */
__attribute__((noinline, flatten)) static bool
visit_preferring(struct trp_engine *e, struct trp_task_set *s, struct trp_executor *x)
{
    struct trp_visit v = {.best = TRP_LEVELS, .one = true};
    trp_set_liven(s);
    uint8_t levels[TRP_LEVELS], n = s->nlevels, was = s->current;
    bool waits = s->pending_host > 0;
    memcpy(levels, s->levels, sizeof(levels));
    for (uint8_t i = 0; i < n && trp_set_may_launch(s); i++) {
        int got;
        do
            got = has_room(x, s) ? trp_offer(e, s, x, levels[i], &v) : -1;
        while (got > 0 && trp_set_may_launch(s));
        if (got < 0)
            break;
    }
    bool more = s->current > was || (waits && !s->pending_host);
    trp_visit_finish(e, s, &v, x);
    if (v.rejected && !v.launched)
        dull_if_waits(e, s);
    /* A wait has passed, or the last that waited for a place has gone: the others may
     * start elsewhere too. */
    if (more && trp_set_may_launch(s) && s->class->free)
        visit_full(e, s);
    return v.rejected && s->levels[s->current] >= TRP_NODE_LOCAL;
}

/* One pass over the free ring at one level. Returns launches; *ret_presented offers
 * that were presented without one. */
static uint32_t pass(struct trp_engine *e, struct trp_task_set *s, enum trp_level level,
                     struct trp_visit *v, uint32_t *ret_presented)
{
    struct trp_class *c = s->class;
    struct trp_executor *x = c->free;
    uint32_t launched = 0;
    *ret_presented = 0;
    for (uint32_t n = c->nfree; n && c->free && trp_set_may_launch(s); n--) {
        struct trp_executor *next = x->free_next;
        int got = trp_offer(e, s, x, level, v);
        launched += got > 0;
        *ret_presented += got == 0;
        if (c->free)
            c->free = next->free_next ? next : c->free;
        x = c->free;
    }
    return launched;
}

static bool has_room_for_all(const struct trp_engine *e, const struct trp_task_set *s)
{
    const struct trp_executor *x = s->class->free;
    uint64_t room = 0;
    for (uint32_t n = s->class->nfree; n && room < s->ntasks; n--, x = x->free_next)
        room += trp_barrier_fits(e, s, x);
    return room >= s->ntasks;
}

static inline bool visit_partial(struct trp_engine *e, struct trp_task_set *s,
                                 struct trp_executor *x)
{
    if (s->prefer_first)
        return visit_preferring(e, s, x);
    visit_plain(e, s, x);
    return false;
}

TRP_RARE static void visit_full(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_visit v = {.full = true, .best = TRP_LEVELS, .together = s->barrier};
    if (s->barrier && !has_room_for_all(e, s))
        return;
    trp_set_liven(s);
    uint8_t levels[TRP_LEVELS], n = s->nlevels;
    memcpy(levels, s->levels, sizeof(levels));
    int tried = -1; /* the level at which nothing more can be launched */
    uint32_t presented = 0;
    for (uint8_t i = 0; i < n && trp_set_may_launch(s) && s->class->free; i++) {
        bool same = (int)trp_task_set_allowed(e, s, levels[i]) == tried;
        while (!same && pass(e, s, levels[i], &v, &presented) > 0)
            ;
        if (!trp_set_may_launch(s) || !s->class->free)
            break;
        tried = (int)trp_task_set_allowed(e, s, levels[i]);
        v.rejected |= levels[i] == TRP_ANY && presented > 0;
    }
    trp_visit_finish(e, s, &v, s->class->free);
    if (s->barrier)
        trp_barrier_finish(e, s, v.launched);
}

/* A round in which all sets but at most one are dull for `x`, a stranger: that one is
 * visited. False: it is another round. */
static inline bool round_of_stranger(struct trp_engine *e, struct trp_executor *x)
{
    const struct trp_class *c = e->classes[x->class];
    struct trp_task_set *s = c->lively;
    if (!c->ndull || x->stranger != e->listings || e->now >= e->locality_due)
        return false;
    if (c->ndull == c->nlisted)
        return true;
    if (c->ndull + 1 != c->nlisted || !s || s->only_preferred || s->barrier ||
        !trp_set_may_launch(s))
        return false;
    visit_partial(e, s, x);
    return true;
}

/* Visits the sets of its class in order. */
static inline void offer_to_all(struct trp_engine *e, struct trp_class *c,
                                struct trp_executor *x)
{
    uint64_t listings = e->listings;
    bool stranger = true, given_up, first = true;
    struct trp_task_set *s = first_set(e, c);
    for (struct trp_task_set *next; s && !e->draining;
         s = next_set(e, c, next, given_up)) {
        next = s->next;
        given_up = false;
        if (is_dull_for(e, s, x)) {
            first = false;
            continue;
        }
        if (!trp_set_may_launch(s)) {
            stranger = false;
            continue;
        }
        if (!s->barrier) {
            stranger &= visit_partial(e, s, x);
        } else {
            stranger = false;
            trp_executor_set_free(e, x);
            visit_full(e, s);
        }
        if (x->cores_free <= 0 || !trp_executor_may_get(x))
            break; /* full, or killed to make room */
        trp_keep_behind(e, s, &first);
        given_up = s->zombie;
        if (given_up)
            begin_round(c, &first);
    }
    c->keeper = NULL;
    if (stranger && !s)
        x->stranger = listings;
}

/* Fills the queue of `x`. When that takes the last that waited for a place the others
 * may start elsewhere. Or `x` has a slot that is of no use to its set. */
TRP_RARE static void queue_round(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_task_set *s = x->one_set;
    bool waits = s->pending_host > 0;
    queue_fill(e, x);
    if (waits && !s->pending_host && trp_set_may_launch(s) && s->class->free)
        visit_full(e, s);
    if (x->cores_free > 0 && s->class->queued)
        recall(e, s->class, x);
}

/* All in one piece, without what is rare: most launches are made here. */
__attribute__((flatten)) void trp_round_partial(struct trp_engine *e,
                                                struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    bool takes_part =
        trp_executor_may_get(x) && !e->draining && !e->sched_alone && !e->gated;
    if (takes_part && x->cores_free > 0 && !round_of_stranger(e, x))
        offer_to_all(e, c, x);
    if ((x->cores_free > 0) != (x->free_next != NULL))
        trp_executor_set_free(e, x);
    if (!takes_part || e->draining) {
        if (x->excluded) /* what is pending may be stuck now */
            trp_round_full(e, c);
        return;
    }
    if (c->first && x->one_set && x->one_set->mean_ns <= e->config.queue_ahead_ns)
        queue_round(e, x);
    else if (x->cores_free > 0 && c->queued)
        recall(e, c, x);
}

/* Whose turn is next is drawn (splitmix64), the same for the same seed. */
static void shuffle(struct trp_engine *e, struct trp_class *c)
{
    uint64_t z = e->config.seed + ++e->draws * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    for (uint64_t n = (z ^ (z >> 31)) % c->nfree; n; n--)
        c->free = c->free->free_next;
}

TRP_RARE void trp_round_full(struct trp_engine *e, struct trp_class *c)
{
    if (e->draining || e->sched_alone || e->gated)
        return;
    if (e->config.seed && c->nfree > 1)
        shuffle(e, c);
    bool given_up, first = true;
    for (struct trp_task_set *s = first_set(e, c), *next;
         s && !e->draining && (c->free || e->tracker);
         s = next_set(e, c, next, given_up)) {
        next = s->next;
        given_up = trp_set_may_launch(s);
        if (given_up)
            visit_full(e, s);
        trp_keep_behind(e, s, &first);
        given_up = given_up && s->zombie;
        if (given_up)
            begin_round(c, &first);
    }
    c->keeper = NULL;
    const struct trp_executor *x = c->free;
    for (uint32_t n = c->nfree; n && c->queued; n--, x = x->free_next)
        recall(e, c, x);
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
        if (b->recall_sent) { /* it has begun before that came: another one is asked for */
            trp_attempt_forget_recall(e, b);
            e->offer_all = true;
        }
        a->grants = NULL;
        a->ngrants = 0;
        b->launched_ns = e->now;
        s->queued--;
        trp_set_began(e, s);
        trp_ramp_started(e, b);
        trp_executor_attach(e, x, head, false);
        return;
    }
    x->cores_free += s->profile->task_cpus;
    if (a->ngrants)
        trp_ledger_give(x->ledger, a->grants, a->ngrants);
}
