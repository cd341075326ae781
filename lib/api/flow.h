/*
 * One task's records on their way: from the source through the functions of its path to
 * the action's end. Shared by run.c (a task from begin to end), flow_source.c (where
 * records come from) and flow.c (where they go).
 *
 * A failure is told once, by trp_flow_fail; all that comes after it only returns.
 */
#ifndef TRP_API_FLOW_H
#define TRP_API_FLOW_H

#include <stdio.h>

#include "api/chain.h"
#include "api/task.h"

/* Output of a function; for a filter also what its predicate says. */
struct trp_step_writers {
    trp_writer out, verdicts;
    uint32_t position; /* of the next one to run */
};

struct trp_flow {
    const struct trp_chain *chain;
    struct trp_function_result *ret;
    struct trp_task task;
    char *resources; /* of the task (task.h) */
    bool failed;
    uint32_t partition; /* of the source */
    uint32_t nsteps;
    uint32_t steps[TRP_STEPS_MAX];
    struct trp_step_writers *writers;
    uint32_t nwriters;
    trp_writer source, kept; /* records of the source; records to be collected */
    trp_writer gathered;     /* what trp_barrier_allgather brought */
    struct trp_reducer reducer;
    FILE *file;              /* save */
    trp_shuffle_writer *out; /* shuffle */
    struct trp_summing out_sum, in_sum[TRP_SIDES_MAX];
    int64_t numbers[TRP_BATCH_RECORDS];
};

/* Keeps status and text of the first failure (a text that the function gave wins);
 * returns -1. */
int trp_flow_fail(struct trp_flow *f, int32_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for what the program does wrong: TRP_EINVAL, and it is not tried again. */
int trp_flow_mistake(struct trp_flow *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool trp_flow_killed(const struct trp_flow *f);

/* Gives a batch to the function at `position` of the path, or to the end behind the
 * last one. */
int trp_flow_push(struct trp_flow *f, uint32_t position, const trp_batch *in);
/* Hands on what a function's writer holds (its `flush`; context: the flow). */
int trp_flow_writer_flush(trp_writer *w, void *context);

/* Pushes all records of the task's partition, read from `input`. */
int trp_flow_source(struct trp_flow *f, const struct trp_chain_node *n,
                    const uint8_t *input, size_t size);
/* A record for the source's writer, and what is left in it. */
int trp_flow_source_emit(struct trp_flow *f, const void *key, size_t nk,
                         const void *value, size_t n);
int trp_flow_source_end(struct trp_flow *f);
/* The same as trp_flow_writer_flush for the source's writer. */
int trp_flow_source_flush(trp_writer *w, void *context);

/* run.c: source, functions, and then what is left in the writers, in order. */
int trp_flow_records(struct trp_flow *f, const struct trp_chain_node *source,
                     const uint8_t *input, size_t size);

/* shuffle_out.c: a whole task of a side; a batch of its records. */
int trp_flow_map_output(struct trp_flow *f, const struct trp_chain_node *source,
                        const uint8_t *input, size_t size);
int trp_flow_shuffle(struct trp_flow *f, const trp_batch *in);
/* In what order writers and readers of a plan have records. `sum` is lent to it. */
struct trp_shuffle_order trp_flow_order(const struct trp_wide_plan *p,
                                        struct trp_summing *sum);

/* shuffle_in.c: pushes all records of a partition of a wide node. */
int trp_flow_wide(struct trp_flow *f, const struct trp_chain_node *n);

#endif
