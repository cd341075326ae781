/*
 * One task's records on their way: from a source through the functions of its path to
 * the action's end. Shared by run_task.c (a task from begin to end), flow_source.c (where
 * records come from) and flow.c (where they go).
 *
 * A failure is told once, by trp_flow_fail; all that comes after it only returns.
 */
#ifndef TRP_API_FLOW_H
#define TRP_API_FLOW_H

#include <stdio.h>

#include "api/broadcast.h"
#include "api/chain.h"
#include "api/sample.h"
#include "api/shared_file.h"
#include "api/task.h"
#include "data/mapped_values.h"

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
    uint32_t at;     /* the position whose function is called */
    bool stopped;    /* somebody had enough */
    uint32_t enough; /* 1 + the position that wants no more records; 0: none */
    struct trp_partition_state *states; /* partition_state.c; NULL: there were none */
    struct trp_members members;         /* where the task is … */
    uint32_t partition;                 /* … and the partition of its source */
    uint32_t nsteps;
    struct trp_path_step steps[TRP_STEPS_MAX];
    struct trp_added_list added; /* to accumulators */
    struct trp_broadcasts_held broadcasts;
    struct trp_keeps keeps; /* which of the steps keep what passes … */
    uint32_t nopen;         /* … and what of that is being kept */
    struct {
        trp_block_writer *writer; /* NULL: it cannot be */
        uint32_t above;           /* as in trp_keep */
    } open[TRP_KEEPS_MAX];
    uint64_t borrowed; /* memory for map outputs; 0: none yet */
    struct trp_step_writers *writers;
    uint32_t nwriters;
    trp_writer source, kept;   /* records of the source; records to be collected */
    trp_shared_writer *result; /* those of them that are in a file; NULL: none yet */
    trp_writer gathered;       /* what trp_barrier_allgather brought */
    struct trp_reducer reducer;
    struct {
        int fd;
        struct trp_buf lines; /* not written yet */
    } save;
    struct trp_part_writer *part;   /* checkpoint */
    trp_shuffle_writer *out;        /* shuffle … */
    struct trp_shuffle_order order; /* … and its order */
    /* Of the writer, then of the readers. */
    struct trp_combining combining[1 + TRP_SIDES_MAX];
    struct trp_buf pack;             /* a record's key as lib/data takes it */
    uint64_t dealt;                  /* trp_repartition: the next partition */
    trp_writer group[TRP_SIDES_MAX]; /* values of one key */
    const void *mapped; /* a group that memory does not hold, on its way; NULL: none */
    struct trp_sample sample;
    uint64_t records; /* read so far, from outside or of map outputs */
    bool made_here;   /* what the source's writer holds was made of map outputs */
    /* A batch of trp_range. Last, and not zeroed: that would touch eight pages, in each
     * executor. */
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
/* So many records more were read. */
void trp_flow_read(struct trp_flow *f, uint64_t records);

/* What a function called `name` has returned. `w`: its writer. */
int trp_flow_returned(struct trp_flow *f, const char *name, int rc,
                      const trp_writer *w);
/* The function that is called now wants no more records of its partition: those that it
 * has emitted go on, and what comes from further up is not asked for. */
void trp_flow_enough(trp_task *t);

/* partition_state.c: states of the path that are not there yet are begun; a batch for the
 * one at `position`; it ends, if no other member of the task shares its partition; all that
 * are left are freed. */
int trp_flow_states_begin(struct trp_flow *f);
int trp_flow_state_batch(struct trp_flow *f, uint32_t position, const trp_batch *in);
int trp_flow_state_end(struct trp_flow *f, uint32_t position);
void trp_flow_states_drop(struct trp_flow *f);

/* Gives a batch to the function at `position` of the path, or to the end behind the
 * last one. */
int trp_flow_push(struct trp_flow *f, uint32_t position, const trp_batch *in);
/* Hands on what a function's writer holds (its `flush`; context: the flow). */
int trp_flow_writer_flush(trp_writer *w, void *context);

/* Pushes all records of one partition of a source, read from `input`. */
int trp_flow_source(struct trp_flow *f, const struct trp_chain_node *n,
                    const uint8_t *input, size_t size);
/* A batch of a source. */
int trp_flow_source_batch(struct trp_flow *f, const trp_batch *b);
/* A record for the source's writer, and what is left in it. Records of a source have all
 * a key, or none. */
int trp_flow_source_emit(struct trp_flow *f, const void *key, size_t nk,
                         const void *value, size_t n);
int trp_flow_source_end(struct trp_flow *f);
/* The same as trp_flow_writer_flush for the source's writer. */
int trp_flow_source_flush(trp_writer *w, void *context);

/* kept_partition.c. The nearest kept partition on a member's path that is there: its source, with
 * the path cut. NULL: there is none (or it failed), those on the path are open now.
 * `source` and `inputs`: of the path. */
trp_block_reader *trp_flow_kept(struct trp_flow *f, int64_t source,
                                struct trp_view *inputs);
/* Pushes all its records. */
int trp_flow_kept_source(struct trp_flow *f, trp_block_reader *r);
/* A batch at a step that keeps. */
int trp_flow_keep(struct trp_flow *f, uint32_t position, const trp_batch *in);
/* The n-th coalesced node of the path goes on (0: the task is over): what is above none
 * of them is done, whole or not. */
void trp_flow_keep_end(struct trp_flow *f, uint32_t coalesced, bool whole);
/* Bytes that the task may use for the map outputs that it reads, and as many for the one
 * that it writes; given back when it is over. */
uint64_t trp_flow_memory(struct trp_flow *f);
void trp_flow_memory_repay(struct trp_flow *f);

/* run_task.c: all records of a task: for each member its source, its functions, and then
 * what is left in the writers, in order. */
int trp_flow_records(struct trp_flow *f, const uint8_t *input, size_t size);

/* collect.c: a batch of the records of trp_collect; all that there are, as a result. */
int trp_flow_collect_batch(struct trp_flow *f, const trp_batch *in);
int trp_flow_collect_end(struct trp_flow *f);

/* save.c: a whole task of trp_save; a batch of its records. */
int trp_flow_save(struct trp_flow *f, const uint8_t *input, size_t size);
int trp_flow_save_batch(struct trp_flow *f, const trp_batch *in);

/* commit.c: this attempt is the one that gives its part its name, which is written under
 * `hidden` in the chain's folder; else it fails. */
int trp_flow_commit(struct trp_flow *f, const char *hidden);
/* checkpoint.c: a whole task that writes one; a batch of its records; a partition of one
 * as source. */
int trp_flow_checkpoint(struct trp_flow *f, const uint8_t *input, size_t size);
int trp_flow_checkpoint_put(struct trp_flow *f, const trp_batch *in);
int trp_flow_checkpoint_source(struct trp_flow *f, const struct trp_chain_node *n);

/* shuffle_out.c: a whole task of a side; a batch of its records. */
int trp_flow_map_output(struct trp_flow *f, const uint8_t *input, size_t size);
int trp_flow_shuffle(struct trp_flow *f, const trp_batch *in);
/* Whether a plan can take the record: it has a key, and of the width it needs. */
int trp_flow_check_record(struct trp_flow *f, const struct trp_wide_plan *p,
                          const void *key, size_t nk, size_t nv);
/* A failure of lib/data's, or of the program's function that it called. */
int trp_flow_data_failed(struct trp_flow *f, const struct trp_combining *c,
                         const trp_error *err);

/* wide_groups.c: what a wide node makes of the values of one key. */
struct trp_wide_side; /* shuffle_in.c */
int trp_flow_side_next(struct trp_flow *f, struct trp_wide_side *s,
                       struct trp_shuffle_record *ret);
int trp_flow_groups(struct trp_flow *f, const struct trp_wide_plan *p,
                    struct trp_wide_side *s, struct trp_combining *c);

/* sorted_group.c: puts the values of a group in order: those in *pack, or in *file, which is
 * mapped then. */
int trp_flow_sort_group(struct trp_flow *f, struct trp_combining *c,
                        struct trp_buf *pack, trp_overflow **file);
int trp_flow_pairs(struct trp_flow *f, const struct trp_wide_plan *p,
                   struct trp_wide_side *a, struct trp_wide_side *b);

/* shuffle_in.c: pushes all records of a partition of a wide node. */
int trp_flow_wide(struct trp_flow *f, const struct trp_chain_node *n);

#endif
