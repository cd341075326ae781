/*
 * A table as text that fits 80 columns whatever is in it, and text that does.
 *
 *     static const struct trp_table_column columns[] = {
 *         {"stage"}, {"tasks", .right = true}};
 *     trp_table *t = trp_table_new(columns, 2);
 *     trp_table_cell(t, "%s", name);
 *     trp_table_cell(t, "%u", tasks);
 *     trp_table_print(t, stdout, &err);
 *
 * Columns are as wide as what is in them. Where that is too much, the widest of those
 * that stand left become narrower, the first down to 5 columns, or to its longest text of
 * up to 16, others to 12: what does not fit in one is wrapped, but in the first column
 * stands in a line of its own above the rest of its row. Where even that is too much the table comes in several parts,
 * each with the first column; a part leaves out rows of which it has nothing.
 *
 * A table that could not be made (NULL, out of memory) takes cells and says so at the
 * end.
 */
#ifndef TRP_CONF_TABLE_H
#define TRP_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/error.h"

enum { TRP_TABLE_WIDTH = 80 };

struct trp_table_column {
    const char *head;
    const char
        *group; /* above this column and the next, which stay together; or NULL */
    bool right;
    bool part; /* of several parts, one begins here */
};

typedef struct trp_table trp_table;

/* Copies the columns. NULL: out of memory. */
trp_table *trp_table_new(const struct trp_table_column *columns, size_t n);
/* The next cell, row by row. */
void trp_table_cell(trp_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of a row's last cell: a message, which stands whole in its line. */
void trp_table_message(trp_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints and frees it. TRP_ENOMEM. */
int trp_table_print(trp_table *take_table, FILE *out, trp_error *err);

/* Prints a text in lines of at most 80 columns: `first` before the first, `indent`
 * spaces before each additional one; it is broken at spaces. */
void trp_text_wrap(const char *text, const char *first, int indent, FILE *out);

#endif
