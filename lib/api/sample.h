/*
 * Ranges for trp_sort_by_key: some keys of each partition, and from them the first key
 * of each range, so that ranges hold about as many records.
 *
 * A partition keeps SAMPLE_KEYS of its keys, each record with the same chance, by a
 * generator whose seed is the partition's number: the same keys each time.
 */
#ifndef TRP_API_SAMPLE_H
#define TRP_API_SAMPLE_H

#include "api/api.h"

struct trp_sample {
    uint64_t seen; /* records */
    uint64_t random;
    struct trp_wide_key *keys; /* each malloc'ed */
    uint32_t nkeys, want, capacity;
};

/* On an executor: the keys of one partition. */
void trp_sample_begin(struct trp_sample *s, uint32_t task, uint32_t want);
/* TRP_ENOMEM. */
int trp_sample_add(struct trp_sample *s, const void *key, size_t nk);
void trp_sample_put(struct trp_buf *b, const struct trp_sample *s);
void trp_sample_free(struct trp_sample *s);

/* On the driver: fills the bounds of a plan from what was put for each partition. */
struct trp_part;
int trp_sample_ranges(struct trp_wide_plan *p, const struct trp_part *parts,
                      uint32_t nparts);
/* Keys to be taken from each of `nparts` partitions. */
uint32_t trp_sample_want(const struct trp_wide_plan *p, uint32_t nparts);

#endif
