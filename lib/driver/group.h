/*
 * Tables with `group`: a task for each value of a column, in the order in which the values
 * first appear. The item is the value; its columns are those that are the same in all of
 * its rows.
 */
#ifndef TRP_DRIVER_GROUP_H
#define TRP_DRIVER_GROUP_H

#include "driver/foreach_place.h"

enum {
    TRP_ROWS_WORDS_MAX = 1 << 20
}; /* bytes of what ${rows.NAME} become, of one task */

/* Makes groups of the rows, which are the items so far. TRP_EINVAL with
 * "FILE:LINE:COL: stage S: …" when there is no such column. */
int trp_group_rows(const struct trp_foreach_place *at, struct trp_items *i);
/* Whether a column that the stage names is the same in the rows of each group, and what
 * ${rows.NAME} become is not too long for a command. TRP_EINVAL. */
int trp_group_check(const struct trp_foreach_place *at, const struct trp_items *i);
/* Whether the column is the same in all rows of the task. */
bool trp_group_is_same(const struct trp_items *i, uint32_t task, uint32_t column);
/* The place of a column; TRP_NONE: there is none. */
uint32_t trp_items_column(const struct trp_items *i, const char *name);
/* Appends a row's value of a column. */
void trp_row_column(const struct trp_items *i, const char *row, uint32_t column,
                    struct trp_buf *b);
/* Appends to what a task has (trp_items_values) the values of its rows that words of argv
 * are to be, and the file at `path`, unless it is NULL. */
void trp_group_put_rows(const struct trp_pipeline_stage *s, const struct trp_items *i,
                        uint32_t task, const char *path, struct trp_buf *b);
/* Writes the header and the rows of a task. TRP_ESYSTEM. */
int trp_group_write(const struct trp_items *i, uint32_t task, const char *path,
                    trp_error *err);

#endif
