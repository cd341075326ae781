/*
 * What the `foreach` of stages were, for `--as-it-was`: RUN/state/lists/STAGE, ":K" behind it
 * for part K of a product. Of a list file or table its bytes, of a pattern the names of the
 * files that matched, each with a NUL. A stage's is kept when its tasks are known, and
 * anew when they are found again.
 *
 * A run that goes on as it was takes them in place of what is there now, but for what it has
 * made itself since: a list file of a later stage that a stage before it has written again,
 * and the files that are there anew.
 *
 * Threads: those of one trp_kept_lists from one.
 */
#ifndef TRP_DRIVER_KEPT_LISTS_H
#define TRP_DRIVER_KEPT_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"

enum { TRP_KEPT_LIST_MAX = 256 << 20 }; /* bytes; a larger one is not kept */

struct trp_kept_lists {
    const char *run_dir;
    bool keeps, takes;
    bool began;       /* stages have begun: what comes after others may be made anew */
    int64_t since_ns; /* when the run went on, as its folder's clock has it */
    /* Whether a file that was kept is temp and has gone, while what was made of it is there:
     * then it stands for itself. NULL: none is asked for. */
    bool (*gone)(const void *context, const char *file);
    const void *gone_context;
    /* Takes a line for the user; NULL: none. */
    void (*say)(void *context, const char *line);
    void *say_context;
};

/* Sets since_ns to the time at which RUN/state/NAME was written. */
void trp_kept_lists_since(struct trp_kept_lists *k, const char *name);

/* All take NULL: nothing is kept and nothing taken. `part` is of a product, -1: the stage's
 * own. */

/* What was kept of `file`, malloc'ed with a byte more behind it; NULL: it is to be read where it
 * is (there is nothing, or it has been written since). */
char *trp_kept_list_take(const struct trp_kept_lists *k,
                         const struct trp_pipeline_stage *s, int part, const char *file,
                         size_t *ret_size);
/* The same of names of files. With *ret_now only those count, of what matches now, that were
 * kept, or that trp_kept_lists_new says were made since. */
char *trp_kept_names_take(const struct trp_kept_lists *k,
                          const struct trp_pipeline_stage *s, int part,
                          size_t *ret_size, bool *ret_now);
bool trp_kept_lists_new(const struct trp_kept_lists *k, const char *file);
/* The names that were kept, some of which may have gone; NULL: that is not asked. */
char *trp_kept_names_gone(const struct trp_kept_lists *k,
                          const struct trp_pipeline_stage *s, int part,
                          size_t *ret_size);

/* Keeps it until trp_kept_lists_settle, which is called when the stage's tasks are known (or not:
 * then the one of before stays). What cannot be kept is told to the user. */
void trp_kept_list_put(const struct trp_kept_lists *k,
                       const struct trp_pipeline_stage *s, int part, const void *data,
                       size_t size);
void trp_kept_lists_settle(const struct trp_kept_lists *k,
                           const struct trp_pipeline_stage *s, bool known);

#endif
