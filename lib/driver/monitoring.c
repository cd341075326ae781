#include "driver/monitoring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/array.h"
#include "driver/answers.h"
#include "driver/driver_state.h"
#include "driver/metrics_file.h"
#include "driver/metrics_http.h"
#include "events/metrics.h"
#include "os/clock.h"

enum { FIRST_MS = 1000 };

struct trp_driver_metrics {
    trp_metrics_http *http; /* NULL: it is not wanted, or could not be had */
    trp_metrics_file *file; /* the same */
    uv_timer_t timer;
    bool has_timer, closed, told;
};

/* ---- the text ---- */

struct jobs {
    struct trp_status_job *v;
    uint32_t n, cap;
};

static void take_job(void *context, const struct trp_cluster_job *job)
{
    struct jobs *jobs = context;
    if (TRP_ARRAY_GROW(jobs->v, jobs->n, jobs->cap))
        jobs->v[jobs->n++] = trp_driver_job_status(job);
}

static uint32_t take_stages(const trp_driver *d, struct trp_status_stage **ret)
{
    uint32_t n = 0, left_out, first = trp_status_first(d->nstages, &left_out);
    *ret = calloc(d->nstages - first + 1, sizeof **ret);
    for (uint32_t i = first; *ret && i < d->nstages; i++)
        n += trp_driver_stage_status(d, i, *ret + n);
    return n;
}

/* Profiles of one name are one here: a metric has each set of labels once. */
static uint32_t take_profiles(const trp_driver *d, struct trp_status_profile **ret)
{
    uint32_t n = 0, profiles = trp_profiles_count(d->profiles);
    *ret = calloc(profiles + 1, sizeof **ret);
    for (uint32_t i = 0; *ret && i < profiles; i++) {
        struct trp_status_profile one;
        uint32_t at = 0;
        if (!trp_driver_profile_status(d, i, &one))
            continue;
        while (at < n && strcmp((*ret)[at].name, one.name) != 0)
            at++;
        if (at == n) {
            (*ret)[n++] = one;
            continue;
        }
        (*ret)[at].up += one.up;
        (*ret)[at].busy += one.busy;
        (*ret)[at].coming += one.coming;
        (*ret)[at].leaving += one.leaving;
    }
    return n;
}

static double cpu_seconds(void)
{
    struct rusage used = {0};
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void put_metrics(const trp_driver *d, bool ended, struct trp_buf *b)
{
    const struct trp_statistics *all = trp_event_log_statistics(d->log);
    struct jobs jobs = {0};
    struct trp_status_stage *stages;
    struct trp_status_profile *profiles;
    struct trp_metrics m = {.run = d->run_name,
                            .name = d->config.app_name,
                            .started = all->first,
                            .ended = ended ? trp_driver_wall(d, trp_clock_ns()) : 0,
                            .driver_cpu = cpu_seconds(),
                            .all = all};
    m.nstages = take_stages(d, &stages);
    m.nprofiles = take_profiles(d, &profiles);
    if (d->cluster && d->cluster->ops->batch.jobs)
        d->cluster->ops->batch.jobs(d->cluster, take_job, &jobs);
    m.stages = stages;
    m.profiles = profiles;
    m.jobs = jobs.v;
    m.njobs = jobs.n;
    trp_metrics_put(b, &m);
    free(stages);
    free(profiles);
    free(jobs.v);
}

static void answer(void *driver, struct trp_buf *ret)
{
    put_metrics(driver, false, ret);
}

/* ---- the file ---- */

static void tell(trp_driver *d, const char *text)
{
    d->now = trp_clock_ns();
    trp_driver_warn(d, "%s; the run goes on without", text);
}

static void write_file(trp_driver *d, bool ended)
{
    struct trp_buf b = {0};
    char why[TRP_ERROR_TEXT];
    put_metrics(d, ended, &b);
    if (b.failed)
        trp_buf_free(&b);
    else
        trp_metrics_file_give(d->metrics->file, &b);
    if (!d->metrics->told &&
        trp_metrics_file_failed(d->metrics->file, why, sizeof why)) {
        d->metrics->told = true;
        if (ended) /* the event log has its last line */
            trp_progress_line(d->progress, trp_clock_ns(), why);
        else
            tell(d, why);
    }
}

static void on_timer(uv_timer_t *timer)
{
    write_file(timer->data, false);
}

static void start_file(trp_driver *d, const char *path)
{
    trp_error err;
    d->metrics->file = trp_metrics_file_new(path, d->run_name, &err);
    if (!d->metrics->file) {
        tell(d, err.text);
        return;
    }
    uv_timer_init(&d->loop, &d->metrics->timer);
    d->metrics->timer.data = d;
    d->metrics->has_timer = true;
    uv_timer_start(&d->metrics->timer, on_timer, FIRST_MS, TRP_METRICS_EVERY_MS);
}

/* ---- life ---- */

static int start_http(trp_driver *d, const char *where, trp_error *err)
{
    d->metrics->http =
        trp_metrics_http_new(&d->loop, d->run_dir, where, answer, d, err);
    if (d->metrics->http || err->code == TRP_EINVAL)
        return d->metrics->http ? 0 : TRP_EINVAL;
    tell(d, err->text);
    return 0;
}

int trp_driver_metrics_start(trp_driver *d, trp_error *err)
{
    const char *file = trp_options_text(d->options, "metrics.file"),
               *where = trp_options_text(d->options, "metrics.listen");
    if (!*file && !*where)
        return 0;
    d->metrics = calloc(1, sizeof *d->metrics);
    if (!d->metrics)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = *where ? start_http(d, where, err) : 0;
    if (code == 0 && *file)
        start_file(d, file);
    return code;
}

void trp_driver_metrics_close(trp_driver *d)
{
    struct trp_driver_metrics *m = d->metrics;
    if (!m || m->closed)
        return;
    m->closed = true;
    trp_metrics_http_close(m->http);
    if (m->has_timer)
        uv_close((uv_handle_t *)&m->timer, NULL);
}

void trp_driver_metrics_end(trp_driver *d)
{
    struct trp_driver_metrics *m = d->metrics;
    if (!m)
        return;
    if (m->file)
        write_file(d, true);
    trp_metrics_file_close(m->file);
    m->file = NULL;
}
