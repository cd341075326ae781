/*
 * The life of task sets: submitted, offered in order, finished, given up or replaced,
 * and freed when nothing of them runs any more.
 *
 * A set that has ended in any way is a *zombie*: it is in no order, launches nothing,
 * and lives until its last attempt has ended (and the step with it, so that no pointer
 * of the step goes stale). How it ended is reported once.
 *
 * Order. Every class lists its sets that have something to launch by job, stage and
 * attempt: FIFO for nothing. With FAIR pools the same sets stand in the pools as well
 * (pools.h), which then give the order.
 */
#include <utlist.h>

#include "core/engine_state.h"
#include "core/limits.h"

/* ---- order ---- */

bool trp_task_set_before(const struct trp_task_set *a, const struct trp_task_set *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->stage->id.n < b->stage->id.n;
}

void trp_task_set_list(struct trp_engine *e, struct trp_task_set *s)
{
    struct trp_class *c = s->class;
    e->listings++;
    trp_set_liven(s);
    if (s->listed)
        return;
    c->nlisted++;
    c->lively = s;
    /* New sets mostly go last. */
    struct trp_task_set *after = c->first ? c->first->prev : NULL;
    while (after && trp_task_set_before(s, after))
        after = after == c->first ? NULL : after->prev;
    DL_APPEND_ELEM(c->first, after, s);
    s->listed = true;
    if (e->pools)
        trp_pools_list(e->pools, &s->pool_place);
}

void trp_task_set_unlist(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s->listed)
        return;
    trp_set_liven(s);
    s->class->nlisted--;
    if (s->class->lively == s)
        s->class->lively = NULL;
    DL_DELETE(s->class->first, s);
    s->next = NULL;
    s->listed = false;
    if (e->pools)
        trp_pools_unlist(e->pools, &s->pool_place);
}

/* ---- submission ---- */

void trp_set_count_in(struct trp_class *c, struct trp_task_set *s)
{
    c->sets++;
    DL_APPEND2(c->all, s, class_prev, class_next);
}

/* The set joins its class: what it wants of executors is counted from now on. */
static void join_class(struct trp_engine *e, struct trp_task_set *set,
                       struct trp_class *c)
{
    const struct trp_stage *s = set->stage;
    set->class = c;
    trp_set_count_in(c, set);
    set->is_bounded = s->max_running || s->min_executors || s->max_executors;
    trp_ramp_set(e, set);
    if (!set->is_bounded) {
        c->open += set->pending;
        return;
    }
    DL_PREPEND2(c->bounded, set, bounded_prev, bounded_next);
}

static void leave_class(struct trp_engine *e, struct trp_task_set *set)
{
    struct trp_class *c = set->class;
    set->zombie = true;
    e->any_dirty = true;
    if (!c)
        return;
    trp_task_set_unlist(e, set);
    trp_keep_gone(e, set);
    trp_ramp_set_done(e, set);
    c->copies -= set->copies;
    c->sets--;
    DL_DELETE2(c->all, set, class_prev, class_next);
    c->set_ended = true;
    c->late = 0;
    if (!set->is_bounded) {
        c->open -= (uint64_t)set->pending + set->running + set->queued + set->copies;
        return;
    }
    DL_DELETE2(c->bounded, set, bounded_prev, bounded_next);
}

void trp_sets_free(struct trp_engine *e)
{
    while (e->sets) {
        struct trp_task_set *s = e->sets;
        e->sets = s->all_next;
        s->stage->set = NULL;
        trp_task_set_free(e, s);
    }
}

static struct trp_class *class_for(struct trp_engine *e, const struct trp_stage *stage)
{
    trp_profile_id class = stage->profile;
    if (trp_profiles_may_run(e->profiles, class, (trp_profile_id){0}))
        class.n = 0;
    return trp_class_of(e, class);
}

static void replace_earlier(struct trp_engine *e, const struct trp_task_set *s)
{
    for (struct trp_task_set *o = e->sets, *next; o; o = next) {
        next = trp_set_after(e, o);
        if (o != s && o->stage->id.n == s->stage->id.n)
            trp_set_zombie(e, o);
    }
}

static void offer_first(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s->pending)
        return;
    if (s->class) {
        trp_task_set_list(e, s);
        if (s->barrier)
            trp_keep_recall(e, s);
        trp_round_full(e, s->class);
    } else if (!e->draining) {
        trp_gang_launch(e, s);
    }
}

/* Has a barrier stage ever slots for all tasks at once, with `most` executors? */
static int check_gang(const struct trp_stage *s, const struct trp_class *c,
                      const struct trp_resource_profile *p, uint32_t most,
                      uint32_t ntasks, trp_error *err)
{
    if (c->fit < most)
        most = c->fit;
    if (s->max_executors && s->max_executors < most)
        most = s->max_executors;
    uint64_t slots = (uint64_t)most * p->slots;
    if (s->max_running && s->max_running < slots)
        slots = s->max_running;
    return ntasks > slots ? trp_limits_barrier(ntasks, slots, p, err) : 0;
}

/* Can an executor (c NULL: the gang) ever be had within the limits, and for a barrier
 * stage slots for all tasks at once? Where executors are a fixed set the stage's gate
 * asks. */
static int check_limits(const struct trp_engine *e, const struct trp_stage *stage,
                        const struct trp_class *c, const struct trp_set_spec *spec,
                        trp_error *err)
{
    const struct trp_resource_profile *p =
        trp_profiles_get(e->profiles, c ? c->profile : stage->profile);
    if (e->config.fixed || e->sched_alone)
        return 0;
    uint32_t most = trp_limits_most(&e->config, p, c ? 0 : stage->ranks, err);
    if (!most)
        return TRP_ENEVER;
    if (!c || !spec->barrier)
        return 0;
    return check_gang(stage, c, p, most, spec->ntasks, err);
}

void trp_sets_check_gangs(struct trp_engine *e, const struct trp_class *c)
{
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, c->profile);
    trp_error text;
    uint32_t most = trp_limits_most(&e->config, p, 0, &text);
    for (struct trp_task_set *s = e->sets, *next; s && !e->config.fixed; s = next) {
        next = trp_set_after(e, s);
        if (s->class == c && s->barrier && !s->zombie && s->pending &&
            check_gang(s->stage, c, p, most, s->ntasks, &text) < 0)
            trp_set_abort(e, s, text.code, TRP_NONE, text.text);
    }
}

struct trp_task_set *trp_set_submit(struct trp_engine *e, struct trp_stage *stage,
                                    const struct trp_set_spec *spec, trp_error *err)
{
    bool gang = stage->kind == TRP_STAGE_GANG;
    struct trp_class *c = gang ? NULL : class_for(e, stage);
    if (c && c->never) {
        trp_error_set(err, TRP_ENEVER, "%s", c->never);
        return NULL;
    }
    if (!c && !gang) {
        trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", spec->ntasks);
        return NULL;
    }
    if (check_limits(e, stage, c, spec, err) < 0)
        return NULL;
    struct trp_task_set *s = trp_task_set_new(e, stage, spec, err);
    if (!s)
        return NULL;
    if (e->pools && c &&
        trp_pools_add(e->pools, &s->pool_place, s, spec->pool, spec->job, stage->id.n,
                      spec->attempt, err) < 0) {
        trp_task_set_free(e, s);
        return NULL;
    }
    DL_PREPEND2(e->sets, s, all_prev, all_next);
    if (spec->attempt || e->sched_alone)
        replace_earlier(e, s);
    stage->set = s;
    trp_stage_tell_submitted(e, stage);
    e->any_dirty = true;
    if (c)
        join_class(e, s, c);
    if (s->durations)
        trp_copies_start(e);
    if (c && c->set_ended && !s->prefer_first) /* it begins on those that stay */
        trp_wanted_narrow(e, c);
    offer_first(e, s);
    return s;
}

/* ---- the end ---- */

void trp_set_bury(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->dead || s->attempts || !s->zombie)
        return;
    if (s->health && s->done == s->ntasks)
        trp_exclusion_set_succeeded(e, s);
    s->dead = true;
    e->unsettled = true;
    LL_PREPEND2(e->dead_sets, s, dead_next);
}

void trp_sets_free_dead(struct trp_engine *e)
{
    while (e->dead_sets && !e->sched_alone) {
        struct trp_task_set *s = e->dead_sets;
        e->dead_sets = s->dead_next;
        DL_DELETE2(e->sets, s, all_prev, all_next);
        if (s->stage->set == s)
            s->stage->set = NULL;
        trp_task_set_free(e, s);
    }
}

/* Makes it a zombie and tells how. */
static void end_set(struct trp_engine *e, struct trp_task_set *s, enum trp_set_end how,
                    uint32_t task, const char *text)
{
    const char *own = *text ? trp_action_text(e, "%s", text) : "";
    struct trp_action *act = trp_action_add(e, TRP_ACTION_SET_ENDED);
    act->set.stage = s->stage->id;
    act->set.stage_attempt = s->stage_attempt;
    act->set.how = how;
    act->set.task = task;
    act->set.text = own;
    for (struct trp_task_set *o = s; o; o = o->overflow) {
        leave_class(e, o);
        trp_exclusion_not_stuck(e, o);
    }
    trp_sync_set_over(e, s);
    trp_set_bury(e, s);
}

void trp_set_zombie(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s->zombie)
        end_set(e, s, TRP_SET_ZOMBIE, TRP_NONE, "");
}

void trp_set_kill(struct trp_engine *e, struct trp_task_set *s)
{
    trp_set_zombie(e, s);
    trp_attempts_kill(e, s);
}

void trp_set_abort(struct trp_engine *e, struct trp_task_set *s, int code,
                   uint32_t task, const char *text)
{
    struct trp_task_set *own = trp_task_set_main(s);
    if (own->zombie)
        return;
    end_set(e, own, TRP_SET_ABORTED, task, text);
    if (!e->sched_alone)
        trp_stage_abort(e, own->stage, code, task, text);
}

TRP_RARE static void finish(struct trp_engine *e, struct trp_task_set *s)
{
    s->told_finished = true;
    if (s->zombie)
        return;
    end_set(e, s, TRP_SET_FINISHED, TRP_NONE, "");
    if (!e->sched_alone)
        trp_stage_check_complete(e, s->stage);
}

void trp_set_check_finished(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->done + s->failed >= s->ntasks && !s->told_finished)
        finish(e, s);
}

TRP_RARE void trp_set_task_elsewhere(struct trp_engine *e, struct trp_task_set *s,
                                     uint32_t task)
{
    struct trp_task *t = &s->tasks[task];
    struct trp_task_set *in = s; /* the set that has it now */
    if (t->flags & TRP_TASK_OVER)
        return;
    for (uint8_t i = 0; i < t->grown; i++)
        in = in->overflow;
    if (t->flags & TRP_TASK_SPECULATABLE)
        trp_copy_unmark(e, in, task);
    trp_task_kill_attempts(e, t);
    if (trp_task_is_pending(t)) {
        trp_task_set_take(e, in, task);
        if (in->class && !in->is_bounded && !in->zombie)
            in->class->open--;
        trp_ramp_tasks(e, in, -1);
    }
    t->flags |= TRP_TASK_DONE;
    t->failures = 0;
    t->losses = t->repeats = 0;
    s->done++;
    e->any_dirty = true;
    trp_set_check_finished(e, s);
}

void trp_set_skip(struct trp_task_set *s, uint32_t task)
{
    struct trp_task *t = &s->tasks[task];
    if (t->flags & TRP_TASK_OVER)
        return;
    t->flags |= TRP_TASK_FAILED;
    s->failed++;
}

void trp_set_unhold(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    struct trp_task *t = &s->tasks[task];
    if (s->zombie || !t->waits_for || --t->waits_for || !trp_task_is_pending(t))
        return;
    trp_task_set_push(e, s, task);
    trp_task_set_recompute(s);
    if (s->pending == 1) { /* nobody has waited for a place until now */
        s->current = 0;
        s->locality_clock_ns = e->now;
    }
    if (s->class && !s->is_bounded)
        s->class->open++;
    trp_ramp_tasks(e, s, 1);
    e->any_dirty = true;
    if (s->class)
        trp_round_full(e, s->class);
    else if (!e->draining)
        trp_gang_launch(e, s);
}
