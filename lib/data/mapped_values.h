/*
 * Bytes that memory does not hold but that are to be seen as one: put one behind the
 * other into a file without a name, then mapped from it.
 *
 *     trp_overflow_open(folder, &o, &err);
 *     trp_overflow_put(o, bytes, n, &err);
 *     trp_overflow_map(o, &all, &err);     // trp_overflow_size(o) of them
 *     trp_overflow_free(o);
 *
 * Pages of the mapping are the file's: the kernel takes them back when memory is short.
 * Nobody else can open the file, so nobody cuts it while it is read.
 *
 * Threads: one at a time for each.
 */
#ifndef TRP_DATA_MAPPED_VALUES_H
#define TRP_DATA_MAPPED_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_overflow trp_overflow;

/* `folder` is there, and borrowed. TRP_ESYSTEM, TRP_ENOMEM. */
int trp_overflow_open(const char *folder, trp_overflow **ret, trp_error *err);
/* Adds bytes (copied), before they are mapped. TRP_ESYSTEM: a full disk. */
int trp_overflow_put(trp_overflow *o, const void *bytes, size_t n, trp_error *err);
/* All of them, to be read until trp_overflow_free, aligned to a page; none can be added
 * from now on. TRP_ESYSTEM. */
int trp_overflow_map(trp_overflow *o, const uint8_t **ret, trp_error *err);
uint64_t trp_overflow_size(const trp_overflow *o); /* bytes that were put */
void trp_overflow_free(trp_overflow *o);           /* NULL is allowed */

#endif
