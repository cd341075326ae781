/*
 * The task that a function sees: what the executor says of it, the text of a failure,
 * and its resources, taken apart when first asked for.
 */
#ifndef TRP_API_TASK_H
#define TRP_API_TASK_H

#include "api/batch.h"
#include "executor/executor.h"

/* Whose function runs, and for which of its partitions. */
struct trp_maker {
    uint32_t maker, partition;
};

/* What a task has added to accumulators. */
struct trp_added_list {
    struct trp_added *v;
    uint32_t n, capacity;
    uint32_t from; /* where the present member of the task begins (chain.h) */
    uint32_t last; /* the one that was added to last */
};

struct trp_task {
    struct trp_maker by;
    struct trp_added_list *added;
    struct trp_flow *flow;
    const struct trp_task_info *info;
    struct trp_function_result *ret;
    char **resources;     /* copy of info->resources whose separators became NUL */
    trp_writer *gathered; /* what the last trp_barrier_allgather brought */
    trp_batch messages;   /* … as a batch */
};

/* Frees what was made for it. */
void trp_task_forget(trp_task *t);

/* Whether a function has said why it fails. NULL: no. */
bool trp_task_has_failed(const trp_task *t);

#endif
