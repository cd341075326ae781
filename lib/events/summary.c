/*
 * The closing summary: one table, a line of totals, and where everything lies. Which
 * rows there are is made by summary_rows.c. Columns are as wide as what is in them:
 * rows are made twice, first to measure and then to print, so that a row needs no
 * memory of its own. A column pair for each kind of device of which something was held.
 */
#include <stdio.h>
#include <string.h>

#include "events/event_log_state.h"
#include "events/summary.h"
#include "events/summary_rows.h"

enum {
    STAGE,
    PROFILE,
    TASKS,
    ATTEMPTS,
    FAILED,
    WALL,
    MEDIAN,
    GREATEST,
    CORES_HELD,
    CORES_USED,
    DEVICES, /* held and used of each kind, then nodes, then how the stage ended */
    COLUMNS = DEVICES + 2 * TRP_PROFILE_RESOURCES + 2,
    NAME_SHOWN = 32,            /* longer names are cut */
    CELL = 4 * NAME_SHOWN + 32, /* bytes: its characters in UTF-8, " ×N" */
};

struct table {
    const struct trp_statistics *s;
    struct trp_summary_rows rows;
    FILE *out;
    uint32_t device[TRP_PROFILE_RESOURCES]; /* shown kinds */
    uint32_t ndevices;
    int nodes; /* column of node-seconds; 0: not shown */
    bool ends; /* some stage did not succeed: its end is told */
    int columns, width[COLUMNS];
    char cell[COLUMNS][CELL];
};

static void time_text(int64_t ns, char *buf)
{
    double s = (double)ns * 1e-9;
    int64_t whole = (ns + 500000000) / 1000000000;
    if (ns < 1000000)
        snprintf(buf, CELL, "%lldus", (long long)(ns / 1000));
    else if (ns < 10000000)
        snprintf(buf, CELL, "%.1fms", s * 1e3);
    else if (ns < 1000000000)
        snprintf(buf, CELL, "%lldms", (long long)(ns / 1000000));
    else if (s < 99.95)
        snprintf(buf, CELL, s < 9.995 ? "%.2fs" : "%.1fs", s);
    else if (whole < 3600)
        snprintf(buf, CELL, "%lldm%02llds", (long long)whole / 60,
                 (long long)whole % 60);
    else
        snprintf(buf, CELL, "%lldh%02lldm", (long long)whole / 3600,
                 (long long)whole / 60 % 60);
}

void trp_seconds_text(double s, char *buf, size_t size)
{
    snprintf(buf, size, s < 99.995 ? "%.2f" : s < 99999.95 ? "%.1f" : "%.0f", s);
}

static void seconds_text(double s, char *buf)
{
    trp_seconds_text(s, buf, CELL);
}

static void count_text(uint64_t n, char *buf)
{
    snprintf(buf, CELL, "%llu", (unsigned long long)n);
}

/* Columns of a text, each character taken as one. */
static int columns_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Where a text has to be cut to have so many columns. */
static int bytes_of(const char *text, int columns)
{
    int n = 0;
    for (; text[n]; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return n < 4 * NAME_SHOWN ? n : 4 * NAME_SHOWN;
}

static void name_text(const char *name, char *buf)
{
    bool fits = columns_of(name) <= NAME_SHOWN;
    int n = bytes_of(name, fits ? NAME_SHOWN : NAME_SHOWN - 1);
    snprintf(buf, CELL, "%.*s%s", n, name, fits ? "" : "~");
}

/* ---- rows: each fills all cells -----------------------------------------------------
 */

static void clear(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        t->cell[c][0] = '\0';
}

static void nodes_cell(struct table *t, double seconds)
{
    if (t->nodes)
        seconds_text(seconds, t->cell[t->nodes]);
}

static void seconds_cells(struct table *t, const struct trp_seconds *held,
                          const struct trp_seconds *used)
{
    static const struct trp_seconds none;
    held = held ? held : &none;
    used = used ? used : &none;
    seconds_text(held->cores, t->cell[CORES_HELD]);
    seconds_text(used->cores, t->cell[CORES_USED]);
    for (uint32_t i = 0; i < t->ndevices; i++) {
        double h = held->devices[t->device[i]], u = used->devices[t->device[i]];
        if (h == 0 && u == 0)
            continue;
        seconds_text(h, t->cell[DEVICES + 2 * i]);
        seconds_text(u, t->cell[DEVICES + 2 * i + 1]);
    }
}

static const char *end_word(const struct trp_stage_statistics *s)
{
    switch (s->outcome) {
    case TRP_OUTCOME_SUCCEEDED:
        return "";
    case TRP_OUTCOME_RUNNING:
        return s->submitted > 0 ? "unfinished" : "not run";
    default:
        return trp_outcome_name(s->outcome);
    }
}

/* All but the name. */
static void numbers(struct table *t, const struct trp_summary_row *r)
{
    const struct trp_stage_statistics *s = r->first;
    if (!r->same_profile)
        snprintf(t->cell[PROFILE], CELL, "several");
    else if (s->profile.n < t->s->nshapes && t->s->shapes[s->profile.n].known)
        name_text(t->s->shapes[s->profile.n].name, t->cell[PROFILE]);
    count_text(r->tasks, t->cell[TASKS]);
    count_text(r->attempts, t->cell[ATTEMPTS]);
    count_text(r->failures, t->cell[FAILED]);
    if (r->submitted)
        time_text(r->wall_ns, t->cell[WALL]);
    if (r->durations.count > 0) {
        time_text(trp_durations_quantile(&r->durations, 500), t->cell[MEDIAN]);
        time_text(r->durations.greatest, t->cell[GREATEST]);
    }
    seconds_cells(t, &r->held, &r->used);
    nodes_cell(t, r->nodes);
    if (t->ends)
        name_text(end_word(r->worst), t->cell[t->columns - 1]);
}

static void stage_row(struct table *t, const struct trp_summary_row *r)
{
    char *cell = t->cell[STAGE];
    clear(t);
    if (r->first->name)
        name_text(r->first->name, cell);
    else
        snprintf(cell, CELL, "stage %u", r->first->stage.n);
    if (r->nstages > 1)
        snprintf(cell + strlen(cell), CELL - strlen(cell), " ×%u", r->nstages);
    numbers(t, r);
}

static void rest_row(struct table *t)
{
    const struct trp_summary_row *r = &t->rows.rest;
    clear(t);
    snprintf(t->cell[STAGE], CELL, "and %u more stage%s", r->nstages,
             r->nstages == 1 ? "" : "s");
    numbers(t, r);
}

static void idle_row(struct table *t)
{
    clear(t);
    snprintf(t->cell[STAGE], CELL, "(no stage)");
    seconds_cells(t, &t->s->idle, NULL);
    nodes_cell(t, t->s->idle_nodes);
}

static void total_row(struct table *t)
{
    const struct trp_summary_row *r = &t->rows.total;
    clear(t);
    snprintf(t->cell[STAGE], CELL, "total");
    count_text(r->tasks, t->cell[TASKS]);
    count_text(r->attempts, t->cell[ATTEMPTS]);
    count_text(r->failures, t->cell[FAILED]);
    time_text(t->s->last - t->s->first, t->cell[WALL]);
    seconds_cells(t, &r->held, &r->used);
    nodes_cell(t, r->nodes);
}

static void head_row(struct table *t)
{
    static const char *const names[] = {"stage",  "profile", "tasks",  "attempts",
                                        "failed", "wall",    "median", "max",
                                        "held",   "used"};
    clear(t);
    for (int c = 0; c < DEVICES; c++)
        snprintf(t->cell[c], CELL, "%s", names[c]);
    for (uint32_t i = 0; i < 2 * t->ndevices; i++)
        snprintf(t->cell[DEVICES + i], CELL, "%s", i % 2 == 0 ? "held" : "used");
    if (t->nodes)
        snprintf(t->cell[t->nodes], CELL, "node-s");
}

/* ---- printing ---- */

static void measure(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        if (columns_of(t->cell[c]) > t->width[c])
            t->width[c] = columns_of(t->cell[c]);
}

static void print_row(struct table *t)
{
    int last = t->columns - 1, spaces = 0; /* due before the next text */
    while (last > 0 && !t->cell[last][0])
        last--;
    for (int c = 0; c <= last; c++) {
        bool left = c <= PROFILE || (t->ends && c == t->columns - 1);
        int pad = t->width[c] - columns_of(t->cell[c]);
        spaces += (c > 0 ? 2 : 0) + (left ? 0 : pad);
        fprintf(t->out, "%*s%s", spaces, "", t->cell[c]);
        spaces = left ? pad : 0;
    }
    fputc('\n', t->out);
}

/* A heading above two columns, made wide enough for it. */
static void group_name(const struct table *t, int column, char *buf)
{
    if (column == MEDIAN)
        snprintf(buf, CELL, "task time");
    else if (column == CORES_HELD)
        snprintf(buf, CELL, "core-seconds");
    else
        snprintf(buf, CELL, "%.*s-seconds", CELL - 10,
                 t->s->device[t->device[(column - DEVICES) / 2]]);
}

static bool is_group(const struct table *t, int column)
{
    return column == MEDIAN || column == CORES_HELD ||
           (column >= DEVICES && column < DEVICES + 2 * (int)t->ndevices &&
            (column - DEVICES) % 2 == 0);
}

static void print_groups(struct table *t)
{
    for (int c = 0; c < t->columns; c++) {
        char name[CELL];
        if (!is_group(t, c)) {
            bool last = t->ends && c == t->columns - 1;
            if (!last)
                fprintf(t->out, "%s%*s", c > 0 ? "  " : "", t->width[c], "");
            continue;
        }
        group_name(t, c, name);
        fprintf(t->out, "%s%*s", c > 0 ? "  " : "", t->width[c] + 2 + t->width[c + 1],
                name);
        c++;
    }
    fputc('\n', t->out);
}

static void widen_groups(struct table *t)
{
    for (int c = 0; c < t->columns; c++) {
        char name[CELL];
        if (!is_group(t, c))
            continue;
        group_name(t, c, name);
        int lacks = (int)strlen(name) - (t->width[c] + 2 + t->width[c + 1]);
        if (lacks > 0)
            t->width[c] += lacks;
    }
}

static void print_share(FILE *out, const char *what, double held, double used)
{
    char h[CELL], u[CELL];
    seconds_text(held, h);
    seconds_text(used, u);
    fprintf(out, "%s-seconds: %s held, %s used", what, h, u);
    if (held > 0)
        fprintf(out, " (%.0f %%)", 100 * used / held);
}

/* Makes each row in turn and does something with it. */
static void each_row(struct table *t, void (*act)(struct table *))
{
    head_row(t);
    act(t);
    for (uint32_t i = 0; i < t->rows.n; i++) {
        stage_row(t, t->rows.v[i]);
        act(t);
    }
    if (t->rows.rest.nstages > 0) {
        rest_row(t);
        act(t);
    }
    if (t->s->idle.cores > 0 || t->s->idle_nodes > 0) {
        idle_row(t);
        act(t);
    }
    total_row(t);
    act(t);
}

static void lay_out(struct table *t)
{
    const struct trp_summary_row *total = &t->rows.total;
    for (uint32_t i = 0; i < t->s->ndevices; i++)
        if (total->held.devices[i] > 0 || total->used.devices[i] > 0)
            t->device[t->ndevices++] = i;
    t->ends = total->nstages > 0 && end_word(total->worst)[0];
    t->columns = DEVICES + 2 * (int)t->ndevices;
    t->nodes = total->nodes > 0 ? t->columns++ : 0;
    t->columns += t->ends ? 1 : 0;
    each_row(t, measure);
    widen_groups(t);
}

/* What was held and asked of Slurm; nothing on one machine. */
static void print_slurm(FILE *out, const struct trp_statistics *s, double nodes)
{
    char seconds[CELL];
    if (nodes > 0) {
        seconds_text(nodes, seconds);
        fprintf(out, "node-seconds: %s held\n", seconds);
    }
    if (s->rpcs || s->sruns)
        fprintf(out, "Slurm: %llu RPCs of ours, about %llu by srun (%llu step%s)\n",
                (unsigned long long)s->rpcs, (unsigned long long)s->srun_rpcs,
                (unsigned long long)s->sruns, s->sruns == 1 ? "" : "s");
}

void trp_summary_print(struct trp_statistics *s, FILE *out)
{
    trp_statistics_settle(s);
    struct table t = {.s = s, .out = out};
    const struct trp_summary_row *total = &t.rows.total;
    trp_summary_rows_make(s, &t.rows);
    lay_out(&t);
    print_groups(&t);
    each_row(&t, print_row);

    char cpu[CELL];
    seconds_text(total->cpu, cpu);
    fputc('\n', out);
    print_share(out, "core", total->held.cores, total->used.cores);
    fprintf(out, ", %s CPU time\n", cpu);
    for (uint32_t i = 0; i < t.ndevices; i++) {
        uint32_t d = t.device[i];
        print_share(out, s->device[d], total->held.devices[d], total->used.devices[d]);
        fputc('\n', out);
    }
    print_slurm(out, s, total->nodes);
    trp_summary_rows_free(&t.rows);
}

void trp_event_summary_print(const trp_event_log *l, FILE *out, const char *run_dir,
                             bool logs)
{
    trp_summary_print(l->statistics, out);
    if (logs)
        fprintf(out, "logs: %s/logs  ", run_dir);
    fprintf(out, "events: %s/events.jsonl\n", run_dir);
    fflush(out);
}
