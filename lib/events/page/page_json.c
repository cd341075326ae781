#include "events/page/page_json.h"

#include <stdlib.h>
#include <string.h>

#include "events/json_text.h"
#include "events/page/axis.h"
#include "events/page/page_rows.h"
#include "events/page/series.h"
#include "events/page/waits.h"

enum {
    TAILS = 60,    /* failures with the last lines of their logs */
    NAMES = 20000, /* names of tasks beside those of failures */
};

struct writer {
    const struct trp_page_facts *f;
    const struct trp_run_records *records;
    const struct trp_page_logs *logs;
    struct trp_page_axis axis;
    struct trp_page_stage_wait *waits;
    uint32_t ntails, nnames;
    struct trp_buf *b;
};

static void put_place(struct trp_buf *b, uint32_t place)
{
    if (place == TRP_NONE)
        TRP_JSON(b, "null");
    else
        trp_json_int(b, place);
}

/* On the axis; null: it was not. */
static void put_time(struct writer *w, int64_t wall_ms)
{
    if (wall_ms)
        trp_json_int(w->b, trp_page_axis_at(&w->axis, wall_ms));
    else
        TRP_JSON(w->b, "null");
}

#define TIME(w, name, v) (TRP_JSON((w)->b, ",\"" name "\":"), put_time((w), (v)))
#define PLACE(w, name, v) (TRP_JSON((w)->b, ",\"" name "\":"), put_place((w)->b, (v)))

/* A count with up to three digits behind the point, whatever the locale. */
static void put_number(struct trp_buf *b, double v)
{
    int64_t thousandths = (int64_t)(v * 1000 + 0.5);
    char text[16];
    trp_json_int(b, thousandths / 1000);
    if (thousandths % 1000) {
        snprintf(text, sizeof text, ".%03d", (int)(thousandths % 1000));
        trp_put_raw(b, text, strlen(text));
    }
}

static void put_numbers(struct trp_buf *b, const double *v, uint32_t n)
{
    TRP_JSON(b, "[");
    for (uint32_t i = 0; i < n; i++) {
        trp_json_comma(b);
        put_number(b, v[i]);
    }
    TRP_JSON(b, "]");
}

static void put_counts(struct trp_buf *b, const uint64_t *v, uint32_t n)
{
    TRP_JSON(b, "[");
    for (uint32_t i = 0; i < n; i++) {
        trp_json_comma(b);
        trp_json_int(b, (int64_t)v[i]);
    }
    TRP_JSON(b, "]");
}

/* ---- head ---- */

static void put_head(struct writer *w, bool live)
{
    struct trp_buf *b = w->b;
    TRP_JSON(b, "{\"axis\":[");
    for (uint32_t i = 0; i < w->axis.n; i++) {
        trp_json_comma(b);
        TRP_JSON(b, "[");
        trp_json_int(b, w->axis.v[i].from);
        TRP_JSON(b, ",");
        trp_json_int(b, w->axis.v[i].to);
        TRP_JSON(b, ",");
        trp_json_int(b, w->axis.v[i].at);
        TRP_JSON(b, "]");
    }
    TRP_JSON(b, "]");
    TRP_JSON_INT(b, "length", w->axis.length);
    TRP_JSON_BOOL(b, "live", live);
    TRP_JSON_INT(b, "tasks", w->f->ntasks);
    TRP_JSON(b, ",\"devices\":[");
    for (uint32_t i = 0; i < w->f->ndevices; i++) {
        trp_json_comma(b);
        trp_json_text(b, w->f->device[i]);
    }
    TRP_JSON(b, "],\"hosts\":[");
    for (uint32_t i = 0; i < w->f->nhosts; i++) {
        trp_json_comma(b);
        trp_json_text(b, w->f->hosts[i]);
    }
    TRP_JSON(b, "]");
}

static void put_profiles(struct writer *w)
{
    struct trp_buf *b = w->b;
    TRP_JSON(b, ",\"profiles\":[");
    for (uint32_t i = 0; i < w->f->nprofiles; i++) {
        const struct trp_page_profile *p = &w->f->profiles[i];
        trp_json_comma(b);
        TRP_JSON(b, "{\"name\":");
        trp_json_text(b, p->name);
        TRP_JSON_INT(b, "slots", p->slots);
        TRP_JSON_INT(b, "cores", (int64_t)p->cores);
        TRP_JSON_INT(b, "memory", (int64_t)p->memory_mib);
        TRP_JSON_INT(b, "task_cpus", (int64_t)p->task_cpus);
        TRP_JSON(b, ",\"devices\":");
        put_numbers(b, p->devices, w->f->ndevices);
        TRP_JSON(b, ",\"per_task\":");
        put_numbers(b, p->per_task, w->f->ndevices);
        TRP_JSON(b, "}");
    }
    TRP_JSON(b, "]");
}

/* ---- stages ---- */

static void put_quantiles(struct trp_buf *b, const struct trp_durations *d)
{
    static const uint32_t of[] = {0, 250, 500, 750, 1000};
    for (size_t i = 0; d->count && i < sizeof of / sizeof *of; i++) {
        trp_json_comma(b);
        trp_json_int(b, trp_durations_quantile(d, of[i]));
    }
}

static void put_parents(struct writer *w, const struct trp_page_stage *s)
{
    TRP_JSON(w->b, ",\"parents\":[");
    for (uint32_t i = 0; i < s->nparents; i++) {
        uint32_t place = trp_page_stage_place(w->f, s->start, s->parents[i]);
        if (place != TRP_NONE) {
            trp_json_comma(w->b);
            trp_json_int(w->b, place);
        }
    }
    TRP_JSON(w->b, "]");
}

/* ,"name":… of a task that has one. */
static void put_name(struct writer *w, const struct trp_page_stage *s, uint32_t task)
{
    const char *name = trp_task_name(&w->records->v[s->start]->names, s->id.n, task);
    if (name)
        TRP_JSON_TEXT(w->b, "name", name);
}

/* The names of its tasks, for the timeline: of the first stages, so many in all. */
static void put_names(struct writer *w, const struct trp_page_stage *s)
{
    const struct trp_task_names *names = &w->records->v[s->start]->names;
    uint32_t n = trp_task_names_count(names, s->id.n);
    if (n == 0 || n > NAMES - w->nnames)
        return;
    w->nnames += n;
    TRP_JSON(w->b, ",\"names\":[");
    for (uint32_t i = 0; i < n; i++) {
        trp_json_comma(w->b);
        trp_json_text(w->b, trp_task_name(names, s->id.n, i));
    }
    TRP_JSON(w->b, "]");
}

static void put_stage(struct writer *w, uint32_t place, uint32_t in_report,
                      const struct trp_stage_statistics *recorded)
{
    const struct trp_page_stage *s = &w->f->stages[place];
    const struct trp_page_stage_wait *wait = &w->waits[place];
    struct trp_buf *b = w->b;
    trp_json_comma(b);
    TRP_JSON(b, "{\"start\":");
    trp_json_int(b, s->start);
    PLACE(w, "report", in_report);
    TRP_JSON_TEXT(b, "name", s->name);
    PLACE(w, "profile", s->profile);
    TIME(w, "submitted", s->submitted);
    TIME(w, "first", s->first);
    TIME(w, "ended", s->ended);
    put_parents(w, s);
    TRP_JSON(b, ",\"quantiles\":[");
    if (recorded)
        put_quantiles(b, &recorded->durations);
    TRP_JSON(b, "]");
    TRP_JSON(b, ",\"levels\":");
    put_counts(b, s->levels, TRP_LEVELS);
    TRP_JSON_INT(b, "failed", s->failed);
    TRP_JSON_INT(b, "lost", s->lost);
    TRP_JSON_INT(b, "killed", s->killed);
    TRP_JSON_INT(b, "copies", s->copies);
    TRP_JSON_INT(b, "summarised", s->summarised);
    TRP_JSON(b, ",\"waits\":[");
    for (int i = 0; i < TRP_PAGE_WAITS; i++) {
        trp_json_comma(b);
        trp_json_int(b, wait->ms[i]);
    }
    TRP_JSON(b, "]");
    TRP_JSON_INT(b, "nothing_ran", wait->nothing_ran);
    put_names(w, s);
    TRP_JSON(b, "}");
}

/* In the order of each stage's. */
static void put_wait_names(struct trp_buf *b)
{
    TRP_JSON(b, ",\"wait_names\":[");
    for (int i = 0; i < TRP_PAGE_WAITS; i++) {
        trp_json_comma(b);
        trp_json_text(b, trp_page_wait_name(i));
    }
    TRP_JSON(b, "]");
}

static uint32_t place_in_report(const struct trp_statistics *s, uint32_t id)
{
    uint32_t n = 0;
    if (id >= s->nstages || !s->stages[id])
        return TRP_NONE;
    for (uint32_t i = 0; i < id; i++)
        n += s->stages[i] != NULL;
    return n;
}

/* Stages are heard of in the order of their ids, or nearly so. */
static void put_stages(struct writer *w)
{
    uint32_t start = TRP_NONE, id = 0, at = 0;
    TRP_JSON(w->b, ",\"stages\":[");
    for (uint32_t i = 0; i < w->f->nstages; i++) {
        const struct trp_page_stage *s = &w->f->stages[i];
        const struct trp_statistics *all = &w->records->v[s->start]->statistics;
        if (s->start != start || s->id.n != id + 1)
            at = place_in_report(all, s->id.n);
        else
            at++;
        start = s->start;
        id = s->id.n;
        bool known = id < all->nstages && all->stages[id];
        put_stage(w, i, known ? at : TRP_NONE, known ? all->stages[id] : NULL);
    }
    TRP_JSON(w->b, "]");
}

/* ---- Slurm ---- */

/* An additional job is shown from when it was asked for; one without `at` has never begun.
 */
static void put_jobs(struct writer *w)
{
    const struct trp_page_facts *f = w->f;
    TRP_JSON(w->b, ",\"jobs\":[");
    for (uint32_t i = 0; i < f->njobs; i++) {
        const struct trp_page_job *j = &f->jobs[i];
        trp_json_comma(w->b);
        TRP_JSON(w->b, "{\"id\":");
        trp_json_int(w->b, j->id);
        TRP_JSON_BOOL(w->b, "further", j->additional);
        TIME(w, "asked", j->asked);
        TIME(w, "at", j->at);
        TIME(w, "end", trp_page_job_end(f, j));
        TRP_JSON_BOOL(w->b, "told", j->end > 0);
        TRP_JSON(w->b, "}");
    }
    TRP_JSON(w->b, "]");
}

/* ---- series ---- */

/* As thousandths, and runs of zeros as one negative number: -3 is 0, 0, 0. */
static void put_line(struct trp_buf *b, const double *v)
{
    uint32_t zeros = 0;
    TRP_JSON(b, "[");
    for (uint32_t i = 0; i <= TRP_PAGE_BINS; i++) {
        int64_t t = i < TRP_PAGE_BINS ? (int64_t)(v[i] * 1000 + 0.5) : 0;
        if (i < TRP_PAGE_BINS && t == 0) {
            zeros++;
            continue;
        }
        if (zeros) {
            trp_json_comma(b);
            trp_json_int(b, -(int64_t)zeros);
            zeros = 0;
        }
        if (i < TRP_PAGE_BINS) {
            trp_json_comma(b);
            trp_json_int(b, t);
        }
    }
    TRP_JSON(b, "]");
}

static void put_lines(struct writer *w, const struct trp_page_line *v, uint32_t n)
{
    struct trp_buf *b = w->b;
    TRP_JSON(b, "[");
    for (uint32_t i = 0; i < n; i++) {
        bool any = false;
        for (uint32_t q = 0; q < TRP_PAGE_QUANTITIES; q++)
            any |= v[i].v[q] != NULL;
        if (!any)
            continue;
        trp_json_comma(b);
        TRP_JSON(b, "{\"of\":");
        put_place(b, v[i].which);
        TRP_JSON(b, ",\"v\":[");
        for (uint32_t q = 0; q < 2 + w->f->ndevices; q++) {
            trp_json_comma(b);
            if (v[i].v[q])
                put_line(b, v[i].v[q]);
            else
                TRP_JSON(b, "null");
        }
        TRP_JSON(b, "]}");
    }
    TRP_JSON(b, "]");
}

static int put_series(struct writer *w)
{
    struct trp_page_series s;
    int rc = trp_page_series_make(w->f, &w->axis, &s);
    if (rc < 0)
        return rc;
    TRP_JSON(w->b, ",\"series\":{\"bins\":");
    trp_json_int(w->b, TRP_PAGE_BINS);
    TRP_JSON(w->b, ",\"asked\":");
    put_lines(w, s.profiles[TRP_PAGE_ASKED], s.nprofiles);
    TRP_JSON(w->b, ",\"held\":");
    put_lines(w, s.profiles[TRP_PAGE_HELD], s.nprofiles);
    TRP_JSON(w->b, ",\"used\":");
    put_lines(w, s.profiles[TRP_PAGE_USED], s.nprofiles);
    TRP_JSON(w->b, ",\"stages\":");
    put_lines(w, s.stages, s.nstages);
    TRP_JSON(w->b, "}");
    trp_page_series_free(&s);
    return 0;
}

/* ---- failures and what was told ---- */

static void put_example(struct writer *w, const struct trp_page_task *t, bool tail)
{
    struct trp_buf *b = w->b;
    uint32_t host =
        t->executor == TRP_NONE ? TRP_NONE : w->f->executors[t->executor].host;
    char *link = NULL, *text = NULL;
    trp_json_comma(b);
    TRP_JSON(b, "{\"task\":");
    trp_json_int(b, t->number);
    put_name(w, &w->f->stages[t->stage], t->number);
    TRP_JSON_INT(b, "attempt", t->attempt);
    PLACE(w, "executor",
          t->executor == TRP_NONE ? TRP_NONE : w->f->executors[t->executor].id);
    PLACE(w, "host", host);
    TIME(w, "ended", t->ended);
    if (tail && w->logs)
        text = w->logs->tail(w->logs->context, w->f, t, &link);
    if (text)
        TRP_JSON_TEXT(b, "tail", text);
    if (link)
        TRP_JSON_TEXT(b, "link", link);
    TRP_JSON(b, "}");
    free(text);
    free(link);
}

static void put_failures(struct writer *w)
{
    struct trp_buf *b = w->b;
    TRP_JSON(b, ",\"failures\":[");
    for (uint32_t i = 0; i < w->f->nfailures; i++) {
        const struct trp_page_failure *v = &w->f->failures[i];
        trp_json_comma(b);
        TRP_JSON(b, "{\"stage\":");
        trp_json_int(b, v->stage);
        TRP_JSON_TEXT(b, "reason", v->reason);
        TRP_JSON_TEXT(b, "kind", v->kind);
        TRP_JSON_INT(b, "count", v->count);
        TIME(w, "first", v->first);
        TIME(w, "last", v->last);
        TRP_JSON(b, ",\"examples\":[");
        for (uint32_t k = 0; k < v->nexamples; k++)
            put_example(w, &w->f->tasks[v->examples[k]], w->ntails++ < TAILS);
        TRP_JSON(b, "]}");
    }
    TRP_JSON(b, "]");
    TRP_JSON_INT(b, "failures_left_out", w->f->failures_left_out);
}

static void put_told(struct writer *w)
{
    struct trp_buf *b = w->b;
    TRP_JSON(b, ",\"told\":[");
    for (uint32_t i = 0; i < w->f->nmessages; i++) {
        trp_json_comma(b);
        TRP_JSON(b, "{\"level\":");
        trp_json_text(b, w->f->messages[i].level);
        TRP_JSON_TEXT(b, "text", w->f->messages[i].text);
        TIME(w, "at", w->f->messages[i].at);
        TRP_JSON(b, "}");
    }
    TRP_JSON(b, "]");
    TRP_JSON_INT(b, "told_left_out", w->f->messages_left_out);
}

int trp_page_json(const struct trp_page_facts *f, const struct trp_run_records *records,
                  const struct trp_page_logs *logs, bool live, struct trp_buf *b)
{
    struct writer w = {.f = f, .records = records, .logs = logs, .b = b};
    int rc = trp_page_axis_make(f, &w.axis);
    w.waits = trp_page_waits(f);
    if (rc == 0 && !w.waits)
        rc = TRP_ENOMEM;
    if (rc == 0) {
        put_head(&w, live);
        put_profiles(&w);
        put_wait_names(b);
        put_stages(&w);
        put_jobs(&w);
        put_failures(&w);
        put_told(&w);
        rc = put_series(&w);
    }
    if (rc == 0) {
        TRP_JSON(b, ",\"timeline\":");
        rc = trp_page_rows_put(f, &w.axis, b);
        TRP_JSON(b, "}");
    }
    trp_page_axis_free(&w.axis);
    free(w.waits);
    return rc == 0 && b->failed ? TRP_ENOMEM : rc;
}
