/*
 * The tasks of a stage: its `foreach` or `tasks`, evaluated when the stage starts.
 *
 * `files`: what matches the pattern (glob.h). `items`: as written. `lines`: each line
 * of the list file, byte for byte without its LF; empty ones are skipped, nothing is a
 * comment. `table`: each row of a table (table_rows.h), or each group of its rows (group.h). `product`: every combination of its
 * parts, the last one changing fastest; an item is theirs with tabs between. `tasks: N`: N
 * tasks without an item.
 *
 * Where the pipeline has kept lists (kept_lists.h) they stand in for what is there now, and what is
 * evaluated is kept.
 *
 * Items of tables and products have columns, which are found when a task needs them:
 * trp_items_values.
 */
#ifndef TRP_DRIVER_FOREACH_H
#define TRP_DRIVER_FOREACH_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/pipeline.h"
#include "core/base/template.h"
#include "events/task_names.h"

enum {
    TRP_TASKS_MAX = TRP_PIPELINE_TASKS, /* tasks of one stage */
    TRP_LIST_FILE_MAX = 1 << 30,        /* bytes of a list file */
    TRP_ITEM_MAX =
        (128 << 10) - 1 - 80 /* Linux: a variable has 128 KiB at most, with its
                                         * name and NUL; columns have names of 64 */
};

/* Zero-initialise; items may be none although there are tasks. */
struct trp_items {
    uint32_t ntasks;
    bool known;            /* was evaluated */
    struct trp_text *item; /* ntasks, or NULL: the tasks have no items */
    void *memory;          /* what the items point into */
    char **files;          /* the same, as trp_glob made it */
    uint32_t nfiles;
    char **columns; /* their names; NULL: none */
    uint32_t ncolumns;
    bool csv;     /* the items are rows of such a table */
    bool keyed;   /* rows, each with a value of its own in the column `key` */
    uint32_t key; /* … which names its task */
    /* Of a table with `group` (group.h): the items are the values, and of task t the rows
     * are row[row_first[t]] to row[row_first[t + 1]], in the table's order. NULL: each row
     * is an item. */
    struct trp_text *row;
    uint32_t *row_first, nrows;
    void *values;    /* what such items point into */
    uint8_t *differ; /* of each task a bit a column: its rows are not all the same */
    struct trp_items
        *parts; /* of a product, one for each of the first columns; a table's
                              * own columns come with its row */
    uint32_t nparts;
};

/* Evaluates stage `s` of `p`; relative paths are below `base`. TRP_EINVAL with
 * "FILE:LINE:COL: stage S: …" when nothing matches or there is no such list file,
 * unless `allow_empty`; TRP_ELIMIT; TRP_ESYSTEM. Items of a pipeline stay in the
 * pipeline. */
int trp_foreach_evaluate(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                         const char *base, struct trp_items *ret, trp_error *err);
/* Before anything runs: whether the lists, tables and products of a stage can be its tasks,
 * have the columns that its values name, and are there or can be made. What a stage makes
 * is not looked at. TRP_EINVAL with "FILE:LINE:COL: stage S: …"; 1: what it reads is not
 * there yet, or will be made anew. The pipeline's listener is told what is most likely
 * not meant. */
int trp_foreach_check(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const char *base, trp_error *err);
/* The items of a stage as far as they are known before anything runs, without keeping a list;
 * false: they are not, or something is wrong with them, which others tell. */
bool trp_foreach_look(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const char *base, struct trp_items *ret);
/* Tells the listener of what was evaluated later. */
void trp_foreach_tell(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const struct trp_items *items);
void trp_items_free(struct trp_items *i);
/* What a task has, with columns in `b`, until that is changed; false: no memory for its
 * columns. */
bool trp_items_values(const struct trp_items *i, uint32_t task, struct trp_buf *b,
                      struct trp_task_values *ret);
/* Whether tasks have names: the keys of their rows, or the values of their groups. */
bool trp_items_named(const struct trp_items *i);
/* Appends the name of a task. False: it has none but its number. */
bool trp_items_name(const struct trp_items *i, uint32_t task, struct trp_buf *b);
/* What messages call it (events/task_names.h). Returns `buf`. */
const char *trp_items_word(const struct trp_items *i, uint32_t task,
                           char buf[TRP_TASK_WORD]);

/* Whether the tasks are known before anything has run. */
bool trp_foreach_known(const struct trp_pipeline_stage *s);
/* Whether lists and tables that no stage makes say it: the tasks are known when these are
 * there, whatever the stage waits for. */
bool trp_foreach_listed(const trp_pipeline *p, const struct trp_pipeline_stage *s);

#endif
