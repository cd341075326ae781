/*
 * Texts that differ by task: `${NAME}` stands for something of the task that the text
 * is for, `${}` for one `$`; all else is itself. This is not the form that a user
 * writes (`$${` is a literal there, and params have a value): the pipeline reader makes
 * this one of it, in which nothing can be mistaken.
 *
 *   task               its number, from 0
 *   item               its item
 *   dir name stem ext  of the item as a path: of a/b.fq.gz a, b.fq.gz, b.fq and gz;
 *                      without a slash dir is "."
 *   col.NAME           a column of the item
 *
 * An item's bytes are its text and then, a NUL before each, its columns as NAME=VALUE. Of
 * one that is a group of rows, a value of each row follows as *NAME=VALUE for what a word of
 * a command is to be, and at last the file with its rows as =PATH.
 *
 *     struct trp_template_part part;
 *     while (trp_template_next(&text, &values, &part))
 *         use(part.text, part.size);
 */
#ifndef TRP_CORE_BASE_TEMPLATE_H
#define TRP_CORE_BASE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bytes.h"

enum { TRP_COLUMNS_MAX = 1000 }; /* of an item */

struct trp_task_values {
    uint32_t task;
    const char *item; /* NULL: it has none */
    size_t item_size; /* with its columns */
};

struct trp_template_part {
    const char *text; /* of the template, the item, or `number` */
    size_t size;
    bool value;   /* it is a value, not written in the template */
    bool missing; /* … which the task does not have: size 0 */
    char number[12];
};

/* Whether `name` is one of those above; a column's name is [A-Za-z_][A-Za-z0-9_]*. */
bool trp_template_is_name(const char *name, size_t size);
/* Whether it needs an item. */
bool trp_template_is_of_item(const char *name, size_t size);
bool trp_template_names_task(const char *text);
/* The name of the column where the text is `${rows.NAME}` and no more; NULL: it is not. */
const char *trp_template_rows(const char *text, size_t *ret_size);
/* The next part from *at on, moving it; false at the end. */
bool trp_template_next(const char **at, const struct trp_task_values *v,
                       struct trp_template_part *ret);
/* Appends what the text is for a task, without a NUL at its end. */
void trp_template_put(struct trp_buf *b, const char *text,
                      const struct trp_task_values *v);

/* A text that is itself for every task; malloc'ed. NULL: out of memory. */
char *trp_template_escape(const char *text);
/* Makes a text that is the same for every task what it stands for, in its place. */
void trp_template_settle(char *text);

/* The bytes of an item before its columns. */
size_t trp_item_text_size(const char *item, size_t size);
/* One of `dir name stem ext` of a path. */
const char *trp_path_piece(const char *which, const char *path, size_t size,
                           size_t *ret_size);

#endif
