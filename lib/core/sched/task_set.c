/*
 * Making and freeing a task set: the tasks of one attempt of a stage.
 *
 * Tasks stand in one array, made in one go; those that are not done yet are pushed on
 * the pending lists (pending.c) in reverse order, so that the lowest index is on top.
 */
#include <string.h>
#include <utlist.h>

#include "core/engine_state.h"

/* The caller's may be a part of a longer array. */
static bool copy_preferences(struct trp_engine *e, struct trp_task_set *s,
                             const struct trp_preferences *p)
{
    uint32_t from = p->first[0], n = p->first[s->ntasks] - from;
    s->prefer_first = malloc(((size_t)s->ntasks + 1) * sizeof(*s->prefer_first));
    s->preferred = malloc((n ? n : 1) * sizeof(*s->preferred));
    if (!s->prefer_first || !s->preferred)
        return false;
    for (uint32_t i = 0; i <= s->ntasks; i++)
        s->prefer_first[i] = p->first[i] - from;
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_place *place = &p->places[from + i];
        uint32_t host = trp_hosts_intern(&e->hosts, place->host, NULL);
        if (host == TRP_NONE)
            return false;
        s->preferred[i].host = host;
        s->preferred[i].rack = e->hosts.hosts[host].rack.n;
        s->preferred[i].executor = place->executor;
        if (s->preferred[i].executor != TRP_NONE &&
            !trp_pending_add_executor(&s->lists, s->preferred[i].executor))
            return false;
    }
    s->nhosts = e->hosts.nhosts;
    s->nracks = e->hosts.nracks;
    return trp_pending_make(s, &s->lists);
}

/* The common case, written straight down: nobody prefers, is done or waits. */
static bool fill_plain(struct trp_task_set *s)
{
    struct trp_stack *all = &s->lists.all, *no_pref = &s->lists.no_pref;
    uint32_t n = s->ntasks;
    if (!TRP_ARRAY_RESERVE(all->v, all->cap, n) ||
        !TRP_ARRAY_RESERVE(no_pref->v, no_pref->cap, n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        s->tasks[i] = (struct trp_task){.attempt = TRP_NONE};
        all->v[i] = no_pref->v[i] = n - 1 - i;
    }
    s->pending = all->n = no_pref->n = n;
    return true;
}

static bool fill_tasks(struct trp_task_set *s, const uint8_t *done)
{
    if (!s->prefer_first && !done && !s->stage->nparents)
        return fill_plain(s);
    for (uint32_t i = 0; i < s->ntasks; i++)
        s->tasks[i] = (struct trp_task){.attempt = TRP_NONE,
                                        .waits_for = trp_dag_held(s->stage, i)};
    for (uint32_t i = 0; done && i < s->ntasks; i++)
        if (done[i]) {
            s->tasks[i].flags = TRP_TASK_DONE;
            s->done++;
        }
    return trp_pending_fill(s);
}

/* What only some runs keep of each task. */
static bool make_records(const struct trp_engine *e, struct trp_task_set *s)
{
    size_t n = (s->ntasks ? s->ntasks : 1) * sizeof(uint32_t);
    if (s->map && (!e->config.host_files || e->sched_alone)) {
        s->success_executor = malloc(n);
        if (!s->success_executor)
            return false;
        memset(s->success_executor, 0xff, n);
    }
    if (!e->config.speculation.enabled)
        return true;
    s->durations = trp_speculation_new();
    s->past_hosts_first = malloc(n);
    if (!s->durations || !s->past_hosts_first)
        return false;
    memset(s->past_hosts_first, 0xff, n);
    return true;
}

struct trp_task_set *trp_task_set_new(struct trp_engine *e, struct trp_stage *stage,
                                      const struct trp_set_spec *spec, trp_error *err)
{
    const struct trp_preferences *prefer = spec->prefer;
    struct trp_task_set *s = calloc(1, sizeof(*s));
    if (!s)
        goto no_memory;
    s->stage = stage;
    s->profile = trp_profiles_get(e->profiles, stage->profile);
    s->ntasks = spec->ntasks;
    s->stage_attempt = spec->attempt;
    s->arrival = e->sets_made++;
    s->priority = spec->job;
    s->map = spec->map;
    s->barrier = spec->barrier;
    for (uint32_t i = 0; i < s->profile->ncustom; i++)
        s->takes_custom |= s->profile->custom[i].task > 0;
    s->locality_clock_ns = e->now;
    s->abort_at = INT64_MAX;
    s->nothing_rejected = true;
    s->tasks = malloc((s->ntasks ? s->ntasks : 1) * sizeof(*s->tasks));
    if (!s->tasks || !make_records(e, s))
        goto no_memory;
    bool prefers =
        prefer && prefer->first && prefer->first[s->ntasks] > prefer->first[0];
    if (prefers && !copy_preferences(e, s, prefer))
        goto no_memory;
    if (!fill_tasks(s, spec->done))
        goto no_memory;
    if (prefers)
        DL_PREPEND2(e->preferring, s, preferring_prev, preferring_next);
    trp_task_set_levels(e, s);
    return s;
no_memory:
    trp_task_set_free(e, s);
    trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", spec->ntasks);
    return NULL;
}

void trp_task_set_free(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s)
        return;
    trp_task_set_free(e, s->overflow);
    trp_task_set_unlist(e, s);
    trp_exclusion_not_stuck(e, s);
    if (e->pools)
        trp_pools_remove(e->pools, &s->pool_place);
    if (s->preferring_prev)
        DL_DELETE2(e->preferring, s, preferring_prev, preferring_next);
    trp_pending_free(s, &s->lists);
    trp_pending_free(s, &s->copy_lists);
    trp_speculation_free(s->durations);
    trp_speculation_free(s->durations_for_end);
    trp_health_free(s->health);
    free(s->past_hosts_first);
    free(s->past_hosts);
    free(s->success_executor);
    free(s->prefer_first);
    free(s->preferred);
    if (!s->owner)
        free(s->tasks);
    free(s);
}
