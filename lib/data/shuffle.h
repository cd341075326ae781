/*
 * Shuffle: how records go from the tasks of one stage to those of the next.
 *
 * Words. A *map* task writes its records into one file, its *map output*: a *block* for
 * each partition of the next stage, sorted by key. A *reduce* task reads the blocks of
 * its partition from all map outputs and merges them: records come in the order of
 * their keys, of equal keys those of the lower map first, of one map in the order in
 * which they were written. So what a reader gets does not depend on what ran where or
 * when. A *spill* is a sorted part of the records that memory did not hold, in a file
 * without a name.
 *
 * A file is there whole or not at all: it is written under a hidden name and renamed.
 * All that is read of it is checked first: no damage, however it came about, gives
 * wrong records or a crash. What cannot be read is a *fetch problem*: it names the map
 * output and its host.
 *
 * Memory. Writer and reader are given a budget and stay within it, but for a record
 * that is larger by itself: it is held whole, once in the writer, and a reader holds
 * one for each stream that has such a record in front.
 *
 *     trp_shuffle_writer_open(&spec, &w, &err);
 *     while (…)
 *         trp_shuffle_add(w, partition, key, nk, value, nv, &err);
 *     trp_shuffle_commit(w, sizes, &counts, &err);
 *     trp_shuffle_writer_free(w);
 *
 *     trp_shuffle_reader_open(&read, &r, &problem, &err);
 *     while ((rc = trp_shuffle_next(r, &record, &problem, &err)) > 0)
 *         …
 *     trp_shuffle_reader_free(r);
 *
 * Threads: one at a time for each writer and reader; different ones share nothing but
 * the block client.
 */
#ifndef TRP_DATA_SHUFFLE_H
#define TRP_DATA_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    TRP_SHUFFLE_PARTITIONS_MAX = 1 << 24,
    TRP_SHUFFLE_MEMORY_MIN = 4 << 20, /* a smaller budget is taken as this */
};
/* Of key and value together. A larger one is refused (TRP_ELIMIT). */
#define TRP_SHUFFLE_RECORD_MAX (UINT32_C(1) << 30)

/* As memcmp over keys: below 0, 0 (they count as the same key), above 0. */
typedef int (*trp_shuffle_compare)(void *context, const void *a, size_t na,
                                   const void *b, size_t nb);
/* Makes one value of two of the same key, of which `a` came first, in memory of its
 * own, and lends it in *ret, *ret_size until it is called again; neither `a` nor `b` is
 * what it lent before. 0, or a negative code, which add, commit or next then returns.
 * Associative. */
typedef int (*trp_shuffle_combine)(void *context, const void *a, size_t na,
                                   const void *b, size_t nb, const void **ret,
                                   size_t *ret_size);

/* What keys are, and so how they compare. */
enum trp_shuffle_keys {
    TRP_KEYS_BYTES, /* by bytes, a shorter one before those that begin with it */
    TRP_KEYS_I64,   /* numbers of 8 bytes, as they are in memory */
    TRP_KEYS_F64,   /* what is no number is above all others, all as one */
};

/* In what order records are, and what is made of those of one key. The same for all who
 * write and read a shuffle. */
struct trp_shuffle_order {
    /* Records stay in the order in which they were written, those of lower maps first;
     * `compare` and `combine` are NULL. */
    bool unordered;
    enum trp_shuffle_keys keys;
    bool descending; /* the other way round; equal keys stay as they are */
    /* NULL: as `keys` says. Else by it alone. One that is no order is found out, mostly: pairs of sorted records are compared
     * once more, the other way round and at a distance (TRP_EINVAL). Where it is not,
     * the order is any and nothing worse happens. */
    trp_shuffle_compare compare;
    /* NULL: all records are kept. Else there is one for each key in a map output, and
     * one for each key that is read. */
    trp_shuffle_combine combine;
    void *context; /* of both */
};

extern const char trp_shuffle_no_order[]; /* the text of that TRP_EINVAL */

/* As memcmp, by an order that is not unordered. */
int trp_shuffle_compare_keys(const struct trp_shuffle_order *order, const void *a,
                             size_t na, const void *b, size_t nb);
/* A number by which keys compare, where it differs. */
uint64_t trp_shuffle_prefix(const struct trp_shuffle_order *order, const void *key,
                            size_t nk);

struct trp_shuffle_record {
    const void *key, *value;
    size_t nk, nv;
};

/* ---- writing --------------------------------------------------------------------- */

struct trp_shuffle_spec {
    const char *folder; /* the run's shuffle folder on this host; it is there */
    uint32_t shuffle, map;
    uint64_t attempt;
    uint32_t partitions; /* 1 to TRP_SHUFFLE_PARTITIONS_MAX */
    size_t memory;       /* bytes */
    int compress;        /* level of zstd; 0: none */
    struct trp_shuffle_order order;
    const volatile int *killed; /* not 0: give up (TRP_ECANCELLED); NULL: never */
};

struct trp_shuffle_counts {
    uint64_t records;       /* that were added */
    uint64_t written;       /* that are in the output: fewer where they are combined */
    uint64_t bytes;         /* of the file */
    uint64_t spills;        /* that were written … */
    uint64_t spilled_bytes; /* … and their bytes */
    uint64_t peak_memory;   /* most bytes held at once */
    int64_t write_ns;       /* to sort and write spills and the file */
};

typedef struct trp_shuffle_writer trp_shuffle_writer;

/* All is copied but folder, context and killed. TRP_EINVAL, TRP_ENOMEM, TRP_ESYSTEM. */
int trp_shuffle_writer_open(const struct trp_shuffle_spec *spec,
                            trp_shuffle_writer **ret, trp_error *err);
/* Takes a record (copied). A key of 0 bytes is a key. TRP_ELIMIT: it is too large, and
 * nothing is changed. After any other failure (TRP_ENOMEM, TRP_ESYSTEM: a full disk,
 * TRP_ECANCELLED, what `combine` returned) the writer can only be freed. */
int trp_shuffle_add(trp_shuffle_writer *w, uint32_t partition, const void *key,
                    size_t nk, const void *value, size_t nv, trp_error *err);
/* The same for `n` records, one after the other; to find keys that are to be combined
 * takes less time so. `partitions` has one for each; NULL: it is that of its key's hash.
 * After any failure the writer can only be freed. */
int trp_shuffle_add_all(trp_shuffle_writer *w, const uint32_t *partitions,
                        const struct trp_shuffle_record *records, size_t n,
                        trp_error *err);
/* Writes the output and gives it its name, in place of one that has it. The bytes of
 * each partition's block go to ret_sizes[0 … partitions), 0 where it has none. Either
 * may be NULL. Afterwards the writer can only be freed. */
int trp_shuffle_commit(trp_shuffle_writer *w, uint64_t *ret_sizes,
                       struct trp_shuffle_counts *ret_counts, trp_error *err);
/* What was not committed is gone. NULL: nothing. */
void trp_shuffle_writer_free(trp_shuffle_writer *w);

/* Whether memory that writers give back is kept for the next ones in this process: no
 * more than they had at once. False, as in the beginning: what is kept is given back,
 * too. Of any thread. */
void trp_shuffle_keep_memory(bool keep);

/* ---- reading --------------------------------------------------------------------- */

typedef struct trp_block_client trp_block_client; /* data/block_client.h */

struct trp_data_host {
    const char *name;
    bool here;          /* its files are here … */
    const char *folder; /* … in this folder; NULL: in the reader's */
    /* "HOST:PORT" of the block servers of the run there, any of which will do; none is
     * needed for one that is `here`. NULL: those that the client has learnt of. */
    const char *const *endpoints;
    uint32_t nendpoints;
    uint32_t location; /* as which it has (trp_block_client_learn) */
};

struct trp_shuffle_source {
    uint32_t map;
    uint64_t attempt;
    uint32_t host; /* in trp_shuffle_read.hosts */
};

/* What a reduce task reads; all of it is borrowed for the life of the reader. */
struct trp_shuffle_read {
    const char *folder; /* this host's, as of a writer; spills go there as well */
    uint32_t shuffle, partition;
    uint32_t partitions; /* of the shuffle, as its writers have it */
    const struct trp_shuffle_source *sources; /* in order of their maps */
    uint32_t nsources;
    const struct trp_data_host *hosts;
    uint32_t nhosts;
    size_t memory; /* bytes */
    struct trp_shuffle_order order;
    trp_block_client *client; /* NULL: all hosts are here */
    const volatile int *killed;
};

/* The map output that could not be read. */
struct trp_fetch_problem {
    bool is; /* there is one */
    uint32_t shuffle, map;
    uint64_t attempt;
    uint32_t host; /* in trp_shuffle_read.hosts */
};

struct trp_shuffle_reader_counts {
    uint64_t records; /* of map outputs, before those of a key are combined */
    uint64_t local_blocks, remote_blocks; /* that are not empty */
    uint64_t local_bytes, remote_bytes;
    int64_t wait_ns; /* for remote blocks */
    uint64_t spills, spilled_bytes;
};

typedef struct trp_shuffle_reader trp_shuffle_reader;

/* TRP_ENOENT: a map output cannot be read: *ret_problem and the text say which, where
 * and why. TRP_EINVAL, TRP_ENOMEM, TRP_ESYSTEM (a spill), TRP_ECANCELLED. */
int trp_shuffle_reader_open(const struct trp_shuffle_read *read,
                            trp_shuffle_reader **ret,
                            struct trp_fetch_problem *ret_problem, trp_error *err);
/* 1: a record, borrowed until the next call; 0: there are no more. Failures are those
 * of opening, or what `combine` returned; afterwards the reader can only be freed. */
int trp_shuffle_next(trp_shuffle_reader *r, struct trp_shuffle_record *ret,
                     struct trp_fetch_problem *ret_problem, trp_error *err);
/* So far. */
void trp_shuffle_reader_counts(const trp_shuffle_reader *r,
                               struct trp_shuffle_reader_counts *ret);
void trp_shuffle_reader_free(trp_shuffle_reader *r);
/* Which map outputs of the problem's host, beside its own, are gone or damaged:
 * ret_bad[i], for source i. So that who makes outputs again makes all of them: each would
 * cost an attempt. At most some GiB are looked through; of the rest, and of what cannot be
 * asked, none is said to be. */
void trp_shuffle_find_others(const struct trp_shuffle_read *read,
                             const struct trp_fetch_problem *problem, bool *ret_bad);

#endif
