/* Reports of virtual runs: columns as wide as they need, and JSON by hand, so that
 * numbers have the same digits everywhere. */
#include "sim/run/virtual_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conf/table.h"
#include "events/json_text.h"

/* ---- tables ---- */

enum { FIRST_COLUMNS = 9, COLUMNS = FIRST_COLUMNS + 4 + 2 * TRP_PROFILE_RESOURCES };

/* "12.3 s", "1:02:03": valid until the eighth call after it. */
static const char *time_text(int64_t ns)
{
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned at;
    char *text = texts[at++ % 8];
    int64_t s = (ns + 500000000) / 1000000000;
    if (ns < 0)
        snprintf(text, sizeof texts[0], "-");
    else if (ns < INT64_C(120000000000))
        snprintf(text, sizeof texts[0], "%.1f s", (double)ns / 1e9);
    else
        snprintf(text, sizeof texts[0], "%lld:%02d:%02d", (long long)(s / 3600),
                 (int)(s / 60 % 60), (int)(s % 60));
    return text;
}

static void amounts_cells(trp_table *t, const struct trp_virtual_result *r,
                          const struct trp_sim_amounts *held,
                          const struct trp_sim_amounts *used)
{
    trp_table_cell(t, "%.2f", held->nodes / 3600);
    trp_table_cell(t, "%.2f", used->nodes / 3600);
    trp_table_cell(t, "%.2f", held->cores / 3600);
    trp_table_cell(t, "%.2f", used->cores / 3600);
    for (uint32_t d = 0; d < r->ndevices; d++) {
        trp_table_cell(t, "%.2f", held->devices[d] / 3600);
        trp_table_cell(t, "%.2f", used->devices[d] / 3600);
    }
}

/* Behind the first n columns: pairs, held and used. Returns how many there are then. */
static size_t amounts_columns(const struct trp_virtual_result *r, size_t n,
                              struct trp_table_column *v,
                              char group[][TRP_RESOURCE_NAME_MAX + 8])
{
    for (uint32_t i = 0; i < 2 + r->ndevices; i++) {
        if (i < 2)
            snprintf(group[i], sizeof group[i], i ? "core-h" : "node-h");
        else
            snprintf(group[i], sizeof group[i], "%s-h", r->devices[i - 2]);
        v[n++] = (struct trp_table_column){"held", group[i], true, i == 0};
        v[n++] = (struct trp_table_column){"used", NULL, true, false};
    }
    return n;
}

/* ---- one run ---- */

static int64_t between(int64_t from, int64_t to)
{
    return from < 0 || to < 0 ? -1 : to - from;
}

static double mean_wait(const struct trp_virtual_stage *s)
{
    return s->waited ? s->wait / (double)s->waited : 0;
}

static void stage_row(trp_table *t, const struct trp_virtual_result *r,
                      const struct trp_virtual_stage *s)
{
    bool ran = s->first >= 0;
    trp_table_cell(t, "%s", s->name);
    trp_table_cell(t, "%s", s->profile);
    if (s->ranks)
        trp_table_cell(t, "%u ranks", s->ranks);
    else
        trp_table_cell(t, "%u", s->ntasks);
    trp_table_cell(t, "%s", time_text(s->ready));
    trp_table_cell(t, "%s", time_text(between(s->ready, s->first)));
    trp_table_cell(t, "%s", time_text(between(s->first, s->end)));
    trp_table_cell(t, "%s", time_text(ran ? (int64_t)(mean_wait(s) * 1e9 + 0.5) : -1));
    trp_table_cell(t, "%s", time_text(ran ? trp_durations_quantile(&s->ran, 500) : -1));
    trp_table_cell(t, "%llu", (unsigned long long)s->failures);
    amounts_cells(t, r, &s->held, &s->used);
}

/* What no stage held: between stages, before a first task, inside and empty. */
static struct trp_sim_amounts rest_of(const struct trp_virtual_result *r)
{
    struct trp_sim_amounts rest = r->held;
    for (uint32_t i = 0; i < r->nstages; i++)
        trp_sim_amounts_add(&rest, &r->stages[i].held, -1);
    rest.nodes = rest.nodes < 5e-3 ? 0 : rest.nodes;
    rest.cores = rest.cores < 5e-3 ? 0 : rest.cores;
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++)
        rest.devices[i] = rest.devices[i] < 5e-3 ? 0 : rest.devices[i];
    return rest;
}

static void sum_row(trp_table *t, const struct trp_virtual_result *r, const char *name,
                    const struct trp_sim_amounts *held,
                    const struct trp_sim_amounts *used)
{
    trp_table_cell(t, "%s", name);
    for (int i = 0; i < 8; i++)
        trp_table_cell(t, "%s", "");
    amounts_cells(t, r, held, used);
}

static int print_stages(const struct trp_virtual_result *r, FILE *out, trp_error *err)
{
    static const struct trp_table_column first[FIRST_COLUMNS] = {
        {"stage",   NULL,         false, false},
        {"profile", NULL,         false, false},
        {"tasks",   NULL,         true,  false},
        {"ready",   NULL,         true,  false},
        {"waited",  NULL,         true,  false},
        {"ran",     NULL,         true,  false},
        {"waits",   "task, each", true,  false},
        {"median",  NULL,         true,  false},
        {"failed",  NULL,         true,  false},
    };
    const struct trp_sim_amounts none = {0}, rest = rest_of(r);
    struct trp_table_column v[COLUMNS];
    char group[2 + TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX + 8];
    memcpy(v, first, sizeof first);
    trp_table *t = trp_table_new(v, amounts_columns(r, FIRST_COLUMNS, v, group));
    for (uint32_t i = 0; i < r->nstages; i++)
        stage_row(t, r, &r->stages[i]);
    sum_row(t, r, "no stage", &rest, &none);
    sum_row(t, r, "in all", &r->held, &r->used);
    return trp_table_print(t, out, err);
}

/* What a stage that succeeded has tolerated. */
static void print_losses(const struct trp_virtual_stage *s, FILE *out)
{
    char skipped[32] = "";
    if (s->outcome != TRP_OUTCOME_SUCCEEDED || !(s->given_up || s->skipped))
        return;
    if (s->given_up && s->skipped)
        snprintf(skipped, sizeof skipped, ", %u skipped", s->skipped);
    fprintf(out, "\nstage %s succeeded: %u of %u tasks %s%s\n", s->name,
            s->given_up ? s->given_up : s->skipped, s->ntasks,
            s->given_up ? "given up" : "skipped", skipped);
}

static int print_run(const struct trp_virtual_play *p, FILE *out, trp_error *err)
{
    const struct trp_virtual_result *r = &p->result;
    fprintf(out,
            "%s after %s, of which %s before the driver began (policy %s, seed %llu)\n"
            "%llu task%s, %u executor%s (%u at once, %u lost), %u job%s submitted\n\n",
            trp_outcome_name(r->outcome), time_text(r->makespan), time_text(r->start),
            p->policy, (unsigned long long)p->seed, (unsigned long long)r->tasks,
            r->tasks == 1 ? "" : "s", r->executors, r->executors == 1 ? "" : "s",
            r->most_executors, r->lost, r->jobs, r->jobs == 1 ? "" : "s");
    int rc = print_stages(r, out, err);
    for (uint32_t i = 0; i < r->nstages; i++)
        print_losses(&r->stages[i], out);
    for (uint32_t i = 0; i < r->nstages; i++)
        if (r->stages[i].why && *r->stages[i].why)
            fprintf(out, "\nstage %s %s: %s\n", r->stages[i].name,
                    trp_outcome_name(r->stages[i].outcome), r->stages[i].why);
    return rc;
}

/* ---- JSON ---- */

static void append_text(struct trp_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void append_text(struct trp_buf *b, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0)
        trp_put_raw(b, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void put_time(struct trp_buf *b, const char *name, int64_t ns)
{
    if (ns < 0)
        append_text(b, ", \"%s\": null", name);
    else
        append_text(b, ", \"%s\": %lld.%09lld", name, (long long)(ns / 1000000000),
                    (long long)(ns % 1000000000));
}

static void put_amounts(struct trp_buf *b, const char *name,
                        const struct trp_virtual_result *r,
                        const struct trp_sim_amounts *a)
{
    append_text(b, ", \"%s\": {\"nodes\": %.6f, \"cores\": %.6f, \"devices\": {", name,
                a->nodes / 3600, a->cores / 3600);
    for (uint32_t d = 0; d < r->ndevices; d++) {
        append_text(b, d ? ", " : "");
        trp_json_text(b, r->devices[d]);
        append_text(b, ": %.6f", a->devices[d] / 3600);
    }
    append_text(b, "}}");
}

static void put_stage(struct trp_buf *b, const struct trp_virtual_result *r,
                      const struct trp_virtual_stage *s)
{
    append_text(b, "{\"name\": ");
    trp_json_text(b, s->name);
    append_text(b, ", \"profile\": ");
    trp_json_text(b, s->profile);
    append_text(b, ", \"outcome\": \"%s\", \"tasks\": %u, \"ranks\": %u",
                trp_outcome_name(s->outcome), s->ntasks, s->ranks);
    put_time(b, "ready", s->ready);
    put_time(b, "first", s->first);
    put_time(b, "end", s->end);
    put_time(b, "queue_wait", between(s->ready, s->first));
    put_time(b, "run", between(s->first, s->end));
    append_text(b, ", \"task_wait_mean\": %.6f, \"attempts\": %llu, \"failures\": %llu",
                mean_wait(s), (unsigned long long)s->attempts,
                (unsigned long long)s->failures);
    append_text(b, ", \"given_up\": %u, \"skipped\": %u", s->given_up, s->skipped);
    append_text(b, ", \"task\": {\"median\": %.6f, \"p95\": %.6f, \"max\": %.6f}",
                (double)trp_durations_quantile(&s->ran, 500) / 1e9,
                (double)trp_durations_quantile(&s->ran, 950) / 1e9,
                (double)trp_durations_quantile(&s->ran, 1000) / 1e9);
    put_amounts(b, "held", r, &s->held);
    put_amounts(b, "used", r, &s->used);
    append_text(b, ", \"why\": ");
    if (s->why && *s->why)
        trp_json_text(b, s->why);
    else
        append_text(b, "null");
    append_text(b, "}");
}

static void put_run(struct trp_buf *b, const struct trp_virtual_play *p, bool stages)
{
    const struct trp_virtual_result *r = &p->result;
    append_text(b, "{\"policy\": \"%s\", \"outcome\": \"%s\", \"seed\": %llu",
                p->policy, trp_outcome_name(r->outcome), (unsigned long long)p->seed);
    put_time(b, "makespan", r->makespan);
    put_time(b, "start", r->start);
    append_text(b,
                ", \"jobs\": %u, \"tasks\": %llu, \"executors\": {\"started\": %u, "
                "\"most\": %u, \"lost\": %u}",
                r->jobs, (unsigned long long)r->tasks, r->executors, r->most_executors,
                r->lost);
    put_amounts(b, "held", r, &r->held);
    put_amounts(b, "used", r, &r->used);
    if (stages)
        append_text(b, ", \"stages\": [");
    for (uint32_t i = 0; i < r->nstages && stages; i++) {
        append_text(b, i ? ",\n  " : "\n  ");
        put_stage(b, r, &r->stages[i]);
    }
    append_text(b, stages ? "]}" : "}");
}

static int print_buffer(struct trp_buf *b, FILE *out, trp_error *err)
{
    int rc =
        b->failed ? trp_error_set(err, TRP_ENOMEM, "out of memory for the report") : 0;
    if (rc == 0) {
        fwrite(b->data, 1, b->size, out);
        fputc('\n', out);
    }
    trp_buf_free(b);
    return rc;
}

int trp_virtual_report(const struct trp_virtual_play *p, bool json, FILE *out,
                       trp_error *err)
{
    struct trp_buf b = {0};
    if (!json)
        return print_run(p, out, err);
    put_run(&b, p, true);
    return print_buffer(&b, out, err);
}

/* ---- several runs ---- */

int trp_virtual_compare(const struct trp_virtual_play *v, uint32_t n, bool json,
                        FILE *out, trp_error *err)
{
    struct trp_buf b = {0};
    struct trp_table_column columns[COLUMNS] = {
        {"policy",    NULL, false, false},
        {"outcome",   NULL, false, false},
        {"makespan",  NULL, true,  false},
        {"jobs",      NULL, true,  false},
        {"executors", NULL, true,  false},
    };
    char group[2 + TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX + 8];
    for (uint32_t i = 0; i < n && json; i++) {
        append_text(&b, i ? ",\n  " : "{\"runs\": [\n  ");
        put_run(&b, &v[i], false);
    }
    if (json) {
        append_text(&b, "]}");
        return print_buffer(&b, out, err);
    }
    trp_table *t =
        trp_table_new(columns, amounts_columns(&v[0].result, 5, columns, group));
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_virtual_result *r = &v[i].result;
        trp_table_cell(t, "%s", v[i].policy);
        trp_table_cell(t, "%s", trp_outcome_name(r->outcome));
        trp_table_cell(t, "%s", time_text(r->makespan));
        trp_table_cell(t, "%u", r->jobs);
        trp_table_cell(t, "%u", r->executors);
        amounts_cells(t, r, &r->held, &r->used);
    }
    return trp_table_print(t, out, err);
}
