/*
 * How the messages of a run travel, and why: the words of its log, of `troupe config` and
 * of `troupe plan`.
 */
#ifndef TRP_DRIVER_CARRIED_H
#define TRP_DRIVER_CARRIED_H

#include <stdbool.h>

#include "conf/options.h"
#include "core/base/error.h"

struct trp_carried {
    bool sockets;                   /* else over MPI */
    char text[TRP_ERROR_TEXT + 80]; /* "over sockets (comm.transport=auto: …)" */
};

/* Over sockets, whatever comm.transport is: `why`. */
void trp_carried_by_sockets(const trp_options *o, const char *why,
                            struct trp_carried *ret);
/* MPI cannot carry them: `why`. So over sockets; TRP_EINVAL: comm.transport is `mpi`. */
int trp_carried_without_mpi(const trp_options *o, const char *why,
                            struct trp_carried *ret, trp_error *err);

#endif
