/*
 * Files of a shuffle's folder being written. Internal to lib/data.
 *
 * A *spill* has no name: it goes when its descriptor is closed, however that comes. It
 * is nothing but parts, in order of partition and key.
 */
#ifndef TRP_DATA_SPILL_H
#define TRP_DATA_SPILL_H

#include "data/merge.h"

/* A file without a name in the folder, whose path is for messages. TRP_ESYSTEM. */
int trp_spill_file(int folder, const char *path, int *ret_fd, trp_error *err);

struct trp_spill {
    int fd;
    uint64_t bytes;
};

/* Writes all records of `m` to a new spill. Failures of the merge, TRP_ESYSTEM of the
 * file, TRP_ECANCELLED. */
int trp_spill_merge(struct trp_merge *m, int folder, const char *path, uint64_t seed,
                    int compress, const volatile int *killed, struct trp_spill *ret,
                    trp_error *err);
/* The spill as a stream, which closes it. NULL: out of memory. */
struct trp_stream *trp_spill_stream(struct trp_spill *take_spill, uint64_t seed,
                                    struct trp_unpacker *unpacker);

/* How many streams may be merged at once in `memory` bytes; at least 2. */
uint32_t trp_merge_width(size_t memory);

#endif
