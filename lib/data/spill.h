/*
 * Spills: records that memory did not hold, in order of partition and key. Internal to
 * lib/data.
 *
 * All spills of a writer or a reader lie one behind the other in one file of the
 * shuffle's folder, which has no name: it goes when its descriptor is closed, however
 * that comes. So there may be any number of them. A spill is nothing but parts.
 *
 *     struct trp_spill_file f = {.folder = fd, .path = path, .fd = -1};
 *     trp_spill_merge(&f, &merge, killed, &spill, &err);
 *     stream = trp_spill_stream(&f, &spill, &unpacker);
 *     trp_spill_file_close(&f);                  // when the streams are gone
 */
#ifndef TRP_DATA_SPILL_H
#define TRP_DATA_SPILL_H

#include "data/merge.h"

struct trp_spill_file {
    int folder;       /* borrowed … */
    const char *path; /* … with its path, for messages */
    uint64_t seed;
    int compress;
    int fd; /* -1: there are no spills yet */
    uint64_t end;
};

struct trp_spill {
    uint64_t begin, bytes;
};

/* Writes all records of `m` as a new spill. Failures of the merge, TRP_ESYSTEM of the
 * file, TRP_ECANCELLED; the file can only be closed then. */
int trp_spill_merge(struct trp_spill_file *f, struct trp_merge *m,
                    const volatile int *killed, struct trp_spill *ret, trp_error *err);
/* The spill as a stream; the file is borrowed. NULL: out of memory. */
struct trp_stream *trp_spill_stream(const struct trp_spill_file *f,
                                    const struct trp_spill *spill,
                                    struct trp_unpacker *unpacker);
/* Nobody reads it any more: gives its room on the disk back. */
void trp_spill_drop(const struct trp_spill_file *f, const struct trp_spill *spill);
void trp_spill_file_close(struct trp_spill_file *f);

/* A new file without a name in a folder: its descriptor, or -1 with errno. */
int trp_spill_nameless(int folder);
/* The same in the folder of that path; -1 with `err`. */
int trp_spill_nameless_in(const char *folder, trp_error *err);

/* How many streams may be merged at once in `memory` bytes; at least 2. */
uint32_t trp_merge_width(size_t memory);

#endif
