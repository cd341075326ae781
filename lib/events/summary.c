/*
 * The closing summary: one table, a line of totals, and where everything lies. Which
 * rows there are is made by summary_rows.c. A column pair for each kind of device of
 * which something was held. Where the table is too wide, what is held and used stands
 * in a part of its own.
 */
#include <stdio.h>
#include <string.h>

#include "conf/table.h"
#include "core/base/utf8.h"
#include "events/event_log_state.h"
#include "events/summary.h"
#include "events/summary_rows.h"

enum {
    STAGE,
    PROFILE,
    TASKS,
    ATTEMPTS,
    FAILED,
    GIVEN_UP, /* tasks, where there are any */
    SKIPPED,  /* the same */
    WALL,
    MEDIAN,
    GREATEST,
    END, /* how the stage ended */
    CORES_HELD,
    CORES_USED,
    DEVICES, /* held and used of each kind, then nodes */
    COLUMNS = DEVICES + 2 * TRP_PROFILE_RESOURCES + 1,
    NAME_SHOWN = 64,            /* longer names are cut */
    CELL = 4 * NAME_SHOWN + 32, /* bytes: its characters in UTF-8, " ×N" */
};

struct table {
    const struct trp_statistics *s;
    struct trp_summary_rows rows;
    trp_table *table;
    uint32_t device[TRP_PROFILE_RESOURCES]; /* shown kinds */
    uint32_t ndevices;
    int nodes;           /* column of node-seconds; 0: not shown */
    bool live;           /* the run goes on */
    bool shown[COLUMNS]; /* of those before DEVICES */
    int columns;
    char cell[COLUMNS][CELL];
};

void trp_time_text(int64_t ns, char *buf, size_t size)
{
    double s = (double)ns * 1e-9;
    int64_t whole = (ns + 500000000) / 1000000000;
    if (ns < 1000000)
        snprintf(buf, size, "%lldus", (long long)(ns / 1000));
    else if (ns < 10000000)
        snprintf(buf, size, "%.1fms", s * 1e3);
    else if (ns < 1000000000)
        snprintf(buf, size, "%lldms", (long long)(ns / 1000000));
    else if (s < 99.95)
        snprintf(buf, size, s < 9.995 ? "%.2fs" : "%.1fs", s);
    else if (whole < 3600)
        snprintf(buf, size, "%lldm%02llds", (long long)whole / 60,
                 (long long)whole % 60);
    else
        snprintf(buf, size, "%lldh%02lldm", (long long)whole / 3600,
                 (long long)whole / 60 % 60);
}

static void time_text(int64_t ns, char *buf)
{
    trp_time_text(ns, buf, CELL);
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

static int columns_of(const char *text)
{
    return (int)trp_utf8_count(text, strlen(text));
}

/* Where a text has to be cut to have so many columns. */
static int bytes_of(const char *text, int columns)
{
    int n = (int)trp_utf8_bytes(text, (size_t)columns);
    return n < 4 * NAME_SHOWN ? n : 4 * NAME_SHOWN;
}

static void name_text(const char *name, char *buf)
{
    bool fits = columns_of(name) <= NAME_SHOWN;
    int n = bytes_of(name, fits ? NAME_SHOWN : NAME_SHOWN - 1);
    snprintf(buf, CELL, "%.*s%s", n, name, fits ? "" : "~");
}

/* ---- rows: each fills all cells ---- */

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

static const char *end_word(const struct table *t, const struct trp_stage_statistics *s)
{
    switch (s->outcome) {
    case TRP_OUTCOME_SUCCEEDED:
        return "";
    case TRP_OUTCOME_RUNNING:
        return s->submitted <= 0 ? "not run" : t->live ? "running" : "unfinished";
    default:
        return trp_outcome_name(s->outcome);
    }
}

/* All but the name. */
static void numbers(struct table *t, const struct trp_summary_row *r)
{
    const char *profile = trp_statistics_profile_name(t->s, r->first->profile);
    if (!r->same_profile)
        snprintf(t->cell[PROFILE], CELL, "several");
    else if (profile)
        name_text(profile, t->cell[PROFILE]);
    count_text(r->tasks, t->cell[TASKS]);
    count_text(r->attempts, t->cell[ATTEMPTS]);
    count_text(r->failures, t->cell[FAILED]);
    count_text(r->given_up, t->cell[GIVEN_UP]);
    count_text(r->skipped, t->cell[SKIPPED]);
    if (r->submitted)
        time_text(r->wall_ns, t->cell[WALL]);
    if (r->durations.count > 0) {
        time_text(trp_durations_quantile(&r->durations, 500), t->cell[MEDIAN]);
        time_text(r->durations.greatest, t->cell[GREATEST]);
    }
    seconds_cells(t, &r->held, &r->used);
    nodes_cell(t, r->nodes);
    name_text(end_word(t, r->worst), t->cell[END]);
}

static void stage_row(struct table *t, const struct trp_summary_row *r)
{
    char *cell = t->cell[STAGE];
    clear(t);
    if (r->name)
        name_text(r->name, cell);
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
    count_text(r->given_up, t->cell[GIVEN_UP]);
    count_text(r->skipped, t->cell[SKIPPED]);
    time_text(t->s->last - t->s->first, t->cell[WALL]);
    seconds_cells(t, &r->held, &r->used);
    nodes_cell(t, r->nodes);
}

/* ---- printing ---- */

static void add_row(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        if (c >= DEVICES || t->shown[c])
            trp_table_cell(t->table, "%s", t->cell[c]);
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

static void add_rows(struct table *t)
{
    for (uint32_t i = 0; i < t->rows.n; i++) {
        stage_row(t, t->rows.v[i]);
        add_row(t);
    }
    if (t->rows.rest.nstages > 0) {
        rest_row(t);
        add_row(t);
    }
    if (t->s->idle.cores > 0 || t->s->idle_nodes > 0) {
        idle_row(t);
        add_row(t);
    }
    total_row(t);
    add_row(t);
}

/* Which columns there are. */
static void lay_out(struct table *t)
{
    static const struct trp_table_column first[] = {
        [STAGE] = {"stage",    NULL,           false, false},
        [PROFILE] = {"profile",  NULL,           false, false},
        [TASKS] = {"tasks",    NULL,           true,  false},
        [ATTEMPTS] = {"attempts", NULL,           true,  false},
        [FAILED] = {"failed",   NULL,           true,  false},
        [GIVEN_UP] = {"given up", NULL,           true,  false},
        [SKIPPED] = {"skipped",  NULL,           true,  false},
        [WALL] = {"wall",     NULL,           true,  false},
        [MEDIAN] = {"median",   "task time",    true,  false},
        [GREATEST] = {"max",      NULL,           true,  false},
        [END] = {"end",      NULL,           false, false},
        [CORES_HELD] = {"held",     "core-seconds", true,  true },
        [CORES_USED] = {"used",     NULL,           true,  false},
    };
    struct trp_table_column v[COLUMNS] = {0};
    char group[TRP_PROFILE_RESOURCES][CELL];
    const struct trp_summary_row *total = &t->rows.total;
    size_t n = 0;
    memset(t->shown, true, sizeof t->shown);
    t->shown[GIVEN_UP] = total->given_up > 0;
    t->shown[SKIPPED] = total->skipped > 0;
    t->shown[END] = total->nstages > 0 && end_word(t, total->worst)[0];
    for (int c = 0; c < DEVICES; c++)
        if (t->shown[c])
            v[n++] = first[c];
    t->columns = DEVICES;
    for (uint32_t i = 0; i < t->s->ndevices; i++) {
        if (total->held.devices[i] == 0 && total->used.devices[i] == 0)
            continue;
        snprintf(group[i], CELL, "%.*s-seconds", CELL - 10, t->s->device[i]);
        t->device[t->ndevices++] = i;
        v[n++] = (struct trp_table_column){"held", group[i], true, false};
        v[n++] = (struct trp_table_column){"used", NULL, true, false};
        t->columns += 2;
    }
    t->nodes = total->nodes > 0 ? t->columns++ : 0;
    if (t->nodes)
        v[n++] = (struct trp_table_column){"node-s", NULL, true, false};
    t->table = trp_table_new(v, n);
}

void trp_bytes_text(uint64_t n, char *buf, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)n;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof units / sizeof *units) {
        v /= 1024;
        u++;
    }
    snprintf(buf, size, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void bytes_text(uint64_t n, char *buf)
{
    trp_bytes_text(n, buf, CELL);
}

/* Partitions that were kept; nothing where none was looked for. */
static void print_kept(FILE *out, const uint64_t *flow)
{
    char memory[CELL], disk[CELL];
    if (!flow[TRP_FLOW_HITS] && !flow[TRP_FLOW_MISSES])
        return;
    bytes_text(flow[TRP_FLOW_KEPT_MEMORY], memory);
    bytes_text(flow[TRP_FLOW_KEPT_DISK], disk);
    const unsigned long long found = flow[TRP_FLOW_HITS],
                             missed = flow[TRP_FLOW_MISSES];
    fprintf(
        out,
        "kept: %s in memory, %s on disk; of %llu partitions looked for, %llu found\n",
        memory, disk, found + missed, found);
}

/* Records that went from stage to stage; nothing where none did. */
static void print_data(FILE *out, const uint64_t *flow, uint64_t moved_bytes)
{
    char written[CELL], read[CELL], remote[CELL], spilled[CELL], moved[CELL];
    print_kept(out, flow);
    if (!flow[TRP_FLOW_READ] && !flow[TRP_FLOW_WRITTEN] && !moved_bytes)
        return;
    bytes_text(flow[TRP_FLOW_WRITTEN], written);
    bytes_text(flow[TRP_FLOW_READ], read);
    bytes_text(flow[TRP_FLOW_REMOTE], remote);
    fprintf(out, "shuffled: %s written, %s read (%s from other hosts)", written, read,
            remote);
    bytes_text(flow[TRP_FLOW_SPILLED], spilled);
    if (flow[TRP_FLOW_SPILLED])
        fprintf(out, ", %s spilled", spilled);
    bytes_text(moved_bytes, moved);
    if (moved_bytes)
        fprintf(out, ", %s moved", moved);
    fputc('\n', out);
}

/* What tasks added up; nothing where none did. */
static void print_accumulated(FILE *out, const struct trp_statistics *s)
{
    for (uint32_t i = 0; i < s->naccumulated; i++)
        fprintf(out, "%s%s %lld%s", i ? ", " : "accumulated: ", s->accumulated[i].name,
                (long long)s->accumulated[i].value,
                i + 1 == s->naccumulated ? "\n" : "");
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

void trp_summary_print(struct trp_statistics *s, bool live, bool all, FILE *out)
{
    trp_statistics_settle(s);
    struct table t = {.s = s, .live = live};
    trp_error err;
    const struct trp_summary_row *total = &t.rows.total;
    trp_summary_rows_make(s, all, &t.rows);
    lay_out(&t);
    add_rows(&t);
    if (trp_table_print(t.table, out, &err) < 0)
        fprintf(out, "%s\n", err.text);

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
    print_data(out, total->flow, s->moved);
    print_accumulated(out, s);
    print_slurm(out, s, total->nodes);
    trp_summary_rows_free(&t.rows);
}

void trp_event_summary_print(const trp_event_log *l, FILE *out, const char *run_dir,
                             bool logs)
{
    trp_summary_print(l->statistics, false, false, out);
    if (logs)
        fprintf(out, "logs: %s/logs\n", run_dir);
    fprintf(out, "events: %s/events.jsonl\n", run_dir);
    fflush(out);
}
