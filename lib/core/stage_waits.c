/*
 * Why a stage waits: the first reason that blocks it, in the order in which the engine
 * would meet them: what it waits for itself, no executor, all excluded, too few slots
 * for all tasks of a barrier at once, its own limit, a wait for locality, the turn of
 * others, a resource that is short. One function for progress lines, logs and the
 * simulator; the reason as a word (enum trp_wait) is found with the text, so that the two
 * agree. Cost: O(executors + sets), never paid for each task; nothing is changed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"
#include "core/profile/footprint.h"

struct question {
    const struct trp_engine *e;
    int64_t now;
    char *buf;
    size_t size;
    enum trp_wait what;
};

const char *trp_wait_name(enum trp_wait what)
{
    static const char *const names[TRP_WAITS] = {
        "nothing", "parents",     "start",  "executor", "room", "excluded", "end",
        "barrier", "max_running", "limits", "locality", "turn", "slots"};
    return names[what];
}

/* The answer begins. */
static void because(struct question *q, enum trp_wait what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void because(struct question *q, enum trp_wait what, const char *fmt, ...)
{
    va_list args;
    q->what = what;
    va_start(args, fmt);
    vsnprintf(q->buf, q->size, fmt, args);
    va_end(args);
}

/* Adds to the answer. */
static void append_reason(struct question *q, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void append_reason(struct question *q, const char *fmt, ...)
{
    size_t n = strlen(q->buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(q->buf + n, q->size - n, fmt, args);
    va_end(args);
}

static double seconds_until(const struct question *q, int64_t time)
{
    return time > q->now ? (double)(time - q->now) / 1e9 : 0.0;
}

/* ---- its parents ---- */

enum { PARENTS_NAMED = 8 }; /* and how many more there are */

/* Its n-th parent that is waited for: by `whole` stages those that have to end before
 * it, else those of which single tasks are waited for. NULL: there are not so many. */
static const struct trp_stage *blocker(const struct trp_stage *s, bool whole,
                                       uint32_t *at)
{
    while (*at < s->nparents) {
        const struct trp_stage_link *l = &s->parents[(*at)++];
        if (whole ? l->waits : l->parent->state != TRP_STAGE_ENDED)
            return l->parent;
    }
    return NULL;
}

/* "waiting for stages a, b and c". */
static void explain_parents(struct question *q, const struct trp_stage *s, bool whole)
{
    uint32_t at = 0, n = 0;
    const struct trp_stage *p = blocker(s, whole, &at), *next;
    const char *what = whole ? "" : "tasks of ";
    if (!p) {
        because(q, TRP_WAIT_PARENTS, "waiting for tasks of its parents");
        return;
    }
    for (; p; p = next, n++) {
        next = blocker(s, whole, &at);
        if (n == 0)
            because(q, TRP_WAIT_PARENTS, "waiting for %sstage%s %s", what,
                    next ? "s" : "", p->name);
        else if (n < PARENTS_NAMED)
            append_reason(q, "%s %s", next ? "," : " and", p->name);
    }
    if (n > PARENTS_NAMED)
        append_reason(q, " and %u more", n - PARENTS_NAMED);
}

/* ---- no executor is there ---- */

static void explain_limit(struct question *q, const struct trp_class *c)
{
    const struct trp_engine *e = q->e;
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, c->profile);
    uint32_t at = 0;
    if (trp_caps_left(&e->caps, e->caps_used, c->cost, &at) > 0)
        because(q, TRP_WAIT_EXECUTOR, "no executor of profile %s is asked for yet",
                p->name);
    else
        because(q, TRP_WAIT_LIMITS,
                "no executor of profile %s: alloc.max_%s (%lld) are in use", p->name,
                e->caps.name[at], (long long)e->caps.most[at]);
}

/* Some were asked for: what they need, since when, and what became of the last one. */
static void explain_requested(struct question *q, const struct trp_class *c)
{
    const struct trp_engine *e = q->e;
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, c->profile);
    char needs[256];
    uint32_t i = 0;
    const struct trp_executor *first = trp_executor_next(e, &c->requested, &i);
    int64_t since = first ? first->asked_ns : q->now;
    because(q, TRP_WAIT_EXECUTOR,
            "waiting for an executor of profile %s (%s): %u asked for, the first "
            "%.0f s ago",
            p->name, trp_profile_text(p, 0, needs, sizeof(needs)), c->requested.n,
            (double)(q->now - since) / 1e9);
    if (c->starts.failures)
        append_reason(q, "; the last start failed: %s",
                      c->start_failure ? c->start_failure : "");
}

static bool explain_executors(struct question *q, const struct trp_class *c)
{
    const char *profile = trp_profiles_get(q->e->profiles, c->profile)->name;
    if (c->never)
        because(q, TRP_WAIT_EXECUTOR, "no executor of profile %s can ever be had: %s",
                profile, c->never);
    else if (c->live)
        return false;
    else if (c->requested.n)
        explain_requested(q, c);
    else if (q->e->config.fixed)
        because(q, TRP_WAIT_EXECUTOR,
                "no executor of profile %s is left, and the executors of this run are "
                "fixed",
                profile);
    else if (q->now < c->retry_at)
        because(q, TRP_WAIT_EXECUTOR,
                "no executor of profile %s; the last request failed (%s), the next in "
                "%.0f s",
                profile, c->start_failure ? c->start_failure : "",
                seconds_until(q, c->retry_at));
    else
        explain_limit(q, c);
    return true;
}

/* ---- executors are there ---- */

/* What the live executors of a class could do for a task. */
struct look {
    uint32_t live, out, fit; /* excluded for it; has room for it */
    const struct trp_executor *first_out;
    const char *lacks; /* what those without room have too little of */
};

static bool is_out(const struct trp_task_set *s, uint32_t task,
                   const struct trp_executor *x)
{
    return x->excluded ||
           trp_health_at(s->health, x->id.n, x->host) == TRP_HEALTH_OUT ||
           trp_health_task_out(s->health, task, x->id.n, x->host);
}

/* The resource that one more task is short of there; NULL: there is room for it. */
static const char *lack_of(const struct trp_task_set *s, const struct trp_executor *x)
{
    const struct trp_resource_profile *p = s->profile;
    if (x->cores_free < p->task_cpus)
        return "cores";
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (p->custom[i].task > 0 && !trp_barrier_addresses(x->ledger, &p->custom[i]))
            return p->custom[i].name;
    return NULL;
}

static void look_around(const struct trp_engine *e, const struct trp_task_set *s,
                        uint32_t task, struct look *ret)
{
    *ret = (struct look){0};
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = trp_executor_at(e, i);
        if (!x || x->state != TRP_EXECUTOR_LIVE || e->classes[x->class] != s->class)
            continue;
        ret->live++;
        if (is_out(s, task, x)) {
            ret->first_out = ret->out++ ? ret->first_out : x;
            continue;
        }
        const char *lacks = lack_of(s, x);
        ret->fit += !lacks;
        /* Where cores are left, it is the other thing that is short. */
        if (lacks && (!ret->lacks || strcmp(lacks, "cores") != 0))
            ret->lacks = lacks;
    }
}

/* All that are there are excluded for its next task. */
static void explain_excluded(struct question *q, const struct trp_task_set *s,
                             uint32_t task, const struct look *l)
{
    const struct trp_executor *x = l->first_out;
    char name[16];
    snprintf(name, sizeof(name), "%u", x->id.n);
    q->what = TRP_WAIT_EXCLUDED;
    trp_health_why(&q->e->config.exclusion, q->e->tracker, s->health, task, x->id.n,
                   x->host, name, q->e->hosts.hosts[x->host].name, q->buf, q->size);
    if (l->out == 2)
        append_reason(q, ", and so is the other");
    else if (l->out > 2)
        append_reason(q, ", and so are the %u others", l->out - 1);
    if (s->class->requested.n)
        append_reason(q, "; another executor is asked for");
    if (s->abort_at != INT64_MAX && !trp_exclusion_awaits(q->e, s))
        append_reason(q, "; given up in %.0f s", seconds_until(q, s->abort_at));
}

static bool explain_barrier(struct question *q, const struct trp_task_set *s)
{
    const struct trp_executor *x = s->class->free;
    uint64_t room = 0;
    for (uint32_t n = s->barrier ? s->class->nfree : 0; n; n--, x = x->free_next)
        room += trp_barrier_fits(q->e, s, x);
    if (!s->barrier || room >= s->ntasks)
        return false;
    because(q, TRP_WAIT_BARRIER,
            "a barrier stage needs %u slots at once, %llu of %llu are free", s->ntasks,
            (unsigned long long)room,
            (unsigned long long)trp_barrier_slots(q->e, s->profile->id));
    if (s->keep_until > q->now)
        append_reason(q, "; they are kept for it for %.0f s more (barrier.reserve)",
                      seconds_until(q, s->keep_until));
    return true;
}

/* What is free is kept for another. */
static bool explain_kept(struct question *q, const struct trp_task_set *s)
{
    const struct trp_task_set *o = trp_keep_keeper(q->e, s);
    if (!o || !trp_set_may_launch(s))
        return false;
    because(
        q, TRP_WAIT_BARRIER,
        "barrier stage %s comes first, which needs %u slots at once: those that are "
        "free are kept for it for %.0f s more (barrier.reserve)",
        o->stage->name, o->ntasks, seconds_until(q, o->keep_until));
    return true;
}

/* The first set that is offered slots before `s` is, has some and wants more; or NULL.
 */
static const struct trp_task_set *before_it(const struct trp_engine *e,
                                            const struct trp_task_set *s)
{
    const struct trp_task_set *best = s;
    for (const struct trp_task_set *o = s->class->first; o; o = o->next) {
        if (o == s && !e->pools)
            break;
        if (o == s || !o->running || !trp_set_may_launch(o))
            continue;
        if (!e->pools)
            return o;
        if (trp_pools_is_before(&o->pool_place, &best->pool_place))
            best = o;
    }
    return best == s ? NULL : best;
}

/* Others' turn in the order of FIFO, or of the pools. */
static bool explain_share(struct question *q, const struct trp_task_set *s)
{
    const struct trp_task_set *o = before_it(q->e, s);
    struct trp_pool_view its, own;
    if (!o)
        return false;
    because(
        q, TRP_WAIT_TURN,
        "stage %s comes first and takes the slots of profile %s (%u of its tasks run, "
        "%u are pending)",
        o->stage->name, s->profile->name, o->running, o->pending);
    if (!q->e->pools)
        return true;
    trp_pools_view(&o->pool_place, &its);
    trp_pools_view(&s->pool_place, &own);
    append_reason(q, ": of pool %s %u run, minimum share %u, weight %u", its.name,
                  its.running, its.min_share, its.weight);
    if (strcmp(its.name, own.name) != 0)
        append_reason(q, "; of its own, %s, %u run, minimum share %u, weight %u",
                      own.name, own.running, own.min_share, own.weight);
    return true;
}

/* More executors could be used, but for a limit. */
static bool limited(const struct trp_engine *e, const struct trp_task_set *s)
{
    const struct trp_class *c = s->class;
    uint32_t most = s->stage->max_executors;
    return !c->requested.n &&
           (c->live >= e->config.max_executors || (most && c->live >= most) ||
            trp_caps_left(&e->caps, e->caps_used, c->cost, NULL) == 0);
}

static void explain_short(struct question *q, const struct trp_task_set *s,
                          const struct look *l)
{
    const struct trp_custom *c = trp_profile_custom(s->profile, l->lacks);
    char amount[32];
    snprintf(amount, sizeof(amount), "%lld", (long long)s->profile->task_cpus);
    if (c)
        trp_amount_format(c->task, amount, sizeof(amount));
    because(
        q, limited(q->e, s) ? TRP_WAIT_LIMITS : TRP_WAIT_SLOTS,
        "short of %s: a task takes %s, and no executor of profile %s has that free (%u "
        "there",
        l->lacks, amount, s->profile->name, l->live);
    if (l->out)
        append_reason(q, ", %u of them excluded after failures", l->out);
    if (s->class->requested.n)
        append_reason(q, ", %u asked for", s->class->requested.n);
    append_reason(q, ")");
}

static void explain_locality(struct question *q, const struct trp_task_set *s)
{
    enum trp_level level = s->levels[s->current];
    if (s->current + 1 < s->nlevels)
        because(q, TRP_WAIT_LOCALITY, "waiting %.1f s more for a slot at level %s",
                seconds_until(q, s->locality_clock_ns +
                                     q->e->config.locality_wait_ns[level]),
                trp_level_name(level));
    else
        because(q, TRP_WAIT_NOTHING, "its tasks are about to be launched");
}

static bool explain_end(struct question *q, const struct trp_task_set *s)
{
    if (!trp_ends_outlive_run(q->e, s))
        return false;
    because(q, TRP_WAIT_END,
            "its allocation ends in %.0f s, and its tasks take %.0f s (median)",
            seconds_until(q, q->e->ends_ns), (double)trp_ends_estimate(s) / 1e9);
    return true;
}

static void explain_slots(struct question *q, const struct trp_task_set *s)
{
    uint32_t task = s->health ? trp_exclusion_next(s) : TRP_NONE;
    struct look l;
    look_around(q->e, s, task, &l);
    if (l.out && l.out == l.live)
        explain_excluded(q, s, task, &l);
    else if (explain_end(q, s) || explain_barrier(q, s) || explain_kept(q, s))
        return;
    else if (!trp_set_may_launch(s))
        because(q, TRP_WAIT_MAX_RUNNING,
                s->stage->max_running == 1 ? "max_running: %u task runs"
                                           : "max_running: %u tasks run",
                s->stage->max_running);
    else if (l.live && s->class->yielding == l.live)
        because(q, TRP_WAIT_LIMITS,
                "executors of profile %s make room for earlier stages under the limits "
                "over all profiles (alloc.max_*)",
                s->profile->name);
    else if (l.fit)
        explain_locality(q, s);
    else if (!explain_share(q, s))
        explain_short(q, s, &l);
}

/* ---- a stage ---- */

/* The set of the stage whose tasks wait: its own, or one of those with more memory. */
static const struct trp_task_set *waiting_set(const struct trp_task_set *s)
{
    const struct trp_task_set *o = s;
    while (o && !o->pending)
        o = o->overflow;
    return o ? o : s;
}

static void explain_gang(struct question *q, const struct trp_stage *s)
{
    const struct trp_resource_profile *p = trp_profiles_get(q->e->profiles, s->profile);
    char needs[256];
    because(q, TRP_WAIT_ROOM,
            "waiting for room for %u rank%s of profile %s at once (%s)", s->ranks,
            s->ranks == 1 ? "" : "s", p->name,
            trp_profile_text(p, s->ranks, needs, sizeof(needs)));
}

static void explain_set(struct question *q, const struct trp_stage *s,
                        const struct trp_task_set *set)
{
    if (!set->class)
        explain_gang(q, s);
    else if (!set->pending && set->running)
        because(q, TRP_WAIT_PARENTS, "%s", "");
    else if (!set->pending)
        explain_parents(q, s, false);
    else if (q->e->gated)
        because(q, TRP_WAIT_START,
                "%u of %u executors have come; waiting for more for at most %.0f s "
                "(scheduler.minRegisteredResourcesRatio)",
                q->e->live, trp_start_gate_expected(q->e),
                seconds_until(q, q->e->gate_due));
    else if (!explain_executors(q, set->class))
        explain_slots(q, set);
}

static void explain(struct question *q, const struct trp_stage *s)
{
    uint32_t first = 0;
    if (q->e->draining)
        because(q, TRP_WAIT_END, "the run is being ended: nothing new is started");
    else if (blocker(s, true, &first))
        explain_parents(q, s, true);
    else if (s->failed)
        because(q, TRP_WAIT_NOTHING, "its attempt %u failed, another one follows",
                s->attempts);
    else if (s->asked)
        because(q, TRP_WAIT_NOTHING, "its tasks are over; its outputs are looked for");
    else if (s->state == TRP_STAGE_ASKED)
        because(q, TRP_WAIT_NOTHING, "its tasks are being listed");
    else if (!s->set)
        because(q, TRP_WAIT_NOTHING, "nothing of it is to be run now");
    else
        explain_set(q, s, waiting_set(s->set));
}

char *trp_engine_why_waiting(const trp_engine *e, int64_t now_ns, trp_stage_id stage,
                             char *buf, size_t size)
{
    struct question q = {e, now_ns > e->now ? now_ns : e->now, buf, size,
                         TRP_WAIT_NOTHING};
    const struct trp_stage *s = trp_stage_find(e, stage);
    buf[0] = '\0';
    if (s && s->state != TRP_STAGE_ENDED)
        explain(&q, s);
    return buf;
}

/* Some of its tasks are still to begin, for the first time or again. */
static bool has_tasks_left(const trp_engine *e, trp_stage_id stage)
{
    struct trp_stage_view v;
    return trp_engine_stage(e, stage, &v) == 0 && v.submitted &&
           v.ntasks > (uint64_t)v.running + v.queued + v.succeeded + v.failed;
}

enum trp_wait trp_engine_waits_for(const trp_engine *e, trp_stage_id stage)
{
    char text[512] = "";
    struct question q = {e, e->now, text, sizeof text, TRP_WAIT_NOTHING};
    const struct trp_stage *s = trp_stage_find(e, stage);
    if (s && s->state != TRP_STAGE_ENDED && has_tasks_left(e, stage))
        explain(&q, s);
    return q.what;
}
