/*
 * What is said of map outputs: where a stage's inputs lie, how large the blocks of an
 * output are, which output could not be read. Layouts and codecs; no I/O.
 *
 * driver → executor
 *   INPUTS   for each dataset whose map outputs a stage reads: the host and the attempt
 *            of every map task's output; sent to an executor once for each attempt of
 *            the stage, before its first launch there
 * In an end (struct trp_end)
 *   extra of a map task's end: the sizes of its blocks
 *   extra of TRP_END_FETCH:    the output, then a text
 *
 * A size takes one to nine bytes (seven bits each); a run of empty blocks takes two or
 * a few more, however long it is. So a map task that fills few of 100,000 blocks says
 * so in a few bytes.
 */
#ifndef TRP_WIRE_SHUFFLE_H
#define TRP_WIRE_SHUFFLE_H

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/ids.h"

enum {
    TRP_INPUT_PARTITIONS_MAX = 1 << 24, /* of one side of a shuffle */
    TRP_INPUT_ENDPOINTS_MAX = 64,       /* of one host */
};

#define TRP_INPUT_MISSING UINT64_MAX

struct trp_input_host {
    char *name;
    char **endpoints; /* "ADDRESS:PORT" of its block servers */
    uint32_t nendpoints;
};
struct trp_input_map {
    uint32_t host;    /* index into hosts */
    uint64_t attempt; /* TRP_INPUT_MISSING: the output was lost meanwhile */
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
    uint32_t nhosts, ninputs;
    struct trp_input_host *hosts;
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
