/* Reports of virtual runs: columns as wide as they need, and JSON by hand, so that
 * numbers have the same digits everywhere. */
#include "sim/virtual_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "events/json_text.h"

/* ---- tables ---- */

struct table {
    char **cells;
    uint32_t n, cap, columns, left; /* the first `left` columns stand left */
    bool failed;
};

static void cell(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void cell(struct table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0 || !trp_array_room((void **)&t->cells, &t->cap, (uint64_t)t->n + 1,
                                 sizeof(char *))) {
        free(n < 0 ? NULL : text);
        t->failed = true;
        return;
    }
    t->cells[t->n++] = text;
}

static int print_table(struct table *t, FILE *out, trp_error *err)
{
    size_t width[64] = {0};
    for (uint32_t i = 0; i < t->n; i++) {
        size_t k = strlen(t->cells[i]), *w = &width[i % t->columns];
        *w = k > *w ? k : *w;
    }
    for (uint32_t i = 0; i < t->n && !t->failed; i++) {
        uint32_t column = i % t->columns;
        bool last = column + 1 == t->columns;
        int w = (int)width[column];
        if (column < t->left)
            fprintf(out, "%-*s%s", last ? 0 : w, t->cells[i], last ? "\n" : "  ");
        else
            fprintf(out, "%*s%s", w, t->cells[i], last ? "\n" : "  ");
    }
    for (uint32_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    return t->failed ? trp_error_set(err, TRP_ENOMEM, "out of memory for the report")
                     : 0;
}

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

static void amounts_cells(struct table *t, const struct trp_virtual_result *r,
                          const struct trp_sim_amounts *held,
                          const struct trp_sim_amounts *used)
{
    cell(t, "%.2f", held->nodes / 3600);
    cell(t, "%.2f", used->nodes / 3600);
    cell(t, "%.2f", held->cores / 3600);
    cell(t, "%.2f", used->cores / 3600);
    for (uint32_t d = 0; d < r->ndevices; d++) {
        cell(t, "%.2f", held->devices[d] / 3600);
        cell(t, "%.2f", used->devices[d] / 3600);
    }
}

static void amounts_heads(struct table *t, const struct trp_virtual_result *r)
{
    cell(t, "node-h held");
    cell(t, "used");
    cell(t, "core-h held");
    cell(t, "used");
    for (uint32_t d = 0; d < r->ndevices; d++) {
        cell(t, "%s-h held", r->devices[d]);
        cell(t, "used");
    }
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

static void stage_row(struct table *t, const struct trp_virtual_result *r,
                      const struct trp_virtual_stage *s)
{
    bool ran = s->first >= 0;
    cell(t, "%s", s->name);
    cell(t, "%s", s->profile);
    if (s->ranks)
        cell(t, "%u ranks", s->ranks);
    else
        cell(t, "%u", s->ntasks);
    cell(t, "%s", time_text(s->ready));
    cell(t, "%s", time_text(between(s->ready, s->first)));
    cell(t, "%s", time_text(between(s->first, s->end)));
    cell(t, "%s", time_text(ran ? (int64_t)(mean_wait(s) * 1e9 + 0.5) : -1));
    cell(t, "%s", time_text(ran ? trp_durations_quantile(&s->ran, 500) : -1));
    cell(t, "%llu", (unsigned long long)s->failures);
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

static void sum_row(struct table *t, const struct trp_virtual_result *r,
                    const char *name, const struct trp_sim_amounts *held,
                    const struct trp_sim_amounts *used)
{
    cell(t, "%s", name);
    for (int i = 0; i < 8; i++)
        cell(t, " ");
    amounts_cells(t, r, held, used);
}

static int print_stages(const struct trp_virtual_result *r, FILE *out, trp_error *err)
{
    static const char *const heads[] = {"stage",      "profile",     "tasks",
                                        "ready",      "waited",      "ran",
                                        "task waits", "task median", "failures"};
    const struct trp_sim_amounts none = {0}, rest = rest_of(r);
    struct table t = {.left = 2};
    t.columns = sizeof heads / sizeof *heads + 4 + (size_t)2 * r->ndevices;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        cell(&t, "%s", heads[i]);
    amounts_heads(&t, r);
    for (uint32_t i = 0; i < r->nstages; i++)
        stage_row(&t, r, &r->stages[i]);
    sum_row(&t, r, "no stage", &rest, &none);
    sum_row(&t, r, "in all", &r->held, &r->used);
    return print_table(&t, out, err);
}

static int print_run(const struct trp_virtual_play *p, FILE *out, trp_error *err)
{
    const struct trp_virtual_result *r = &p->result;
    fprintf(out,
            "%s after %s, of which %s before the driver began (policy %s, seed %llu)\n"
            "%llu tasks, %u executors (%u at once, %u lost), %u jobs submitted\n\n",
            trp_outcome_name(r->outcome), time_text(r->makespan), time_text(r->start),
            p->policy, (unsigned long long)p->seed, (unsigned long long)r->tasks,
            r->executors, r->most_executors, r->lost, r->jobs);
    int rc = print_stages(r, out, err);
    for (uint32_t i = 0; i < r->nstages; i++)
        if (r->stages[i].why && *r->stages[i].why)
            fprintf(out, "\nstage %s %s: %s\n", r->stages[i].name,
                    trp_outcome_name(r->stages[i].outcome), r->stages[i].why);
    return rc;
}

/* ---- JSON ---- */

static void put(struct trp_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct trp_buf *b, const char *fmt, ...)
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
        put(b, ", \"%s\": null", name);
    else
        put(b, ", \"%s\": %lld.%09lld", name, (long long)(ns / 1000000000),
            (long long)(ns % 1000000000));
}

static void put_amounts(struct trp_buf *b, const char *name,
                        const struct trp_virtual_result *r,
                        const struct trp_sim_amounts *a)
{
    put(b, ", \"%s\": {\"nodes\": %.6f, \"cores\": %.6f, \"devices\": {", name,
        a->nodes / 3600, a->cores / 3600);
    for (uint32_t d = 0; d < r->ndevices; d++) {
        put(b, d ? ", " : "");
        trp_json_text(b, r->devices[d]);
        put(b, ": %.6f", a->devices[d] / 3600);
    }
    put(b, "}}");
}

static void put_stage(struct trp_buf *b, const struct trp_virtual_result *r,
                      const struct trp_virtual_stage *s)
{
    put(b, "{\"name\": ");
    trp_json_text(b, s->name);
    put(b, ", \"profile\": ");
    trp_json_text(b, s->profile);
    put(b, ", \"outcome\": \"%s\", \"tasks\": %u, \"ranks\": %u",
        trp_outcome_name(s->outcome), s->ntasks, s->ranks);
    put_time(b, "ready", s->ready);
    put_time(b, "first", s->first);
    put_time(b, "end", s->end);
    put_time(b, "queue_wait", between(s->ready, s->first));
    put_time(b, "run", between(s->first, s->end));
    put(b, ", \"task_wait_mean\": %.6f, \"attempts\": %llu, \"failures\": %llu",
        mean_wait(s), (unsigned long long)s->attempts, (unsigned long long)s->failures);
    put(b, ", \"task\": {\"median\": %.6f, \"p95\": %.6f, \"max\": %.6f}",
        (double)trp_durations_quantile(&s->ran, 500) / 1e9,
        (double)trp_durations_quantile(&s->ran, 950) / 1e9,
        (double)trp_durations_quantile(&s->ran, 1000) / 1e9);
    put_amounts(b, "held", r, &s->held);
    put_amounts(b, "used", r, &s->used);
    put(b, ", \"why\": ");
    if (s->why && *s->why)
        trp_json_text(b, s->why);
    else
        put(b, "null");
    put(b, "}");
}

static void put_run(struct trp_buf *b, const struct trp_virtual_play *p, bool stages)
{
    const struct trp_virtual_result *r = &p->result;
    put(b, "{\"policy\": \"%s\", \"outcome\": \"%s\", \"seed\": %llu", p->policy,
        trp_outcome_name(r->outcome), (unsigned long long)p->seed);
    put_time(b, "makespan", r->makespan);
    put_time(b, "start", r->start);
    put(b,
        ", \"jobs\": %u, \"tasks\": %llu, \"executors\": {\"started\": %u, "
        "\"most\": %u, \"lost\": %u}",
        r->jobs, (unsigned long long)r->tasks, r->executors, r->most_executors,
        r->lost);
    put_amounts(b, "held", r, &r->held);
    put_amounts(b, "used", r, &r->used);
    if (stages)
        put(b, ", \"stages\": [");
    for (uint32_t i = 0; i < r->nstages && stages; i++) {
        put(b, i ? ",\n  " : "\n  ");
        put_stage(b, r, &r->stages[i]);
    }
    put(b, stages ? "]}" : "}");
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
    struct table t = {.left = 2};
    for (uint32_t i = 0; i < n && json; i++) {
        put(&b, i ? ",\n  " : "{\"runs\": [\n  ");
        put_run(&b, &v[i], false);
    }
    if (json) {
        put(&b, "]}");
        return print_buffer(&b, out, err);
    }
    t.columns = 9 + 2 * v[0].result.ndevices;
    cell(&t, "policy");
    cell(&t, "outcome");
    cell(&t, "makespan");
    cell(&t, "jobs");
    cell(&t, "executors");
    amounts_heads(&t, &v[0].result);
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_virtual_result *r = &v[i].result;
        cell(&t, "%s", v[i].policy);
        cell(&t, "%s", trp_outcome_name(r->outcome));
        cell(&t, "%s", time_text(r->makespan));
        cell(&t, "%u", r->jobs);
        cell(&t, "%u", r->executors);
        amounts_cells(&t, r, &r->held, &r->used);
    }
    return print_table(&t, out, err);
}
