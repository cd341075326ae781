/*
 * Slots that are kept for a barrier set (semantics, difference 25;
 * docs/decisions/0033).
 *
 * A barrier set needs all its slots at once. The sets behind it take each slot as it
 * becomes free, so it would start only after they are done. Therefore: if the first set
 * of a class that has tasks to launch is a barrier set, and it did not start, the sets
 * behind it do not get the slots that it could use, for the time barrier.reserve. After
 * that time they are offered everything in one round, and the time starts anew. It
 * starts only when something is offered, so that a slot which becomes free late is
 * kept, too.
 *
 * What is kept. Nothing, if the live executors would not be enough for the set even if
 * nothing else ran there: a set that waits for more executors keeps none of them idle.
 * Else, on each executor, at most what the set could use there if nothing else ran: the
 * cores of so many of its tasks, and the custom resources that they take. Parts of a
 * task's worth are kept as well; else narrow tasks would take the cores of a wide one
 * one by one.
 *
 * When the set is over, or executors are not enough any more, what was kept is offered
 * at once (trp_keep_check, at the end of every step), since nothing else would offer
 * it.
 *
 * Tasks that are queued ahead on executors would take over slots without an offer:
 * those of the sets behind are recalled when a barrier set comes, and none are sent
 * ahead while it is in its class's order.
 */
#include <string.h>

#include "core/base/time.h"
#include "core/engine_state.h"

/* May tasks of `s` run there at all? */
static bool is_usable(const struct trp_engine *e, const struct trp_task_set *s,
                      const struct trp_executor *x)
{
    return trp_executor_may_get(x) &&
           trp_profiles_may_run(e->profiles, s->profile->id,
                                (trp_profile_id){x->class}) &&
           trp_health_at(s->health, x->id.n, x->host) != TRP_HEALTH_OUT &&
           !(e->has_ends && trp_ends_outlive(e, s, x));
}

/* O(its tasks), where executors are as many as that. */
static bool could_start(const struct trp_engine *e, const struct trp_task_set *s)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < e->nexecutors && room < s->ntasks; i++) {
        const struct trp_executor *x = trp_executor_at(e, i);
        if (x && is_usable(e, s, x))
            room += trp_barrier_most(s, x);
    }
    return room >= s->ntasks;
}

void trp_keep_recall(struct trp_engine *e, const struct trp_task_set *s)
{
    struct trp_class *c = s->class;
    struct trp_executor *x = e->config.barrier.reserve_ns ? c->queued : NULL;
    for (; x; x = x->queued_next == c->queued ? NULL : x->queued_next)
        for (uint32_t i = x->queue_first; i != TRP_NONE; i = e->attempts.v[i].next) {
            if (trp_task_set_before(s, e->attempts.v[i].set))
                trp_attempt_recall(e, i);
        }
}

static void forget_kept(struct trp_class *c)
{
    c->keep_for = NULL;
    c->keep_due = INT64_MAX;
}

TRP_RARE bool trp_keep(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_class *c = s->class;
    int64_t time = e->config.barrier.reserve_ns;
    if (!time || s->pending < s->ntasks || !could_start(e, s)) {
        s->keep_until = 0;
        return false;
    }
    bool passed = s->keep_until && e->now >= s->keep_until;
    bool over = passed && (e->sched_alone || c->keep_over);
    /* When it passed and nothing was free then, it begins with what is now. */
    if (!s->keep_until || over || (passed && c->keep_for != s))
        s->keep_until = trp_time_after(e->now, time);
    c->keep_for = s;
    c->keep_due = s->keep_until;
    e->keep_due = trp_earlier(e->keep_due, c->keep_due);
    return !over;
}

TRP_RARE void trp_keep_check(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (!c || !c->keep_for ||
            (c->keep_for->pending == c->keep_for->ntasks &&
             could_start(e, c->keep_for)))
            continue;
        forget_kept(c);
        trp_round_full(e, c);
    }
}

TRP_RARE void trp_keep_gone(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->class->keep_for != s)
        return;
    forget_kept(s->class);
    e->offer_all = true;
}

static bool take_the_same(const struct trp_resource_profile *a,
                          const struct trp_resource_profile *b)
{
    for (uint32_t i = 0; i < a->ncustom; i++)
        for (uint32_t k = 0; k < b->ncustom; k++)
            if (a->custom[i].task > 0 && b->custom[k].task > 0 &&
                strcmp(a->custom[i].name, b->custom[k].name) == 0)
                return true;
    return false;
}

TRP_RARE bool trp_keep_refuses(const struct trp_engine *e,
                               const struct trp_task_set *keeper,
                               const struct trp_task_set *s,
                               const struct trp_executor *x)
{
    if (keeper->zombie || !is_usable(e, keeper, x))
        return false;
    int64_t most = trp_barrier_most(keeper, x);
    return most &&
           (x->cores_free - s->profile->task_cpus < most * keeper->profile->task_cpus ||
            take_the_same(keeper->profile, s->profile));
}

TRP_RARE void trp_keep_time(struct trp_engine *e)
{
    if (e->now < e->keep_due)
        return;
    e->keep_due = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (c && c->keep_due <= e->now) {
            forget_kept(c);
            c->keep_over = true;
            trp_round_full(e, c);
            c->keep_over = false;
        }
        if (c && c->keep_due < e->keep_due)
            e->keep_due = c->keep_due;
    }
}

const struct trp_task_set *trp_keep_keeper(const struct trp_engine *e,
                                           const struct trp_task_set *s)
{
    for (const struct trp_task_set *o = s->class->first; o; o = o->next) {
        bool before = e->pools || trp_task_set_before(o, s); /* pools: it was */
        if (o->barrier && o->keep_until && before && trp_set_may_launch(o) &&
            could_start(e, o))
            return o;
    }
    return NULL;
}
