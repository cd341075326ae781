/*
 * What the files of lib/api share: the context, and datasets as a graph of immutable
 * nodes that the context owns.
 *
 * A *node* is a source (range, array, records, text, checkpoint, a wide operation: wide.h), a step
 * (transform, map, filter), a union of two nodes, a coalesced node, or a mark on one
 * (kept, profile, barrier, preferred hosts). Its partitions are numbered from 0; those of a
 * union are a's and then b's, one of a coalesced node is a run of neighbours of a's. So
 * one partition of any node comes from partitions of sources, its *members*, one after
 * the other, and each of them through the steps on one path (chain.h).
 *
 * A node is *held* while the program may be expected to use its handle (trp_dataset_held),
 * and *wanted* when something held is made of it, or a job that is not over computes that.
 * What the driver knows of a node, and all that executors have of it, goes when it is not
 * wanted; its memory when its handle was freed as well and nothing is made of it
 * (reach.c).
 *
 * A source that is read from the program or from files has *inputs*: the bytes that go
 * with the launch of each partition's task, one after the other in one buffer, made
 * when the dataset is made. A coalesced node has those of its members.
 *
 * Threads: one at a time per context; one context a process.
 */
#ifndef TRP_API_API_H
#define TRP_API_API_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/batch.h"
#include "api/wide.h"
#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/profile/manager.h"
#include "driver/driver.h"
#include "driver/inline.h"

enum {
    TRP_STEPS_MAX = 256,           /* functions and coalesced nodes between a source and
                                   * an action */
    TRP_PARTITIONS_MAX = 1 << 24,  /* of a dataset */
    TRP_ARGUMENT_MAX = 64 << 20,   /* bytes given to a function */
    TRP_FUNCTION_NAME_MAX = 255,   /* bytes of a registered name */
    TRP_VALUE_WIDTH_MAX = 1 << 20, /* of a binary file's values */
    TRP_STAGE_NAME_MAX = 200,      /* bytes of a name that the program gives */
};

enum trp_node_kind {
    TRP_NODE_RANGE = 1,
    TRP_NODE_ARRAY,
    TRP_NODE_RECORDS,
    TRP_NODE_TEXT,
    TRP_NODE_WIDE,
    TRP_NODE_CHECKPOINT, /* the last source */
    TRP_NODE_TRANSFORM,
    TRP_NODE_MAP,
    TRP_NODE_FILTER,
    TRP_NODE_PARTITIONS,
    TRP_NODE_UNION,
    TRP_NODE_COALESCE,
    TRP_NODE_PERSIST, /* the first mark */
    TRP_NODE_PROFILE,
    TRP_NODE_BARRIER,
    TRP_NODE_INDETERMINATE,
    TRP_NODE_PREFER,
    TRP_NODE_NAMED,
    TRP_NODE_FIRST, /* the first partitions alone */
};

struct trp_inputs {
    uint8_t *data;
    uint64_t *offsets; /* partitions + 1 */
    uint32_t width;    /* array: bytes of a value; text: the same, 0: lines */
    bool keyed;        /* records: each is a key and a value */
    char *base;        /* text: the folder that relative paths begin in */
};

struct trp_step {
    const char *name;        /* as registered */
    const char *begin, *end; /* TRP_NODE_PARTITIONS: the same; NULL: none */
    const void *arg;         /* NULL: none */
    size_t arg_size;
};

/* The first failure of one subject that was not made good since. */
struct trp_owed {
    int status;     /* exit status, 0: none */
    uint64_t since; /* its number among all failures */
};

struct trp_dataset {
    trp_context *context;
    trp_dataset *next; /* the context's list */
    enum trp_node_kind kind;
    uint32_t partitions;
    uint32_t steps;      /* and coalesced nodes on the longest path from a source */
    trp_dataset *a, *b;  /* what it is made of; NULL for a source */
    trp_dataset *lender; /* in whose memory its name or hosts are; NULL: in its own */
    bool freed;          /* its handle: the program uses it no more */
    uint8_t made; /* 0: nothing was made of it; 1: something; 2: and it was used once
                          * more since */
    uint32_t jobs, running; /* those on it that there are; that are not over */
    uint64_t walk;          /* the walk that saw it last, and its place there */
    uint32_t place;
    uint32_t maker;  /* its number: what its function adds to accumulators */
    uint32_t result; /* the dataset of its last action (lineage.c); TRP_NONE: none */
    uint32_t
        side; /* that deals it out, the last one told (lineage.c); TRP_NONE: none */
    struct trp_owed owed; /* by its actions */
    union {
        struct {
            int64_t begin, end;
        } range;
        struct trp_inputs inputs; /* COALESCE: no offsets where there are none below */
        struct trp_step step;
        trp_profile_id profile;
        const char *name; /* TRP_NODE_NAMED */
        struct {
            uint32_t dataset; /* as the driver knows it; TRP_NONE: it does not yet */
            unsigned level;
            bool in_vain; /* what it is made of is computed by all tasks at once */
            bool gone;    /* unpersisted */
        } persist;
        struct {
            uint32_t *first; /* partitions + 1 offsets into names */
            const char **names;
        } prefer;
        struct {
            trp_dataset *from;  /* what it was made of; nothing below it is looked at */
            const char *folder; /* absolute */
            bool written;
        } checkpoint;
        struct {
            struct trp_wide_plan plan;
            trp_dataset *from[TRP_SIDES_MAX]; /* what its sides compute */
        } wide;
    };
};

struct trp_profile {
    trp_context *context;
    trp_profile *next;
    struct trp_profile_builder builder;
    trp_error error; /* the first request that was refused */
    struct trp_owed owed;
    bool built;
    trp_profile_id id;
};

struct trp_rows {
    trp_context *context;
    trp_rows *previous, *next;
    trp_writer records;
    trp_batch batch;
};

struct trp_told;            /* lineage.h */
struct trp_broadcast_entry; /* broadcast.h */

struct trp_context {
    trp_driver *driver;
    trp_inline *in_line; /* in place of a driver; NULL: there is one */
    trp_profiles *profiles;
    trp_error error;      /* of the last call that failed */
    struct trp_owed owed; /* by calls that are about neither profile nor action */
    uint64_t failures;    /* so far */
    pid_t owner;          /* a forked child must not end the run */
    bool busy;            /* in an action */
    bool ended;           /* there is no driver any more, and no run */
    trp_job *jobs;        /* those that the program holds */
    uint32_t makers;      /* numbers given to datasets and actions */
    struct trp_broadcast_entry *broadcasts; /* those that there are */
    uint32_t nbroadcasts, broadcasts_capacity, last_broadcast;
    trp_dataset *datasets;
    trp_profile *profile_handles;
    trp_rows *rows;
    bool unreached; /* something may be out of reach by now (reach.c) */
    uint64_t walks;
    trp_dataset **nodes; /* of the last walk (chain.c); reused */
    uint32_t nnodes, nodes_capacity;
    struct trp_buf body;    /* of a stage that is being described; reused */
    struct trp_told **told; /* by number: datasets that the driver knows (lineage.c);
                             * NULL: it was freed */
    uint32_t ntold, told_capacity;
};

/* ---- errors.c ---- */

/* Keeps the text of an error in the context and returns its code. That it failed is
 * noted by who knows what it was about (trp_owe). */
int trp_context_fail(trp_context *ctx, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with an error that a lower layer filled. */
int trp_context_fail_with(trp_context *ctx, const trp_error *err);
/* Keeps the text and notes the failure: of a call that makes a dataset, or has no
 * subject that could make it good. */
int trp_dataset_fail(trp_context *ctx, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same; returns the dataset that there is not: NULL. */
trp_dataset *trp_dataset_refuse(trp_context *ctx, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Notes a failure of a subject (NULL: of the calls without one) and returns `rc`. */
int trp_owe(trp_context *ctx, struct trp_owed *owed, int rc);
void trp_make_good(struct trp_owed *owed);
/* What the run ends with by now: what ended it from outside, else the first failure
 * that was not made good; 0: none. */
int trp_context_status(const trp_context *ctx);
/* As trp_driver_stopped. */
int trp_context_stopped(const trp_context *ctx);
/* As trp_driver_enter and _leave; nothing where there is no driver, or none any more. */
void trp_context_enter(trp_context *ctx);
void trp_context_leave(trp_context *ctx);
/* As trp_driver_shared. */
const char *trp_context_shared(const trp_context *ctx);
/* ---- errors.c, dataset.c ---- */

/* The context of this process: where an action on a NULL dataset finds its error. */
trp_context *trp_context_current(void);
void trp_context_set_current(trp_context *ctx);
/* Whether one more step may stand on `d`; else told. */
bool trp_dataset_steps_ok(const trp_dataset *d, const char *what);
/* A node on top of `d` that computes nothing and only says something of its stage, with
 * `more` zeroed bytes behind it. NULL with the error in the context. */
trp_dataset *trp_dataset_mark(trp_dataset *d, enum trp_node_kind kind, size_t more);
/* A node whose partitions are runs of those of `d`, without its inputs (coalesce.c).
 * NULL with the error in the context. */
trp_dataset *trp_dataset_coalesced(trp_dataset *d, uint32_t partitions);
/* A source without inputs, to be filled, with `more` bytes behind it. NULL with the
 * error in the context. */
trp_dataset *trp_dataset_source(trp_context *ctx, enum trp_node_kind kind,
                                const char *what, uint32_t partitions, size_t more);
/* Whether it may stand in lines that people read: 1 to TRP_STAGE_NAME_MAX bytes of UTF-8
 * without control characters. NULL: no. */
bool trp_name_is_text(const char *name);
/* `n`, which the program has made of `d`. NULL: it could not. */
static inline trp_dataset *trp_dataset_made_of(trp_dataset *n, trp_dataset *d)
{
    if (n && d->made < 2)
        d->made++;
    return n;
}
/* A handle that the program never had, or lost: it counts as freed. */
static inline trp_dataset *trp_dataset_inner(trp_dataset *d)
{
    if (d)
        d->freed = true;
    return d;
}
/* Frees one: it is in no list. */
void trp_dataset_release(trp_dataset *d);
/* Frees all datasets. */
void trp_datasets_free(trp_context *ctx);

/* ---- reach.c ---- */

/* Lets go of all that cannot be reached any more, when something may be so. */
void trp_reach_sweep(trp_context *ctx);
/* A checkpoint was written: what it was made of is as something that was used once. */
void trp_reach_cut(trp_dataset *d);

/* ---- profile_api.c ---- */

/* As trp_driver_profile_added. */
int trp_context_profile_added(trp_context *ctx, trp_profile_id id, trp_error *err);

/* ---- registry.c ---- */

/* NULL when the function, or the name, was not registered. */
const char *trp_registry_name(void (*function)(void));
void (*trp_registry_function(const char *name))(void);
/* What went wrong while registering, NULL: nothing. */
const char *trp_registry_problem(void);

/* ---- text_input.c ---- */

/* Fills the inputs of a text source: the parts of files that each partition reads.
 * `width`: of the values of files that have no lines; 0: they have. */
int trp_text_plan(const char *pattern, uint32_t width, uint32_t partitions,
                  struct trp_inputs *ret, trp_error *err);

#endif
