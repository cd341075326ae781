/*
 * Partitions that executors keep: what they tell of them, and datasets that are kept no
 * longer.
 */
#ifndef TRP_DRIVER_KEPT_H
#define TRP_DRIVER_KEPT_H

#include "driver/driver_state.h"

/* A BLOCKS message. TRP_EPROTO: it is none, or speaks of unknown datasets. */
int trp_driver_on_blocks(trp_driver *d, struct trp_executor_record *x,
                         const uint8_t *data, size_t size);

#endif
