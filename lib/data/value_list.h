/*
 * Values that memory does not hold, in a file without a name: put one after the other,
 * then read in this order as often as wished.
 *
 *     trp_values_open(folder, &v, &err);
 *     trp_values_put(v, value, n, &err);
 *     trp_values_begin(v, &err);
 *     while ((rc = trp_values_next(v, &value, &n, &err)) > 0)
 *         …
 *     trp_values_free(v);
 *
 * Threads: one at a time for each.
 */
#ifndef TRP_DATA_VALUE_LIST_H
#define TRP_DATA_VALUE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_values trp_values;

/* `folder` is there, and borrowed. TRP_ESYSTEM, TRP_ENOMEM. */
int trp_values_open(const char *folder, trp_values **ret, trp_error *err);
/* Adds one (copied), before the first is read. TRP_ESYSTEM: a full disk; TRP_ENOMEM. */
int trp_values_put(trp_values *v, const void *value, size_t n, trp_error *err);
/* The first one is the next; none can be added from now on. TRP_ESYSTEM, TRP_ENOMEM. */
int trp_values_begin(trp_values *v, trp_error *err);
/* 1: a value, borrowed until the next call; 0: there are no more. TRP_EPROTO: what is
 * read is damaged; TRP_ESYSTEM, TRP_ENOMEM. */
int trp_values_next(trp_values *v, const void **ret_value, size_t *ret_n,
                    trp_error *err);
uint64_t trp_values_bytes(const trp_values *v); /* that were written */
void trp_values_free(trp_values *v);            /* NULL is allowed */

#endif
