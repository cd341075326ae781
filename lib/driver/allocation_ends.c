/*
 * The ends of allocations, as Slurm has them; they may be moved while the
 * run goes on. That of an additional job is its executors'; the driver's own is the
 * run's.
 *
 * RESERVE_NS before it the run stops, so that there is time to end commands (SIGTERM,
 * SIGKILL 5 s later), to give everything back and to close the event log before Slurm
 * does it. Of a job that is short in itself that is a quarter at most.
 */
#include <stdio.h>

#include "driver/moving.h"
#include "os/clock.h"

#define RESERVE_NS (20 * TRP_SECOND)

void trp_driver_ends(void *context, int64_t when)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    int64_t left = when * TRP_SECOND - trp_clock_wall_ns();
    int64_t reserve = left / 4 < RESERVE_NS ? left / 4 : RESERVE_NS;
    d->ends_wall = when;
    d->time_up = when ? d->now + left - reserve : INT64_MAX;
    struct trp_event ev = {
        .kind = TRP_EVENT_ENDS, .ends = {.executor = {TRP_NONE}, .at_ns = d->time_up}
    };
    trp_driver_step(d, &ev);
}

void trp_driver_executor_ends(void *context, trp_executor_id executor, int64_t when)
{
    trp_driver *d = context;
    d->now = trp_clock_ns();
    int64_t left = when * TRP_SECOND - trp_clock_wall_ns();
    struct trp_event ev = {
        .kind = TRP_EVENT_ENDS,
        .ends = {.executor = executor, .at_ns = when ? d->now + left : INT64_MAX}
    };
    struct trp_executor_record *x = trp_record_of(d, executor.n);
    if (x)
        trp_driver_goes_at(d, x, ev.ends.at_ns);
    trp_driver_step(d, &ev);
}

void trp_driver_outlived(trp_driver *d, const struct trp_action *a)
{
    const struct trp_executor_record *x = trp_record_of(d, a->outlived.executor.n);
    if (!x || !d->cluster)
        return;
    trp_driver_log(
        d, "info",
        "executor %u on %s is replaced: its Slurm job ends before tasks of %.3g s "
        "(median) would",
        x->id.n, x->host ? x->host : "?", (double)a->outlived.takes_ns / 1e9);
    if (d->cluster->ops->batch.outlived)
        d->cluster->ops->batch.outlived(d->cluster, x->id, a->outlived.takes_ns);
}

/* Not at once: an action is being performed. */
void trp_driver_out_of_time(trp_driver *d, const struct trp_action *a)
{
    const struct trp_driver_stage *s = trp_driver_stage_of(d, a->out_of_time.stage);
    snprintf(
        d->out_of_time, sizeof(d->out_of_time),
        "time is up: the tasks of stage %.200s take %.0f s (median), and %.0f s are "
        "left before the Slurm job's end",
        s ? s->name : "?", (double)a->out_of_time.takes_ns / 1e9,
        (double)a->out_of_time.left_ns / 1e9);
}

void trp_driver_check_time(trp_driver *d, int64_t now)
{
    char text[128], at[16] = "";
    time_t when = (time_t)d->ends_wall;
    struct tm tm;
    if (!d->stop && *d->out_of_time)
        trp_driver_stop(d, TRP_ETIME, false, d->out_of_time);
    if (d->stop || now < d->time_up)
        return;
    if (localtime_r(&when, &tm))
        strftime(at, sizeof(at), "%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "time is up: the Slurm job ends at %s", at);
    trp_driver_stop(d, TRP_ETIME, false, text);
    d->kill_at = now;
}
