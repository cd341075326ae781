/*
 * Performing what the engine decided. Every event goes through trp_driver_step, which
 * takes all actions that follow at once, in order; actions may themselves lead to
 * events (a stage asked for its tasks), which are stepped when the actions before them
 * are done.
 */
#include "driver/perform.h"

void trp_perform_out_of_memory(trp_driver *d)
{
    trp_driver_stop(d, TRP_ESYSTEM, true, "out of memory in the driver");
}

static void perform(trp_driver *d, const struct trp_action *a)
{
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED:
        trp_perform_job_started(d, a->job);
        break;
    case TRP_ACTION_PROFILE_ADDED:
        trp_perform_profile_added(d, a->profile);
        break;
    case TRP_ACTION_STAGE_READY:
        trp_perform_stage_ready(d, a->stage);
        break;
    case TRP_ACTION_STAGE_SUBMITTED:
        trp_perform_stage_submitted(d, a->stage);
        break;
    case TRP_ACTION_LAUNCH:
        trp_perform_launch(d, a);
        break;
    case TRP_ACTION_GANG:
        trp_perform_gang(d, a);
        break;
    case TRP_ACTION_SYNCED:
        trp_perform_synced(d, a);
        break;
    case TRP_ACTION_KILL:
        trp_perform_kill(d, a);
        break;
    case TRP_ACTION_TASK_END:
        trp_perform_task_end(d, a);
        break;
    case TRP_ACTION_STAGE_ENDED:
        trp_perform_stage_ended(d, a);
        break;
    case TRP_ACTION_JOB_ENDED:
        trp_perform_job_ended(d, a);
        break;
    case TRP_ACTION_JOB_DRAINS:
        trp_perform_job_drains(d, a->stage);
        break;
    case TRP_ACTION_START_EXECUTOR:
        trp_record_start(d, a->executor.executor, a->executor.profile,
                         a->executor.ahead, a->executor.not_on);
        break;
    case TRP_ACTION_NEED_EXECUTOR:
        trp_record_tell(d, a->executor.executor, d->cluster->ops->batch.needed_now);
        break;
    case TRP_ACTION_MAY_ADD:
        trp_record_tell(d, a->executor.executor, d->cluster->ops->batch.may_add);
        break;
    case TRP_ACTION_ASK_WAIT:
        if (d->cluster->ops->batch.ask_wait)
            d->cluster->ops->batch.ask_wait(
                d->cluster, trp_profiles_get(d->profiles, a->wait.profile),
                a->wait.executors);
        break;
    case TRP_ACTION_STAGE_CHECK:
        trp_driver_check_stage(d, a->stage);
        break;
    case TRP_ACTION_RELEASE_EXECUTOR:
        trp_record_release(d, a->executor.executor);
        break;
    case TRP_ACTION_RELABEL_EXECUTOR:
        trp_record_relabel(d, a->executor.executor, a->executor.profile);
        break;
    case TRP_ACTION_STAGE_RETRIED:
        trp_perform_stage_retried(d, a);
        break;
    case TRP_ACTION_OUT_OF_TIME:
        trp_driver_out_of_time(d, a);
        break;
    case TRP_ACTION_OUTLIVED:
        trp_driver_outlived(d, a);
        break;
    case TRP_ACTION_SET_ENDED: /* what follows is told by itself */
    case TRP_ACTION_RESUBMITTED:
    case TRP_ACTION_SPECULATABLE:
        break;
    case TRP_ACTION_TASK_GIVEN_UP:
        trp_perform_task_given_up(d, a);
        break;
    case TRP_ACTION_EXCLUDED:
        trp_perform_excluded(d, a);
        break;
    }
}

int trp_driver_try_step(trp_driver *d, const struct trp_event *ev, trp_error *err)
{
    d->steps++;
    trp_error own; /* not cleared: this is called a million times a second */
    int rc = d->trace ? trp_engine_trace_step(d->trace, d->engine, d->now, ev,
                                              err ? err : &own)
                      : trp_engine_step(d->engine, d->now, ev, err ? err : &own);
    if (rc == TRP_ENOMEM)
        trp_perform_out_of_memory(d);
    return rc;
}

void trp_driver_step(trp_driver *d, const struct trp_event *ev)
{
    if (trp_driver_try_step(d, ev, NULL) == 0)
        trp_driver_perform(d);
}

void trp_driver_perform(trp_driver *d)
{
    if (d->performing)
        return;
    d->performing = true;
    const struct trp_action *a;
    while ((a = trp_engine_next(d->engine))) {
        if (d->trace)
            trp_engine_trace_action(d->trace, a);
        perform(d, a);
    }
    d->performing = false;
    if (d->unsettled)
        trp_driver_settle(d);
}
