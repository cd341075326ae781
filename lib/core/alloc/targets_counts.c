/*
 * Stages and tasks as targets see them. A stage attempt knows which of its task numbers
 * have started (a bit each), because what counts as pending is its tasks less the
 * *distinct* ones that started: a copy, or an attempt after a kill, makes no
 * difference. Every call takes the stage's numbers out of its profile's sums, changes
 * them, and puts them back.
 */
#include "core/alloc/targets_state.h"

static struct trp_targets_stage *stage_of(const trp_targets *t, uint32_t stage)
{
    assert(stage < t->nstages && t->stages[stage].used);
    return &t->stages[stage];
}

static uint64_t pending_of(const struct trp_targets_stage *s)
{
    return s->ntasks > s->started.n ? s->ntasks - s->started.n : 0;
}

/* Takes the stage's numbers out of its profile's sums, before they change, … */
static struct trp_targets_profile *leave_sums(trp_targets *t,
                                              const struct trp_targets_stage *s)
{
    struct trp_targets_profile *p = trp_targets_profile_of(t, s->profile);
    p->pending -= pending_of(s);
    p->copies -= s->copies.n;
    p->running -= s->running;
    if (s->at_once)
        p->at_once -= pending_of(s) + s->running;
    t->changed = true;
    return p;
}

/* … and puts them back. */
static void join_sums(struct trp_targets_profile *p, const struct trp_targets_stage *s)
{
    p->pending += pending_of(s);
    p->copies += s->copies.n;
    p->running += s->running;
    if (s->at_once)
        p->at_once += pending_of(s) + s->running;
}

static void backlog(trp_targets *t, struct trp_targets_profile *p, int64_t now)
{
    if (p->deadline == INT64_MAX)
        p->deadline = now + t->config.backlog_ns;
}

static void backlog_is_over(struct trp_targets_profile *p)
{
    p->deadline = INT64_MAX;
    p->to_add = 1;
}

int trp_targets_stage(trp_targets *t, uint32_t profile, uint32_t ntasks, bool at_once,
                      int64_t now_ns, uint32_t *ret_stage)
{
    uint32_t at = t->free;
    if (at == TRP_NONE) {
        if (!TRP_ARRAY_GROW(t->stages, t->nstages, t->stages_cap))
            return TRP_ENOMEM;
        at = t->nstages++;
    } else {
        t->free = t->stages[at].next_free;
    }
    struct trp_targets_profile *p = trp_targets_profile_of(t, profile);
    t->stages[at] = (struct trp_targets_stage){
        .profile = profile, .ntasks = ntasks, .at_once = at_once, .used = true};
    t->initializing = false;
    t->changed = true;
    p->stages++;
    join_sums(p, &t->stages[at]);
    backlog(t, p, now_ns);
    if (!p->in_use)
        trp_targets_begin_use(t, p);
    *ret_stage = at;
    return 0;
}

void trp_targets_tasks(trp_targets *t, uint32_t stage, int by, int64_t now_ns)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = leave_sums(t, s);
    s->ntasks += (uint32_t)by;
    join_sums(p, s);
    if (by > 0)
        backlog(t, p, now_ns);
}

static bool forget_if_unused(trp_targets *t, uint32_t stage)
{
    struct trp_targets_stage *s = &t->stages[stage];
    if (!s->done || s->running)
        return false;
    s->used = false;
    s->next_free = t->free;
    t->free = stage;
    return true;
}

bool trp_targets_stage_done(trp_targets *t, uint32_t stage)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    assert(!s->done);
    struct trp_targets_profile *p = leave_sums(t, s);
    s->done = true;
    s->ntasks = 0;
    trp_bits_free(&s->started);
    trp_bits_free(&s->copies);
    p->unschedulable -= s->unschedulable;
    s->unschedulable = false;
    join_sums(p, s);
    if (--p->stages == 0)
        backlog_is_over(p);
    return forget_if_unused(t, stage);
}

int trp_targets_started(trp_targets *t, uint32_t stage, uint32_t task, bool copy)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = leave_sums(t, s);
    bool failed = false;
    s->running++;
    if (copy)
        trp_bits_remove(&s->copies, task);
    else
        failed = !s->done && trp_bits_put(&s->started, task) < 0;
    join_sums(p, s);
    if (!p->pending && !p->copies)
        backlog_is_over(p);
    return failed ? TRP_ENOMEM : 0;
}

bool trp_targets_ended(trp_targets *t, uint32_t stage, uint32_t task, bool copy,
                       enum trp_targets_end how, int64_t now_ns)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = leave_sums(t, s);
    bool nothing_waits = !(p->pending + pending_of(s)) && !(p->copies + s->copies.n);
    s->running -= s->running > 0;
    if (how == TRP_TARGETS_SUCCESS)
        trp_bits_remove(&s->copies, task);
    /* A task that was killed lost against its copy: it is done. */
    if (how == TRP_TARGETS_FAILED && !copy)
        trp_bits_remove(&s->started, task);
    join_sums(p, s);
    if (how == TRP_TARGETS_FAILED && !s->done && nothing_waits)
        backlog(t, p, now_ns);
    return forget_if_unused(t, stage);
}

void trp_targets_again(trp_targets *t, uint32_t stage, uint32_t task, int64_t now_ns)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = leave_sums(t, s);
    trp_bits_remove(&s->started, task);
    join_sums(p, s);
    backlog(t, p, now_ns);
}

int trp_targets_copy(trp_targets *t, uint32_t stage, uint32_t task, int64_t now_ns)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    if (s->done)
        return 0;
    struct trp_targets_profile *p = leave_sums(t, s);
    bool failed = trp_bits_put(&s->copies, task) < 0;
    join_sums(p, s);
    backlog(t, p, now_ns);
    return failed ? TRP_ENOMEM : 0;
}

void trp_targets_uncopy(trp_targets *t, uint32_t stage, uint32_t task)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = leave_sums(t, s);
    trp_bits_remove(&s->copies, task);
    join_sums(p, s);
}

void trp_targets_unschedulable(trp_targets *t, uint32_t stage, bool is, int64_t now_ns)
{
    struct trp_targets_stage *s = stage_of(t, stage);
    struct trp_targets_profile *p = trp_targets_profile_of(t, s->profile);
    if (s->unschedulable != is)
        p->unschedulable += is ? 1 : UINT32_MAX;
    s->unschedulable = is;
    t->changed = true;
    if (is)
        backlog(t, p, now_ns);
}

bool trp_targets_waits(const trp_targets *t, uint32_t stage)
{
    const struct trp_targets_stage *s = stage_of(t, stage);
    return pending_of(s) > 0 || s->copies.n > 0;
}
