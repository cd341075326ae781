/*
 * Ranges for trp_sort_by_key: some keys of each partition, and from them the first key
 * of each range, so that ranges hold about as many records.
 *
 * A partition keeps some of its keys, each record with the same chance, by a generator
 * whose seed is the partition's number: the same keys each time. Of a long text only
 * *windows* are read, a few per cent of it, and each of their records stands for as many
 * as were left out. Should functions leave too few of these, all of it is read.
 */
#ifndef TRP_API_SAMPLE_H
#define TRP_API_SAMPLE_H

#include "api/api.h"

enum { TRP_SAMPLE_WINDOW = 128 << 10 }; /* bytes */

struct trp_sample {
    uint64_t seen;   /* records, each as often as … */
    uint64_t weight; /* … one counts now */
    bool windows;    /* not all was read */
    bool whole;      /* all is to be */
    uint64_t random;
    struct trp_wide_key *keys; /* each malloc'ed */
    uint32_t nkeys, want, capacity;
};

/* On an executor: the keys of one partition. */
void trp_sample_begin(struct trp_sample *s, uint32_t task, uint32_t want);
/* From the begin of a window to that of the next, in a text of `bytes` bytes, where
 * windows will do; TRP_SAMPLE_WINDOW: all is to be read. */
uint64_t trp_sample_stride(const struct trp_sample *s, uint64_t bytes);
/* A number below `n`. */
uint64_t trp_sample_random(struct trp_sample *s, uint64_t n);
/* Whether windows had too few records. Then it has begun anew, to read all. */
bool trp_sample_again(struct trp_sample *s, uint32_t task);
/* TRP_ENOMEM. */
int trp_sample_add(struct trp_sample *s, const void *key, size_t nk);
void trp_sample_put(struct trp_buf *b, const struct trp_sample *s);
void trp_sample_free(struct trp_sample *s);

/* On the driver: fills the bounds of a plan from what was put for each partition.
 * TRP_EFAILED: the comparison is no order. TRP_ENOMEM. */
struct trp_part;
int trp_sample_ranges(struct trp_wide_plan *p, const struct trp_part *parts,
                      uint32_t nparts, trp_error *err);
/* Keys to be taken from each of `nparts` partitions. */
uint32_t trp_sample_want(const struct trp_wide_plan *p, uint32_t nparts);

#endif
