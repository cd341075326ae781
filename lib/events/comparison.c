/*
 * One pass over the stages of each run adds them to their row, found in a hash table by
 * name or by stem (summary_rows.c does the same for one run); then rows are sorted by
 * what they changed, and those that changed least go into the rest. O(stages × log
 * stages) and the times of tasks.
 *
 * Sorting by the difference in per cent was rejected: stages of a millisecond would be
 * the first. What counts is how much of the run's difference a stage is.
 */
#include "events/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/wording.h"
#include "events/summary_rows.h"

struct entry {
    struct trp_comparison_row row; /* first: rows are handed out */
    UT_hash_handle hh;
    char name[];
};

struct maker {
    struct trp_comparison *c;
    struct entry *table;
    bool by_stem;
    uint32_t side, start; /* whose stages are added now */
    const struct trp_statistics *s;
};

double trp_comparison_part(double a, double b)
{
    return a > 0 ? (b - a) / a : NAN;
}

/* ---- adding up ---- */

/* The comparison's place of a device of the run that is added; TRP_NONE: too many. */
static uint32_t device(struct trp_comparison *c, const char *name)
{
    for (uint32_t i = 0; i < c->ndevices; i++)
        if (strcmp(c->device[i], name) == 0)
            return i;
    if (c->ndevices == TRP_PROFILE_RESOURCES)
        return TRP_NONE;
    snprintf(c->device[c->ndevices], sizeof c->device[0], "%s", name);
    return c->ndevices++;
}

static void add_seconds(const struct maker *m, struct trp_seconds *to,
                        const struct trp_seconds *more)
{
    if (!more)
        return;
    to->cores += more->cores;
    for (uint32_t i = 0; i < m->s->ndevices; i++) {
        uint32_t d = more->devices[i] > 0 ? device(m->c, m->s->device[i]) : TRP_NONE;
        if (d != TRP_NONE)
            to->devices[d] += more->devices[i];
    }
}

static void add_time(int64_t *to, int64_t ns)
{
    if (__builtin_add_overflow(*to, ns, to))
        *to = INT64_MAX;
}

static void note_profile(const struct maker *m, struct trp_compared *to,
                         trp_profile_id id)
{
    const struct trp_shape *shape =
        id.n < m->s->nshapes && m->s->shapes[id.n].known ? &m->s->shapes[id.n] : NULL;
    if (to->nstages == 0 && shape) {
        to->profile = shape->name;
        to->cores = shape->executor.cores;
    } else if (!shape || !to->profile || strcmp(to->profile, shape->name) != 0 ||
               to->cores != shape->executor.cores) {
        to->profile = NULL;
        to->cores = 0;
    }
}

/* Tasks of a stage that a later start goes on with are the same tasks. */
static void count_tasks(const struct maker *m, struct trp_compared *to,
                        const struct trp_stage_statistics *s)
{
    if (to->nstages > 0 && to->start != m->start)
        to->tasks_then = to->given_up = to->skipped = 0;
    to->start = m->start;
    to->tasks_then += s->ntasks;
    if (to->tasks_then > to->tasks)
        to->tasks = to->tasks_then;
    to->given_up += s->given_up;
    to->skipped += s->skipped;
}

/* A later start's word counts, and that of a stage that was never submitted only when
 * there is no other. */
static void note_outcome(const struct maker *m, struct trp_compared *to,
                         const struct trp_stage_statistics *s)
{
    bool first = to->nstages == 0 || to->start != m->start;
    bool waited = s->outcome == TRP_OUTCOME_RUNNING && s->submitted <= 0;
    if (!first && waited)
        return;
    if (first || to->waited ||
        trp_outcome_badness(s->outcome) > trp_outcome_badness(to->outcome))
        to->outcome = s->outcome;
    to->waited = waited;
}

static int add_stage(const struct maker *m, struct trp_compared *to,
                     const struct trp_stage_statistics *s)
{
    note_profile(m, to, s->profile);
    note_outcome(m, to, s);
    count_tasks(m, to, s);
    to->nstages++;
    to->submitted = to->submitted || s->submitted > 0;
    to->attempts += s->attempts + s->open;
    to->failures += s->failures;
    if (s->submitted > 0)
        add_time(&to->wall_ns, (s->ended > 0 ? s->ended : m->s->last) - s->submitted);
    add_seconds(m, &to->held, s->held);
    add_seconds(m, &to->used, s->used);
    to->cpu += s->cpu;
    to->nodes += trp_statistics_node_seconds(m->s, s);
    trp_flows_add(to->flow, s->flow);
    return trp_durations_merge(&to->durations, &s->durations);
}

/* Counts that have been added up already; no durations. */
static void add_compared(struct trp_compared *to, const struct trp_compared *more)
{
    if (more->nstages == 0)
        return;
    if (to->nstages == 0 ||
        trp_outcome_badness(more->outcome) > trp_outcome_badness(to->outcome)) {
        to->outcome = more->outcome;
        to->waited = more->waited;
    }
    to->nstages += more->nstages;
    to->submitted = to->submitted || more->submitted;
    to->tasks += more->tasks;
    to->attempts += more->attempts;
    to->failures += more->failures;
    to->given_up += more->given_up;
    to->skipped += more->skipped;
    add_time(&to->wall_ns, more->wall_ns);
    to->cpu += more->cpu;
    to->nodes += more->nodes;
    to->held.cores += more->held.cores;
    to->used.cores += more->used.cores;
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++) {
        to->held.devices[i] += more->held.devices[i];
        to->used.devices[i] += more->used.devices[i];
    }
    trp_flows_add(to->flow, more->flow);
}

/* ---- rows ---- */

static void name_of(const struct maker *m, const struct trp_stage_statistics *s,
                    char *buf, size_t size)
{
    if (!s->name)
        snprintf(buf, size, "stage %u", s->stage.n);
    else if (m->by_stem)
        trp_name_stem(s->name, buf, size);
    else
        snprintf(buf, size, "%s", s->name);
}

/* NULL: out of memory. */
static struct entry *entry_of(struct maker *m, const struct trp_stage_statistics *s)
{
    char name[300];
    struct entry *e;
    name_of(m, s, name, sizeof name);
    HASH_FIND_STR(m->table, name, e);
    if (e)
        return e;
    size_t n = strlen(name) + 1;
    e = calloc(1, sizeof *e + n);
    if (!e)
        return NULL;
    memcpy(e->name, name, n);
    e->row.name = e->name;
    e->row.first = HASH_COUNT(m->table);
    HASH_ADD_KEYPTR(hh, m->table, e->name, n - 1, e);
    if (e->hh.tbl)
        return e;
    free(e);
    return NULL;
}

static void drop_table(struct maker *m)
{
    struct entry *e = m->table, *next;
    HASH_CLEAR(hh, m->table); /* the table; its elements are still chained */
    for (; e; e = next) {
        next = e->hh.next;
        trp_durations_free(&e->row.of[0].durations);
        trp_durations_free(&e->row.of[1].durations);
        free(e);
    }
}

static int add_run(struct maker *m, const struct trp_run_records *runs, uint32_t side)
{
    int rc = 0;
    m->side = side;
    for (m->start = 0; m->start < runs->n; m->start++) {
        m->s = &runs->v[m->start]->statistics;
        for (uint32_t i = 0; i < m->s->nstages && rc == 0; i++) {
            if (!m->s->stages[i])
                continue;
            struct entry *e = entry_of(m, m->s->stages[i]);
            rc = e ? add_stage(m, &e->row.of[side], m->s->stages[i]) : TRP_ENOMEM;
        }
    }
    return rc;
}

static int fill(struct maker *m, const struct trp_run_records *const runs[2])
{
    int rc = add_run(m, runs[0], 0);
    return rc == 0 ? add_run(m, runs[1], 1) : rc;
}

/* With what no stage held, and the time from the first to the last thing told. */
static void add_totals(struct maker *m, const struct trp_run_records *runs,
                       uint32_t side)
{
    struct trp_compared *total = &m->c->total.of[side];
    for (struct entry *e = m->table; e; e = e->hh.next)
        add_compared(total, &e->row.of[side]);
    total->wall_ns = 0;
    for (uint32_t i = 0; i < runs->n; i++) {
        m->s = &runs->v[i]->statistics;
        add_time(&total->wall_ns, m->s->last - m->s->first);
        add_seconds(m, &total->held, &m->s->idle);
        total->nodes += m->s->idle_nodes;
    }
}

/* The difference as a part of the larger whole. */
static double part_of(double a, double b, double whole, double other)
{
    double larger = whole > other ? whole : other;
    return larger > 0 ? fabs(a - b) / larger : 0;
}

static void weigh(struct trp_comparison *c, struct trp_comparison_row *r)
{
    const struct trp_compared *all = c->total.of, *of = r->of;
    r->weight = part_of((double)of[0].wall_ns, (double)of[1].wall_ns,
                        (double)all[0].wall_ns, (double)all[1].wall_ns) +
                part_of(of[0].held.cores, of[1].held.cores, all[0].held.cores,
                        all[1].held.cores);
}

static int by_weight(const void *a, const void *b)
{
    const struct trp_comparison_row *x = *(struct trp_comparison_row *const *)a,
                                    *y = *(struct trp_comparison_row *const *)b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Hands out the rows, and keeps nothing. */
static int take_rows(struct maker *m, bool all)
{
    struct trp_comparison *c = m->c;
    uint32_t n = HASH_COUNT(m->table), keep = n;
    struct entry *e = m->table, *next;
    c->rows = calloc(n + 1u, sizeof *c->rows);
    if (!c->rows)
        return TRP_ENOMEM;
    HASH_CLEAR(hh, m->table);
    for (; e; e = next) {
        next = e->hh.next;
        weigh(c, &e->row);
        c->in_both += e->row.of[0].nstages && e->row.of[1].nstages;
        c->rows[c->n++] = &e->row;
    }
    qsort(c->rows, n, sizeof(struct trp_comparison_row *), by_weight);
    if (!all && n > TRP_SUMMARY_ROWS)
        keep = TRP_SUMMARY_ROWS_KEPT;
    for (; c->n > keep; c->more++) {
        struct trp_comparison_row *r = c->rows[--c->n];
        for (int side = 0; side < 2; side++) {
            add_compared(&c->rest.of[side], &r->of[side]);
            trp_durations_free(&r->of[side].durations);
        }
        free(r); /* the beginning of its entry */
    }
    return 0;
}

int trp_comparison_make(struct trp_run_records *a, struct trp_run_records *b, bool all,
                        struct trp_comparison *ret)
{
    const struct trp_run_records *const runs[2] = {a, b};
    struct maker m = {.c = ret};
    *ret = (struct trp_comparison){0};
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < runs[side]->n; i++)
            trp_statistics_settle(&runs[side]->v[i]->statistics);
    int rc = fill(&m, runs);
    if (rc == 0 && !all && HASH_COUNT(m.table) > TRP_SUMMARY_ROWS) {
        drop_table(&m);
        m.by_stem = true;
        rc = fill(&m, runs);
    }
    if (rc == 0) {
        add_totals(&m, a, 0);
        add_totals(&m, b, 1);
        rc = take_rows(&m, all);
    }
    drop_table(&m);
    if (rc < 0)
        trp_comparison_free(ret);
    return rc;
}

void trp_comparison_free(struct trp_comparison *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        trp_durations_free(&c->rows[i]->of[0].durations);
        trp_durations_free(&c->rows[i]->of[1].durations);
        free(c->rows[i]); /* the beginning of its entry */
    }
    free(c->rows);
    *c = (struct trp_comparison){0};
}
