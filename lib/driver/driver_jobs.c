/*
 * What a program does with a driver while it runs: profiles are added, jobs submitted,
 * waited for and cancelled, accumulators made and read.
 *
 * Each call holds the baton, since another thread may run the loop meanwhile. A job's
 * spec is borrowed: only the actions of the step that submits it see it (`submitting`).
 */
#include <string.h>

#include "conf/wording.h"
#include "driver/driver_state.h"
#include "os/clock.h"

static const int64_t QUIET_NS = 100000000; /* nothing was submitted for so long */

struct trp_event trp_driver_fit(const trp_driver *d,
                                const struct trp_resource_profile *p, trp_error *why)
{
    const struct trp_cluster_ops *ops = d->cluster->ops;
    uint32_t n = ops->fit(d->cluster, p, 0, why);
    uint32_t held = ops->batch.held && n ? ops->batch.held(d->cluster, p) : n;
    return (struct trp_event){
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.profile = p->id,
                .executors = n,
                .additional = n > held ? n - held : 0,
                .text = why->text,
                .more = ops->batch.may_add != NULL,
                .hosts = n > held ? 0 : ops->topology(d->cluster)->nhosts}
    };
}

int trp_driver_tell_fit(trp_driver *d, const struct trp_resource_profile *p,
                        trp_error *err)
{
    trp_error why = {0};
    if (!d->cluster)
        return 0;
    struct trp_event ev = trp_driver_fit(d, p, &why);
    trp_driver_step(d, &ev);
    return ev.fit.executors
               ? 0
               : trp_error_set(err, TRP_ENEVER, "profile %s: %s", p->name, why.text);
}

int trp_driver_profile_added(trp_driver *d, trp_profile_id id, trp_error *err)
{
    const struct trp_resource_profile *p = trp_profiles_get(d->profiles, id);
    if (!p)
        return trp_error_set(err, TRP_EINVAL, "no profile %u", id.n);
    trp_driver_enter(d);
    trp_event_profile(d->log, p);
    int rc = trp_driver_tell_fit(d, p, err);
    trp_driver_leave(d);
    return rc;
}

/* With FIFO there are none to share anything, whatever jobs name. */
static int check_pool(const trp_driver *d, const char *pool, trp_error *err)
{
    struct trp_name_list all = {0};
    if (!pool || !d->pools.n)
        return 0;
    for (uint32_t i = 0; i < d->pools.n; i++) {
        if (strcmp(d->pools.specs[i].name, pool) == 0)
            return 0;
        trp_name_list_add(&all, d->pools.specs[i].name);
    }
    return trp_error_set(err, TRP_EINVAL,
                         "unknown pool \"%s\"; the pools are %s "
                         "(scheduler.allocation.file has them)",
                         trp_show(pool).text, all.text);
}

int trp_driver_submit(trp_driver *d, const struct trp_job_spec *spec,
                      const struct trp_work *work, trp_job_id *ret_job, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = spec}};
    int rc = spec->is_dataset ? check_pool(d, spec->pool, err) : 0;
    if (rc < 0)
        return rc;
    trp_driver_enter(d);
    d->submitting = spec;
    d->submitting_work = work;
    ret_job->n = d->njobs;
    rc = trp_driver_try_step(d, &ev, err);
    if (rc == 0)
        trp_driver_perform(d);
    d->submitting = NULL;
    d->active = trp_clock_ns();
    if (d->active - d->looked > QUIET_NS) /* what is to be sent goes first */
        d->looked = d->active;
    trp_driver_leave(d);
    return rc;
}

void trp_driver_stages_changed(trp_driver *d)
{
    if (d->cluster && d->cluster->ops->batch.stages_changed)
        d->cluster->ops->batch.stages_changed(d->cluster);
}

void trp_driver_last_job(trp_driver *d)
{
    trp_driver_enter(d);
    d->last_job = true;
    trp_progress_few_stages(d->progress);
    trp_driver_stages_changed(d);
    trp_driver_leave(d);
}

static int outcome_code(const struct trp_driver_job *j, trp_error *err)
{
    if (j->outcome == TRP_OUTCOME_SUCCEEDED)
        return 0;
    if (err)
        *err = j->err;
    return j->err.code ? j->err.code : TRP_EFAILED;
}

int trp_driver_wait(trp_driver *d, trp_job_id job, trp_error *err)
{
    trp_driver_enter(d);
    struct trp_driver_job *j = job.n < d->njobs ? d->jobs[job.n] : NULL;
    if (!j) {
        trp_driver_leave(d);
        return trp_error_set(err, TRP_ENOENT, "no job %u", job.n);
    }
    while (!j->over)
        trp_driver_turn(d, INT64_MAX);
    int rc = outcome_code(j, err);
    j->told = true;
    trp_driver_settle(d);
    trp_driver_leave(d);
    return rc;
}

static int first_over(const trp_driver *d, const trp_job_id *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (jobs[i].n < d->njobs && (!d->jobs[jobs[i].n] || d->jobs[jobs[i].n]->over))
            return (int)i;
    return TRP_ETIME;
}

int trp_driver_wait_any(trp_driver *d, const trp_job_id *jobs, uint32_t n,
                        int64_t timeout_ns)
{
    trp_driver_enter(d);
    const int64_t until =
        timeout_ns < INT64_MAX - d->now ? d->now + timeout_ns : INT64_MAX;
    int rc = first_over(d, jobs, n);
    while (rc < 0 && d->now < until) {
        trp_driver_turn(d, until);
        rc = first_over(d, jobs, n);
    }
    trp_driver_leave(d);
    return rc;
}

bool trp_driver_over(trp_driver *d, trp_job_id job)
{
    trp_driver_enter(d);
    const struct trp_driver_job *j = job.n < d->njobs ? d->jobs[job.n] : NULL;
    bool over = !j || j->over;
    trp_driver_leave(d);
    return over;
}

void trp_driver_cancel(trp_driver *d, trp_job_id job)
{
    struct trp_event ev = {.kind = TRP_EVENT_CANCEL_JOB, .cancel = {.job = job}};
    trp_driver_enter(d);
    if (job.n < d->njobs && d->jobs[job.n] && !d->jobs[job.n]->over)
        trp_driver_step(d, &ev);
    trp_driver_leave(d);
}

void trp_driver_drop(trp_driver *d, trp_job_id job)
{
    trp_driver_enter(d);
    trp_driver_cancel(d, job);
    if (job.n < d->njobs && d->jobs[job.n])
        d->jobs[job.n]->told = true;
    trp_driver_settle(d);
    trp_driver_leave(d);
}

int trp_driver_cancel_stage(trp_driver *d, const char *name)
{
    int rc = TRP_ENOENT;
    trp_driver_enter(d);
    for (uint32_t i = 0; i < d->nstages; i++) {
        const struct trp_driver_stage *s = d->stages[i];
        struct trp_event ev = {.kind = TRP_EVENT_CANCEL_STAGE,
                               .cancel_stage = {.stage = {i}}};
        if (!s || s->ended || strcmp(s->name, name) != 0)
            continue;
        trp_driver_step(d, &ev);
        rc = 0;
    }
    trp_driver_leave(d);
    return rc;
}

uint32_t trp_driver_accumulator(trp_driver *d, const char *name)
{
    trp_driver_enter(d);
    uint32_t id = trp_accumulators_add(d->accumulators, name);
    trp_driver_leave(d);
    return id;
}

int64_t trp_driver_accumulated(trp_driver *d, uint32_t id)
{
    trp_driver_enter(d);
    int64_t value = trp_accumulators_value(d->accumulators, id);
    trp_driver_leave(d);
    return value;
}

const char *trp_driver_shared(const trp_driver *d)
{
    return d->shared;
}
