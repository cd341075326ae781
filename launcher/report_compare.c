/*
 * `troupe report A B` as text: whose runs they are, a table of the stages, those first
 * that changed the run most, then what changed in words (report_changes.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/table.h"
#include "events/summary.h"
#include "report.h"

enum { CELL = 64 };

/* ---- cells ---- */

static void time_cell(trp_table *t, bool has, int64_t ns)
{
    char buf[CELL] = "";
    if (has)
        trp_time_text(ns, buf, sizeof buf);
    trp_table_cell(t, "%s", buf);
}

static void seconds_cells(trp_table *t, double a, double b)
{
    char x[CELL], y[CELL];
    trp_seconds_text(a, x, sizeof x);
    trp_seconds_text(b, y, sizeof y);
    trp_table_cell(t, "%s", x);
    trp_table_cell(t, "%s", y);
}

static void part_cell(trp_table *t, double a, double b)
{
    char buf[CELL];
    trp_table_cell(t, "%s", trp_report_part_text(a, b, buf, sizeof buf));
}

static void bytes_cells(trp_table *t, uint64_t a, uint64_t b)
{
    char x[CELL], y[CELL];
    trp_bytes_text(a, x, sizeof x);
    trp_bytes_text(b, y, sizeof y);
    trp_table_cell(t, "%s", a ? x : "");
    trp_table_cell(t, "%s", b ? y : "");
}

/* ---- the table ---- */

/* Which columns there are besides those that always are. */
struct shown {
    bool nodes, data, ends;
    bool device[TRP_PROFILE_RESOURCES];
};

static struct shown shown_of(const struct trp_comparison *c)
{
    struct shown s = {0};
    const struct trp_compared *all = c->total.of;
    for (int side = 0; side < 2; side++) {
        s.nodes |= all[side].nodes > 0;
        s.data |= all[side].flow[TRP_FLOW_READ] || all[side].flow[TRP_FLOW_WRITTEN];
        for (uint32_t i = 0; i < c->ndevices; i++)
            s.device[i] |= all[side].held.devices[i] > 0;
    }
    for (uint32_t i = 0; i < c->n; i++)
        for (int side = 0; side < 2; side++)
            s.ends |= c->rows[i]->of[side].nstages &&
                      c->rows[i]->of[side].outcome != TRP_OUTCOME_SUCCEEDED;
    return s;
}

static void time_cells(trp_table *t, const struct trp_comparison_row *r, bool total)
{
    const struct trp_compared *a = &r->of[0], *b = &r->of[1];
    time_cell(t, a->submitted || total, a->wall_ns);
    time_cell(t, b->submitted || total, b->wall_ns);
    part_cell(t, (double)a->wall_ns, (double)b->wall_ns);
    for (int side = 0; side < 2; side++)
        time_cell(t, r->of[side].durations.count > 0,
                  trp_durations_quantile(&r->of[side].durations, 500));
    for (int side = 0; side < 2; side++)
        time_cell(t, r->of[side].durations.count > 0, r->of[side].durations.greatest);
}

static void count_cells(trp_table *t, const struct trp_comparison_row *r, uint64_t a,
                        uint64_t b)
{
    const uint64_t n[2] = {a, b};
    for (int side = 0; side < 2; side++) {
        char buf[CELL] = "";
        if (r->of[side].nstages)
            snprintf(buf, sizeof buf, "%llu", (unsigned long long)n[side]);
        trp_table_cell(t, "%s", buf);
    }
}

static void add_row(trp_table *t, const struct trp_comparison *c, const struct shown *s,
                    const struct trp_comparison_row *r, const char *name, bool total)
{
    const struct trp_compared *a = &r->of[0], *b = &r->of[1];
    trp_table_cell(t, "%s", name);
    time_cells(t, r, total);
    if (s->ends) {
        trp_table_cell(t, "%s", total ? "" : trp_report_end_word(a));
        trp_table_cell(t, "%s", total ? "" : trp_report_end_word(b));
    }
    count_cells(t, r, a->tasks, b->tasks);
    count_cells(t, r, a->attempts, b->attempts);
    count_cells(t, r, a->failures, b->failures);
    seconds_cells(t, a->held.cores, b->held.cores);
    part_cell(t, a->held.cores, b->held.cores);
    seconds_cells(t, a->used.cores, b->used.cores);
    seconds_cells(t, a->cpu, b->cpu);
    for (uint32_t i = 0; i < c->ndevices; i++)
        if (s->device[i])
            seconds_cells(t, a->held.devices[i], b->held.devices[i]);
    if (s->nodes)
        seconds_cells(t, a->nodes, b->nodes);
    if (s->data) {
        bytes_cells(t, a->flow[TRP_FLOW_READ], b->flow[TRP_FLOW_READ]);
        bytes_cells(t, a->flow[TRP_FLOW_WRITTEN], b->flow[TRP_FLOW_WRITTEN]);
    }
}

static size_t pair(struct trp_table_column *v, const char *group, bool part)
{
    v[0] = (struct trp_table_column){"A", group, true, part};
    v[1] = (struct trp_table_column){"B", NULL, true, false};
    return 2;
}

static trp_table *new_table(const struct trp_comparison *c, const struct shown *s,
                            char group[][CELL])
{
    struct trp_table_column v[28 + 2 * TRP_PROFILE_RESOURCES];
    const struct trp_table_column differ = {"differ", NULL, true, false};
    size_t n = 0;
    v[n++] = (struct trp_table_column){"stage", NULL, false, false};
    n += pair(v + n, "wall", false);
    v[n++] = differ;
    n += pair(v + n, "task median", false);
    n += pair(v + n, "task max", false);
    if (s->ends) {
        v[n++] = (struct trp_table_column){"A", "end", false, true};
        v[n++] = (struct trp_table_column){"B", NULL, false, false};
    }
    n += pair(v + n, "tasks", !s->ends);
    n += pair(v + n, "attempts", false);
    n += pair(v + n, "failed", false);
    n += pair(v + n, "core-seconds held", true);
    v[n++] = differ;
    n += pair(v + n, "used", false);
    n += pair(v + n, "CPU seconds", false);
    for (uint32_t i = 0; i < c->ndevices; i++) {
        if (!s->device[i])
            continue;
        snprintf(group[i], CELL, "%.*s-seconds", CELL - 10, c->device[i]);
        n += pair(v + n, group[i], false);
    }
    if (s->nodes)
        n += pair(v + n, "node-seconds", false);
    if (s->data) {
        n += pair(v + n, "shuffle read", true);
        n += pair(v + n, "written", false);
    }
    return trp_table_new(v, n);
}

static int print_table(const struct trp_comparison *c, trp_error *err)
{
    char group[TRP_PROFILE_RESOURCES][CELL], rest[CELL];
    const struct shown s = shown_of(c);
    trp_table *t = new_table(c, &s, group);
    for (uint32_t i = 0; i < c->n; i++)
        add_row(t, c, &s, c->rows[i], c->rows[i]->name, false);
    if (c->more) {
        snprintf(rest, sizeof rest, "and %u more", c->more);
        add_row(t, c, &s, &c->rest, rest, false);
    }
    add_row(t, c, &s, &c->total, "total", true);
    return trp_table_print(t, stdout, err);
}

/* ---- the whole ---- */

static void print_head(char letter, const struct trp_report_side *s)
{
    const struct trp_run_record *first = s->runs->v[0];
    char started[32] = "?", head[8], *text = NULL;
    time_t at = (time_t)(first->started / 1000000000);
    struct tm tm;
    if (localtime_r(&at, &tm))
        strftime(started, sizeof started, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(head, sizeof head, "%c: ", letter);
    const char *name = first->app_name ? first->app_name : "?";
    bool same = strcmp(name, s->called) == 0;
    if (asprintf(&text, "%s%s%s, started %s, %s%s", s->called, same ? "" : ", ",
                 same ? "" : name, started, s->state,
                 s->runs->n > 1 ? ", all its starts together" : "") < 0)
        return;
    trp_text_wrap(text, head, 3, stdout);
    free(text);
}

int trp_report_compare(const struct trp_report_side side[2], bool all, trp_error *err)
{
    struct trp_comparison c;
    if (trp_comparison_make(side[0].runs, side[1].runs, all, &c) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    print_head('A', &side[0]);
    print_head('B', &side[1]);
    putchar('\n');
    int code = print_table(&c, err);
    if (code == 0 && trp_report_changes_print(side, &c) < 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    trp_comparison_free(&c);
    return code;
}
