/*
 * The closing summary: one table, a line of totals, and where everything lies. Columns
 * are as wide as what is in them: rows are made twice, first to measure and then to
 * print, so that ten thousand stages need no memory. A column pair for each kind of
 * device of which something was held.
 */
#include <stdio.h>
#include <string.h>

#include "events/event_log_state.h"

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
    DEVICES, /* held and used of each kind, then how the stage ended */
    COLUMNS = DEVICES + 2 * TRP_PROFILE_RESOURCES + 1,
    CELL = TRP_PROFILE_NAME_MAX + 1,
    NAME_SHOWN = 32, /* longer names are cut */
};

struct table {
    const struct trp_statistics *s;
    FILE *out;
    uint32_t device[TRP_PROFILE_RESOURCES]; /* shown kinds */
    uint32_t ndevices;
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

static void seconds_text(double s, char *buf)
{
    snprintf(buf, CELL, s < 99.995 ? "%.2f" : s < 99999.95 ? "%.1f" : "%.0f", s);
}

static void count_text(uint64_t n, char *buf)
{
    snprintf(buf, CELL, "%llu", (unsigned long long)n);
}

static void name_text(const char *name, char *buf)
{
    size_t n = strlen(name);
    snprintf(buf, CELL, n > NAME_SHOWN ? "%.*s~" : "%.*s",
             n > NAME_SHOWN ? NAME_SHOWN - 1 : NAME_SHOWN, name);
}

static void add(struct trp_seconds *to, const struct trp_seconds *more)
{
    if (!more)
        return;
    to->cores += more->cores;
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++)
        to->devices[i] += more->devices[i];
}

/* ---- rows: each fills all cells -----------------------------------------------------
 */

static void clear(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        t->cell[c][0] = '\0';
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
        return "unfinished";
    default:
        return trp_outcome_name(s->outcome);
    }
}

static void stage_row(struct table *t, const struct trp_stage_statistics *s)
{
    clear(t);
    if (s->name)
        name_text(s->name, t->cell[STAGE]);
    else
        snprintf(t->cell[STAGE], CELL, "stage %u", s->stage.n);
    if (s->profile.n < t->s->nshapes && t->s->shapes[s->profile.n].known)
        name_text(t->s->shapes[s->profile.n].name, t->cell[PROFILE]);
    count_text(s->ntasks, t->cell[TASKS]);
    count_text(s->attempts, t->cell[ATTEMPTS]);
    count_text(s->failures, t->cell[FAILED]);
    if (s->submitted > 0)
        time_text((s->ended > 0 ? s->ended : t->s->last) - s->submitted, t->cell[WALL]);
    if (s->durations.count > 0) {
        time_text(trp_durations_quantile(&s->durations, 500), t->cell[MEDIAN]);
        time_text(s->durations.greatest, t->cell[GREATEST]);
    }
    seconds_cells(t, s->held, s->used);
    if (t->ends)
        name_text(end_word(s), t->cell[t->columns - 1]);
}

static void idle_row(struct table *t)
{
    clear(t);
    snprintf(t->cell[STAGE], CELL, "(no stage)");
    seconds_cells(t, &t->s->idle, NULL);
}

struct totals {
    uint64_t tasks, attempts, failures;
    double cpu;
    struct trp_seconds held, used;
};

static void total_row(struct table *t, const struct totals *sum)
{
    clear(t);
    snprintf(t->cell[STAGE], CELL, "total");
    count_text(sum->tasks, t->cell[TASKS]);
    count_text(sum->attempts, t->cell[ATTEMPTS]);
    count_text(sum->failures, t->cell[FAILED]);
    time_text(t->s->last - t->s->first, t->cell[WALL]);
    seconds_cells(t, &sum->held, &sum->used);
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
}

/* ---- printing
 * ------------------------------------------------------------------------- */

static void measure(struct table *t)
{
    for (int c = 0; c < t->columns; c++)
        if ((int)strlen(t->cell[c]) > t->width[c])
            t->width[c] = (int)strlen(t->cell[c]);
}

static void print_row(struct table *t)
{
    char line[COLUMNS * (CELL + 2) + 1];
    size_t n = 0;
    for (int c = 0; c < t->columns; c++) {
        bool left = c <= PROFILE || (t->ends && c == t->columns - 1);
        n += (size_t)snprintf(line + n, sizeof line - n, left ? "%s%-*s" : "%s%*s",
                              c > 0 ? "  " : "", t->width[c], t->cell[c]);
    }
    while (n > 0 && line[n - 1] == ' ')
        n--;
    fprintf(t->out, "%.*s\n", (int)n, line);
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

static struct totals total(const struct trp_statistics *s)
{
    struct totals sum = {0};
    add(&sum.held, &s->idle);
    for (uint32_t i = 0; i < s->nstages; i++) {
        const struct trp_stage_statistics *st = s->stages[i];
        if (!st)
            continue;
        sum.tasks += st->ntasks;
        sum.attempts += st->attempts;
        sum.failures += st->failures;
        sum.cpu += st->cpu;
        add(&sum.held, st->held);
        add(&sum.used, st->used);
    }
    return sum;
}

static void lay_out(struct table *t, const struct totals *sum)
{
    for (uint32_t i = 0; i < t->s->ndevices; i++)
        if (sum->held.devices[i] > 0 || sum->used.devices[i] > 0)
            t->device[t->ndevices++] = i;
    for (uint32_t i = 0; i < t->s->nstages; i++)
        if (t->s->stages[i] && end_word(t->s->stages[i])[0])
            t->ends = true;
    t->columns = DEVICES + 2 * (int)t->ndevices + (t->ends ? 1 : 0);
    head_row(t);
    measure(t);
    for (uint32_t i = 0; i < t->s->nstages; i++) {
        if (!t->s->stages[i])
            continue;
        stage_row(t, t->s->stages[i]);
        measure(t);
    }
    if (t->s->idle.cores > 0) {
        idle_row(t);
        measure(t);
    }
    total_row(t, sum);
    measure(t);
    widen_groups(t);
}

void trp_event_summary_print(const trp_event_log *l, FILE *out, const char *run_dir)
{
    trp_statistics_settle(l->statistics);
    const struct trp_statistics *s = l->statistics;
    struct totals sum = total(s);
    struct table t = {.s = s, .out = out};
    lay_out(&t, &sum);

    print_groups(&t);
    head_row(&t);
    print_row(&t);
    for (uint32_t i = 0; i < s->nstages; i++) {
        if (!s->stages[i])
            continue;
        stage_row(&t, s->stages[i]);
        print_row(&t);
    }
    if (s->idle.cores > 0) {
        idle_row(&t);
        print_row(&t);
    }
    total_row(&t, &sum);
    print_row(&t);

    char cpu[CELL];
    seconds_text(sum.cpu, cpu);
    fputc('\n', out);
    print_share(out, "core", sum.held.cores, sum.used.cores);
    fprintf(out, ", %s CPU time\n", cpu);
    for (uint32_t i = 0; i < t.ndevices; i++) {
        print_share(out, s->device[t.device[i]], sum.held.devices[t.device[i]],
                    sum.used.devices[t.device[i]]);
        fputc('\n', out);
    }
    fprintf(out, "logs: %s/logs  events: %s/events.jsonl\n", run_dir, run_dir);
    fflush(out);
}
