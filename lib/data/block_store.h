/*
 * The block store: partitions that an executor keeps, by dataset and partition.
 *
 * Words. A *block* is a kept partition: *chunks* of bytes in the order in which they
 * were put, each in memory or in one file on the node's disk (block_disk.h). Its *level*
 * says where it may be. The *pool* is the memory that blocks and shuffles share; a task
 * that sorts or merges *borrows* of it. Half of the pool is left to blocks that are there
 * when tasks want all of it, and what is left goes to who comes first.
 *
 * A block is there whole or not at all. What has no room makes some by moving those that
 * were not used for the longest time to the disk, or, where their level has none, by
 * dropping them; never blocks of its own dataset, which would go round in a circle. If
 * that does not suffice it goes to the disk itself, or is not kept. Nothing of this
 * fails a task: a partition that is not kept is computed again.
 *
 * Chunks on the disk are checked (XXH3) before any of their block is handed out; a block
 * with a damaged one is dropped, and a miss.
 *
 *     trp_block_writer *w = trp_block_begin(s, key, TRP_BLOCK_MEMORY, attempt);
 *     trp_block_put(w, chunk, size);            // malloc'ed, taken
 *     trp_block_end(w, true);
 *     trp_block_reader *r = trp_block_open(s, key);
 *     while (r && trp_block_next(r, &data, &size) > 0)
 *         …
 *     trp_block_close(r);
 *
 * Threads: any; a writer and a reader belong to one at a time.
 */
#ifndef TRP_DATA_BLOCK_STORE_H
#define TRP_DATA_BLOCK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct trp_block_store trp_block_store;
typedef struct trp_block_writer trp_block_writer;
typedef struct trp_block_reader trp_block_reader;

enum { TRP_BLOCK_MEMORY = 1, TRP_BLOCK_DISK = 2 }; /* a level has one or both */

struct trp_block_key {
    uint32_t dataset, partition;
};

/* `folder` opens the folder for what goes to the disk: a descriptor, which is closed
 * here, or -1 with errno; called when the first block does, and again after a failure.
 * NULL: out of memory. */
trp_block_store *trp_block_store_new(int (*folder)(void *context), void *context);
void trp_block_store_free(trp_block_store *s); /* no writer and no reader is left */

/* The size of the pool in bytes; at first it has none. It may grow. */
void trp_block_store_pool(trp_block_store *s, uint64_t bytes);
/* A task takes up to `want` bytes of the pool for a while, and `least` in any case: how
 * many it got. To be given back. */
uint64_t trp_block_store_borrow(trp_block_store *s, uint64_t want, uint64_t least);
void trp_block_store_repay(trp_block_store *s, uint64_t bytes);

/* ---- keeping a partition --------------------------------------------------------- */

/* NULL: it is not kept, since it is there already, or its dataset was dropped, or memory
 * is out. `attempt` is whom updates name. */
trp_block_writer *trp_block_begin(trp_block_store *s, struct trp_block_key key,
                                  unsigned level, uint64_t attempt);
/* Takes a malloc'ed chunk of at least one byte. False: the block will not be kept; what
 * is put after that is freed. */
bool trp_block_put(trp_block_writer *w, uint8_t *take_chunk, size_t size);
/* Bytes that it has so far, in memory and on the disk; none of a block that will not be
 * kept. */
void trp_block_written(const trp_block_writer *w, uint64_t *ret_memory,
                       uint64_t *ret_disk);
/* Ends the writer; with `whole` the block is there from now on. */
void trp_block_end(trp_block_writer *w, bool whole);

/* ---- reading one ----------------------------------------------------------------- */

/* NULL: a miss. The block stays as it is until it is closed, also when it is dropped. */
trp_block_reader *trp_block_open(trp_block_store *s, struct trp_block_key key);
/* 1: a chunk, valid until the next call, aligned as malloc does; 0: there are no more;
 * -1: it cannot be read any more (it was good when it was opened), or memory is out. */
int trp_block_next(trp_block_reader *r, const uint8_t **ret_data, size_t *ret_size);
/* Bytes of the whole block. */
uint64_t trp_block_size(const trp_block_reader *r);
void trp_block_close(trp_block_reader *r);

/* All blocks of a dataset go, and none is kept from now on. Tasks that read them go on. */
void trp_block_drop(trp_block_store *s, uint32_t dataset);

/* ---- what has become of blocks --------------------------------------------------- */

#define TRP_BLOCK_NO_ATTEMPT UINT64_MAX
struct trp_block_update {
    struct trp_block_key key;
    uint64_t attempt; /* that caused it; TRP_BLOCK_NO_ATTEMPT: none did */
    bool there;       /* else it is not here any more */
    uint32_t level;
    uint64_t memory, disk; /* bytes */
};
/* Whether there is anything of the kind since the last call; takes no lock. */
bool trp_block_store_news(trp_block_store *s);
/* Takes all updates since the last call, in order; malloc'ed, NULL: none. */
struct trp_block_update *trp_block_store_updates(trp_block_store *s, uint32_t *ret_n);
/* The errno of the last write to the disk that failed, once; 0: none did since. */
int trp_block_store_problem(trp_block_store *s);
/* Bytes of all blocks, those being written as well. */
void trp_block_store_used(trp_block_store *s, uint64_t *ret_memory, uint64_t *ret_disk);

#endif
