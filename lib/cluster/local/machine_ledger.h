/*
 * The ledger of this machine: cores, memory and devices, and the queue of those
 * who want some.
 *
 * A *request* says what it needs; it gets a *share* (which cores, which addresses) when
 * it is its turn and there is room. The queue is strictly first come, first served:
 * nothing that came later is served while the first does not fit. A large request (a
 * gang) is thus never starved by small ones, at the cost of room that stays empty until
 * it fits.
 *
 *     trp_machine_ledger_ask(ledger, &r);
 *     for (struct trp_request *r; (r = trp_machine_ledger_next(ledger)); ) start(r);
 *     …
 *     trp_machine_ledger_leave(ledger, r);
 *
 * Requests are the caller's and must live until trp_machine_ledger_leave. Pure: no I/O.
 */
#ifndef TRP_CLUSTER_LOCAL_MACHINE_LEDGER_H
#define TRP_CLUSTER_LOCAL_MACHINE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/topology.h"
#include "core/base/error.h"
#include "core/profile/ledger.h"
#include "core/profile/profile.h"

typedef struct trp_machine_ledger trp_machine_ledger;

struct trp_machine_devices {
    char name[TRP_RESOURCE_NAME_MAX];
    uint32_t count; /* whole addresses */
};

struct trp_machine_footprint {
    uint64_t cores;
    int64_t memory_mib;
    struct trp_machine_devices devices[TRP_PROFILE_RESOURCES];
    uint32_t ndevices;
};

/* What an executor of a profile needs (`ranks` 0), or all ranks of a gang. */
void trp_machine_footprint_make(const struct trp_resource_profile *p, uint32_t ranks,
                                struct trp_machine_footprint *ret);

enum trp_request_state { TRP_REQUEST_NONE, TRP_REQUEST_WAITS, TRP_REQUEST_HAS };

struct trp_request {
    struct trp_machine_footprint footprint; /* filled by the caller */
    /* the ledger's own; valid while state is TRP_REQUEST_HAS. */
    enum trp_request_state state;
    uint32_t
        *cores; /* footprint.cores numbers below trp_machine_ledger_cores, ascending */
    struct trp_resource_addresses
        devices[TRP_PROFILE_RESOURCES];        /* footprint.ndevices */
    const char **lists[TRP_PROFILE_RESOURCES]; /* memory behind `devices` */
    struct trp_request *before, *behind;
};

/* Copies the devices. Addresses are given out in natural order ("2" before "10"). */
int trp_machine_ledger_new(uint32_t cores, int64_t memory_mib,
                           const struct trp_resource_addresses *devices,
                           uint32_t ndevices, trp_machine_ledger **ret_ledger,
                           trp_error *err);
void trp_machine_ledger_free(trp_machine_ledger *ledger);

uint32_t trp_machine_ledger_cores(const trp_machine_ledger *ledger);
int64_t trp_machine_ledger_memory_mib(const trp_machine_ledger *ledger);
/* All devices there are; borrowed. */
const struct trp_resource_addresses *
trp_machine_ledger_devices(const trp_machine_ledger *ledger, uint32_t *ret_n);

/* What there is and what of it is free, with names that are the ledger's. */
void trp_machine_ledger_room(const trp_machine_ledger *ledger, struct trp_room *ret);

/* There are also these addresses, with commas between them, of a resource that may be
 * new; those that are known stay as they are. */
int trp_machine_ledger_learn(trp_machine_ledger *ledger, const char *resource,
                             const char *addresses, trp_error *err);

/* How many of these the empty room holds at once; 0 with TRP_ENEVER and "cores wanted
 * 8, available 2" in `err`. */
uint32_t trp_machine_ledger_fit(const trp_machine_ledger *ledger,
                                const struct trp_machine_footprint *footprint,
                                trp_error *err);

/* Puts a request at the end of the queue. TRP_ENEVER when it never fits, TRP_ENOMEM. */
int trp_machine_ledger_ask(trp_machine_ledger *ledger, struct trp_request *r,
                           trp_error *err);
/* The first of the queue, now with its share, or NULL: empty, or no room for it. */
struct trp_request *trp_machine_ledger_next(trp_machine_ledger *ledger);
/* It could not be had after all: it is the first of the queue again. */
void trp_machine_ledger_put_back(trp_machine_ledger *ledger, struct trp_request *r);

/* Which cores others of this machine have, a flag a core: nobody is served with those
 * from now on. What fits is another question. */
void trp_machine_ledger_others(trp_machine_ledger *ledger, const bool *has);
/* The first of the queue has room, if no others had any cores. */
bool trp_machine_ledger_has_room(const trp_machine_ledger *ledger);
/* Takes a request out of the queue, or its share back. */
void trp_machine_ledger_leave(trp_machine_ledger *ledger, struct trp_request *r);

#endif
