/*
 * The format wants all lines of a metric together, so each metric is a pass over what it
 * is of: O(metrics × stages told), besides one pass over all stages.
 */
#include "events/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/time.h"
#include "core/base/utf8.h"

/* What is put together: the stages that are told, and how many are not. */
struct put {
    struct trp_buf *b;
    const struct trp_metrics *m;
    uint32_t told[TRP_METRICS_STAGES], ntold;
};

/* ---- lines ---- */

static void put_text(struct trp_buf *b, const char *text)
{
    trp_put_raw(b, text, strlen(text));
}

/* What a label's value may not have as it is: quotes, backslashes, ends of lines, and
 * bytes that are no UTF-8. */
static void put_value(struct trp_buf *b, const char *text)
{
    while (*text) {
        size_t n = trp_utf8_length(text, strnlen(text, 4));
        if (*text == '\\' || *text == '"')
            put_text(b, *text == '"' ? "\\\"" : "\\\\");
        else if (*text == '\n')
            put_text(b, "\\n");
        else if (n)
            trp_put_raw(b, text, n);
        else
            put_text(b, "\xef\xbf\xbd");
        text += n ? n : 1;
    }
}

static void head(struct put *p, const char *name, const char *type, const char *help)
{
    put_text(p->b, "# HELP ");
    put_text(p->b, name);
    put_text(p->b, " ");
    put_text(p->b, help);
    put_text(p->b, "\n# TYPE ");
    put_text(p->b, name);
    put_text(p->b, " ");
    put_text(p->b, type);
    put_text(p->b, "\n");
}

/* A line, with pairs of a label and its value behind the run's, up to a NULL. */
static void line(struct put *p, const char *name, double value, ...)
{
    char number[64];
    const char *label;
    va_list labels;
    put_text(p->b, name);
    put_text(p->b, "{run=\"");
    put_value(p->b, p->m->run);
    va_start(labels, value);
    while ((label = va_arg(labels, const char *))) {
        const char *text = va_arg(labels, const char *);
        put_text(p->b, "\",");
        put_text(p->b, label);
        put_text(p->b, "=\"");
        put_value(p->b, text ? text : "");
    }
    va_end(labels);
    snprintf(number, sizeof number, "\"} %.15g\n", value);
    put_text(p->b, number);
}

static void stage_line(struct put *p, const char *name,
                       const struct trp_status_stage *s, const char *label,
                       const char *text, double value)
{
    char id[16];
    snprintf(id, sizeof id, "%" PRIu32, s->id);
    line(p, name, value, "stage", s->name, "id", id, "profile", s->profile, label, text,
         NULL);
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)TRP_SECOND;
}

/* ---- which stages ---- */

static void choose(struct put *p)
{
    const struct trp_metrics *m = p->m;
    for (uint32_t i = 0; i < m->nstages && p->ntold < TRP_METRICS_STAGES; i++)
        if (!m->stages[i].ended)
            p->told[p->ntold++] = i;
    for (uint32_t i = m->nstages; i-- > 0 && p->ntold < TRP_METRICS_STAGES;)
        if (m->stages[i].ended)
            p->told[p->ntold++] = i;
}

static const struct trp_status_stage *told(const struct put *p, uint32_t i)
{
    return &p->m->stages[p->told[i]];
}

static const struct trp_stage_statistics *
statistics_of(const struct put *p, const struct trp_status_stage *s)
{
    const struct trp_statistics *all = p->m->all;
    return all ? trp_statistics_own(all, s->id) : NULL;
}

/* ---- the run ---- */

static const char *const stage_states[] = {
    "waiting", "ready", "running", "succeeded", "failed", "cancelled", "skipped"};
enum { STATES = sizeof stage_states / sizeof *stage_states };

static void put_stage_states(struct put *p)
{
    uint64_t counts[STATES] = {0};
    for (uint32_t i = 0; i < p->m->nstages; i++)
        for (int s = 0; s < STATES; s++)
            counts[s] += strcmp(p->m->stages[i].state, stage_states[s]) == 0;
    head(p, "troupe_run_stages", "gauge", "Stages of the run by state.");
    for (int s = 0; s < STATES; s++)
        line(p, "troupe_run_stages", (double)counts[s], "state", stage_states[s], NULL);
    head(p, "troupe_run_stages_left_out", "gauge",
         "Stages that have no metrics of their own.");
    line(p, "troupe_run_stages_left_out", (double)(p->m->nstages - p->ntold), NULL);
}

static void put_run_tasks(struct put *p)
{
    uint64_t pending = 0, running = 0, done = 0, given_up = 0, skipped = 0, ran = 0,
             failures = 0;
    for (uint32_t i = 0; i < p->m->nstages; i++) {
        const struct trp_status_stage *s = &p->m->stages[i];
        pending += s->pending;
        running += s->running;
        done += s->done;
        given_up += s->given_up;
        skipped += s->skipped;
        ran += s->ran;
        failures += s->failures;
    }
    head(p, "troupe_run_tasks", "gauge", "Tasks of the run by state.");
    line(p, "troupe_run_tasks", (double)pending, "state", "pending", NULL);
    line(p, "troupe_run_tasks", (double)running, "state", "running", NULL);
    line(p, "troupe_run_tasks", (double)done, "state", "done", NULL);
    line(p, "troupe_run_tasks", (double)given_up, "state", "given_up", NULL);
    line(p, "troupe_run_tasks", (double)skipped, "state", "skipped", NULL);
    head(p, "troupe_run_attempts_total", "counter",
         "Attempts of tasks that have ended, by how.");
    line(p, "troupe_run_attempts_total", (double)ran, "result", "succeeded", NULL);
    line(p, "troupe_run_attempts_total", (double)failures, "result", "failed", NULL);
}

static void put_data(struct put *p)
{
    static const char name[] = "troupe_run_shuffle_bytes_total";
    uint64_t sum[TRP_FLOWS] = {0};
    const struct trp_statistics *all = p->m->all;
    for (uint32_t i = 0; i < all->nstages; i++)
        if (trp_statistics_own(all, i))
            trp_flows_add(sum, all->stages[i]->flow);
    head(p, name, "counter",
         "Bytes between stages: read, of them from other hosts, written, spilled.");
    line(p, name, (double)sum[TRP_FLOW_READ], "direction", "read", NULL);
    line(p, name, (double)sum[TRP_FLOW_REMOTE], "direction", "read_remote", NULL);
    line(p, name, (double)sum[TRP_FLOW_WRITTEN], "direction", "written", NULL);
    line(p, name, (double)sum[TRP_FLOW_SPILLED], "direction", "spilled", NULL);
    head(p, "troupe_run_nodes", "gauge", "Nodes of Slurm's that the run holds.");
    line(p, "troupe_run_nodes", all->nodes, NULL);
}

static void put_run(struct put *p)
{
    const struct trp_metrics *m = p->m;
    head(p, "troupe_run_info", "gauge", "Always 1; what the run is of.");
    line(p, "troupe_run_info", 1, "name", m->name, NULL);
    head(p, "troupe_run_start_time_seconds", "gauge",
         "When this start of the run began.");
    line(p, "troupe_run_start_time_seconds", seconds(m->started), NULL);
    if (m->ended) {
        head(p, "troupe_run_end_time_seconds", "gauge", "When the run ended.");
        line(p, "troupe_run_end_time_seconds", seconds(m->ended), NULL);
    }
    head(p, "troupe_run_driver_cpu_seconds_total", "counter",
         "CPU time of the driver's process.");
    line(p, "troupe_run_driver_cpu_seconds_total", m->driver_cpu, NULL);
    put_stage_states(p);
    put_run_tasks(p);
    if (m->all)
        put_data(p);
}

/* ---- stages ---- */

static void put_stages(struct put *p)
{
    if (!p->ntold)
        return;
    head(p, "troupe_stage_tasks", "gauge", "Tasks of a stage by state.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        stage_line(p, "troupe_stage_tasks", s, "state", "pending", s->pending);
        stage_line(p, "troupe_stage_tasks", s, "state", "running", s->running);
        stage_line(p, "troupe_stage_tasks", s, "state", "done", s->done);
        stage_line(p, "troupe_stage_tasks", s, "state", "given_up", s->given_up);
        stage_line(p, "troupe_stage_tasks", s, "state", "skipped", s->skipped);
    }
    head(p, "troupe_stage_attempts_total", "counter",
         "Attempts of a stage's tasks that have ended, by how.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        stage_line(p, "troupe_stage_attempts_total", s, "result", "succeeded",
                   (double)s->ran);
        stage_line(p, "troupe_stage_attempts_total", s, "result", "failed",
                   (double)s->failures);
    }
    head(p, "troupe_stage_start_time_seconds", "gauge", "When a stage was submitted.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        if (s->began)
            stage_line(p, "troupe_stage_start_time_seconds", s, NULL, NULL,
                       seconds(s->began));
    }
}

static void put_stage_times(struct put *p)
{
    if (!p->ntold || !p->m->all)
        return;
    head(p, "troupe_stage_cpu_seconds_total", "counter",
         "CPU time of a stage's attempts that have ended.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        if (statistics_of(p, s))
            stage_line(p, "troupe_stage_cpu_seconds_total", s, NULL, NULL,
                       statistics_of(p, s)->cpu);
    }
    head(p, "troupe_stage_task_median_seconds", "gauge",
         "Median of how long attempts ran that succeeded.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        if (s->ran && statistics_of(p, s))
            stage_line(
                p, "troupe_stage_task_median_seconds", s, NULL, NULL,
                seconds(trp_durations_quantile(&statistics_of(p, s)->durations, 500)));
    }
    head(p, "troupe_stage_task_longest_seconds", "gauge",
         "The longest of those attempts.");
    for (uint32_t i = 0; i < p->ntold; i++) {
        const struct trp_status_stage *s = told(p, i);
        if (s->ran && statistics_of(p, s))
            stage_line(p, "troupe_stage_task_longest_seconds", s, NULL, NULL,
                       seconds(statistics_of(p, s)->durations.greatest));
    }
}

/* ---- executors, jobs ---- */

static void put_executors(struct put *p)
{
    head(p, "troupe_executors", "gauge",
         "Executors by profile: up, of them with tasks, asked for, told to go.");
    for (uint32_t i = 0; i < p->m->nprofiles; i++) {
        const struct trp_status_profile *x = &p->m->profiles[i];
        const struct {
            const char *state;
            uint32_t n;
        } counts[] = {
            {"up",      x->up     },
            {"busy",    x->busy   },
            {"coming",  x->coming },
            {"leaving", x->leaving},
        };
        for (int k = 0; k < 4; k++)
            line(p, "troupe_executors", counts[k].n, "profile", x->name, "state",
                 counts[k].state, NULL);
    }
}

static void put_jobs(struct put *p)
{
    static const char *const states[] = {"asked", "pending", "starting", "running",
                                         "ending"};
    head(p, "troupe_slurm_jobs", "gauge", "Slurm jobs of the run by state.");
    for (int s = 0; s < 5; s++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->m->njobs; i++)
            n += strcmp(p->m->jobs[i].state, states[s]) == 0;
        line(p, "troupe_slurm_jobs", n, "state", states[s], NULL);
    }
}

void trp_metrics_put(struct trp_buf *b, const struct trp_metrics *m)
{
    struct put p = {.b = b, .m = m};
    choose(&p);
    put_run(&p);
    put_stages(&p);
    put_stage_times(&p);
    put_executors(&p);
    put_jobs(&p);
}
