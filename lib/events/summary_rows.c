/*
 * One pass adds each stage to its row, found in a hash table by the stem of the stage's name, or by
 * its id while there are few stages or when it has no name; then it is chosen which
 * rows stay. O(stages + tasks) time at most, memory for the distinct names.
 *
 * The median of several stages is that of all their tasks, within 1 % (durations.h):
 * what was counted for each stage is added up. The median of their medians was
 * rejected: the few long stages of a loop would vanish in it. The total has none, so it
 * does not pay for it.
 */
#include "events/summary_rows.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/wording.h"

struct entry {
    struct trp_summary_row row; /* first: rows are handed out */
    UT_hash_handle hh;
    bool kept;
    char stem[]; /* "" where it is one stage */
};

int trp_outcome_badness(enum trp_outcome outcome)
{
    switch (outcome) {
    case TRP_OUTCOME_FAILED:
        return 4;
    case TRP_OUTCOME_CANCELLED:
        return 3;
    case TRP_OUTCOME_RUNNING:
        return 2;
    case TRP_OUTCOME_SKIPPED:
        return 1;
    default:
        return 0;
    }
}

static void add_seconds(struct trp_seconds *to, const struct trp_seconds *more)
{
    to->cores += more->cores;
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++)
        to->devices[i] += more->devices[i];
}

static void add_row(struct trp_summary_row *to, const struct trp_summary_row *more)
{
    if (to->nstages == 0) {
        to->first = to->worst = more->first;
        to->same_profile = true;
    }
    if (trp_outcome_badness(more->worst->outcome) >
        trp_outcome_badness(to->worst->outcome))
        to->worst = more->worst;
    to->same_profile = to->same_profile && more->same_profile &&
                       to->first->profile.n == more->first->profile.n;
    to->nstages += more->nstages;
    to->submitted = to->submitted || more->submitted;
    to->tasks += more->tasks;
    to->attempts += more->attempts;
    to->failures += more->failures;
    to->given_up += more->given_up;
    to->skipped += more->skipped;
    if (__builtin_add_overflow(to->wall_ns, more->wall_ns, &to->wall_ns))
        to->wall_ns = INT64_MAX;
    to->cpu += more->cpu;
    to->nodes += more->nodes;
    trp_data_bytes_add(&to->data, &more->data);
    add_seconds(&to->held, &more->held);
    add_seconds(&to->used, &more->used);
}

/* With the times of tasks; for want of memory some are left out. */
static void add_all(struct trp_summary_row *to, const struct trp_summary_row *more)
{
    add_row(to, more);
    trp_durations_merge(&to->durations, &more->durations);
}

/* A row that borrows the stage's durations: not to be freed. */
static struct trp_summary_row row_of(const struct trp_statistics *s,
                                     const struct trp_stage_statistics *stage)
{
    struct trp_summary_row r = {.first = stage,
                                .worst = stage,
                                .nstages = 1,
                                .submitted = stage->submitted > 0,
                                .same_profile = true,
                                .tasks = stage->ntasks,
                                .attempts = stage->attempts + stage->open,
                                .failures = stage->failures,
                                .given_up = stage->given_up,
                                .skipped = stage->skipped,
                                .durations = stage->durations,
                                .nodes = trp_statistics_node_seconds(s, stage),
                                .cpu = stage->cpu,
                                .data = stage->data};
    if (stage->submitted > 0)
        r.wall_ns = (stage->ended > 0 ? stage->ended : s->last) - stage->submitted;
    if (stage->held)
        r.held = *stage->held;
    if (stage->used)
        r.used = *stage->used;
    return r;
}

/* The row where a stage belongs; NULL: out of memory. */
static struct entry *entry_of(struct entry **table,
                              const struct trp_stage_statistics *stage, bool by_name)
{
    char stem[300] = "";
    struct entry *e;
    by_name = by_name && stage->name;
    if (by_name)
        trp_name_stem(stage->name, stem, sizeof stem);
    const void *key = by_name ? (const void *)stem : &stage->stage;
    size_t size = by_name ? strlen(stem) + 1 : sizeof stage->stage;
    HASH_FIND(hh, *table, key, size, e);
    if (e) {
        if (strcmp(e->row.name, stage->name) != 0)
            e->row.name = e->stem;
        return e;
    }
    e = calloc(1, sizeof *e + strlen(stem) + 1);
    if (!e)
        return NULL;
    strcpy(e->stem, stem);
    e->row.name = stage->name;
    if (by_name)
        key = e->stem;
    HASH_ADD_KEYPTR(hh, *table, key, size, e);
    if (e->hh.tbl)
        return e;
    free(e);
    return NULL;
}

static struct entry *fill_table(const struct trp_statistics *s,
                                struct trp_summary_rows *r, bool all)
{
    struct entry *table = NULL;
    uint32_t nstages = 0;
    r->total.held = s->idle;
    r->total.nodes = s->idle_nodes;
    for (uint32_t i = 0; i < s->nstages; i++)
        nstages += s->stages[i] != NULL;
    for (uint32_t i = 0; i < s->nstages; i++) {
        if (!s->stages[i])
            continue;
        struct trp_summary_row one = row_of(s, s->stages[i]);
        struct entry *e =
            entry_of(&table, s->stages[i], !all && nstages > TRP_SUMMARY_ROWS);
        add_row(&r->total, &one);
        add_all(e ? &e->row : &r->rest, &one);
    }
    return table;
}

/* The most core-seconds first; of the same, the earlier stage. */
static int by_held(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->row.held.cores != y->row.held.cores)
        return x->row.held.cores > y->row.held.cores ? -1 : 1;
    return x->row.first->stage.n < y->row.first->stage.n ? -1 : 1;
}

static void choose(struct entry *table, uint32_t n, bool all)
{
    uint32_t keep = !all && n > TRP_SUMMARY_ROWS ? TRP_SUMMARY_ROWS_KEPT : n, i = 0;
    struct entry **order = n ? calloc(n, sizeof *order) : NULL;
    if (!order)
        return;
    for (struct entry *e = table; e; e = e->hh.next)
        order[i++] = e;
    qsort(order, n, sizeof *order, by_held);
    for (i = 0; i < keep; i++)
        order[i]->kept = true;
    free(order);
}

void trp_summary_rows_make(const struct trp_statistics *s, bool all,
                           struct trp_summary_rows *ret)
{
    *ret = (struct trp_summary_rows){0};
    struct entry *table = fill_table(s, ret, all), *next;
    ret->v = calloc(HASH_COUNT(table) + 1, sizeof(struct trp_summary_row *));
    choose(table, HASH_COUNT(table), all);
    for (struct entry *e = table; e; e = next) {
        next = e->hh.next;
        HASH_DEL(table, e);
        if (ret->v && e->kept) {
            ret->v[ret->n++] = &e->row;
            continue;
        }
        add_all(&ret->rest, &e->row);
        trp_durations_free(&e->row.durations);
        free(e);
    }
}

void trp_summary_rows_free(struct trp_summary_rows *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        trp_durations_free(&r->v[i]->durations);
        free(r->v[i]); /* the beginning of its entry */
    }
    trp_durations_free(&r->rest.durations);
    free(r->v);
}
