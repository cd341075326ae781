/*
 * Tables with `group`. Rows stay where they are in the table; those of a group are found by
 * sorting prints of its values, so that it costs n log n and 16 bytes a row. Whether a
 * column is the same in all rows of a group is a bit, found once, since each of its tasks
 * asks for it several times.
 */
#include "driver/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/ids.h"
#include "driver/output_files.h"
#include "driver/table_rows.h"
#include "os/held.h"

struct cell {
    struct trp_print print;
    uint32_t row;
};

static int by_print(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    int order = memcmp(&x->print, &y->print, sizeof x->print);
    return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static int out_of_memory(const struct trp_foreach_place *at)
{
    return TRP_FOREACH_REFUSE(at, TRP_ENOMEM, "out of memory for its tasks");
}

uint32_t trp_items_column(const struct trp_items *i, const char *name)
{
    for (uint32_t k = 0; k < i->ncolumns; k++)
        if (strcmp(i->columns[k], name) == 0)
            return k;
    return TRP_NONE;
}

void trp_row_column(const struct trp_items *i, const char *row, uint32_t column,
                    struct trp_buf *b)
{
    size_t begin = b->size;
    for (uint32_t k = 0; k <= column; k++) {
        b->size = begin;
        trp_row_cell(&row, i->csv, b);
    }
}

bool trp_group_is_same(const struct trp_items *i, uint32_t task, uint32_t column)
{
    uint64_t bit = (uint64_t)task * i->ncolumns + column;
    return !(i->differ[bit / 8] >> bit % 8 & 1);
}

/* ---- making ---- */

static int no_column(const struct trp_foreach_place *at, const struct trp_items *i)
{
    struct trp_nearest near = trp_nearest_of(at->s->group);
    struct trp_name_list all = {0};
    trp_items_list_columns(i, &near, &all);
    return trp_error_set(
        at->err, TRP_EINVAL,
        "%s:%u:%u: stage %s: group: the table %.300s has no column %s%s; the columns "
        "are %s",
        trp_mark_file(at->p->file, at->s->group_mark), at->s->group_mark.line,
        at->s->group_mark.column, at->s->name, at->s->pattern,
        trp_show(at->s->group).text, trp_did_you_mean(&near).text, all.text);
}

/* Of each row the first one that has its value: its group, into `first`. */
static int find_first(const struct trp_items *i, uint32_t column, uint32_t *first)
{
    struct cell *cells = calloc((size_t)i->nrows + 1, sizeof *cells);
    struct trp_buf b = {0};
    bool failed = !cells;
    for (uint32_t k = 0; k < i->nrows && !failed; k++) {
        trp_buf_clear(&b);
        trp_row_column(i, i->row[k].data, column, &b);
        cells[k] = (struct cell){trp_print_of(b.data, b.size), k};
        failed = b.failed;
    }
    if (!failed && i->nrows)
        qsort(cells, i->nrows, sizeof *cells, by_print);
    for (uint32_t k = 0; k < i->nrows && !failed; k++) {
        bool same =
            k && memcmp(&cells[k].print, &cells[k - 1].print, sizeof cells->print) == 0;
        first[cells[k].row] = same ? first[cells[k - 1].row] : cells[k].row;
    }
    trp_buf_free(&b);
    free(cells);
    return failed ? TRP_ENOMEM : 0;
}

/* Numbers the groups in the order of their first rows, which is what `first` says from then
 * on, and puts the rows of each together. */
static int put_together(struct trp_items *i, uint32_t *first)
{
    struct trp_text *rows = calloc((size_t)i->nrows + 1, sizeof *rows);
    for (uint32_t k = 0; k < i->nrows; k++)
        first[k] = first[k] == k ? i->ntasks++ : first[first[k]];
    uint32_t *at = calloc((size_t)i->ntasks + 2, sizeof *at);
    i->row_first = at;
    if (!rows || !at) {
        free(rows);
        return TRP_ENOMEM;
    }
    for (uint32_t k = 0; k < i->nrows; k++) /* how many, two places further on */
        at[first[k] + 2]++;
    for (uint32_t g = 2; g < i->ntasks + 2; g++)
        at[g] += at[g - 1];
    for (uint32_t k = 0; k < i->nrows; k++) /* which moves each to where it begins */
        rows[at[first[k] + 1]++] = i->row[k];
    free(i->row);
    i->row = rows;
    return 0;
}

/* The values, which are the items. */
static int make_items(struct trp_items *i, uint32_t column)
{
    struct trp_buf b = {0};
    i->item = calloc((size_t)i->ntasks + 1, sizeof *i->item);
    for (uint32_t g = 0; g < i->ntasks && i->item; g++) {
        size_t begin = b.size;
        trp_row_column(i, i->row[i->row_first[g]].data, column, &b);
        i->item[g].size = b.size - begin;
        trp_put_u8(&b, 0);
    }
    i->values = b.data;
    char *text = (char *)b.data;
    for (uint32_t g = 0; g < i->ntasks && i->item && text; g++) {
        i->item[g].data = text;
        text += i->item[g].size + 1;
    }
    return b.failed || !i->item ? TRP_ENOMEM : 0;
}

/* Compares each row with the first of its group, value by value. */
static int find_differences(struct trp_items *i)
{
    struct trp_buf own = {0}, its = {0};
    i->differ = calloc((size_t)i->ntasks * i->ncolumns / 8 + 1, 1);
    for (uint32_t g = 0; g < i->ntasks && i->differ; g++)
        for (uint32_t r = i->row_first[g] + 1; r < i->row_first[g + 1]; r++) {
            const char *a = i->row[i->row_first[g]].data, *b = i->row[r].data;
            for (uint32_t k = 0; k < i->ncolumns; k++) {
                uint64_t bit = (uint64_t)g * i->ncolumns + k;
                trp_buf_clear(&own);
                trp_buf_clear(&its);
                trp_row_cell(&a, i->csv, &own);
                trp_row_cell(&b, i->csv, &its);
                if (own.size != its.size ||
                    (own.size && memcmp(own.data, its.data, own.size) != 0))
                    i->differ[bit / 8] |= (uint8_t)(1u << bit % 8);
            }
        }
    bool failed = !i->differ || own.failed || its.failed;
    trp_buf_free(&own);
    trp_buf_free(&its);
    return failed ? TRP_ENOMEM : 0;
}

int trp_group_rows(const struct trp_foreach_place *at, struct trp_items *i)
{
    uint32_t column = trp_items_column(i, at->s->group);
    if (column == TRP_NONE)
        return no_column(at, i);
    uint32_t *first = calloc((size_t)i->ntasks + 1, sizeof *first);
    i->row = i->item;
    i->nrows = i->ntasks;
    i->item = NULL;
    i->ntasks = 0;
    i->keyed = false;
    int r = first ? find_first(i, column, first) : TRP_ENOMEM;
    if (r == 0)
        r = put_together(i, first);
    if (r == 0)
        r = make_items(i, column);
    if (r == 0)
        r = find_differences(i);
    free(first);
    if (r < 0) {
        i->ntasks = 0;
        return out_of_memory(at);
    }
    return 0;
}

/* ---- what the stage names ---- */

#define REFUSE_USE(at, u, fmt, ...)                                                    \
    trp_error_set((at)->err, TRP_EINVAL, "%s:%u:%u: stage %s: " fmt,                   \
                  trp_mark_file((at)->p->file, (u)->mark), (u)->mark.line,             \
                  (u)->mark.column, (at)->s->name, __VA_ARGS__)

static int check_same(const struct trp_foreach_place *at, const struct trp_items *i,
                      const struct trp_column_use *u, uint32_t column)
{
    uint32_t g = 0;
    while (g < i->ntasks && trp_group_is_same(i, g, column))
        g++;
    if (g == i->ntasks)
        return 0;
    return REFUSE_USE(at, u,
                      "%s%s%s: the rows of %s %.100s differ in it; write ${rows.%s}, a "
                      "word of argv that becomes one a row, or read the file "
                      "$TROUPE_ROWS",
                      u->in_run ? "TROUPE_COL_" : "${col.", trp_show(u->name).text,
                      u->in_run ? "" : "}", at->s->group, i->item[g].data,
                      trp_show(u->name).text);
}

static bool named_before(const struct trp_pipeline_stage *s,
                         const struct trp_column_use *use)
{
    for (const struct trp_column_use *u = s->columns; u != use; u = u->next)
        if (u->rows && strcmp(u->name, use->name) == 0)
            return true;
    return false;
}

static int check_words(const struct trp_foreach_place *at, const struct trp_items *i,
                       const struct trp_column_use *u)
{
    struct trp_buf b = {0};
    int r = 0;
    for (uint32_t g = 0; g < i->ntasks && r == 0; g++) {
        trp_buf_clear(&b);
        trp_group_put_rows(at->s, i, g, NULL, &b);
        if (b.failed)
            r = out_of_memory(at);
        else if (b.size > TRP_ROWS_WORDS_MAX)
            r = REFUSE_USE(at, u,
                           "the words of the %u rows of %s %.100s have %zu bytes, at "
                           "most %d can be in a command; read the file $TROUPE_ROWS",
                           i->row_first[g + 1] - i->row_first[g], at->s->group,
                           i->item[g].data, b.size, TRP_ROWS_WORDS_MAX);
    }
    trp_buf_free(&b);
    return r;
}

int trp_group_check(const struct trp_foreach_place *at, const struct trp_items *i)
{
    const struct trp_column_use *words = NULL;
    int r = 0;
    for (const struct trp_column_use *u = at->s->columns; u && r == 0; u = u->next) {
        uint32_t column = trp_items_column(i, u->name);
        words = words || !u->rows ? words : u;
        if (column != TRP_NONE && !u->rows)
            r = check_same(at, i, u, column);
    }
    return r == 0 && words ? check_words(at, i, words) : r;
}

/* ---- of a task ---- */

void trp_group_put_rows(const struct trp_pipeline_stage *s, const struct trp_items *i,
                        uint32_t task, const char *path, struct trp_buf *b)
{
    for (const struct trp_column_use *u = s->columns; u; u = u->next) {
        uint32_t column = u->rows ? trp_items_column(i, u->name) : TRP_NONE;
        if (column == TRP_NONE || named_before(s, u))
            continue;
        for (uint32_t r = i->row_first[task]; r < i->row_first[task + 1]; r++) {
            trp_put_raw(b, "\0*", 2);
            trp_put_raw(b, u->name, strlen(u->name));
            trp_put_u8(b, '=');
            trp_row_column(i, i->row[r].data, column, b);
        }
    }
    if (path) {
        trp_put_raw(b, "\0=", 2);
        trp_put_raw(b, path, strlen(path));
    }
}

int trp_group_write(const struct trp_items *i, uint32_t task, const char *path,
                    trp_error *err)
{
    FILE *f = trp_held_fopen(path, "w");
    for (uint32_t k = 0; f && k < i->ncolumns; k++)
        fprintf(f, "%s%s", k == 0 ? "" : i->csv ? "," : "\t", i->columns[k]);
    if (f)
        putc('\n', f);
    for (uint32_t r = i->row_first[task]; f && r < i->row_first[task + 1]; r++) {
        fwrite(i->row[r].data, 1, i->row[r].size, f);
        putc('\n', f);
    }
    bool failed = !f || ferror(f);
    if (f && fclose(f) != 0)
        failed = true;
    return failed ? trp_error_set(err, TRP_ESYSTEM, "cannot write %.600s: %m", path)
                  : 0;
}
