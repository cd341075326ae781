/*
 * The task that a function sees: what the executor says of it, the text of a failure,
 * and its resources, taken apart when first asked for.
 */
#ifndef TRP_API_TASK_H
#define TRP_API_TASK_H

#include "api/batch.h"
#include "executor/executor.h"

struct trp_task {
    const struct trp_task_info *info;
    struct trp_function_result *ret;
    char **resources;     /* copy of info->resources whose separators became NUL */
    trp_writer *gathered; /* what the last trp_barrier_allgather brought */
    trp_batch messages;   /* … as a batch */
};

/* Frees what was made for it. */
void trp_task_forget(trp_task *t);

#endif
