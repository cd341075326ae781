/*
 * Which task, or stage, names which file as its output without a wildcard: no two may name one
 * file. What is known before anything runs is refused then; what is known later, and what may
 * be a folder, which several may name, is judged when the second of them has made it.
 *
 *     trp_output_names *n;
 *     trp_output_names_new(p, base, &n, &err);           // with what is known by now
 *     trp_output_names_add(n, stage, &items, &err);      // a stage begins
 *     trp_output_names_stand(n, stage, task, &values, why, sizeof why);   // a task has ended
 *     trp_output_names_free(n);
 *
 * A name is that of a file when there is one, or when it has an extension: "x.bam". A folder
 * has a slash at its end, is a folder that is there, or has no extension.
 */
#ifndef TRP_DRIVER_OUTPUT_NAMES_H
#define TRP_DRIVER_OUTPUT_NAMES_H

#include "driver/foreach.h"

typedef struct trp_output_names trp_output_names;

/* `p` is borrowed; `base` NULL: the working folder. TRP_EINVAL with "FILE:LINE:COL: stage S: …" when two name one file, or a task
 * an output that is its input. */
int trp_output_names_new(const trp_pipeline *p, const char *base,
                         trp_output_names **ret, trp_error *err);
void trp_output_names_free(trp_output_names *n);
/* Tells of the first folder of each stage that has too many entries to be looked into
 * (os/output_list.h), as "FILE:LINE:COL: warning: …". */
void trp_output_names_warn(const trp_pipeline *p, const char *base,
                           void (*say)(void *context, const char *line), void *context);
/* The tasks of a stage are known; nothing happens if they were. TRP_EINVAL as above, but not
 * for what two name. */
int trp_output_names_add(trp_output_names *n, uint32_t stage,
                         const struct trp_items *items, trp_error *err);
/* A task, or (TRP_NONE) a stage, has made its outputs, now or in an earlier start. False: one
 * of them is a file that another had made before, as `why` says. */
bool trp_output_names_stand(trp_output_names *n, uint32_t stage, uint32_t task,
                            const struct trp_task_values *v, char *why, size_t size);

#endif
