/*
 * Map outputs leave hosts that go: those that a stage still has to read are copied to
 * the run's folder, which all hosts see. By an executor there, as long as there is one;
 * else the cluster sends a step (cluster/batch_system.h).
 *
 * Internal to lib/driver.
 */
#ifndef TRP_DRIVER_MOVING_H
#define TRP_DRIVER_MOVING_H

#include "driver/driver_state.h"

/* The executor's node, or its job, goes. */
void trp_driver_going(trp_driver *d, struct trp_executor_record *x);
/* Its job ends then (mono); INT64_MAX: it does not. */
void trp_driver_goes_at(trp_driver *d, struct trp_executor_record *x, int64_t end);
/* It is to be released. True: not now, since it moves outputs; it is released later. */
bool trp_driver_holds_back(trp_driver *d, struct trp_executor_record *x);
/* A MOVED message. TRP_EPROTO: it is none. */
int trp_driver_on_moved(trp_driver *d, struct trp_executor_record *x,
                        const uint8_t *data, size_t size);
/* It is lost. */
void trp_driver_mover_lost(trp_driver *d, const struct trp_executor_record *x);

/* Somebody reads outputs there; nobody may serve them. */
void trp_driver_awaits(trp_driver *d, uint32_t location);
/* At d->moving_due. */
void trp_driver_moving_late(trp_driver *d, int64_t now);

/* Of the cluster's handler (trp_batch_handler). */
char **trp_driver_needed(void *context, const char *node, int64_t *ret_ns);
void trp_driver_moved(void *context, const char *node, const char *line);

#endif
