/*
 * Why a stage waits: the first reason that blocks it, in the order in which the engine
 * would meet them. One function for progress lines, logs and `troupe plan`.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

static const struct trp_stage *first_blocker(const struct trp_stage *s)
{
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage_link *l = &s->parents[i];
        if (l->waits)
            return l->parent;
    }
    return NULL;
}

static void explain_limit(const struct trp_engine *e, const struct trp_class *c,
                          char *buf, size_t size)
{
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, c->profile);
    int64_t cost[TRP_CAPS];
    uint32_t at = 0;
    trp_caps_cost(&e->caps, p, cost);
    if (trp_caps_room(&e->caps, e->caps_used, cost, &at) > 0)
        snprintf(buf, size, "no executor of profile %s is asked for yet", p->name);
    else
        snprintf(buf, size, "no executor of profile %s: alloc.max_%s (%lld) are in use",
                 p->name, e->caps.name[at], (long long)e->caps.most[at]);
}

static bool explain_executors(const struct trp_engine *e, const struct trp_class *c,
                              char *buf, size_t size)
{
    const char *profile = trp_profiles_get(e->profiles, c->profile)->name;
    if (c->never)
        snprintf(buf, size, "no executor of profile %s can ever be had: %s", profile,
                 c->never);
    else if (c->live)
        return false;
    else if (c->requested)
        snprintf(buf, size, "waiting for an executor of profile %s", profile);
    else if (e->now < c->retry_at)
        snprintf(buf, size,
                 "no executor of profile %s; the last request failed (%s), the next in "
                 "%.0f s",
                 profile, c->start_failure ? c->start_failure : "",
                 (double)(c->retry_at - e->now) / 1e9);
    else
        explain_limit(e, c, buf, size);
    return true;
}

static bool explain_stuck(const struct trp_engine *e, const struct trp_task_set *s,
                          char *buf, size_t size)
{
    if (s->abort_at == INT64_MAX)
        return false;
    snprintf(buf, size,
             "no executor may run task %u, all are excluded after failures "
             "(excludeOnFailure.*); given up in %.0f s",
             s->abort_task, (double)(s->abort_at - e->now) / 1e9);
    return true;
}

static bool explain_barrier(const struct trp_engine *e, const struct trp_task_set *s,
                            char *buf, size_t size)
{
    const struct trp_executor *x = s->class->free;
    uint64_t room = 0;
    if (!s->barrier)
        return false;
    for (uint32_t n = s->class->nfree; n; n--, x = x->free_next)
        room += trp_barrier_room(e, s, x);
    snprintf(buf, size, "a barrier stage needs %u slots at once, %llu are free",
             s->ntasks, (unsigned long long)room);
    return true;
}

static void explain_slots(const struct trp_engine *e, const struct trp_task_set *s,
                          char *buf, size_t size)
{
    const struct trp_class *c = s->class;
    if (explain_stuck(e, s, buf, size) || explain_barrier(e, s, buf, size))
        return;
    if (s->stage->max_running && s->running + s->queued >= s->stage->max_running)
        snprintf(buf, size, "max_running: %u tasks run", s->stage->max_running);
    else if (!c->free)
        snprintf(buf, size, "all cores of %u executors are in use", c->live);
    else if (s->current + 1 < s->nlevels)
        snprintf(buf, size, "waiting %.1f s more for a slot at level %s",
                 (double)(s->last + e->config.locality_wait_ns[s->levels[s->current]] -
                          e->now) /
                     1e9,
                 trp_level_name(s->levels[s->current]));
    else
        snprintf(buf, size, "short of %s", s->profile->limiting);
}

char *trp_engine_why_waiting(const trp_engine *e, trp_stage_id stage, char *buf,
                             size_t size)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    buf[0] = '\0';
    if (!s || s->state == TRP_STAGE_ENDED)
        return buf;
    const struct trp_stage *blocker = first_blocker(s);
    const struct trp_task_set *set = s->set;
    if (blocker)
        snprintf(buf, size, "waiting for stage %s", blocker->name);
    else if (s->failed)
        snprintf(buf, size, "its attempt %u failed, another one follows", s->attempts);
    else if (s->state == TRP_STAGE_ASKED)
        snprintf(buf, size, "its tasks are being listed");
    else if (!set)
        snprintf(buf, size, "nothing of it is to be run now");
    else if (!set->class)
        snprintf(buf, size, "waiting for room for %u ranks", s->ranks);
    else if (!set->pending && set->overflow && set->overflow->pending)
        explain_executors(e, set->overflow->class, buf, size);
    else if (!set->pending)
        snprintf(buf, size, set->running ? "" : "waiting for tasks of its parents");
    else if (!explain_executors(e, set->class, buf, size))
        explain_slots(e, set, buf, size);
    return buf;
}
