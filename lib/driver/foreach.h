/*
 * The tasks of a stage: its `foreach` or `tasks`, evaluated when the stage starts.
 *
 * `files`: what matches the pattern (glob.h). `items`: as written. `lines`: each line
 * of the list file, byte for byte without its LF; empty ones are skipped, nothing is a
 * comment. `tasks: N`: N tasks without an item.
 */
#ifndef TRP_DRIVER_FOREACH_H
#define TRP_DRIVER_FOREACH_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/pipeline.h"

enum {
    TRP_TASKS_MAX = TRP_PIPELINE_TASKS, /* tasks of one stage */
    TRP_LIST_FILE_MAX = 1 << 30,        /* bytes of a list file */
    TRP_ITEM_MAX = (128 << 10) - 1 - 12 /* Linux: a variable has 128 KiB at most, with
                                         * "TROUPE_ITEM=" and its NUL */
};

/* Zero-initialise; items may be none although there are tasks. */
struct trp_items {
    uint32_t ntasks;
    bool known;            /* was evaluated */
    struct trp_text *item; /* ntasks, or NULL: the tasks have no items */
    void *memory;          /* what the items point into */
    char **files;          /* the same, as trp_glob made it */
    uint32_t nfiles;
};

/* Evaluates stage `s` of `p`; relative paths are below `base`. TRP_EINVAL with
 * "FILE:LINE:COL: stage S: …" when nothing matches or there is no such list file,
 * unless `allow_empty`; TRP_ELIMIT; TRP_ESYSTEM. Items of a pipeline stay in the
 * pipeline. */
int trp_foreach_evaluate(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                         const char *base, struct trp_items *ret, trp_error *err);
void trp_items_free(struct trp_items *i);

/* Whether the tasks are known before anything has run. */
bool trp_foreach_known(const struct trp_pipeline_stage *s);

#endif
