/*
 * What is said of map outputs: where a stage's inputs lie, how large the blocks of an
 * output are, which output could not be read. Layouts and codecs; no I/O.
 *
 * A *location* is a folder of map outputs on a host, numbered by the driver; its servers
 * are the block servers of the executors that use it.
 *
 * driver → executor
 *   FILES    before any other of these: where its location is to be
 *   SERVERS  of locations, in place of what was said of them before: their endpoints
 *   INPUTS   for each dataset whose map outputs a stage reads: the location and the
 *            attempt of every map task's output; sent to an executor once for each
 *            attempt of the stage, before its first launch there
 *   MOVE     outputs at its location to be copied to the run's folder: the host goes
 *   DROP     datasets whose map outputs go, at its location and in the run's folder
 * executor → driver
 *   LOCATION the answer to FILES; without a folder, later: it has removed that
 *   MOVED    the answer to MOVE, in one or several messages
 * In an end (struct trp_end)
 *   extra of a map task's end: the sizes of its blocks
 *   extra of TRP_END_FETCH:    the output, then a text
 *
 * A size takes one to nine bytes (seven bits each); a run of empty blocks takes two or
 * a few more, however long it is. So a map task that fills few of 100,000 blocks says
 * so in a few bytes.
 */
#ifndef TRP_WIRE_MAP_OUTPUT_H
#define TRP_WIRE_MAP_OUTPUT_H

#include <stdbool.h>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/ids.h"

enum {
    TRP_INPUT_PARTITIONS_MAX = 1 << 24, /* of one side of a shuffle */
    TRP_COMPRESS_MAX = 22,              /* zstd's */
    TRP_ENDPOINTS_MAX = 64,             /* of one location */
};

#define TRP_INPUT_MISSING UINT64_MAX

struct trp_location {
    uint32_t number; /* TRP_NONE: the reader's own, or not given yet */
    char *host;
    char *folder;      /* absolute; "": none */
    uint64_t dev, ino; /* of the folder on that host; 0: all hosts see it */
};
void trp_location_clear(struct trp_location *l);

struct trp_input_map {
    uint32_t location; /* index into locations */
    uint64_t attempt;  /* TRP_INPUT_MISSING: the output was lost meanwhile */
};
/* The map outputs of one dataset. */
struct trp_input {
    uint32_t dataset;
    uint32_t nmaps;
    struct trp_input_map *maps;
};
/* Of one attempt of a stage. */
struct trp_stage_inputs {
    uint32_t users; /* of whoever shares it */
    trp_stage_id stage;
    uint32_t stage_attempt;
    uint32_t nlocations, ninputs;
    struct trp_location *locations;
    struct trp_input *inputs;
};

void trp_stage_inputs_put(struct trp_buf *b, const struct trp_stage_inputs *in);
/* Copies; `users` is 1. TRP_EPROTO, TRP_ENOMEM. */
int trp_stage_inputs_get(const void *p, size_t n, struct trp_stage_inputs **ret);
void trp_stage_inputs_free(struct trp_stage_inputs *in);
/* One user less; the last one frees it. NULL: nothing. */
void trp_stage_inputs_leave(struct trp_stage_inputs *in);
/* The outputs of a dataset; NULL: none of its inputs. */
const struct trp_input *trp_stage_inputs_of(const struct trp_stage_inputs *in,
                                            uint32_t dataset);

/* FILES */
struct trp_files_order {
    char *parent;     /* absolute: of the folder; "": one of the node's own */
    bool in_run;      /* the parent is in the run's folder */
    bool serves;      /* others are to be served, and asked */
    bool here_only;   /* all of them are on this machine */
    bool opens;       /* outputs of this host are opened; else they are fetched, too */
    uint8_t compress; /* level of zstd in what is written; 0: none */
};
void trp_files_order_put(struct trp_buf *b, const struct trp_files_order *o);
/* *ret has copies. TRP_EPROTO, TRP_ENOMEM. */
int trp_files_order_get(const void *p, size_t n, struct trp_files_order *ret);

/* LOCATION; `endpoint` is that of its block server, "": it has none. */
void trp_location_put(struct trp_buf *b, const struct trp_location *l,
                      const char *endpoint);
/* *ret and *ret_endpoint are copies. TRP_EPROTO, TRP_ENOMEM. */
int trp_location_get(const void *p, size_t n, struct trp_location *ret,
                     char **ret_endpoint);

/* SERVERS: begun, then one location after the other. Where the only endpoint is "" what
 * lies there is being moved: readers wait. */
void trp_servers_begin(struct trp_buf *b);
void trp_servers_add(struct trp_buf *b, uint32_t location, const char *const *endpoints,
                     uint32_t n);
/* Of trp_message_view. 1: a location; its endpoints are copies. 0: there are no more.
 * TRP_EPROTO, TRP_ENOMEM. */
int trp_servers_next(struct trp_view *v, uint32_t *ret_location, char ***ret_endpoints,
                     uint32_t *ret_n);
void trp_endpoints_free(char **endpoints, uint32_t n);

/* MOVE: outputs by dataset, map task and the attempt that made them. */
struct trp_move_output {
    uint32_t dataset, map;
    uint64_t attempt;
};
void trp_move_put(struct trp_buf *b, const struct trp_move_output *v, uint32_t n);
/* *ret is malloc'ed. TRP_EPROTO, TRP_ENOMEM. */
int trp_move_get(const void *p, size_t size, struct trp_move_output **ret,
                 uint32_t *ret_n);

/* DROP: datasets, in any order. */
void trp_drop_put(struct trp_buf *b, const uint32_t *datasets, uint32_t n);
/* *ret is malloc'ed. TRP_EPROTO, TRP_ENOMEM. */
int trp_drop_get(const void *p, size_t size, uint32_t **ret, uint32_t *ret_n);

/* MOVED: begun, outputs one after the other, finished. */
struct trp_moved_output {
    struct trp_move_output is;
    uint64_t bytes;
    int64_t took_ns; /* from the begin of its copying */
};
void trp_moved_begin(struct trp_buf *b);
void trp_moved_add(struct trp_buf *b, const struct trp_moved_output *m);
/* `last`: there are no more of the MOVE; those that were not told could not be moved, as
 * `text` says; "": all were, or are not there. */
void trp_moved_finish(struct trp_buf *b, bool last, const char *text);
/* Of trp_message_view. 1: an output; 0: the end, with *ret_last, and *ret_text, which is
 * malloc'ed. TRP_EPROTO, TRP_ENOMEM. */
int trp_moved_next(struct trp_view *v, struct trp_moved_output *ret, bool *ret_last,
                   char **ret_text);

/* Of a host's copy of a file that all hosts read (data/host_copy.h), in a SYNC of
 * TRP_SYNC_COPY: an executor wants it, or its host has it by now. */
struct trp_copy_ask {
    uint32_t number;
    uint64_t hash;
    bool has;
    bool failed;   /* it could not be had from … */
    uint32_t from; /* … this location; TRP_NONE: from the run's folder */
};
void trp_copy_ask_put(struct trp_buf *b, const struct trp_copy_ask *a);
int trp_copy_ask_get(const void *p, size_t n,
                     struct trp_copy_ask *ret); /* TRP_EPROTO */

/* The message in its SYNCED: from which location it is to be had, and an endpoint there
 * (borrowed); TRP_NONE and "": from the run's folder. */
void trp_copy_from_put(struct trp_buf *b, uint32_t location, const char *endpoint);
/* The text is malloc'ed. TRP_EPROTO, TRP_ENOMEM. */
int trp_copy_from_get(const void *p, size_t n, uint32_t *ret_location,
                      char **ret_endpoint);

/* Bytes of the blocks of one map output. */
void trp_sizes_put(struct trp_buf *b, const uint64_t *sizes, uint32_t n);
/* *ret_sizes is malloc'ed, at most TRP_INPUT_PARTITIONS_MAX of them. TRP_EPROTO,
 * TRP_ENOMEM. */
int trp_sizes_get(const void *p, size_t size, uint64_t **ret_sizes, uint32_t *ret_n);

/* A map output of a task, by the attempt that made it. */
struct trp_map_output {
    uint32_t map;
    uint64_t attempt;
};
/* A map output that could not be read; `text` says why. */
struct trp_fetch_end {
    uint32_t dataset, map;
    trp_attempt_id attempt;
    uint32_t location; /* its number, as the reader knew it; TRP_NONE: it did not */
    /* Others of the dataset on the same host that are not there. When got: to be freed.
     */
    struct trp_map_output *more;
    uint32_t nmore;
    const char *text; /* size bytes, no NUL */
    uint32_t size;
};
void trp_fetch_end_put(struct trp_buf *b, const struct trp_fetch_end *f);
/* TRP_EPROTO, TRP_ENOMEM. */
int trp_fetch_end_get(const void *p, size_t n, struct trp_fetch_end *ret);

#endif
