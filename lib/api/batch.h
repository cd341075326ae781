/*
 * Batches being made: columns of values and keys that grow, the writer behind trp_emit,
 * and the bytes a batch has when it travels.
 *
 * A *column* is *fixed* as long as all of its entries have one width above 0; only the
 * first entry of another width makes an offset for each (so tight loops see
 * value_width). A writer that has a `flush` hands its records on when it holds
 * TRP_BATCH_RECORDS or TRP_BATCH_BYTES; without one it keeps all.
 *
 *     trp_writer w;
 *     trp_writer_init(&w);
 *     trp_emit(&w, NULL, 0, "x", 1);
 *     trp_batch b = trp_writer_batch(&w);   // borrowed until the next change
 *     trp_writer_free(&w);
 */
#ifndef TRP_API_BATCH_H
#define TRP_API_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#pragma GCC visibility push(default)
#include "api/troupe.h"
#pragma GCC visibility pop

enum {
    TRP_BATCH_RECORDS = 4096,
    TRP_BATCH_BYTES = 1 << 20,
    TRP_KEEP_BYTES = 4 << 20, /* a reused buffer above this is given back */
};

/* What one partition may bring to the driver, and what may go with one launch. */
#define TRP_RESULT_MAX (UINT32_C(1000) << 20)
/* One above this goes by a file (shared_file.h). */
#define TRP_RESULT_INLINE (UINT32_C(64) << 10)
#define TRP_RESULTS_FOLDER "results"
#define TRP_INPUT_MAX (UINT32_C(64) << 20)
/* A task's message to all others of its stage. */
#define TRP_GATHER_MAX (UINT32_C(16) << 20)

struct trp_column {
    uint8_t *data;
    size_t size, capacity;
    uint64_t *offsets; /* used unless fixed */
    size_t offsets_capacity;
    uint32_t width;
    bool fixed;
};

enum trp_keyed { TRP_KEYED_OPEN, TRP_KEYED_NO, TRP_KEYED_YES };

struct trp_record_writer {
    struct trp_column values, keys;
    size_t count;         /* records held */
    uint64_t emitted;     /* records taken since the last reset */
    enum trp_keyed keyed; /* the first record decides */
    bool drop;            /* counts, keeps nothing */
    const char *failed;   /* why it takes no more; constant text */
    bool mistake;         /* and that would be so each time */
    const volatile int *killed;
    /* Hands the records on; the writer is cleared afterwards. NULL: keeps all. */
    int (*flush)(trp_writer *w, void *context);
    void *context;
};

void trp_writer_init(trp_writer *w);
void trp_writer_free(trp_writer *w);
/* As after init, but small buffers are kept. */
void trp_writer_reset(trp_writer *w);
/* The records go; whether they have keys stays decided. */
void trp_writer_clear(trp_writer *w);
/* What it holds, borrowed until its next change. */
trp_batch trp_writer_batch(const trp_writer *w);
/* Appends all records of a batch (without flush); where the writer has keys and the
 * batch has none, keys are empty. TRP_ENOMEM. */
int trp_writer_add_batch(trp_writer *w, const trp_batch *b);

/* How many bytes its keys and values have. */
uint64_t trp_batch_size(const trp_batch *b);
/* The bytes of a batch, malloc'ed. TRP_ENOMEM; TRP_ELIMIT above TRP_RESULT_MAX. */
int trp_batch_encode(const trp_batch *b, uint8_t **ret_data, uint32_t *ret_size);
/* Reads them; `data` must be aligned to 8 and outlive the batch. TRP_EPROTO. */
int trp_batch_decode(const void *data, size_t size, trp_batch *ret);

/* A large result of trp_collect: the next of the batches that it is made of, as their
 * bytes (collect.c). False: there is none that is whole. */
bool trp_piece_next(const uint8_t **at, const uint8_t *end, const uint8_t **ret_data,
                    size_t *ret_size);
static inline size_t trp_piece_padding(uint64_t size)
{
    return (8 - size % 8) % 8;
}

/* Folds values into one by a combine function; used on executors and the driver. */
struct trp_reducer {
    trp_combine combine;
    const void *arg;
    bool tasked;        /* `combine` is a trp_task_combine … */
    trp_task *task;     /* … and gets this; NULL: the driver calls it */
    trp_writer held[2]; /* the value so far, and the next one */
    unsigned at;        /* which of them */
    bool any;
    const char *failed; /* what the function did wrong, NULL: it returned a code */
    bool mistake;       /* and it would each time */
};
void trp_reducer_init(struct trp_reducer *r);
void trp_reducer_free(struct trp_reducer *r);
void trp_reducer_reset(struct trp_reducer *r, trp_combine combine, const void *arg);
/* 0, the function's own code, or TRP_EINVAL / TRP_ENOMEM with `failed` set. */
int trp_reducer_add(struct trp_reducer *r, const void *value, size_t size);
/* The value so far, borrowed; NULL when there is none. */
const void *trp_reducer_value(const struct trp_reducer *r, size_t *ret_size);

#endif
