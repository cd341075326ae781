/* `troupe report --json`: what the text has, and each step beside. */
#include <stdlib.h>

#include "events/page/waits.h"
#include "events/summary_rows.h"
#include "report.h"
#include "see_logs.h"

static json_t *seconds(const struct trp_statistics *s, const struct trp_seconds *v)
{
    static const struct trp_seconds none;
    v = v ? v : &none;
    json_t *o = json_pack("{s:f}", "cores", v->cores);
    for (uint32_t i = 0; i < s->ndevices; i++)
        if (v->devices[i] > 0)
            json_object_set_new(o, s->device[i], json_real(v->devices[i]));
    return o;
}

/* Bytes, and numbers of partitions. */
static json_t *data(const uint64_t *flow)
{
    json_int_t v[TRP_FLOWS];
    for (int i = 0; i < TRP_FLOWS; i++)
        v[i] = (json_int_t)flow[i];
    return json_pack(
        "{s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}, "
        "s:{s:I, s:I, s:I, s:I, s:I}}",
        "shuffled", "records_written", v[TRP_FLOW_RECORDS_WRITTEN], "records_read",
        v[TRP_FLOW_RECORDS_READ], "written", v[TRP_FLOW_WRITTEN], "read",
        v[TRP_FLOW_READ], "local", v[TRP_FLOW_READ] - v[TRP_FLOW_REMOTE], "remote",
        v[TRP_FLOW_REMOTE], "spilled", v[TRP_FLOW_SPILLED], "kept", "memory",
        v[TRP_FLOW_KEPT_MEMORY], "disk", v[TRP_FLOW_KEPT_DISK], "read",
        v[TRP_FLOW_CACHED], "hits", v[TRP_FLOW_HITS], "misses", v[TRP_FLOW_MISSES]);
}

static json_t *stage(const struct trp_statistics *s,
                     const struct trp_stage_statistics *st)
{
    bool submitted = st->submitted > 0;
    int64_t wall =
        submitted ? (st->ended > 0 ? st->ended : s->last) - st->submitted : 0;
    const struct trp_durations *d = &st->durations;
    return json_pack(
        "{s:I, s:s?, s:s?, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:f, "
        "s:f, s:o}",
        "id", (json_int_t)st->stage.n, "name", st->name, "profile",
        trp_statistics_profile_name(s, st->profile), "outcome",
        st->outcome == TRP_OUTCOME_RUNNING && !submitted
            ? "not run"
            : trp_outcome_name(st->outcome),
        "tasks", (json_int_t)st->ntasks, "attempts",
        (json_int_t)st->attempts + (json_int_t)st->open, "failed",
        (json_int_t)st->failures, "given_up", (json_int_t)st->given_up, "skipped",
        (json_int_t)st->skipped, "wall", (double)wall * 1e-9, "median",
        d->count ? json_real((double)trp_durations_quantile(d, 500) * 1e-9)
                 : json_null(),
        "max", d->count ? json_real((double)d->greatest * 1e-9) : json_null(), "held",
        seconds(s, st->held), "used", seconds(s, st->used), "cpu", st->cpu,
        "node_seconds", trp_statistics_node_seconds(s, st), "data", data(st->flow));
}

/* What its tasks waited for, all together, in seconds; what they did not is left out. */
static json_t *waits_json(const struct trp_page_stage_wait *w)
{
    json_t *o = json_object();
    for (int i = 0; w && i < TRP_PAGE_WAITS; i++)
        if (w->ms[i] > 0)
            json_object_set_new(o, trp_page_wait_name(i),
                                json_real((double)w->ms[i] / 1000));
    return o;
}

/* Those of the start's stages, by their ids. */
static json_t **waits_by_id(const struct trp_page_facts *f, uint32_t start, uint32_t n)
{
    struct trp_page_stage_wait *w = trp_page_waits(f);
    json_t **v = calloc((size_t)n + 1, sizeof *v);
    for (uint32_t i = 0; v && w && i < f->nstages; i++)
        if (f->stages[i].start == start && f->stages[i].id.n < n &&
            !v[f->stages[i].id.n])
            v[f->stages[i].id.n] = waits_json(&w[i]);
    free(w);
    return v;
}

/* The attempts of a stage. */
static json_t *tries(const struct trp_run_part *p, uint32_t stage)
{
    json_t *list = json_array();
    for (const struct trp_run_counted *t = p->tries; t; t = t->hh.next)
        if (t->key.id == stage)
            json_array_append(list, t->told);
    return list;
}

static json_t *stages(const struct trp_statistics *s, json_t *const *waits,
                      const struct trp_run_part *p)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->nstages; i++) {
        if (!s->stages[i])
            continue;
        json_t *o = stage(s, s->stages[i]);
        json_object_set_new(o, "waits", waits && waits[i] ? waits[i] : json_object());
        if (p)
            json_object_set_new(o, "tries", tries(p, i));
        json_array_append_new(list, o);
    }
    return list;
}

/* What tasks have added up. */
static json_t *accumulated(const struct trp_statistics *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->naccumulated; i++)
        json_array_append_new(list, json_pack("{s:I, s:s, s:I}", "id",
                                              (json_int_t)s->accumulated[i].id, "name",
                                              s->accumulated[i].name, "value",
                                              (json_int_t)s->accumulated[i].value));
    return list;
}

static json_t *total(const struct trp_statistics *s)
{
    struct trp_summary_rows rows;
    trp_summary_rows_make(s, false, &rows);
    const struct trp_summary_row *t = &rows.total;
    json_t *o = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:f, s:f, s:o, s:I}", "tasks",
        (json_int_t)t->tasks, "attempts", (json_int_t)t->attempts, "failed",
        (json_int_t)t->failures, "given_up", (json_int_t)t->given_up, "skipped",
        (json_int_t)t->skipped, "wall", (double)(s->last - s->first) * 1e-9, "held",
        seconds(s, &t->held), "used", seconds(s, &t->used), "cpu", t->cpu,
        "node_seconds", t->nodes, "data", data(t->flow), "moved", (json_int_t)s->moved);
    trp_summary_rows_free(&rows);
    return o;
}

static json_t *ms_or_null(int64_t ns)
{
    return ns ? json_integer(ns / 1000000) : json_null();
}

static json_t *jobs(const struct trp_run_record *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->njobs; i++) {
        const struct trp_run_job *j = &r->jobs[i];
        json_array_append_new(
            list,
            json_pack("{s:I, s:b, s:o, s:o, s:o}", "job", (json_int_t)j->id, "further",
                      j->additional, "submitted", ms_or_null(j->asked), "started",
                      ms_or_null(j->began), "ended", ms_or_null(j->ended)));
    }
    return list;
}

/* Tasks that failed for good, or were skipped. */
static json_t *given_up(const struct trp_run_record *r, bool skipped)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->ngiven_up; i++) {
        const struct trp_run_given_up *t = &r->given_up[i];
        json_t *o;
        if ((t->parent.n != TRP_NONE) != skipped)
            continue;
        o = json_pack("{s:s?, s:I, s:s?, s:s?}", "stage",
                      trp_statistics_stage_name(&r->statistics, t->stage), "task",
                      (json_int_t)t->task, "name",
                      trp_task_name(&r->names, t->stage.n, t->task), "item", t->item);
        if (skipped) {
            json_object_set_new(
                o, "after",
                json_pack("s?", trp_statistics_stage_name(&r->statistics, t->parent)));
            json_object_set_new(o, "after_task", json_integer(t->parent_task));
        } else {
            json_object_set_new(o, "failures", json_integer(t->failures));
            json_object_set_new(o, "reason", json_pack("s?", t->reason));
            json_object_set_new(o, "log", json_pack("s?", t->log));
        }
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- accounting ---- */

static json_t *figures(double held, double cpu, int64_t peak_kib)
{
    return json_pack("{s:f, s:f, s:f}", "core_seconds", held, "cpu", cpu, "peak_mib",
                     (double)peak_kib / 1024);
}

static json_t *sum(const struct trp_account_sum *s)
{
    return json_pack("{s:s?, s:I, s:I, s:I, s:o, s:o}", "profile", s->profile, "steps",
                     (json_int_t)s->steps, "completed", (json_int_t)s->completed,
                     "disagree", (json_int_t)s->disagree, "ours",
                     figures(s->held, s->cpu, s->peak_kib), "slurm",
                     figures(s->slurm_held, s->slurm_cpu, s->slurm_peak_kib));
}

static json_t *step_json(const struct trp_run_record *r,
                         const struct trp_account_step *s)
{
    const struct trp_sacct_row *row = s->slurm;
    json_t *slurm = json_null();
    if (row) {
        slurm = figures((double)row->elapsed_s * (double)row->cpus, row->cpu_s,
                        row->rss_kib);
        json_object_set_new(slurm, "step", json_integer(row->step));
        json_object_set_new(slurm, "state", json_string(row->state));
        json_object_set_new(slurm, "exit", json_integer(row->exit_status));
        json_object_set_new(slurm, "signal", json_integer(row->signal));
    }
    return json_pack("{s:s, s:I, s:s, s:s?, s:o, s:o}", "name", s->ours->name, "job",
                     (json_int_t)s->ours->job, "profile",
                     trp_run_step_profile(r, s->ours), "end", s->ours->end, "ours",
                     figures(s->held, s->ours->cpu, s->ours->peak_kib), "slurm", slurm);
}

static json_t *account(const struct trp_run_record *r, const struct trp_account *a)
{
    json_t *profiles = json_array(), *steps = json_array();
    for (uint32_t i = 0; i < a->nprofiles; i++)
        json_array_append_new(profiles, sum(&a->profiles[i]));
    for (uint32_t i = 0; i < a->nsteps; i++)
        json_array_append_new(steps, step_json(r, &a->steps[i]));
    return json_pack("{s:o, s:o, s:o, s:f, s:I, s:I, s:I}", "profiles", profiles,
                     "total", sum(&a->total), "steps", steps, "jobs_core_seconds",
                     a->job_held, "lacking", (json_int_t)a->lacking, "never",
                     (json_int_t)a->never, "open", (json_int_t)a->open);
}

json_t *trp_report_json(struct trp_run_record *r, uint32_t start,
                        const struct trp_page_facts *f, const struct trp_account *a,
                        const struct trp_run_part *p)
{
    json_t **waits = waits_by_id(f, start, r->statistics.nstages);
    trp_statistics_settle(&r->statistics);
    json_t *o = json_pack(
        "{s:s?, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", r->app_name,
        "started", (json_int_t)(r->started / 1000000), "ended",
        r->complete ? json_integer(r->statistics.last / 1000000) : json_null(), "exit",
        r->complete ? json_integer(r->exit_status) : json_null(), "stages",
        stages(&r->statistics, waits, p), "total", total(&r->statistics), "given_up",
        given_up(r, false), "skipped", given_up(r, true), "jobs", jobs(r),
        "accumulated", accumulated(&r->statistics), "sacct",
        a ? account(r, a) : json_null());
    if (p)
        json_object_update(o, p->told);
    free(waits);
    return o;
}

void trp_report_put_logs(json_t *starts, const char *folder)
{
    json_t *s;
    size_t i;
    json_array_foreach(starts, i, s)
        trp_see_logs(folder, NULL, json_object_get(s, "given_up"));
}

json_t *trp_report_document(const char *events, const char *folder,
                            const struct trp_run_records *runs,
                            const struct trp_page_facts *f)
{
    json_t *starts = json_array();
    for (uint32_t i = 0; i < runs->n; i++)
        json_array_append_new(starts, trp_report_json(runs->v[i], i, f, NULL, NULL));
    trp_report_put_logs(starts, folder);
    return json_pack("{s:s, s:o}", "events", events, "starts", starts);
}
