/*
 * What the cluster tells the driver that is about no executor: jobs and nodes that are
 * had or gone, steps, waits, what the user is to know.
 */
#include "core/alloc/outlook.h"
#include "core/base/time.h"
#include "driver/driver_state.h"
#include "os/clock.h"

void trp_driver_on_notice(void *context, const char *text)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    trp_driver_warn(d, "%s", text);
}

void trp_driver_on_held(void *context)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    for (uint32_t i = 0; i < trp_profiles_count(d->profiles); i++)
        trp_driver_tell_fit(d, trp_profiles_get(d->profiles, (trp_profile_id){i}),
                            NULL);
}

void trp_driver_on_contended(void *context, bool is)
{
    trp_driver *d = context;
    struct trp_event ev = {.kind = TRP_EVENT_CONTENDED, .contended = {is}};
    d->now = trp_clock_ns();
    trp_driver_step(d, &ev);
}

void trp_driver_on_shrunk(void *context, bool planned, const char *text)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    trp_driver_log(d, planned ? "info" : "warning", "%s", text);
    trp_driver_on_held(d);
}

/* Of a program's jobs to come nothing is known. */
bool trp_driver_on_outlook(void *context, struct trp_outlook *ret)
{
    const trp_driver *d = context;
    return d->last_job && !d->stop && trp_engine_outlook(d->engine, ret) == 0;
}

void trp_driver_on_queue_wait(void *context, trp_profile_id profile, int64_t wait_ns)
{
    trp_driver *d = context;
    struct trp_event ev = {
        .kind = TRP_EVENT_QUEUE_WAIT,
        .queue_wait = {.profile = profile, .wait_ns = wait_ns}
    };
    d->now = trp_clock_ns();
    trp_driver_step(d, &ev);
}

void trp_driver_on_nodes(void *context, uint32_t nodes)
{
    trp_driver *d = context;
    trp_event_nodes(d->log, nodes, trp_driver_wall(d, trp_clock_ns()));
}

/* Slurm's times are whole seconds: of those that we know to be later ours count. */
void trp_driver_on_job(void *context, const struct trp_cluster_job_news *news)
{
    trp_driver *d = context;
    int64_t now = trp_driver_wall(d, trp_clock_ns()), at = news->at * TRP_SECOND;
    int64_t asked = news->asked_ns ? trp_driver_wall(d, news->asked_ns) : 0;
    at = at > 0 && at < now ? at : now;
    at = at > asked ? at : asked;
    switch (news->what) {
    case TRP_JOB_QUEUED:
        trp_event_slurm_queued(d->log, news->job, news->profile, asked, now);
        break;
    case TRP_JOB_BEGAN:
        trp_event_slurm_job(d->log, news->job, news->additional, asked, at, now);
        break;
    case TRP_JOB_ENDED:
        trp_event_slurm_ended(d->log, news->job, at, now);
    }
}

void trp_driver_on_step(void *context, const struct trp_cluster_step *step)
{
    trp_driver *d = context;
    trp_event_slurm_step(d->log, step->job, step->name, step->gang,
                         step->gang ? trp_attempt_number(step->attempt)
                                    : step->executor.n,
                         trp_driver_wall(d, trp_clock_ns()));
}
