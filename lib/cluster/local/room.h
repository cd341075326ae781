/*
 * The books of this machine's room: cores, memory and devices, and the queue of those
 * who want some.
 *
 * A *request* says what it needs; it gets a *share* (which cores, which addresses) when
 * it is its turn and there is room. The queue is strictly first come, first served:
 * nothing that came later is served while the first does not fit. A large request (a
 * gang) is thus never starved by small ones, at the cost of room that stays empty until
 * it fits.
 *
 *     trp_room_ask(room, &r);
 *     for (struct trp_request *r; (r = trp_room_next(room)); ) start(r);
 *     …
 *     trp_room_leave(room, r);
 *
 * Requests are the caller's and must live until trp_room_leave. Pure books: no I/O.
 */
#ifndef TRP_CLUSTER_LOCAL_ROOM_H
#define TRP_CLUSTER_LOCAL_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/profile/ledger.h"
#include "core/profile/profile.h"

typedef struct trp_room trp_room;

struct trp_device_need {
    char name[TRP_RESOURCE_NAME_MAX];
    uint32_t count; /* whole addresses */
};

struct trp_need {
    uint64_t cores;
    int64_t memory_mib;
    struct trp_device_need devices[TRP_PROFILE_RESOURCES];
    uint32_t ndevices;
};

/* What an executor of a profile needs (`ranks` 0), or all ranks of a gang. */
void trp_demand_make(const struct trp_resource_profile *p, uint32_t ranks,
                     struct trp_need *ret);

enum trp_request_state { TRP_REQUEST_NONE, TRP_REQUEST_WAITS, TRP_REQUEST_HAS };

struct trp_request {
    struct trp_need need; /* filled by the caller */
    /* The books' own; valid while state is TRP_REQUEST_HAS. */
    enum trp_request_state state;
    uint32_t *cores; /* need.cores numbers below trp_room_cores, ascending */
    struct trp_resource_addresses devices[TRP_PROFILE_RESOURCES]; /* need.ndevices */
    const char **lists[TRP_PROFILE_RESOURCES]; /* memory behind `devices` */
    struct trp_request *before, *behind;
};

/* Copies the devices. Addresses are given out in natural order ("2" before "10"). */
int trp_room_new(uint32_t cores, int64_t memory_mib,
                 const struct trp_resource_addresses *devices, uint32_t ndevices,
                 trp_room **ret_room, trp_error *err);
void trp_room_free(trp_room *room);

uint32_t trp_room_cores(const trp_room *room);
int64_t trp_room_memory_mib(const trp_room *room);
/* All devices there are; borrowed. */
const struct trp_resource_addresses *trp_room_devices(const trp_room *room,
                                                      uint32_t *ret_n);

/* There are also these addresses, with commas between them, of a resource that may be
 * new; those that are known stay as they are. */
int trp_room_learn(trp_room *room, const char *resource, const char *addresses,
                   trp_error *err);

/* How many of these the empty room holds at once; 0 with TRP_ENEVER and "cores wanted
 * 8, available 2" in `err`. */
uint32_t trp_room_fit(const trp_room *room, const struct trp_need *need,
                      trp_error *err);

/* Puts a request at the end of the queue. TRP_ENEVER when it never fits, TRP_ENOMEM. */
int trp_room_ask(trp_room *room, struct trp_request *r, trp_error *err);
/* The first of the queue, now with its share, or NULL: empty, or no room for it. */
struct trp_request *trp_room_next(trp_room *room);
/* Takes a request out of the queue, or its share back. */
void trp_room_leave(trp_room *room, struct trp_request *r);

#endif
