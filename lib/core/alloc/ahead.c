/*
 * Looking ahead: executors of a stage are requested while its parents still run, so
 * that the wait in the cluster's queue overlaps work (docs/decisions/0020).
 *
 * For which stages. For those whose parents all run or have ended. Only executors count
 * that do not fit on the nodes that the run has (`additional` of PROFILE_FIT): on its own
 * nodes nothing has to wait in the queue. Gangs are not looked ahead to.
 *
 * When. As soon as the time that is *left* of the parents is no longer than the *lead*.
 * The lead is the wait that the cluster expects (it is asked once a stage attempt) or
 * that earlier executors had, and the shortest start so far; or the time that the user
 * set. If the stage has some room on the run's nodes, and the wait is no longer than
 * the patience it will have there (patience.c), nothing is requested ahead: once the
 * stage runs it is known what is worth it.
 *
 * The time that is left (left.c) is estimated when 1, 2, 4, … tasks of a parent have
 * ended, and by timer at half of the time in between (or, if nothing is known, after a
 * quarter of the time so far). So a stage costs a few estimates of O(1), however many
 * tasks it has, and a launch costs nothing.
 *
 * For how long. Executors requested ahead count for themselves (`ahead`) until the
 * stage runs; then they are the stage's. They are released if the stage will not run,
 * and if the stage is late by an idle timeout after they came, unless the time left is
 * known to be less than the lead. After that none is requested before the stage is
 * ready. So a node is idle for twice the lead and an idle timeout at most. A request
 * that has not been granted costs nothing and stays. One that is refused counts as no
 * failure; the stage requests executors when it is ready. Rejected: releasing what came
 * much too early, to request it again later. Waits vary, and the next one may be long.
 */
#include <utlist.h>

#include "core/base/time.h"
#include "core/engine_state.h"

#define LOOK_LEAST_NS INT64_C(100000000)
#define UNKNOWN_LEAST_NS INT64_C(500000000)

/* ---- how much longer ---- */

/* Until the stage can run, TRP_LEFT_UNKNOWN: not known. */
static int64_t left_before(const struct trp_engine *e, const struct trp_stage *s)
{
    int64_t left = 0;
    if (s->state != TRP_STAGE_WAITING)
        return TRP_LEFT_UNKNOWN;
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].parent;
        if (!s->parents[i].waits)
            continue;
        if (p->state != TRP_STAGE_RUNNING || !p->set)
            return TRP_LEFT_UNKNOWN;
        for (const struct trp_task_set *set = p->set; set; set = set->overflow) {
            int64_t of = trp_left_of(e, set).all_ns;
            if (of == TRP_LEFT_UNKNOWN)
                return TRP_LEFT_UNKNOWN;
            left = of > left ? of : left;
        }
    }
    return left;
}

/* ---- how many, how early ---- */

static enum trp_look_ahead mode_of(const struct trp_engine *e,
                                   const struct trp_stage *s)
{
    return s->look_ahead ? s->look_ahead : e->config.look_ahead;
}

static int64_t lead_of(const struct trp_engine *e, const struct trp_stage *s,
                       const struct trp_class *c)
{
    if (mode_of(e, s) == TRP_LOOK_AHEAD_TIME)
        return s->look_ahead ? s->look_ahead_ns : e->config.look_ahead_ns;
    return trp_time_after(e->start_ns, c->wait_ns);
}

/* Live executors that may serve the class when the parents are through. */
static uint64_t live_for(const struct trp_engine *e, const struct trp_class *c)
{
    uint64_t n = c->live;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *from = e->classes[i];
        if (from && from != c && trp_wanted_may_serve(e, from->profile, c))
            n += from->live;
    }
    return n;
}

/* Executors of the stage that have to come from elsewhere. */
static uint32_t missing(const struct trp_engine *e, const struct trp_stage *s,
                        const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    uint64_t tasks = s->tasks_known ? s->ntasks : 1, n, have = c->fit - c->additional;
    if (!c->additional || c->never || !tasks)
        return 0;
    if (s->max_running && s->max_running < tasks)
        tasks = s->max_running;
    n = (tasks + slots - 1) / slots;
    n = n < s->min_executors ? s->min_executors : n;
    if (s->max_executors && s->max_executors < n)
        n = s->max_executors;
    n = n < e->config.max_executors ? n : e->config.max_executors;
    n = n < c->fit ? n : c->fit;
    if (n <= have)
        return 0;
    uint64_t live = live_for(e, c);
    have = live > have ? live : have;
    return n > have ? (uint32_t)(n - have) : 0;
}

/* ---- requested, needed, given up ---- */

/* Has any of them come, and waits? */
static bool any_came(const struct trp_engine *e, const struct trp_class *c)
{
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = trp_executor_at(e, i);
        if (x && x->ahead && x->class == c->profile.n && x->state == TRP_EXECUTOR_LIVE)
            return true;
    }
    return false;
}

/* More of the class stand apart than stages want ahead. The first to come go to their
 * stage, the last ones go away. */
static void lift(struct trp_engine *e, struct trp_class *c, bool needed)
{
    for (uint32_t i = 0; i < e->nexecutors && c->nahead > c->ahead; i++) {
        struct trp_executor *x = trp_executor_at(e, needed ? i : e->nexecutors - 1 - i);
        if (!x || !x->ahead || x->class != c->profile.n)
            continue;
        trp_ahead_no_more(e, x);
        bool requested = x->state == TRP_EXECUTOR_REQUESTED;
        if (!needed && (requested || trp_executor_is_idle(x))) {
            trp_wanted_release(e, x);
        } else if (needed && requested) {
            struct trp_action *act = trp_action_add(e, TRP_ACTION_NEED_EXECUTOR);
            act->executor.executor = x->id;
            act->executor.profile = c->profile;
        }
    }
}

static void withdraw_requests(struct trp_engine *e, struct trp_stage *s, bool needed)
{
    if (!s->ahead.n)
        return;
    struct trp_class *c = e->classes[s->profile.n];
    c->ahead -= s->ahead.n;
    s->ahead.n = 0;
    e->any_dirty = true;
    lift(e, c, needed);
}

static void unwatch_stage(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_stage_ahead *a = &s->ahead;
    if (!a->watched)
        return;
    a->watched = false;
    DL_DELETE2(e->ahead, s, ahead.prev, ahead.next);
    if (!e->ahead)
        e->ahead_due = INT64_MAX;
}

static void watch_stage(struct trp_engine *e, struct trp_stage *s)
{
    bool waits = s->state == TRP_STAGE_WAITING || s->state == TRP_STAGE_IDLE;
    if (s->ahead.watched || !waits || s->kind == TRP_STAGE_GANG ||
        mode_of(e, s) <= TRP_LOOK_AHEAD_OFF)
        return;
    s->ahead = (struct trp_stage_ahead){.watched = true, .since = e->now};
    DL_PREPEND2(e->ahead, s, ahead.prev, ahead.next);
    trp_ahead_look_soon(e);
}

void trp_ahead_begun(struct trp_engine *e, struct trp_stage *s)
{
    unwatch_stage(e, s);
    withdraw_requests(e, s, true);
    if (e->config.fixed || e->sched_alone || e->dag.alone ||
        s->state != TRP_STAGE_RUNNING)
        return;
    for (struct trp_stage_link *l = s->children; l; l = l->next)
        watch_stage(e, l->child);
}

void trp_ahead_over(struct trp_engine *e, struct trp_stage *s)
{
    unwatch_stage(e, s);
    withdraw_requests(e, s, false);
}

void trp_ahead_refused(struct trp_engine *e, struct trp_class *c)
{
    for (struct trp_stage *s = e->ahead; s; s = s->ahead.next)
        if (s->profile.n == c->profile.n && s->ahead.n) {
            s->ahead.given_up = true;
            withdraw_requests(e, s, false);
        }
}

/* ---- looking ---- */

/* Others can be obtained as soon as the stage finds that they are worth it. */
static bool is_had_soon(const struct trp_engine *e, const struct trp_stage *s,
                        const struct trp_class *c)
{
    return c->more && mode_of(e, s) == TRP_LOOK_AHEAD_AUTO && c->fit > c->additional &&
           c->wait_ns <= e->config.backlog_timeout_ns;
}

/* When to look again. */
static int64_t consider(struct trp_engine *e, struct trp_stage *s, struct trp_class *c)
{
    struct trp_stage_ahead *a = &s->ahead;
    uint32_t n = a->given_up ? 0 : missing(e, s, c);
    if (!n)
        return INT64_MAX;
    int64_t left = left_before(e, s), pause = (e->now - a->since) / 4;
    pause = pause > UNKNOWN_LEAST_NS ? pause : UNKNOWN_LEAST_NS;
    if (left != TRP_LEFT_UNKNOWN) {
        if (!a->asked_wait && mode_of(e, s) == TRP_LOOK_AHEAD_AUTO) {
            a->asked_wait = true;
            struct trp_action *act = trp_action_add(e, TRP_ACTION_ASK_WAIT);
            act->wait.profile = c->profile;
            act->wait.executors = n;
        }
        int64_t lead = lead_of(e, s, c);
        if (left <= lead && !is_had_soon(e, s, c)) {
            a->n = n;
            a->expect = trp_time_after(e->now, left);
            a->most = trp_time_after(trp_time_after(e->now, lead),
                                     trp_time_after(lead, e->config.idle_timeout_ns));
            c->ahead += n;
            e->any_dirty = true;
            return trp_time_after(a->expect, e->config.idle_timeout_ns);
        }
        pause = left > lead ? (left - lead) / 2 : pause;
    }
    return trp_time_after(e->now, pause > LOOK_LEAST_NS ? pause : LOOK_LEAST_NS);
}

/* The same for one whose executors are requested. */
static int64_t reconsider(struct trp_engine *e, struct trp_stage *s,
                          const struct trp_class *c)
{
    struct trp_stage_ahead *a = &s->ahead;
    int64_t idle = e->config.idle_timeout_ns;
    idle = idle > LOOK_LEAST_NS ? idle : LOOK_LEAST_NS;
    if (e->now >= a->most || e->now >= trp_time_after(a->expect, idle)) {
        int64_t left = left_before(e, s);
        bool soon = left != TRP_LEFT_UNKNOWN && left <= lead_of(e, s, c);
        if (!any_came(e, c)) {
            a->most = trp_time_after(e->now, idle);
        } else if (!soon || e->now >= a->most) {
            withdraw_requests(e, s, false);
            a->given_up = true;
            return INT64_MAX;
        }
        a->expect = trp_time_after(e->now, soon ? left : 0);
    }
    return a->most < trp_time_after(a->expect, idle) ? a->most
                                                     : trp_time_after(a->expect, idle);
}

void trp_ahead_look_soon(struct trp_engine *e)
{
    if (!e->ahead)
        return;
    e->ahead_due = e->now;
    e->unsettled = true;
}

/* When to look at the stage again. */
static int64_t look_at(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_class *c = trp_class_of(e, s->profile);
    ++*e->visited;
    if (!c || e->draining) {
        e->out_of_memory |= !c;
        trp_ahead_over(e, s);
        return INT64_MAX;
    }
    return s->ahead.n ? reconsider(e, s, c) : consider(e, s, c);
}

void trp_ahead_look(struct trp_engine *e)
{
    int64_t due = INT64_MAX;
    for (struct trp_stage *s = e->ahead, *next; s; s = next) {
        next = s->ahead.next;
        due = trp_earlier(due, look_at(e, s));
    }
    e->ahead_due = due;
}

void trp_ahead_news(struct trp_engine *e, struct trp_stage *s)
{
    if (!e->ahead || s->has_news)
        return;
    s->has_news = true;
    LL_PREPEND2(e->ahead_news, s, news_next);
    e->unsettled = true;
}

void trp_ahead_look_at_news(struct trp_engine *e)
{
    while (e->ahead_news) {
        struct trp_stage *s = e->ahead_news;
        LL_DELETE2(e->ahead_news, s, news_next);
        s->has_news = false;
        for (const struct trp_stage_link *l = s->children; l; l = l->next)
            if (l->child->ahead.watched)
                e->ahead_due = trp_earlier(e->ahead_due, look_at(e, l->child));
    }
}
