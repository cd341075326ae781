/*
 * Patterns of files (os/glob.h) that are templates (core/base/template.h): `outputs` and
 * `inputs` of a stage. One that names something of a task belongs to that; what is put in
 * for it matches literally. The others belong to the stage.
 *
 *     bool none;
 *     char *pattern = trp_output_expand("res/${stem}.bam", &values, &none);
 */
#ifndef TRP_OS_OUTPUT_PATTERN_H
#define TRP_OS_OUTPUT_PATTERN_H

#include <stdbool.h>

#include "core/base/template.h"

/* Why an output that is there does not count; twice its name. */
#define TRP_OUTPUT_UNCHANGED                                                           \
    "output %s is as it was before; write {file: %s, optional: true} where a command " \
    "may leave it so"

/* Whether a pattern belongs to a task. */
bool trp_output_of_task(const char *pattern);
/* The pattern for one task, malloc'ed. NULL: out of memory, or, with *ret_none, the
 * pattern names no file of this task: it needs what the task does not have. */
char *trp_output_expand(const char *pattern, const struct trp_task_values *v,
                        bool *ret_none);
/* Whether a file matches what a pattern is for the task, below `base`. A folder that
 * cannot be read counts as having none. */
bool trp_output_is_made(const char *pattern, const char *base,
                        const struct trp_task_values *v);

#endif
