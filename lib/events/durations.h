/*
 * Durations of many tasks in little memory: count, least and greatest exactly,
 * quantiles exactly for few and within 1 % for many.
 *
 * The first TRP_DURATIONS_EXACT values are kept as they are. Beyond that they are
 * counted in a histogram of 64 steps an octave, whose middle is at most 0.8 % off; an
 * octave's counters exist only once something falls into it. So a stage of a million
 * tasks takes a few KiB, and ten thousand stages of eight tasks take 64 bytes each.
 */
#ifndef TRP_EVENTS_DURATIONS_H
#define TRP_EVENTS_DURATIONS_H

#include <stdint.h>

enum { TRP_DURATIONS_EXACT = 128, TRP_DURATIONS_OCTAVES = 58 };

/* Zero-initialise; free with trp_durations_free. */
struct trp_durations {
    uint64_t count;
    int64_t least, greatest;
    int64_t *values; /* the first TRP_DURATIONS_EXACT; NULL once there are octaves */
    uint32_t cap;
    uint64_t **octaves;
};

/* O(1). Negative values count as 0. TRP_ENOMEM. */
int trp_durations_add(struct trp_durations *d, int64_t ns);
/* The same value so many times; O(1). */
int trp_durations_add_many(struct trp_durations *d, int64_t ns, uint64_t times);
/* Adds all of `from`. TRP_ENOMEM: some of it may be missing. */
int trp_durations_merge(struct trp_durations *to, const struct trp_durations *from);
/* The value that `permille` thousandths of all are at most (nearest rank); at 500 the
 * median: of an even number the mean of the middle two. 0 when there are none. */
int64_t trp_durations_quantile(const struct trp_durations *d, uint32_t permille);
void trp_durations_free(struct trp_durations *d);

#endif
