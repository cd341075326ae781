/*
 * Where map outputs lie, and who serves them: what executors are told (FILES, SERVERS)
 * and what they answer (LOCATION). wire/map_output.h has the words.
 *
 * Internal to lib/driver.
 */
#ifndef TRP_DRIVER_LOCATIONS_H
#define TRP_DRIVER_LOCATIONS_H

#include "driver/driver_state.h"
#include "wire/map_output.h"

/* There are map outputs from now on: executors that are up, or come, are told. */
void trp_driver_need_files(trp_driver *d);
/* An executor has come. */
void trp_driver_order_files(trp_driver *d, struct trp_executor_record *x);
/* A LOCATION message. TRP_EPROTO: it is none. */
int trp_driver_on_location(trp_driver *d, struct trp_executor_record *x,
                           const uint8_t *data, size_t size);
/* It serves nothing any more. */
void trp_driver_serves_no_more(trp_driver *d, struct trp_executor_record *x);

/* An output there could not be fetched: whether nobody serves any there. */
bool trp_driver_unserved(trp_driver *d, const struct trp_location *at);

/* Tells an executor of all servers that it has not heard of. False: out of memory. */
bool trp_driver_tell_servers(trp_driver *d, struct trp_executor_record *x);
/* The same for all that read; at d->servers_due. */
void trp_driver_tell_readers(trp_driver *d, int64_t now);

/* Who serves it has changed, or whether it is being moved: readers are told. */
void trp_driver_location_changed(trp_driver *d, struct trp_driver_location *l);
/* The number of the location in the run's folder; TRP_NONE: out of memory. Others may
 * be elsewhere in memory afterwards. */
uint32_t trp_driver_shared_location(trp_driver *d);

/* The map task's output that `attempt` made lies where the executor's do. `end`: that
 * of the attempt; NULL: nothing is known of it. */
void trp_driver_note_output(trp_driver *d, uint32_t dataset, uint32_t map,
                            trp_attempt_id attempt, const struct trp_executor_record *x,
                            const struct trp_end *end);
/* Where it lies; NULL: at no location (a static run's). */
const struct trp_location *trp_driver_location_of(const trp_driver *d, uint32_t dataset,
                                                  uint32_t map, uint64_t attempt);

/* host_copies.c: a SYNC about a host's copy of a file that all read. TRP_EPROTO. */
int trp_driver_on_copy(trp_driver *d, struct trp_executor_record *x,
                       const struct trp_sync *s);

/* At the run's end, on this machine: removes what executors have left. */
void trp_driver_remove_files(trp_driver *d);
void trp_driver_locations_free(trp_driver *d);

#endif
