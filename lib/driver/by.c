/*
 * Tasks by a column. Values are compared by their prints: those of the stage's tasks are
 * sorted and numbered, those of the rows above are looked up among them, n log n in all. A
 * row above that nobody below needs has no number, and nobody waits for it.
 */
#include "driver/by.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "core/base/array.h"
#include "core/base/ids.h"
#include "driver/group.h"
#include "driver/output_files.h"

struct value {
    struct trp_print print;
    uint32_t task;
};

struct maker {
    const trp_pipeline *p;
    const struct trp_pipeline_stage *s;
    const struct trp_after *a;
    const struct trp_items *own, *above;
    uint32_t own_column, above_column;
    struct value *v; /* of each task; later the first nvalues, by print */
    uint32_t nabove_cap;
    struct trp_by_tasks *ret;
    trp_error *err;
};

static int by_print(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    int order = memcmp(&x->print, &y->print, sizeof x->print);
    return order ? order : x->task < y->task ? -1 : x->task > y->task;
}

static int by_print_alone(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct trp_print));
}

#define WRONG(m, fmt, ...)                                                             \
    trp_error_set((m)->err, TRP_EINVAL, "%s:%u:%u: stage %s: by: " fmt,                \
                  trp_mark_file((m)->p->file, (m)->a->by_mark), (m)->a->by_mark.line,  \
                  (m)->a->by_mark.column, (m)->s->name, __VA_ARGS__)

static int no_memory(const struct maker *m)
{
    return trp_error_set(m->err, TRP_ENOMEM, "out of memory for stage %s", m->s->name);
}

static const struct trp_pipeline_stage *stage_above(const struct maker *m)
{
    return &m->p->stages[m->a->index];
}

/* ---- columns ---- */

static int find_column(const struct maker *m, const struct trp_pipeline_stage *s,
                       const struct trp_items *i, uint32_t *ret)
{
    struct trp_nearest near = trp_nearest_of(m->a->by);
    struct trp_name_list all = {0};
    *ret = trp_items_column(i, m->a->by);
    if (*ret != TRP_NONE || !i->columns) /* a table that may be missing, and is */
        return 0;
    trp_items_list_columns(i, &near, &all);
    return WRONG(m,
                 "the table %.300s of stage %s has no column %s%s; the columns are %s",
                 s->pattern, s->name, trp_show(m->a->by).text,
                 trp_did_you_mean(&near).text, all.text);
}

static const char *first_row(const struct trp_items *i, uint32_t task)
{
    return i->row ? i->row[i->row_first[task]].data : i->item[task].data;
}

static int take_value(struct maker *m, uint32_t task, struct trp_buf *b)
{
    const struct trp_items *i = m->own;
    if (i->row && !trp_group_is_same(i, task, m->own_column))
        return WRONG(
            m,
            "the rows of %s %.100s differ in the column %s, so its task has no "
            "value to wait for; group by a column that tells them apart",
            m->s->group, i->item[task].data, trp_show(m->a->by).text);
    trp_buf_clear(b);
    trp_row_column(i, first_row(i, task), m->own_column, b);
    m->v[task] = (struct value){trp_print_of(b->data, b->size), task};
    return b->failed ? no_memory(m) : 0;
}

/* The values of the tasks, numbered; m->v has each once. */
static int number_values(struct maker *m)
{
    struct trp_buf b = {0};
    struct trp_by_tasks *ret = m->ret;
    uint32_t n = 0;
    int r = 0;
    for (uint32_t t = 0; t < m->own->ntasks && r == 0; t++)
        r = take_value(m, t, &b);
    trp_buf_free(&b);
    if (r < 0)
        return r;
    if (m->own->ntasks)
        qsort(m->v, m->own->ntasks, sizeof *m->v, by_print);
    for (uint32_t k = 0; k < m->own->ntasks; k++) {
        const struct value at = m->v[k];
        if (!n || by_print_alone(&m->v[n - 1], &at) != 0)
            m->v[n++] = at;
        ret->values[at.task] = n - 1;
    }
    ret->by.nvalues = n;
    return 0;
}

/* ---- those above ---- */

/* `last`: of each value, the task above (plus 1) that had it last. */
static int take_row(struct maker *m, uint32_t task, const char *row, struct trp_buf *b,
                    uint32_t *last)
{
    struct trp_by_tasks *ret = m->ret;
    trp_buf_clear(b);
    trp_row_column(m->above, row, m->above_column, b);
    if (b->failed)
        return no_memory(m);
    struct trp_print print = trp_print_of(b->data, b->size);
    const struct value *found =
        bsearch(&print, m->v, ret->by.nvalues, sizeof *m->v, by_print_alone);
    if (!found || last[found - m->v] == task + 1)
        return 0;
    if (!TRP_ARRAY_GROW(ret->above, ret->by.nabove, m->nabove_cap))
        return no_memory(m);
    last[found - m->v] = task + 1;
    ret->above[ret->by.nabove++] = (struct trp_by_task){task, (uint32_t)(found - m->v)};
    return 0;
}

static int nothing_above(const struct maker *m, uint32_t value)
{
    const struct trp_pipeline_stage *above = stage_above(m);
    uint32_t task = m->v[value].task;
    struct trp_buf b = {0};
    trp_row_column(m->own, first_row(m->own, task), m->own_column, &b);
    trp_put_u8(&b, 0);
    int r = WRONG(m,
                  "no row of stage %s (%.300s) has %s %.100s, which task %u waits for; "
                  "add one, or take it out of %.300s",
                  above->name, above->pattern, trp_show(m->a->by).text,
                  b.failed ? "" : (const char *)b.data, task, m->s->pattern);
    trp_buf_free(&b);
    return r;
}

static int find_above(struct maker *m)
{
    uint32_t *last = calloc((size_t)m->ret->by.nvalues + 1, sizeof *last);
    struct trp_buf b = {0};
    int r = last ? 0 : no_memory(m);
    for (uint32_t t = 0; t < m->above->ntasks && r == 0 && m->ret->by.nvalues; t++) {
        uint32_t n =
            m->above->row ? m->above->row_first[t + 1] - m->above->row_first[t] : 1;
        for (uint32_t k = 0; k < n && r == 0; k++)
            r = take_row(m, t,
                         m->above->row ? m->above->row[m->above->row_first[t] + k].data
                                       : m->above->item[t].data,
                         &b, last);
    }
    uint32_t missing = TRP_NONE; /* the first task without any */
    for (uint32_t v = 0; v < m->ret->by.nvalues && r == 0; v++)
        if (!last[v] && (missing == TRP_NONE || m->v[v].task < m->v[missing].task))
            missing = v;
    if (r == 0 && missing != TRP_NONE)
        r = nothing_above(m, missing);
    trp_buf_free(&b);
    free(last);
    return r;
}

/* The stage's tasks by value: counted two places up, summed, put from one place up. */
static void sort_tasks(struct trp_by_tasks *b)
{
    for (uint32_t t = 0; t < b->by.ntasks; t++)
        b->first[b->values[t] + 2]++;
    for (uint32_t v = 2; v < b->by.nvalues + 2; v++)
        b->first[v] += b->first[v - 1];
    for (uint32_t t = 0; t < b->by.ntasks; t++)
        b->tasks[b->first[b->values[t] + 1]++] = t;
}

static int make(struct maker *m)
{
    struct trp_by_tasks *ret = m->ret;
    int r = find_column(m, m->s, m->own, &m->own_column);
    if (r == 0)
        r = find_column(m, stage_above(m), m->above, &m->above_column);
    if (r < 0)
        return r;
    size_t n = m->own->ntasks;
    m->v = calloc(n + 1, sizeof *m->v);
    ret->values = calloc(n + 1, sizeof *ret->values);
    ret->tasks = calloc(n + 1, sizeof *ret->tasks);
    ret->by.ntasks = m->own->ntasks;
    if (!m->v || !ret->values || !ret->tasks)
        return no_memory(m);
    r = number_values(m);
    if (r == 0)
        r = find_above(m);
    if (r < 0)
        return r;
    n = ret->by.nvalues;
    ret->first = calloc(n + 2, sizeof *ret->first);
    ret->set = calloc(n + 1, sizeof *ret->set);
    ret->stale = calloc(n + 1, 1);
    if (!ret->first || !ret->set || !ret->stale)
        return no_memory(m);
    sort_tasks(ret);
    ret->by.values = ret->values;
    ret->by.above = ret->above;
    return 0;
}

int trp_by_make(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                const struct trp_after *a, const struct trp_items *own,
                const struct trp_items *above, struct trp_by_tasks *ret, trp_error *err)
{
    struct maker m = {
        .p = p, .s = s, .a = a, .own = own, .above = above, .ret = ret, .err = err};
    *ret = (struct trp_by_tasks){0};
    int r = make(&m);
    free(m.v);
    if (r < 0)
        trp_by_free(ret);
    return r;
}

void trp_by_free(struct trp_by_tasks *b)
{
    free(b->values);
    free(b->above);
    free(b->first);
    free(b->tasks);
    free(b->set);
    free(b->stale);
    *b = (struct trp_by_tasks){0};
}

const struct trp_by_task *trp_by_of(const struct trp_by_tasks *b, uint32_t task,
                                    const struct trp_by_task **ret_end)
{
    uint32_t low = 0, high = b->by.nabove;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->above[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < b->by.nabove && b->above[high].task == task;)
        high++;
    *ret_end = b->above + high;
    return b->above + low;
}

/* ---- before anything runs ---- */

int trp_by_check(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                 const char *base, trp_error *err)
{
    struct trp_items own = {0};
    bool any = false;
    int r = 0;
    for (uint32_t a = 0; a < s->nafter; a++)
        any = any || s->after[a].by;
    any = any && trp_foreach_look(p, s, base, &own);
    for (uint32_t a = 0; a < s->nafter && any && r == 0; a++) {
        struct trp_items above = {0};
        struct trp_by_tasks by;
        if (!s->after[a].by ||
            !trp_foreach_look(p, &p->stages[s->after[a].index], base, &above))
            continue;
        r = trp_by_make(p, s, &s->after[a], &own, &above, &by, err);
        if (r == 0)
            trp_by_free(&by);
        trp_items_free(&above);
    }
    trp_items_free(&own);
    return r;
}
