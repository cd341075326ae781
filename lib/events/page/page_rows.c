/*
 * Attempts are sorted by row and time. Of a row with bins, what each attempt (or sum of
 * attempts) adds to a bin is one piece; pieces are sorted and added up. A row has at most
 * as many at a time as it has slots, which bounds them.
 */
#include "events/page/page_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "events/json_text.h"

enum by { BY_EXECUTOR, BY_HOST, BY_PROFILE };

struct row {
    uint32_t first, ntasks;   /* in `order` */
    uint32_t executor, stage; /* an executor's, or a stage's gangs; else TRP_NONE */
    uint32_t host, profile;   /* TRP_NONE: several */
    double slots;             /* tasks at once, of all its executors together */
    uint32_t first_sum;       /* TRP_NONE: none */
};

struct rows {
    const struct trp_page_facts *f;
    const struct trp_page_axis *axis;
    struct trp_buf *b;
    enum by by;
    struct row *v;
    uint32_t n, capacity;
    uint32_t *row_of_executor, *row_of_stage; /* TRP_NONE: none */
    uint32_t *order;                          /* places of tasks, by row and begin */
    uint32_t *next_sum; /* a chain of places of sums for each row, TRP_NONE ends it */
    uint32_t longest;   /* with so many attempts: one by one */
    uint32_t bins;
    uint32_t failed; /* told one by one, beside bins */
    struct piece {
        uint32_t bin, stage;
        double amount; /* of the row's slots */
    } * pieces;        /* of the row at hand */
    uint32_t npieces, pieces_capacity;
};

/* ---- which rows there are ---- */

static uint32_t add_row(struct rows *r, const struct row *row)
{
    r->v[r->n] = *row;
    r->v[r->n].first_sum = TRP_NONE;
    return r->n++;
}

static void make_executor_rows(struct rows *r)
{
    const struct trp_page_facts *f = r->f;
    uint32_t groups = r->by == BY_HOST ? f->nhosts : f->nprofiles;
    for (uint32_t g = 0; r->by != BY_EXECUTOR && g < groups; g++)
        add_row(r, &(struct row){.executor = TRP_NONE,
                                 .stage = TRP_NONE,
                                 .host = r->by == BY_HOST ? g : TRP_NONE,
                                 .profile = r->by == BY_PROFILE ? g : TRP_NONE});
    for (uint32_t i = 0; i < f->nexecutors; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        uint32_t slots = x->profile == TRP_NONE ? 1 : f->profiles[x->profile].slots, at;
        r->row_of_executor[i] = TRP_NONE;
        if (x->host == TRP_NONE)
            continue;
        at = r->by == BY_HOST ? x->host : x->profile;
        if (r->by == BY_EXECUTOR)
            at = add_row(r, &(struct row){.executor = i,
                                          .stage = TRP_NONE,
                                          .host = x->host,
                                          .profile = x->profile});
        if (at >= r->n)
            continue;
        r->row_of_executor[i] = at;
        r->v[at].slots += slots;
    }
}

static uint32_t row_of(struct rows *r, uint32_t executor, uint32_t stage)
{
    return executor == TRP_NONE ? r->row_of_stage[stage] : r->row_of_executor[executor];
}

/* One a stage with gangs; a stage has one at a time. */
static void need_gang_row(struct rows *r, uint32_t stage)
{
    if (r->row_of_stage[stage] != TRP_NONE)
        return;
    r->row_of_stage[stage] =
        add_row(r, &(struct row){.executor = TRP_NONE,
                                 .stage = stage,
                                 .host = TRP_NONE,
                                 .profile = r->f->stages[stage].profile,
                                 .slots = 1});
}

static bool make_rows(struct rows *r)
{
    const struct trp_page_facts *f = r->f;
    size_t most = (size_t)f->nexecutors + f->nhosts + f->nprofiles + f->nstages + 1;
    r->by = f->nexecutors <= TRP_PAGE_ROWS ? BY_EXECUTOR
            : f->nhosts <= TRP_PAGE_ROWS   ? BY_HOST
                                           : BY_PROFILE;
    r->v = calloc(most, sizeof *r->v);
    r->row_of_executor = calloc((size_t)f->nexecutors + 1, sizeof *r->row_of_executor);
    r->row_of_stage = malloc(((size_t)f->nstages + 1) * sizeof *r->row_of_stage);
    if (!r->v || !r->row_of_executor || !r->row_of_stage)
        return false;
    memset(r->row_of_stage, 0xff, ((size_t)f->nstages + 1) * sizeof *r->row_of_stage);
    make_executor_rows(r);
    for (uint32_t i = 0; i < f->ntasks; i++)
        if (f->tasks[i].executor == TRP_NONE)
            need_gang_row(r, f->tasks[i].stage);
    for (uint32_t i = 0; i < f->nsums; i++)
        if (f->sums[i].executor == TRP_NONE)
            need_gang_row(r, f->sums[i].stage);
    return true;
}

/* ---- attempts by row ---- */

static const struct trp_page_task *sorted; /* of qsort's comparison */

static int by_begin(const void *a, const void *b)
{
    const struct trp_page_task *x = &sorted[*(const uint32_t *)a],
                               *y = &sorted[*(const uint32_t *)b];
    return x->begun < y->begun ? -1 : x->begun > y->begun;
}

/* By counting, then each row by time. */
static bool sort_tasks(struct rows *r)
{
    const struct trp_page_facts *f = r->f;
    uint32_t at = 0, row;
    r->order = calloc((size_t)f->ntasks + 1, sizeof *r->order);
    if (!r->order)
        return false;
    for (uint32_t i = 0; i < f->ntasks; i++)
        if ((row = row_of(r, f->tasks[i].executor, f->tasks[i].stage)) != TRP_NONE)
            r->v[row].ntasks++;
    for (uint32_t i = 0; i < r->n; i++) {
        r->v[i].first = at;
        at += r->v[i].ntasks;
        r->v[i].ntasks = 0;
    }
    for (uint32_t i = 0; i < f->ntasks; i++)
        if ((row = row_of(r, f->tasks[i].executor, f->tasks[i].stage)) != TRP_NONE)
            r->order[r->v[row].first + r->v[row].ntasks++] = i;
    sorted = f->tasks;
    for (uint32_t i = 0; i < r->n; i++)
        qsort(r->order + r->v[i].first, r->v[i].ntasks, sizeof *r->order, by_begin);
    return true;
}

static bool chain_sums(struct rows *r)
{
    const struct trp_page_facts *f = r->f;
    r->next_sum = calloc((size_t)f->nsums + 1, sizeof *r->next_sum);
    if (!r->next_sum)
        return false;
    for (uint32_t i = f->nsums, row; i-- > 0;)
        if ((row = row_of(r, f->sums[i].executor, f->sums[i].stage)) != TRP_NONE) {
            r->next_sum[i] = r->v[row].first_sum;
            r->v[row].first_sum = i;
        }
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Up to which length rows have their attempts one by one, and how many bins others. */
static bool choose(struct rows *r)
{
    uint32_t *lengths = calloc((size_t)r->n + 1, sizeof *lengths), binned = 0;
    uint64_t sum = 0;
    if (!lengths)
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        lengths[i] = r->v[i].ntasks;
    qsort(lengths, r->n, sizeof *lengths, by_number);
    for (uint32_t i = 0; i < r->n && r->by == BY_EXECUTOR; i++) {
        sum += lengths[i];
        if (sum > TRP_PAGE_TASKS) { /* nor those before that are as long */
            r->longest = lengths[i] - 1;
            break;
        }
        r->longest = lengths[i];
    }
    free(lengths);
    for (uint32_t i = 0; i < r->n; i++)
        binned += r->v[i].ntasks > r->longest || r->v[i].first_sum != TRP_NONE;
    r->bins = TRP_PAGE_ROW_BINS;
    if (binned > TRP_PAGE_CELLS / TRP_PAGE_ROW_BINS)
        r->bins = TRP_PAGE_CELLS / binned;
    return true;
}

/* ---- bins ---- */

static bool add_pieces(struct rows *r, uint32_t stage, int64_t from, int64_t to,
                       double amount)
{
    double scale = (double)r->bins / (double)r->axis->length;
    double begin = (double)trp_page_axis_at(r->axis, from) * scale,
           end = (double)trp_page_axis_at(r->axis, to) * scale;
    for (uint32_t i = (uint32_t)begin; i < r->bins && (double)i < end; i++) {
        double low = begin > i ? begin : i, high = end < i + 1.0 ? end : i + 1.0;
        if (!TRP_ARRAY_GROW(r->pieces, r->npieces, r->pieces_capacity))
            return false;
        r->pieces[r->npieces++] = (struct piece){i, stage, amount * (high - low)};
    }
    return true;
}

static int by_bin(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->bin != y->bin)
        return x->bin < y->bin ? -1 : 1;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

/* Puts BIN, STAGE, PERMILLE of the row's slots. */
static void put_pieces(struct rows *r, double slots)
{
    if (r->npieces)
        qsort(r->pieces, r->npieces, sizeof *r->pieces, by_bin);
    for (uint32_t i = 0; i < r->npieces;) {
        const struct piece *first = &r->pieces[i];
        double amount = 0;
        for (; i < r->npieces && by_bin(first, &r->pieces[i]) == 0; i++)
            amount += r->pieces[i].amount;
        int64_t permille = (int64_t)(amount * 1000 / (slots > 0 ? slots : 1) + 0.5);
        trp_json_comma(r->b);
        trp_json_int(r->b, first->bin);
        TRP_JSON(r->b, ",");
        trp_json_int(r->b, first->stage);
        TRP_JSON(r->b, ",");
        trp_json_int(r->b, permille ? permille : 1);
    }
    r->npieces = 0;
}

static bool put_bins(struct rows *r, const struct row *row, bool tasks)
{
    const struct trp_page_facts *f = r->f;
    bool good = true;
    for (uint32_t i = row->first; tasks && i < row->first + row->ntasks && good; i++) {
        const struct trp_page_task *t = &f->tasks[r->order[i]];
        good = add_pieces(r, t->stage, t->begun, trp_page_task_end(f, t), 1);
    }
    for (uint32_t i = row->first_sum; i != TRP_NONE && good; i = r->next_sum[i]) {
        const struct trp_page_sum *g = &f->sums[i];
        if (g->to > g->from)
            good = add_pieces(r, g->stage, g->from, g->to,
                              (double)g->run_ms / (double)(g->to - g->from));
    }
    TRP_JSON(r->b, ",\"b\":[");
    put_pieces(r, row->slots);
    TRP_JSON(r->b, "]");
    return good;
}

/* ---- rows ---- */

static void put_place(struct trp_buf *b, const char *name, uint32_t place)
{
    TRP_JSON(b, ",\"");
    trp_put_raw(b, name, strlen(name));
    TRP_JSON(b, "\":");
    if (place == TRP_NONE)
        TRP_JSON(b, "null");
    else
        trp_json_int(b, place);
}

/* BEGIN (since the one before), LENGTH, STAGE, TASK, ATTEMPT, END, LEVEL; a copy's
 * ATTEMPT is negative, less 1. */
static void put_task(struct rows *r, const struct trp_page_task *t, int64_t *before)
{
    int64_t begin = trp_page_axis_at(r->axis, t->begun);
    int64_t v[] = {begin - *before,
                   trp_page_axis_at(r->axis, trp_page_task_end(r->f, t)) - begin,
                   t->stage,
                   t->number,
                   t->copy ? -(int64_t)t->attempt - 1 : t->attempt,
                   t->end,
                   t->level};
    *before = begin;
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        trp_json_comma(r->b);
        trp_json_int(r->b, v[i]);
    }
}

static void put_tasks(struct rows *r, const struct row *row, bool all)
{
    int64_t before = 0;
    TRP_JSON(r->b, ",\"t\":[");
    for (uint32_t i = row->first; i < row->first + row->ntasks; i++) {
        const struct trp_page_task *t = &r->f->tasks[r->order[i]];
        bool failed = t->end == TRP_PAGE_FAILED || t->end == TRP_PAGE_LOST;
        if (all || (failed && r->failed < TRP_PAGE_FAILED_TASKS)) {
            put_task(r, t, &before);
            r->failed += !all;
        }
    }
    TRP_JSON(r->b, "]");
}

/* Where an executor was, and when; to which profiles it went over. */
static void put_executor(struct rows *r, uint32_t place)
{
    const struct trp_page_facts *f = r->f;
    const struct trp_page_executor *x = &f->executors[place];
    struct trp_buf *b = r->b;
    TRP_JSON_INT(b, "x", x->id);
    TRP_JSON_INT(b, "s", x->start);
    TRP_JSON_INT(b, "c", (int64_t)x->cores);
    TRP_JSON_INT(b, "a", trp_page_axis_at(r->axis, x->asked));
    TRP_JSON_INT(b, "f", trp_page_axis_at(r->axis, x->came));
    TRP_JSON_INT(b, "g", trp_page_axis_at(r->axis, trp_page_executor_end(f, x)));
    TRP_JSON_BOOL(b, "o", x->gone == 0);
    if (x->job)
        TRP_JSON_INT(b, "j", x->job);
    if (x->why)
        TRP_JSON_TEXT(b, "w", x->why);
}

static bool put_row(struct rows *r, const struct row *row)
{
    bool one_by_one = row->ntasks <= r->longest && r->by == BY_EXECUTOR;
    TRP_JSON(r->b, "{\"k\":");
    trp_json_int(r->b, (int64_t)row->slots);
    put_place(r->b, "n", row->host);
    put_place(r->b, "p", row->profile);
    if (row->executor != TRP_NONE)
        put_executor(r, row->executor);
    if (row->stage != TRP_NONE)
        put_place(r->b, "gang", row->stage);
    bool good = true;
    if (!one_by_one || row->first_sum != TRP_NONE)
        good = put_bins(r, row, !one_by_one);
    put_tasks(r, row, one_by_one);
    TRP_JSON(r->b, "}");
    return good;
}

/* Takeovers: ROW, TIME, PROFILE. */
static void put_takeovers(struct rows *r)
{
    const struct trp_page_facts *f = r->f;
    TRP_JSON(r->b, "],\"takeovers\":[");
    for (uint32_t i = 0; i < f->nspans && r->by == BY_EXECUTOR; i++) {
        const struct trp_page_span *s = &f->spans[i];
        if (s->from <= f->executors[s->executor].came || s->profile == TRP_NONE)
            continue;
        trp_json_comma(r->b);
        trp_json_int(r->b, r->row_of_executor[s->executor]);
        TRP_JSON(r->b, ",");
        trp_json_int(r->b, trp_page_axis_at(r->axis, s->from));
        TRP_JSON(r->b, ",");
        trp_json_int(r->b, s->profile);
    }
    TRP_JSON(r->b, "]}");
}

int trp_page_rows_put(const struct trp_page_facts *f, const struct trp_page_axis *a,
                      struct trp_buf *b)
{
    static const char *const by[] = {"executor", "host", "profile"};
    struct rows r = {.f = f, .axis = a, .b = b};
    bool good = make_rows(&r) && sort_tasks(&r) && chain_sums(&r) && choose(&r);
    if (good) {
        TRP_JSON(b, "{\"by\":");
        trp_json_text(b, by[r.by]);
        TRP_JSON_INT(b, "bins", r.bins);
        TRP_JSON(b, ",\"rows\":[");
        for (uint32_t i = 0; i < r.n && good; i++) {
            trp_json_comma(b);
            good = put_row(&r, &r.v[i]);
        }
        put_takeovers(&r);
    }
    free(r.v);
    free(r.row_of_executor);
    free(r.row_of_stage);
    free(r.order);
    free(r.next_sum);
    free(r.pieces);
    return good && !b->failed ? 0 : TRP_ENOMEM;
}
