/*
 * Overflow sets: where a task goes that was killed for memory (semantics, difference
 * 15, memory_factor).
 *
 * The same stage and stage attempt, a derived profile: memory and overhead times the
 * factor for each time the task was killed, and the cpus of a task raised to the
 * executor's cores, so that the task has an executor to itself. The stage's own set
 * keeps the tasks and what is done and failed; overflow sets, one a step of the factor,
 * share its tasks and have lists of their own. Preferences are dropped: memory decides.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

/* x times the factor, upwards, kept below any sensible machine. */
static int64_t grown(int64_t x, uint32_t factor_ppm)
{
    const int64_t most = INT64_C(1) << 40;
    double y = (double)x * factor_ppm / 1e6;
    return y >= (double)most ? most : (int64_t)y + (y > (double)(int64_t)y);
}

static int derive(struct trp_engine *e, const struct trp_task_set *s,
                  trp_profile_id *ret)
{
    const struct trp_resource_profile *p = s->profile;
    uint32_t factor = s->stage->memory_factor_ppm;
    const char *base = trp_profiles_get(e->profiles, s->stage->profile)->name;
    struct trp_profile_builder b;
    char name[TRP_PROFILE_NAME_MAX + 1];
    uint32_t level = 1;
    for (const struct trp_task_set *o = s->stage->set; o != s; o = o->overflow)
        level++;
    snprintf(name, sizeof(name), "%.50s.memory%u", base, level);
    trp_profile_builder_init(&b, name);
    int rc = trp_profile_builder_executor(&b, "cores", p->cores, NULL);
    if (rc == 0)
        rc = trp_profile_builder_executor(&b, "memory", grown(p->memory_mib, factor),
                                          NULL);
    if (rc == 0)
        rc = trp_profile_builder_executor(&b, "memoryOverhead",
                                          grown(p->overhead_mib, factor), NULL);
    if (rc == 0)
        rc = trp_profile_builder_executor(&b, "offHeap", p->offheap_mib, NULL);
    if (rc == 0 && p->executor.pyspark_mib >= 0)
        rc = trp_profile_builder_executor(&b, "pyspark.memory", p->executor.pyspark_mib,
                                          NULL);
    if (rc == 0)
        rc = trp_profile_builder_task(&b, "cpus", p->cores * TRP_ONE, NULL);
    for (uint32_t i = 0; rc == 0 && i < p->ncustom; i++) {
        if (p->custom[i].on_executor)
            rc = trp_profile_builder_executor(&b, p->custom[i].name,
                                              p->custom[i].executor, NULL);
        if (rc == 0 && p->custom[i].on_task)
            rc = trp_profile_builder_task(&b, p->custom[i].name, p->custom[i].task,
                                          NULL);
    }
    return rc < 0 ? rc : trp_profiles_add(e->profiles, &b, ret, NULL);
}

static struct trp_task_set *overflow_new(struct trp_engine *e, struct trp_task_set *s)
{
    trp_profile_id id;
    struct trp_task_set *o = calloc(1, sizeof(*o));
    if (!o || derive(e, s, &id) < 0) {
        free(o);
        return NULL;
    }
    o->owner = trp_task_set_main(s);
    o->stage = s->stage;
    o->profile = trp_profiles_get(e->profiles, id);
    o->takes_custom = s->takes_custom;
    o->ntasks = s->ntasks;
    o->tasks = s->tasks;
    o->grown = s->grown + 1;
    o->locality_clock_ns = e->now;
    o->abort_at = INT64_MAX;
    o->stage_attempt = s->stage_attempt;
    o->priority = s->priority;
    o->nothing_rejected = true;
    o->levels[o->nlevels++] = TRP_NO_PREF;
    o->levels[o->nlevels++] = TRP_ANY;
    struct trp_class *c = trp_class_of(e, id);
    if (!c) {
        free(o);
        return NULL;
    }
    struct trp_pool_view pool = {.name = NULL};
    if (e->pools)
        trp_pools_view(&s->pool_place, &pool);
    if (e->pools && trp_pools_add(e->pools, &o->pool_place, o, pool.name, o->priority,
                                  o->stage->id.n, o->stage_attempt, NULL) < 0) {
        free(o);
        return NULL;
    }
    trp_action_add(e, TRP_ACTION_PROFILE_ADDED)->profile = id;
    o->class = c;
    trp_set_count_in(c, o);
    trp_ramp_set(e, o);
    s->overflow = o;
    return o;
}

struct trp_task_set *trp_overflow_set(struct trp_engine *e, struct trp_task_set *s)
{
    return s->overflow ? s->overflow : overflow_new(e, s);
}
