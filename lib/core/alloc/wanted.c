/*
 * How many executors each profile should have, and which may go. Semantics 16 in its
 * first form (alloc.grow=need), decisions 4, 5, 8 and 11.
 *
 *     wanted(class) = sum over its running stages of ceil(open tasks / slots), within
 * the stage's, the profile's and the cluster's bounds
 *
 * where open tasks are those that may run now or do (not those that wait for tasks of
 * their parents, whose executors could take the room that the parents need), compared,
 * whenever one of them changes, with what is live or asked for: too few   idle
 * executors of another class that nobody needs there and whose shape is the same
 * (alloc.reuse) are relabelled; the rest is asked for; too many  idle ones go, and
 * requests are withdrawn, at the end of a stage (none of the class runs while others
 * do), or when somebody else waits for room, or after the idle timeout. Between the
 * jobs of a program nothing runs and nobody waits: executors stay, up to the idle
 * timeout.
 *
 * Cost: O(profiles) a change; executors are looked through only when some are to go.
 */
#include <string.h>

#include "core/engine_state.h"

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

uint32_t trp_wanted_executors(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    uint64_t want = divide_up(c->open, slots);
    for (const struct trp_task_set *s = c->bounded; s; s = s->bounded_next) {
        uint64_t tasks = (uint64_t)s->pending + s->running + s->queued;
        if (s->stage->max_running && tasks > s->stage->max_running)
            tasks = s->stage->max_running;
        uint64_t n = divide_up(tasks, slots);
        if (n < s->stage->min_executors)
            n = s->stage->min_executors;
        if (s->stage->max_executors && n > s->stage->max_executors)
            n = s->stage->max_executors;
        want += n;
    }
    if (c->sets && want < e->config.min_executors)
        want = e->config.min_executors;
    if (want > e->config.max_executors)
        want = e->config.max_executors;
    return want < c->fit ? (uint32_t)want : c->fit;
}

static bool is_idle(const struct trp_executor *x)
{
    return x->state == TRP_EXECUTOR_LIVE && !x->nrunning && !x->nqueued;
}

static void release(struct trp_engine *e, struct trp_executor *x)
{
    trp_action_add(e, TRP_ACTION_RELEASE_EXECUTOR)->executor.executor = x->id;
    trp_executor_retire(e, x);
}

/* ---- too few ---- */

static bool may_serve(const struct trp_engine *e, const struct trp_executor *x,
                      const struct trp_class *c)
{
    const struct trp_resource_profile *have = trp_profiles_get(e->profiles, x->shape);
    const struct trp_resource_profile *want = trp_profiles_get(e->profiles, c->profile);
    if (e->config.reuse == TRP_REUSE_EXACT)
        return trp_profile_same_executor(have, want);
    return e->config.reuse == TRP_REUSE_FIT && trp_profile_covers(have, want);
}

static uint32_t surplus_of(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t want = trp_wanted_executors(e, c), have = c->live + c->requested;
    return have > want ? have - want : 0;
}

/* Takes over idle executors that other classes do not need. Returns how many. */
static uint32_t take_over(struct trp_engine *e, struct trp_class *c, uint32_t need)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < e->nclasses && taken < need; i++) {
        struct trp_class *from = e->classes[i];
        if (!from || from == c || !from->idle || e->config.reuse == TRP_REUSE_NEVER)
            continue;
        uint32_t surplus = surplus_of(e, from);
        struct trp_executor *x = from->free, *next;
        for (uint32_t n = from->nfree; n && surplus && taken < need; n--, x = next) {
            next = x->free_next;
            if (!is_idle(x) || !may_serve(e, x, c))
                continue;
            trp_executor_relabel(e, x, c);
            struct trp_action *act = trp_action_add(e, TRP_ACTION_RELABEL_EXECUTOR);
            act->executor.executor = x->id;
            act->executor.profile = c->profile;
            surplus--;
            taken++;
        }
    }
    return taken;
}

static void ask_for(struct trp_engine *e, struct trp_class *c, uint32_t need)
{
    while (need-- > 0 && e->live + e->requested < e->config.alloc_max_executors) {
        struct trp_executor *x = trp_executor_new(e, c);
        if (!x)
            return;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_START_EXECUTOR);
        act->executor.executor = x->id;
        act->executor.profile = c->profile;
    }
}

static void grow(struct trp_engine *e, struct trp_class *c)
{
    uint32_t want = trp_wanted_executors(e, c), have = c->live + c->requested;
    if (want <= have || c->never || e->draining)
        return;
    uint32_t taken = take_over(e, c, want - have);
    if (taken)
        trp_round_full(e, c);
    want = trp_wanted_executors(e, c);
    have = c->live + c->requested;
    if (want <= have)
        return;
    if (e->now >= c->retry_at)
        ask_for(e, c, want - have);
    else if (c->retry_at < e->retry_due)
        e->retry_due = c->retry_at;
}

/* ---- too many ---- */

/* Requests that have not been granted go first, the latest first. */
static uint32_t withdraw(struct trp_engine *e, struct trp_class *c, uint32_t surplus)
{
    for (uint32_t i = e->nexecutors; i-- > 0 && surplus && c->requested;) {
        struct trp_executor *x = e->executors[i];
        if (!x || x->class != c->profile.n || x->state != TRP_EXECUTOR_REQUESTED)
            continue;
        release(e, x);
        surplus--;
    }
    return surplus;
}

/* Releases idle executors; with `timed_out` only those that have been idle for long. */
static void release_idle(struct trp_engine *e, struct trp_class *c, uint32_t surplus,
                         bool timed_out)
{
    int64_t since = e->now - e->config.idle_timeout_ns;
    struct trp_executor *x = c->free, *next;
    for (uint32_t n = c->nfree; n && surplus; n--, x = next) {
        next = x->free_next;
        if (!is_idle(x) || (timed_out && x->idle_since > since))
            continue;
        release(e, x);
        surplus--;
    }
}

/* Does any other class, or a gang, wait for room? */
static bool others_wait(const struct trp_engine *e, const struct trp_class *c)
{
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *o = e->classes[i];
        if (o && o != c && !o->never && trp_wanted_executors(e, o) > o->live)
            return true;
    }
    return e->gangs > 0;
}

static void shrink(struct trp_engine *e, struct trp_class *c)
{
    uint32_t surplus = surplus_of(e, c);
    if (!surplus || !(c->idle || c->requested))
        return;
    bool stage_end = !e->config.release_idle && !c->sets && e->jobs_active;
    if (stage_end || others_wait(e, c)) {
        surplus = withdraw(e, c, surplus);
        release_idle(e, c, surplus, false);
    } else if (e->idle_due == INT64_MAX) {
        e->idle_due = e->now + e->config.idle_timeout_ns;
    }
}

void trp_wanted_reconcile(struct trp_engine *e)
{
    e->any_dirty = false;
    if (e->config.fixed)
        return;
    e->retry_due = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            grow(e, e->classes[i]);
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            shrink(e, e->classes[i]);
}

/* ---- time, refusals ---- */

static void idle_timeouts(struct trp_engine *e)
{
    int64_t oldest = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        uint32_t surplus = c ? surplus_of(e, c) : 0;
        if (!surplus || !c->idle)
            continue;
        release_idle(e, c, surplus, true);
        struct trp_executor *x = c->free;
        for (uint32_t n = c->nfree; n; n--, x = x->free_next)
            if (is_idle(x) && x->idle_since < oldest)
                oldest = x->idle_since;
    }
    e->idle_due = oldest == INT64_MAX ? INT64_MAX : oldest + e->config.idle_timeout_ns;
}

void trp_wanted_time(struct trp_engine *e)
{
    if (e->config.fixed)
        return;
    if (e->now >= e->idle_due)
        idle_timeouts(e);
    if (e->now >= e->retry_due) {
        e->retry_due = INT64_MAX;
        e->any_dirty = true;
    }
}

/* A request of the class came to nothing: wait longer each time, and give up at last.
 */
void trp_wanted_start_failed(struct trp_engine *e, struct trp_class *c, bool never,
                             const char *text)
{
    e->any_dirty = true;
    free(c->start_failure);
    c->start_failure = strdup(text ? text : "");
    if (never) {
        free(c->never);
        c->never = strdup(text ? text : "never fits");
        trp_class_give_up(e, c, TRP_ENEVER, c->never ? c->never : "never fits");
        return;
    }
    c->retry_at = e->now + c->backoff;
    c->backoff *= 2;
    if (c->backoff > e->config.retry_max_ns)
        c->backoff = e->config.retry_max_ns;
    if (++c->start_failures < e->config.max_start_failures || c->live)
        return;
    c->start_failures = 0;
    trp_class_give_up(e, c, TRP_ESYSTEM,
                      c->start_failure && *c->start_failure
                          ? c->start_failure
                          : "its executors do not start");
}
