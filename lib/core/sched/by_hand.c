/*
 * Task sets by hand (offers.h): stages without jobs, executors by reserved numbers.
 */
#include "core/sched/offers.h"

int trp_offers_manual(trp_engine *e, const struct trp_pool_spec *pools, uint32_t npools,
                      bool manual_start, trp_error *err)
{
    enum trp_pool_mode mode = e->config.fair ? TRP_POOL_FAIR : TRP_POOL_FIFO;
    trp_pools *p;
    int rc = trp_pools_new(mode, pools, npools, &p, err);
    if (rc < 0)
        return rc;
    trp_pools_free(e->pools);
    e->pools = p;
    e->manual = e->bare = true;
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
    e->stages[e->nstages++] = stage;
    return stage;
}

struct trp_task_set *trp_offers_submit(trp_engine *e, uint32_t stage,
                                       trp_profile_id profile,
                                       const struct trp_set_spec *spec, trp_error *err)
{
    struct trp_stage *at = bare_stage(e, stage, profile);
    if (!at) {
        trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
        return NULL;
    }
    at->ntasks = spec->ntasks;
    return trp_set_submit(e, at, spec, err);
}

uint32_t trp_offers_reserve(trp_engine *e)
{
    if (!TRP_ARRAY_GROW(e->executors, e->nexecutors, e->executors_cap))
        return TRP_NONE;
    e->executors[e->nexecutors] = NULL;
    return e->nexecutors++;
}

int trp_offers_add(trp_engine *e, int64_t now_ns, uint32_t executor,
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

int trp_offers_exclude_executor(trp_engine *e, uint32_t executor, trp_error *err)
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

int trp_offers_exclude_host(trp_engine *e, const char *host, trp_error *err)
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

void trp_offers_started(trp_engine *e, uint32_t slot)
{
    e->attempts.v[slot].flags &= (uint8_t)~TRP_ATTEMPT_LAUNCHING;
}
