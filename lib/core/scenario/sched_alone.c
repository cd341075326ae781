/*
 * Stages without jobs, executors by reserved numbers, and rounds over executors that
 * the caller names. Those of real runs (sched/rounds.c) visit only executors with free
 * cores and skip passes that can launch nothing.
 */
#include "core/scenario/sched_alone.h"

#include <string.h>

int trp_sched_alone_begin(trp_engine *e, const struct trp_pool_spec *pools,
                          uint32_t npools, bool manual_start, trp_error *err)
{
    enum trp_pool_mode mode = e->config.fair ? TRP_POOL_FAIR : TRP_POOL_FIFO;
    trp_pools *p;
    int rc = trp_pools_new(mode, pools, npools, &p, err);
    if (rc < 0)
        return rc;
    trp_pools_free(e->pools);
    e->pools = p;
    e->sched_alone = true;
    e->manual_start = manual_start;
    e->config.fixed = true;
    e->config.queue_ahead_ns = 0;
    return 0;
}

/* Stages of which nothing is known but a number. */
static struct trp_stage *bare_stage(trp_engine *e, uint32_t number,
                                    trp_profile_id profile)
{
    for (struct trp_task_set *s = e->sets; s; s = s->all_next)
        if (s->stage->id.n == number && s->stage->profile.n == profile.n)
            return s->stage;
    struct trp_stage *stage = calloc(1, sizeof(*stage));
    if (!stage || !TRP_ARRAY_GROW(e->stages, e->nstages, e->stages_cap)) {
        free(stage);
        return NULL;
    }
    stage->id.n = number;
    stage->profile = profile;
    stage->dataset = stage->shuffle = stage->last_failed = TRP_NONE;
    e->stages[e->nstages++] = stage;
    return stage;
}

struct trp_task_set *trp_sched_alone_submit(trp_engine *e, uint32_t stage,
                                            trp_profile_id profile,
                                            const struct trp_set_spec *spec,
                                            trp_error *err)
{
    struct trp_stage *at = bare_stage(e, stage, profile);
    if (!at) {
        trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
        return NULL;
    }
    at->ntasks = spec->ntasks;
    return trp_set_submit(e, at, spec, err);
}

uint32_t trp_sched_alone_reserve(trp_engine *e)
{
    if (!TRP_ARRAY_GROW(e->executors, e->nexecutors, e->executors_cap))
        return TRP_NONE;
    e->executors[e->nexecutors] = NULL;
    return e->nexecutors++;
}

int trp_sched_alone_add(trp_engine *e, int64_t now_ns, uint32_t executor,
                        trp_profile_id profile, const struct trp_event *added,
                        trp_error *err)
{
    uint32_t host = trp_hosts_intern(&e->hosts, added->added.host, added->added.rack);
    struct trp_class *c = trp_class_of(e, profile);
    if (host == TRP_NONE || !c)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    if (e->executors[executor])
        return trp_error_set(err, TRP_EEXIST, "it is there already");
    if (trp_health_executor_excluded(e->tracker, executor))
        return trp_error_set(err, TRP_ESTATE, "it is excluded");
    if (trp_health_node_excluded(e->tracker, host))
        return trp_error_set(err, TRP_ESTATE, "host %s is excluded", added->added.host);
    if (!trp_executor_new_as(e, c, executor))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    int rc = trp_engine_step(e, now_ns, added, err);
    struct trp_executor *x = e->executors[executor];
    if (rc < 0) {
        trp_executor_remove(e, x);
        return rc;
    }
    /* By hand one may have none; an event without cores means those of the profile. */
    x->cores = x->cores_free = added->added.cores;
    trp_executor_set_free(e, x);
    return 0;
}

static int check_tracker(const trp_engine *e, trp_error *err)
{
    return e->tracker ? 0
                      : trp_error_set(err, TRP_ESTATE,
                                      "excludeOnFailure.enabled is false: nothing can "
                                      "be excluded");
}

int trp_sched_alone_exclude_executor(trp_engine *e, uint32_t executor, trp_error *err)
{
    const struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executor});
    int rc = check_tracker(e, err);
    if (rc == 0)
        rc = trp_health_exclude_executor(e->tracker, e->now, executor,
                                         x ? x->host : TRP_NONE);
    if (rc == 0)
        trp_exclusion_refresh(e);
    return rc;
}

int trp_sched_alone_exclude_host(trp_engine *e, const char *host, trp_error *err)
{
    int rc = check_tracker(e, err);
    uint32_t n = rc == 0 ? trp_hosts_intern(&e->hosts, host, NULL) : TRP_NONE;
    if (rc == 0 && n == TRP_NONE)
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for a host");
    if (rc == 0)
        rc = trp_health_exclude_node(e->tracker, e->now, n);
    if (rc == 0)
        trp_exclusion_refresh(e);
    return rc;
}

void trp_sched_alone_started(trp_engine *e, uint32_t slot)
{
    e->attempts.v[slot].flags &= (uint8_t)~TRP_ATTEMPT_LAUNCHING;
}

/* ---- rounds over named executors ---- */

struct offers {
    struct trp_executor **v;
    uint32_t n;
};

static bool may_run(const struct trp_engine *e, const struct trp_task_set *s,
                    const struct trp_executor *x)
{
    return trp_profiles_may_run(e->profiles, s->profile->id,
                                (trp_profile_id){x->class});
}

static uint32_t pass_executors(struct trp_engine *e, struct trp_task_set *s,
                               const struct offers *o, enum trp_level level,
                               struct trp_visit *v)
{
    uint32_t launched = 0;
    for (uint32_t i = 0; i < o->n; i++)
        if (may_run(e, s, o->v[i]))
            launched += trp_offer(e, s, o->v[i], level, v) > 0;
    return launched;
}

static bool has_room_for_all(const struct trp_engine *e, const struct trp_task_set *s,
                             const struct offers *o)
{
    uint64_t room = 0;
    for (uint32_t i = 0; i < o->n && room < s->ntasks; i++)
        if (may_run(e, s, o->v[i]))
            room += trp_barrier_fits(e, s, o->v[i]);
    return room >= s->ntasks;
}

static void visit_set(struct trp_engine *e, struct trp_task_set *s,
                      const struct offers *o, bool full)
{
    struct trp_visit v = {.full = full, .best = TRP_LEVELS, .together = s->barrier};
    if (s->barrier && !has_room_for_all(e, s, o))
        return;
    uint8_t levels[TRP_LEVELS], n = s->nlevels;
    memcpy(levels, s->levels, sizeof(levels));
    for (uint8_t i = 0; i < n; i++)
        while (pass_executors(e, s, o, levels[i], &v) > 0)
            ;
    trp_visit_finish(e, s, &v, NULL);
    if (s->barrier)
        trp_barrier_finish(e, s, v.launched);
}

int trp_sched_alone_round(trp_engine *e, const uint32_t *executors, uint32_t n,
                          bool full, trp_error *err)
{
    struct offers o = {.v = malloc((n ? n : 1) * sizeof(struct trp_executor *))};
    bool *first = malloc(e->nclasses ? e->nclasses : 1);
    if (!o.v || !first) {
        free(o.v);
        free(first);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u offers", n);
    }
    memset(first, true, e->nclasses);
    trp_exclusion_expire(e);
    for (uint32_t i = 0; i < n; i++) {
        struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executors[i]});
        if (x && x->state == TRP_EXECUTOR_LIVE && !x->excluded)
            o.v[o.n++] = x;
    }
    for (struct trp_task_set *s = trp_pools_first(e->pools); s;
         s = trp_pools_next(e->pools))
        if (!e->gated && !s->zombie && (s->lists.all.n || s->copy_lists.all.n)) {
            visit_set(e, s, &o, full);
            trp_keep_behind(e, s, &first[s->class->profile.n]);
        }
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            e->classes[i]->keeper = NULL;
    free(first);
    free(o.v);
    return e->out_of_memory
               ? trp_error_set(err, TRP_ENOMEM, "out of memory for a round")
               : 0;
}
