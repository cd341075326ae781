/*
 * Patience: whether a request may start an additional job, or waits until the nodes
 * that the run has are free (docs/decisions/0032). An additional job costs calls to
 * Slurm and the start of an executor, so it must be worth it.
 *
 * A request may start one at once, if
 *   - the nodes that the run has can never run the tasks: not one executor of the
 * profile fits, or not all executors of a barrier stage;
 *   - the user named the number (minima), or it was requested ahead;
 *   - it replaces an executor that was lost or did not start;
 *   - alloc.grow=ramp is set, which has a patience of its own.
 * Else the requests of a profile must have waited for the backlog timeout, and an
 * additional executor must pay. It pays if tasks would still be pending when it could
 * be there (the known wait in the queue, and the shortest start so far), and if a task
 * that starts then ends earlier than the last task would end without it: by a start's
 * time at least, and by USE_LEAST at least. As many may start a job as would each have
 * work for that long. If it is not known how long tasks take, the time that one has run
 * stands for it once that is longer than the timeout; if none runs, executors pay as
 * soon as they are overdue.
 *
 * All requests of a class are judged together, for whatever stages they are. A request
 * that may start a job keeps that right. Requests are judged when they are made, when
 * 1, 2, 4, … tasks have ended, and by timer.
 */
#include "core/base/time.h"
#include "core/engine_state.h"

#define LOOK_LEAST_NS INT64_C(100000000)
/* What an executor costs by itself: a few calls, and processes on two hosts. */
#define USE_LEAST_NS INT64_C(800000000)
#define ALL UINT32_MAX

enum {
    STARTS = 2,
    FIRST_START = 9,
    LOOK = 64, /* so many sets of a class are judged, the first ones */
};

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void trp_patience_over(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    if (!c->more || !trp_bits_remove(&c->inside, x->id.n))
        return;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_MAY_ADD);
    act->executor.executor = x->id;
    act->executor.profile = c->profile;
    act->executor.ahead = false; /* members of actions begin with any value */
    act->executor.not_on = "";
}

/* Requests that may come from one. */
static uint32_t may_add(const struct trp_class *c)
{
    return c->requested.n - c->inside.n;
}

/* ---- at once ---- */

/* Executors that its stages are to have, whatever they cost. */
static uint32_t least_of(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t least = trp_demand_least(e, c), mins = 0;
    for (const struct trp_task_set *s = c->bounded; s; s = s->bounded_next)
        mins += s->pending + s->running + s->queued ? s->stage->min_executors : 0;
    least = least > mins ? least : mins;
    return least > e->config.min_executors ? least : e->config.min_executors;
}

static uint32_t at_once(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t inside = c->fit - c->additional, least = trp_demand_least(e, c);
    if (e->targets || !inside || inside < least)
        return ALL;
    uint32_t have = c->live + may_add(c), n = least_of(e, c);
    n = n > have ? n - have : 0;
    return n > c->lost ? n : c->lost;
}

/* ---- when it is worth it ---- */

struct prospect {
    double work_ns;  /* of slots, that is left */
    bool pending;    /* tasks are, … */
    bool known;      /* … it is known of all of them how long they take, … */
    bool pays;       /* … and some are for so long that an additional job pays */
    int64_t left_ns; /* of the longest set */
    int64_t oldest_ns;
};

static struct prospect look_forward(const struct trp_engine *e,
                                    const struct trp_class *c, int64_t lead,
                                    int64_t use)
{
    struct prospect p = {.known = true, .oldest_ns = -1};
    uint32_t seen = 0;
    for (const struct trp_task_set *s = c->all; s && seen < LOOK; s = s->class_next) {
        uint64_t pending = (uint64_t)s->pending + s->queued;
        seen++;
        if (!pending && !s->running)
            continue;
        const struct trp_left left = trp_left_of(e, s);
        p.oldest_ns = longer(p.oldest_ns, left.oldest_ns);
        p.work_ns += left.running_ns;
        if (!pending)
            continue;
        p.pending = true;
        if (left.all_ns == TRP_LEFT_UNKNOWN) {
            p.known = false;
            continue;
        }
        p.left_ns = longer(p.left_ns, left.all_ns);
        p.work_ns += (double)pending * (double)left.took_ns;
        p.pays |= left.all_ns - left.took_ns - use > lead;
    }
    *e->visited += seen;
    p.work_ns *= seen ? (double)c->sets / seen : 1; /* the others are like these */
    return p;
}

/* When tasks of which nothing is known are taken for long. */
static int64_t unknown_until(const struct trp_engine *e, const struct trp_class *c,
                             const struct prospect *p)
{
    int64_t backlog = e->config.backlog_timeout_ns;
    int64_t start = e->start_ns ? STARTS * e->start_ns : FIRST_START * backlog;
    if (p->oldest_ns >= 0)
        return trp_time_after(e->now, backlog - p->oldest_ns);
    return trp_time_after(trp_time_after(c->waits_since, backlog), start);
}

/* How many more are worth it; when to look again. */
static uint32_t worth(struct trp_engine *e, struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    int64_t backlog = e->config.backlog_timeout_ns;
    int64_t lead = trp_time_after(e->start_ns, c->wait_ns);
    int64_t use = longer(e->start_ns, USE_LEAST_NS);
    const struct prospect p = look_forward(e, c, lead, use);
    c->patience_due =
        trp_time_after(e->now, longer(longer(p.left_ns, backlog) / 2, LOOK_LEAST_NS));
    if (trp_exclusion_any_stuck(e, c))
        return ALL;
    if (!p.pending)
        return 0;
    if (!p.known) {
        int64_t until = unknown_until(e, c, &p),
                soon = trp_time_after(e->now, backlog / 4);
        c->patience_due =
            longer(until < soon ? until : soon, trp_time_after(e->now, LOOK_LEAST_NS));
        return e->now >= until ? ALL : 0;
    }
    uint32_t need = trp_demand_work(e, c), have = c->live + may_add(c);
    if (!p.pays || need <= have)
        return 0;
    /* What those that are there, and may come, leave of it until then. */
    double there = (double)have * slots;
    double rest = p.work_ns - there * (double)lead;
    double n = (rest / (double)use - there) / slots;
    return n < 1 ? 0 : n < need - have ? (uint32_t)n : need - have;
}

/* ---- all ---- */

/* The first so many of those that wait. */
static void allow(struct trp_engine *e, const struct trp_class *c, uint32_t n)
{
    struct trp_executor *x;
    for (uint32_t i = 0;
         n && c->inside.n && (x = trp_executor_next(e, &c->inside, &i));) {
        trp_patience_over(e, x);
        n--;
    }
}

static void check_class(struct trp_engine *e, struct trp_class *c)
{
    if (!c->inside.n) {
        if (!c->requested.n)
            c->waits_since = INT64_MAX;
        return;
    }
    if (c->waits_since == INT64_MAX) {
        c->waits_since = e->now;
        c->patience_due = trp_time_after(e->now, e->config.backlog_timeout_ns);
    }
    allow(e, c, at_once(e, c));
    c->lost = 0;
    if (c->inside.n && e->now >= c->patience_due)
        allow(e, c, worth(e, c));
    if (c->inside.n && c->patience_due < e->patience_due)
        e->patience_due = c->patience_due;
}

void trp_patience_look(struct trp_engine *e)
{
    e->patience_due = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses && !e->draining; i++)
        if (e->classes[i] && e->classes[i]->more)
            check_class(e, e->classes[i]);
}

void trp_patience_news(struct trp_engine *e, struct trp_class *c)
{
    if (!c->inside.n || c->waits_since == INT64_MAX ||
        e->now - c->waits_since < e->config.backlog_timeout_ns)
        return;
    c->patience_due = e->patience_due = e->now;
    e->unsettled = true;
}
