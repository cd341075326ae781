/*
 * A chain: the lineage of an action as the body of its one stage, and how a task runs
 * it.
 *
 * The body holds every node that the action's dataset is made of, once, so unions of
 * unions cost no more than their nodes. A task walks from the last node down to a
 * source (at a union into the half that has its partition, at a coalesced node into one
 * of the partitions that make up its own) and then runs the functions it met, batch by
 * batch, in the other direction. With coalesced nodes on its way it does so for each of
 * its members, one after the other.
 *
 *     trp_chain_collect(dataset, &ids, &nids);          // driver
 *     trp_chain_put(&buf, dataset, &end);
 *     trp_chain_input(dataset, task, &data, &size);     // goes with the launch
 *     stage = trp_runner.stage_open(buf.data, buf.size, &err);   // executor
 *     trp_runner.run(stage, &info, data, size, &result);
 */
#ifndef TRP_API_CHAIN_H
#define TRP_API_CHAIN_H

#include "api/api.h"
#include "data/block_store.h"
#include "executor/executor.h"

enum trp_end_kind {
    TRP_DO_COUNT = 1,
    TRP_DO_COLLECT, /* result: an encoded batch, nothing when there are no records */
    TRP_DO_REDUCE,  /* result: the value; records_out 1, or 0 when there is none */
    TRP_DO_FOREACH,
    TRP_DO_SAVE,
    TRP_DO_CHECKPOINT, /* no action: writes a partition for later ones */
    TRP_DO_SAMPLE,     /* result: some keys (sample.h) */
    TRP_DO_SHUFFLE,    /* no action: writes a map output (wide.h). Result: its sizes */
};

/* What an action does with the records at the end of its chain. */
struct trp_chain_end {
    enum trp_end_kind kind;
    struct trp_step step;             /* reduce, foreach: the function */
    const char *dir;                  /* save, checkpoint: absolute folder */
    bool binary;                      /* save: nothing between records */
    bool tasked;                      /* reduce: the function gets its task */
    const struct trp_wide_plan *plan; /* sample, shuffle: of the wide node … */
    uint32_t side;                    /* … and which of its sides this is */
    uint32_t want;                    /* sample: keys of a partition */
    uint32_t maker;                   /* foreach: its number, as of a dataset */
};

/* Walks the graph once: ctx->nodes are all nodes below `d`, `d` first. */
int trp_chain_walk(trp_dataset *d);
/* Appends the body for the nodes of the last walk. */
int trp_chain_put(struct trp_buf *b, const trp_context *ctx,
                  const struct trp_chain_end *end);
/* The bytes that go with the launch of a task, borrowed from the dataset. True: they are
 * a source's; false: there are none, or of a coalesced node, which has those of each
 * member that has any as counted bytes. */
bool trp_chain_input(const trp_dataset *d, uint32_t task, const uint8_t **ret_data,
                     uint32_t *ret_size);
/* Whether partitions of a TRP_NODE_PERSIST are kept. */
bool trp_dataset_keeps(const trp_dataset *d);
/* Whether sources of this kind have inputs. */
bool trp_chain_has_inputs(enum trp_node_kind kind);
/* "count trp_range → f → g", of a side "trp_reduce_by_key trp_range → f": a name for
 * people; the nearest that trp_named gave where there is one. */
void trp_chain_name(const trp_dataset *d, const struct trp_chain_end *end, char *buf,
                    size_t size);
/* The same for an action's job: "count words" where the stage is named "words". */
enum { TRP_JOB_NAME_SIZE = 280 };
void trp_chain_job_name(const trp_dataset *d, const struct trp_chain_end *end,
                        char *buf, size_t size);

/* Whether a node of the last walk says where its partitions would best be. */
bool trp_chain_prefers(const trp_context *ctx);
/* Where the tasks of `d` would best run: the hosts that the nearest such node names, of
 * several members those of all. Names are the nodes'. TRP_ENOMEM. */
struct trp_chain_places {
    uint32_t *first; /* partitions + 1 */
    struct trp_place *places;
    uint32_t nplaces, capacity;
};
int trp_chain_places(const trp_dataset *d, struct trp_chain_places *ret);
void trp_chain_places_free(struct trp_chain_places *p);

/* ---- on an executor ---- */

struct trp_chain_node {
    enum trp_node_kind kind;
    uint32_t partitions;
    uint32_t a, b; /* indices */
    int64_t begin, end;
    uint32_t width;
    bool keyed;
    uint32_t dataset; /* PERSIST: TRP_NONE where it is not kept … */
    unsigned level;   /* … and where it may be */
    struct trp_wide_plan plan;
    char *base;
    char *name; /* of the function */
    uint32_t maker;
    trp_function function;
    /* PARTITIONS; `first` and `last` may be NULL. */
    char *begin_name, *end_name;
    trp_partition_begin first;
    trp_partition_batch batch;
    trp_partition_end last;
    uint8_t *arg;
};

struct trp_chain {
    enum trp_end_kind kind;
    struct trp_wide_plan plan; /* sample, shuffle */
    uint32_t side, want;
    char *dir;
    bool binary, tasked;
    char *shared; /* the folder of the run that all hosts see */
    struct trp_broadcast_entry *broadcasts;
    uint32_t nbroadcasts;
    struct trp_chain_node last; /* reduce, foreach: the function of the action */
    trp_combine combine;
    bool keeps; /* a dataset of it is kept */
    uint64_t key;
    uint32_t nnodes;
    struct trp_chain_node *nodes;
};

/* Decodes a body and finds its functions. Free with trp_chain_free. */
int trp_chain_get(const uint8_t *body, size_t size, struct trp_chain **ret,
                  trp_error *err);
void trp_chain_free(struct trp_chain *c);
/* Which member of a task is next: for each coalesced node on its path, the first one
 * nearest the end, the partition taken of what it is made of, and where its run ends.
 * Begins zeroed. */
struct trp_members {
    uint32_t n;
    struct {
        uint32_t at, end;
    } of[TRP_STEPS_MAX];
};
/* The steps of a path that keep what passes them (trp_persist), nearest the end first; at
 * most so many are looked at. */
enum { TRP_KEEPS_MAX = 16 };
struct trp_keeps {
    uint32_t n;
    struct trp_keep {
        uint32_t node, step;
        uint32_t partition; /* of the kept dataset */
        uint32_t above;     /* coalesced nodes before it on the path from the end */
    } v[TRP_KEEPS_MAX];
};
/* The path of a task's next member: fills `steps` (TRP_STEPS_MAX) with the nodes of
 * functions and kept ones, nearest the source first, each with the number of its
 * partition, and the number of the partition in its source. Returns the index of the
 * source, or TRP_EPROTO. */
struct trp_path_step {
    uint32_t node, partition;
    uint32_t above; /* coalesced nodes before it on the path from the end */
};
int64_t trp_chain_path(const struct trp_chain *c, uint32_t task, struct trp_members *m,
                       struct trp_path_step *steps, uint32_t *ret_nsteps,
                       uint32_t *ret_partition, struct trp_keeps *ret_keeps);
/* How many coalesced nodes, from the end, the member whose path was walked has in common
 * with the next one, whose partition of the last of them is another; 0: it is the last. */
uint32_t trp_members_shared(const struct trp_members *m);
/* Goes on behind the member whose path was walked, within one partition of what the
 * first `above` coalesced nodes stand on; false: it was the last. */
bool trp_members_next(struct trp_members *m, uint32_t above);
/* The values of partition `i` of a range of int64. */
void trp_range_part(int64_t begin, int64_t end, uint32_t partitions, uint32_t i,
                    int64_t *ret_first, uint64_t *ret_count);

extern const struct trp_function_runner trp_runner;

/* ---- text_reader.c ---- */

struct trp_line_sink {
    void *context;
    /* A line without its LF; a negative code ends the reading. */
    int (*line)(void *context, const char *line, size_t size);
    uint64_t bytes; /* read so far */
};
/* Reads the lines that begin in [begin, end) of a file (.gz, .zst: all lines).
 * TRP_ESYSTEM with path and reason, TRP_ELIMIT for a line above TRP_LINE_MAX, or what
 * `line` returned. */
int trp_text_read(const char *path, uint64_t begin, uint64_t end,
                  struct trp_line_sink *sink, trp_error *err);
bool trp_text_compressed(const char *path);
#define TRP_LINE_MAX (UINT32_C(256) << 20)

#endif
