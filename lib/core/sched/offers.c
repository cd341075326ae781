/*
 * Offers: free resources of an executor meet the pending tasks of a set. Semantics,
 * sections 6 to 8 and 13.
 *
 * One *offer* gives a set at most one task: what fits (ledger), how far from home the
 * clock allows (locality.c), which task (pending.c). A *visit* makes offers to one set
 * level by level, most local first; for each level passes over the executors, one task
 * an executor a pass, until a pass launches nothing; then decides whether the clock
 * starts anew. A *round* visits the sets in order (rounds.c).
 */
#include "core/engine_state.h"

#include <string.h>

/* ---- attempts ---- */

static void begin_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    s->tasks[task].flags &= (uint8_t)~TRP_TASK_SPECULATABLE;
    s->copies--;
    trp_wanted_copy(e, s, task, -1);
    if (!trp_set_has_work(s) && !e->sched_alone)
        trp_task_set_unlist(e, s);
}

uint32_t trp_attempt_make(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                          enum trp_level level, bool copy)
{
    uint32_t slot = trp_attempt_new(e);
    if (slot == TRP_NONE)
        return TRP_NONE;
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task *t = &s->tasks[task];
    if (t->attempt == TRP_NONE) {
        trp_task_set_take(e, s, task);
        t->attempt = slot;
    } else {
        e->attempts.v[t->attempt].twin = slot;
    }
    if (copy) {
        begin_copy(e, s, task);
        a->flags = TRP_ATTEMPT_COPY;
    }
    if (e->manual_start)
        a->flags |= TRP_ATTEMPT_LAUNCHING;
    a->set = s;
    a->task = task;
    a->number = t->attempts++;
    a->level = (uint8_t)level;
    a->launched_ns = e->now;
    trp_task_set_main(s)->attempts++;
    trp_dag_attempt_began(e, s->stage);
    e->launches++;
    return slot;
}

void trp_attempt_unlink(struct trp_engine *e, struct trp_task *t, uint32_t slot)
{
    uint32_t next = e->attempts.v[slot].twin;
    if (t->attempt == slot)
        t->attempt = next;
    else
        e->attempts.v[t->attempt].twin = next;
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

void trp_attempt_launch(struct trp_engine *e, struct trp_executor *x, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    trp_set_began(e, a->set);
    trp_ramp_started(e, a);
    trp_executor_attach(e, x, slot, false);
    trp_action_launch(e, a, slot);
}

/* ---- one offer ---- */

bool trp_offer_fits(const struct trp_engine *e, const struct trp_task_set *s,
                    const struct trp_executor *x, struct trp_grant *grants, int *ret_n)
{
    *ret_n = 0;
    if (x->cores_free < s->profile->task_cpus)
        return false;
    if (!s->takes_custom)
        return true;
    *ret_n = trp_ledger_propose(x->ledger, s->profile, e->config.pack, grants,
                                TRP_GRANTS_MAX - 1);
    return *ret_n >= 0;
}

/* Section 7.4's old rule. */
static void reset_at_launch(struct trp_engine *e, struct trp_task_set *s,
                            enum trp_level level)
{
    s->locality_clock_ns = e->now;
    s->current = 0;
    while (s->levels[s->current] < level)
        s->current++;
}

/* Spark looks at its list of all pending tasks, which may still name some that are
 * not; scenarios do so too. */
static bool seems_pending(const struct trp_engine *e, const struct trp_task_set *s)
{
    if (e->sched_alone)
        return s->lists.all.n || s->copy_lists.all.n;
    return trp_set_has_work(s);
}

/* All in one piece: this is what a launch costs. */
__attribute__((flatten)) int trp_offer(struct trp_engine *e, struct trp_task_set *s,
                                       struct trp_executor *x, enum trp_level max,
                                       struct trp_visit *v)
{
    struct trp_grant grants[TRP_GRANTS_MAX];
    int ngrants;
    if (!trp_offer_fits(e, s, x, grants, &ngrants) ||
        trp_health_at(s->health, x->id.n, x->host) == TRP_HEALTH_OUT)
        return -1;
    if (s->class->keeper && trp_keep_refuses(e, s->class->keeper, s, x))
        return -1;
    if (e->has_ends && trp_ends_refuse(e, s, x))
        return -1;
    enum trp_level level = s->prefer_first ? trp_task_set_allowed(e, s, max) : max;
    enum trp_level at;
    bool copy;
    uint32_t task = TRP_NONE;
    if (level + 1U != v->vain)
        task = trp_task_set_pick(e, s, x, level, &at, &copy);
    uint32_t slot =
        task == TRP_NONE ? TRP_NONE : trp_attempt_make(e, s, task, at, copy);
    if (slot == TRP_NONE) {
        if (v->one)
            v->vain = (uint8_t)(level + 1);
        if (max == TRP_ANY && seems_pending(e, s))
            v->rejected = true;
        return 0;
    }
    struct trp_attempt *a = &e->attempts.v[slot];
    a->executor = x->id.n;
    if (ngrants && (!grants_keep(a, grants, (uint32_t)ngrants) ||
                    trp_ledger_take(x->ledger, grants, (uint32_t)ngrants) < 0))
        e->out_of_memory = true;
    x->cores_free -= s->profile->task_cpus;
    if (!v->together)
        trp_attempt_launch(e, x, slot);
    if (x->free_next)
        trp_executor_set_free(e, x);
    if (e->config.locality_legacy_reset && max != TRP_NO_PREF)
        reset_at_launch(e, s, at);
    v->launched++;
    if (at < v->best)
        v->best = at;
    return 1;
}

/* ---- after a visit ---- */

static void reset_clock(struct trp_engine *e, struct trp_task_set *s,
                        const struct trp_visit *v)
{
    if (v->rejected) {
        s->nothing_rejected = false;
        enum trp_level level = s->levels[s->current];
        int64_t due = s->locality_clock_ns + e->config.locality_wait_ns[level];
        if (s->current + 1 < s->nlevels && due < e->locality_due)
            e->locality_due = due;
        return;
    }
    if (!v->launched || !(v->full || s->nothing_rejected) ||
        e->config.locality_legacy_reset)
        return;
    s->nothing_rejected = true;
    reset_at_launch(e, s, v->best);
}

void trp_visit_finish(struct trp_engine *e, struct trp_task_set *s,
                      const struct trp_visit *v, const struct trp_executor *x)
{
    reset_clock(e, s, v);
    if (!e->tracker)
        return;
    if (!v->launched && (s->health || !x))
        trp_exclusion_check_stuck(e, s, x);
    else if (v->launched && e->stuck)
        trp_exclusion_none_stuck(e);
}
