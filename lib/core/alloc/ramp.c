/*
 * What happens to task sets, told to the targets of alloc.grow=ramp. A set is a stage
 * attempt there; tasks that are queued ahead have not started.
 */
#include "core/engine_state.h"

/* Do the targets know it? They forget a zombie of which nothing runs, though attempts
 * may be queued. */
static bool is_told(const struct trp_engine *e, const struct trp_task_set *s)
{
    return e->targets && s->class && s->ramp != TRP_NONE;
}

int trp_ramp_check(const struct trp_engine *e, const struct trp_class *c,
                   trp_error *err)
{
    uint64_t n = 0;
    if (!e->targets)
        return 0;
    for (const struct trp_task_set *main = e->sets; main; main = trp_set_after(e, main))
        for (const struct trp_task_set *s = main; s; s = s->overflow) {
            if (s->class != c || s->ramp == TRP_NONE)
                continue;
            n += s->running;
            if (!s->zombie)
                n += (uint64_t)s->pending + s->queued + s->copies;
        }
    uint64_t known = trp_targets_tasks_of(e->targets, c->profile.n);
    return known == n
               ? 0
               : trp_error_set(err, TRP_ESTATE,
                               "profile %u: targets know %llu tasks (counted %llu)",
                               c->profile.n, (unsigned long long)known,
                               (unsigned long long)n);
}

bool trp_ramp_class(struct trp_engine *e, const struct trp_class *c)
{
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, c->profile);
    return !e->targets ||
           trp_targets_profile(e->targets, c->profile.n, p->slots, false) == 0;
}

void trp_ramp_set(struct trp_engine *e, struct trp_task_set *s)
{
    s->ramp = TRP_NONE;
    if (e->targets && trp_targets_stage(e->targets, s->class->profile.n, s->pending,
                                        s->barrier, e->now, &s->ramp) < 0)
        e->out_of_memory = true;
}

void trp_ramp_set_done(struct trp_engine *e, struct trp_task_set *s)
{
    if (is_told(e, s) && trp_targets_stage_done(e->targets, s->ramp))
        s->ramp = TRP_NONE;
}

void trp_ramp_tasks(struct trp_engine *e, struct trp_task_set *s, int by)
{
    if (is_told(e, s) && !s->zombie)
        trp_targets_tasks(e->targets, s->ramp, by, e->now);
}

TRP_RARE void trp_ramp_tell_start(struct trp_engine *e, const struct trp_attempt *a)
{
    if (is_told(e, a->set) && trp_targets_started(e->targets, a->set->ramp, a->task,
                                                  a->flags & TRP_ATTEMPT_COPY) < 0)
        e->out_of_memory = true;
}

TRP_RARE void trp_ramp_tell_end(struct trp_engine *e, const struct trp_attempt *a)
{
    struct trp_task_set *s = a->set;
    if (is_told(e, s) &&
        trp_targets_ended(e->targets, s->ramp, a->task, a->flags & TRP_ATTEMPT_COPY,
                          TRP_TARGETS_KILLED, e->now))
        s->ramp = TRP_NONE;
}

void trp_ramp_again(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    if (is_told(e, s))
        trp_targets_again(e->targets, s->ramp, task, e->now);
}

void trp_ramp_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                   bool wanted)
{
    if (!is_told(e, s))
        return;
    if (!wanted)
        trp_targets_uncopy(e->targets, s->ramp, task);
    else if (trp_targets_copy(e->targets, s->ramp, task, e->now) < 0)
        e->out_of_memory = true;
}

void trp_ramp_stuck(struct trp_engine *e, struct trp_task_set *s, bool is)
{
    if (is_told(e, s) && !s->zombie)
        trp_targets_unschedulable(e->targets, s->ramp, is, e->now);
}
