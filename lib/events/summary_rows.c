/*
 * One pass adds each stage to its row, found in a hash table by the stem of the stage's
 * name, or by its id while there are few stages or when it has no name; then it is
 * chosen which rows stay; another pass, in the order in which stages were submitted,
 * counts the time of each row. O(stages log stages + tasks) time at most, memory for the
 * stages and the distinct names.
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

/* One that nobody needed says nothing of others. */
static int badness_of(const struct trp_stage_statistics *s)
{
    const bool unneeded = s->outcome == TRP_OUTCOME_RUNNING && s->submitted <= 0;
    return unneeded ? -1 : trp_outcome_badness(s->outcome);
}

static void add_row(struct trp_summary_row *to, const struct trp_summary_row *more)
{
    if (to->nstages == 0) {
        to->first = to->worst = more->first;
        to->same_profile = true;
    }
    if (badness_of(more->worst) > badness_of(to->worst))
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
    to->cpu += more->cpu;
    to->nodes += more->nodes;
    trp_flows_add(to->flow, more->flow);
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
                                .nstages = 1 + stage->folded,
                                .submitted = stage->submitted > 0,
                                .same_profile = true,
                                .tasks = stage->ntasks,
                                .attempts = stage->attempts + stage->open,
                                .failures = stage->failures,
                                .given_up = stage->given_up,
                                .skipped = stage->skipped,
                                .durations = stage->durations,
                                .nodes = trp_statistics_node_seconds(s, stage),
                                .cpu = stage->cpu};
    trp_flows_add(r.flow, stage->flow);
    if (stage->held)
        r.held = *stage->held;
    if (stage->used)
        r.used = *stage->used;
    return r;
}

/* Rows are found by the stem of a stage's name, or by its id. */
struct row_key {
    char stem[300]; /* "" by id */
    const void *bytes;
    size_t size;
};

static void key_of(const struct trp_stage_statistics *stage, bool by_name,
                   struct row_key *ret)
{
    ret->stem[0] = '\0';
    ret->bytes = &stage->stage;
    ret->size = sizeof stage->stage;
    if (!by_name || !stage->name)
        return;
    trp_name_stem(stage->name, ret->stem, sizeof ret->stem);
    ret->bytes = ret->stem;
    ret->size = strlen(ret->stem) + 1;
}

/* The row where a stage belongs; NULL: there is none yet. */
static struct entry *find_entry(struct entry *table, const struct row_key *key)
{
    struct entry *e;
    HASH_FIND(hh, table, key->bytes, key->size, e);
    return e;
}

/* The same, made if need be; NULL: out of memory. */
static struct entry *entry_of(struct entry **table,
                              const struct trp_stage_statistics *stage, bool by_name)
{
    struct row_key key;
    key_of(stage, by_name, &key);
    struct entry *e = find_entry(*table, &key);
    if (e) {
        if (strcmp(e->row.name, stage->name) != 0)
            e->row.name = e->stem;
        return e;
    }
    e = calloc(1, sizeof *e + strlen(key.stem) + 1);
    if (!e)
        return NULL;
    strcpy(e->stem, key.stem);
    e->row.name = stage->name;
    if (key.bytes == key.stem)
        key.bytes = e->stem;
    HASH_ADD_KEYPTR(hh, *table, key.bytes, key.size, e);
    if (e->hh.tbl)
        return e;
    free(e);
    return NULL;
}

static uint32_t count_stages(const struct trp_statistics *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nstages; i++)
        n += trp_statistics_own(s, i) != NULL;
    return n;
}

static struct entry *fill_table(const struct trp_statistics *s,
                                struct trp_summary_rows *r, bool by_name)
{
    struct entry *table = NULL;
    r->total.held = s->idle;
    r->total.nodes = s->idle_nodes;
    for (uint32_t i = 0; i < s->nstages; i++) {
        if (!trp_statistics_own(s, i))
            continue;
        struct trp_summary_row one = row_of(s, s->stages[i]);
        struct entry *e = entry_of(&table, s->stages[i], by_name);
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

static int by_submission(const void *a, const void *b)
{
    const struct trp_stage_statistics *const *x = a, *const *y = b;
    int64_t p = (*x)->submitted, q = (*y)->submitted;
    return p < q ? -1 : p > q;
}

/* The time in which a stage of the row was under way: what several were at once counts
 * once. Without memory it is not told. */
static void add_walls(const struct trp_statistics *s, struct entry *table, bool by_name,
                      struct trp_summary_row *rest)
{
    uint32_t n = 0;
    const struct trp_stage_statistics **order = calloc(s->nstages + 1, sizeof *order);
    for (uint32_t i = 0; order && i < s->nstages; i++)
        if (trp_statistics_own(s, i) && s->stages[i]->submitted > 0)
            order[n++] = s->stages[i];
    if (n)
        qsort(order, n, sizeof *order, by_submission);
    for (uint32_t i = 0; i < n; i++) {
        struct row_key key;
        key_of(order[i], by_name, &key);
        struct entry *e = find_entry(table, &key);
        struct trp_summary_row *row = e && e->kept ? &e->row : rest;
        int64_t from = order[i]->submitted,
                to = order[i]->ended > 0 ? order[i]->ended : s->last;
        from = from > row->until ? from : row->until;
        row->wall_ns += order[i]->folded_ns;
        if (to <= from)
            continue;
        row->wall_ns += to - from;
        row->until = to;
    }
    free(order);
}

void trp_summary_rows_make(const struct trp_statistics *s, bool all,
                           struct trp_summary_rows *ret)
{
    bool by_name = !all && count_stages(s) > TRP_SUMMARY_ROWS;
    *ret = (struct trp_summary_rows){0};
    struct entry *table = fill_table(s, ret, by_name), *next;
    ret->v = calloc(HASH_COUNT(table) + 1, sizeof(struct trp_summary_row *));
    choose(table, HASH_COUNT(table), all);
    add_walls(s, table, by_name, &ret->rest);
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
