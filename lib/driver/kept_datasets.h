/*
 * Partitions that executors keep: what they tell of them, and datasets that are kept no
 * longer.
 */
#ifndef TRP_DRIVER_KEPT_DATASETS_H
#define TRP_DRIVER_KEPT_DATASETS_H

#include "driver/driver_state.h"

/* A BLOCKS message. TRP_EPROTO: it is none, or speaks of unknown datasets. */
int trp_driver_on_blocks(trp_driver *d, struct trp_executor_record *x,
                         const uint8_t *data, size_t size);

/* Notes of the next dataset what is kept of it; before the engine is told. TRP_ENOMEM. */
int trp_driver_note_kept(trp_driver *d, const struct trp_dataset_spec *spec,
                         trp_error *err);
/* One that was freed, or that the engine did not take. */
void trp_driver_forget_kept(trp_driver *d, uint32_t dataset);
/* An executor is to keep none of it. */
void trp_driver_tell_unpersist(trp_driver *d, const struct trp_executor_record *x,
                               uint32_t dataset);
/* The kept datasets that a dataset (TRP_NONE: none) is made of, the nearest first, but
 * for those that are too many to be shown: how many. */
enum { TRP_KEPT_SHOWN = 64 };
uint32_t trp_driver_kept_of(const trp_driver *d, uint32_t dataset,
                            struct trp_event_kept *ret);
/* What of it the executor told for an attempt that ends now: it is forgotten here, and
 * stays until more is told. */
const struct trp_event_block *trp_driver_blocks_of(struct trp_executor_record *x,
                                                   trp_attempt_id attempt,
                                                   uint32_t *ret_n);
void trp_driver_kept_free(trp_driver *d);

#endif
