/*
 * Exclusion on failure, as the engine uses it: health.h keeps what failed where, here
 * it takes effect. Semantics, section 12.
 *
 * An executor excluded for the application, itself or by its host, leaves the ring of
 * free ones, so that no offer looks at it; that is brought up to date, at O(executors),
 * whenever the tracker has news. A set whose next task can run nowhere is *stuck*: it
 * has a time at which it is given up, unless anything is launched before.
 */
#include <utlist.h>

#include "core/base/time.h"
#include "core/engine_state.h"

#define REVIVE_NS INT64_C(1000000000) /* scheduler.revive.interval */

int trp_exclusion_init(struct trp_engine *e, trp_error *err)
{
    const struct trp_health_config *c = &e->config.exclusion;
    if (!c->enabled)
        return 0;
    e->tracker = trp_health_tracker_new(c);
    return e->tracker ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* ---- the application's exclusions take effect ---- */

static bool is_out(const struct trp_engine *e, const struct trp_executor *x)
{
    return trp_health_executor_excluded(e->tracker, x->id.n) ||
           trp_health_node_excluded(e->tracker, x->host);
}

/* Makes it go, to be replaced by another. */
static void kill_executor(struct trp_engine *e, struct trp_executor *x)
{
    if (e->config.fixed && !e->sched_alone)
        return;
    if (e->config.exclusion.kill_decommission && !e->sched_alone)
        trp_executor_decommission(e, x);
    else
        trp_executor_release(e, x);
    e->any_dirty = true;
}

static void post_exclusion(struct trp_engine *e, trp_executor_id x, const char *host,
                           bool out)
{
    struct trp_action *act = trp_action_add(e, TRP_ACTION_EXCLUDED);
    act->excluded.executor = x;
    act->excluded.host = host;
    act->excluded.excluded = out;
}

static void take_news(struct trp_engine *e, const struct trp_health_news *news,
                      bool out)
{
    for (uint32_t i = 0; i < news->nexecutors; i++)
        post_exclusion(e, (trp_executor_id){news->executors[i]}, NULL, out);
    for (uint32_t i = 0; i < news->nnodes; i++)
        post_exclusion(e, (trp_executor_id){TRP_NONE},
                       e->hosts.hosts[news->nodes[i]].name, out);
    if (!news->nexecutors && !news->nnodes)
        return;
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        struct trp_executor *x = trp_executor_at(e, i);
        if (!x || !x->came || x->excluded == is_out(e, x))
            continue;
        x->excluded = !x->excluded;
        trp_executor_set_free(e, x);
        if (x->excluded)
            trp_attempts_recall(e, x);
        if (x->excluded && e->config.exclusion.kill && x->state == TRP_EXECUTOR_LIVE)
            kill_executor(e, x);
    }
}

void trp_exclusion_refresh(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        struct trp_executor *x = trp_executor_at(e, i);
        if (!x || !x->came)
            continue;
        x->excluded = is_out(e, x);
        trp_executor_set_free(e, x);
    }
}

void trp_exclusion_executor_came(struct trp_engine *e, struct trp_executor *x)
{
    if (e->tracker)
        x->excluded = is_out(e, x);
}

/* ---- failures ---- */

/* Its tasks that wait on executors which are excluded for it. All that waits on one
 * executor is of one set. */
static void recall_excluded(struct trp_engine *e, const struct trp_task_set *s)
{
    const struct trp_executor *x = s->class->queued;
    for (; x; x = x->queued_next == s->class->queued ? NULL : x->queued_next)
        if (e->attempts.v[x->queue_first].set == s &&
            trp_health_at(s->health, x->id.n, x->host) == TRP_HEALTH_OUT)
            trp_attempts_recall(e, x);
}

void trp_exclusion_failed(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                          uint32_t executor, const char *why)
{
    trp_set_liven(s);
    if (trp_health_failed(&e->config.exclusion, &s->health, e->now, task, executor,
                          e->executors[executor]->host, why) < 0)
        e->out_of_memory = true;
    recall_excluded(e, s);
}

void trp_exclusion_set_succeeded(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_health_news news = {0};
    if (trp_health_succeeded(e->tracker, e->now, s->health, &news) < 0)
        e->out_of_memory = true;
    take_news(e, &news, true);
}

void trp_exclusion_fetch_failed(struct trp_engine *e, uint32_t executor)
{
    struct trp_health_news news = {0};
    const struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executor});
    if (!e->tracker || !x || !x->came)
        return;
    if (trp_health_fetch_failed(e->tracker, e->now, executor, x->host,
                                e->config.host_files, &news) < 0)
        e->out_of_memory = true;
    take_news(e, &news, true);
}

void trp_exclusion_expire(struct trp_engine *e)
{
    struct trp_health_news news = {0};
    if (!e->tracker || e->now < trp_health_next_expiry(e->tracker))
        return;
    trp_health_expire(e->tracker, e->now, &news);
    take_news(e, &news, false);
}

/* ---- stuck sets ---- */

static void stick(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    s->abort_at = e->now + e->config.exclusion.unschedulable_ns;
    s->abort_after = s->class->came;
    s->abort_task = task;
    LL_PREPEND2(e->stuck, s, stuck_next);
    trp_ramp_stuck(e, s, true);
    e->any_dirty = true;
}

void trp_exclusion_not_stuck(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->abort_at == INT64_MAX)
        return;
    LL_DELETE2(e->stuck, s, stuck_next);
    trp_ramp_stuck(e, s, false);
    s->abort_at = INT64_MAX;
}

/* They may be as stuck as before: Spark looks again with its next full round, at most
 * a second later. */
void trp_exclusion_none_stuck(struct trp_engine *e)
{
    while (e->stuck)
        trp_exclusion_not_stuck(e, e->stuck);
    e->any_dirty = true;
    if (e->locality_due > e->now + REVIVE_NS)
        e->locality_due = e->now + REVIVE_NS;
}

static void abort_unschedulable(struct trp_engine *e, struct trp_task_set *s,
                                uint32_t task)
{
    char text[512];
    trp_health_nowhere(s->health, task, s->stage->id.n, s->stage_attempt, text,
                       sizeof(text));
    trp_set_abort(e, s, TRP_EFAILED, task, text);
}

/* Where the pending task that would be next stands on the list of all, from its top;
 * the number of entries up to it, 0: nowhere. Entries above it are stale. */
static uint32_t find_next(const struct trp_task_set *s)
{
    const struct trp_stack *all = &s->lists.all;
    for (uint32_t n = s->pending ? all->n : 0; n > 0; n--) {
        const struct trp_task *t = &s->tasks[all->v[n - 1]];
        if (t->grown == s->grown && trp_task_is_pending(t))
            return n;
    }
    return 0;
}

uint32_t trp_exclusion_next(const struct trp_task_set *s)
{
    uint32_t n = find_next(s);
    return n ? s->lists.all.v[n - 1] : TRP_NONE;
}

/* The same; of real runs the stale entries are dropped, so that each is passed once. */
static uint32_t next_pending(const struct trp_engine *e, struct trp_task_set *s)
{
    uint32_t n = find_next(s);
    if (s->pending && !e->sched_alone)
        s->lists.all.n = n;
    return n ? s->lists.all.v[n - 1] : TRP_NONE;
}

static bool may_run_on(const struct trp_task_set *s, uint32_t task,
                       const struct trp_executor *x)
{
    return !x->excluded &&
           trp_health_at(s->health, x->id.n, x->host) != TRP_HEALTH_OUT &&
           !trp_health_task_out(s->health, task, x->id.n, x->host);
}

/* Is every executor excluded for the task? Of real runs those of its class
 * count that may still get something. */
static bool is_stuck(const struct trp_engine *e, const struct trp_task_set *s,
                     uint32_t task, struct trp_executor **ret_idle)
{
    bool any = false;
    *ret_idle = NULL;
    if (!s->health && trp_health_next_expiry(e->tracker) == INT64_MAX)
        return false; /* nothing is excluded */
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        struct trp_executor *x = trp_executor_at(e, i);
        if (!x || !x->came || x->state == TRP_EXECUTOR_RELEASING)
            continue;
        if (!e->sched_alone && (e->classes[x->class] != s->class ||
                                x->state == TRP_EXECUTOR_DECOMMISSIONED))
            continue;
        if (may_run_on(s, task, x))
            return false;
        any = true;
        if (!*ret_idle && !x->nrunning)
            *ret_idle = x;
    }
    return any;
}

bool trp_exclusion_is_stuck(const struct trp_engine *e, const struct trp_task_set *s)
{
    struct trp_executor *idle;
    uint32_t task = trp_exclusion_next(s);
    return task != TRP_NONE && is_stuck(e, s, task, &idle);
}

bool trp_exclusion_any_stuck(const struct trp_engine *e, const struct trp_class *c)
{
    const struct trp_task_set *s = e->stuck;
    while (s && s->class != c)
        s = s->stuck_next;
    return s;
}

TRP_RARE void trp_exclusion_check_stuck(struct trp_engine *e, struct trp_task_set *s,
                                        const struct trp_executor *x)
{
    struct trp_executor *idle;
    uint32_t task = next_pending(e, s);
    if (s->zombie || task == TRP_NONE || (x && may_run_on(s, task, x)) ||
        !is_stuck(e, s, task, &idle))
        return;
    if (!idle && !e->dynamic) {
        abort_unschedulable(e, s, task);
        return;
    }
    if (s->abort_at != INT64_MAX)
        return;
    if (idle)
        kill_executor(e, idle);
    stick(e, s, task);
}

/* ---- time ---- */

int64_t trp_exclusion_due(const struct trp_engine *e)
{
    int64_t due = e->sched_alone ? INT64_MAX : trp_health_next_expiry(e->tracker);
    for (const struct trp_task_set *s = e->stuck; s; s = s->stuck_next)
        due = trp_earlier(due, s->abort_at);
    return due;
}

bool trp_exclusion_awaits(const struct trp_engine *e, const struct trp_task_set *s)
{
    return !e->sched_alone && s->class->requested.n && s->class->came == s->abort_after;
}

void trp_exclusion_time(struct trp_engine *e)
{
    for (struct trp_task_set *s = e->stuck, *next; s; s = next) {
        next = s->stuck_next;
        if (s->abort_at > e->now)
            continue;
        if (trp_exclusion_awaits(e, s))
            s->abort_at = e->now + e->config.exclusion.unschedulable_ns;
        else
            abort_unschedulable(e, s, s->abort_task);
    }
    if (!e->tracker || e->sched_alone || e->now < trp_health_next_expiry(e->tracker))
        return;
    trp_exclusion_expire(e);
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i] && e->classes[i]->free && e->classes[i]->first)
            trp_round_full(e, e->classes[i]);
}
