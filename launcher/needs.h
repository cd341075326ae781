/*
 * What a run needs of the machine it begins on, looked at before anything is made: what
 * is too little shows otherwise as a program that dies without a word.
 */
#ifndef TRP_LAUNCHER_NEEDS_H
#define TRP_LAUNCHER_NEEDS_H

#include <stdbool.h>

#include "conf/options.h"
#include "core/base/error.h"

/* How the messages of a run travel: words of its log, of `troupe config` and of `troupe
 * plan`. */
struct trp_carried {
    bool sockets;  /* else over MPI */
    char text[80]; /* "over sockets (comm.transport=auto)" */
};

/* The limits of this process (ulimit). TRP_ESYSTEM: which of them will not do, and what
 * is needed. */
int trp_needs_check(trp_error *err);

/* What comm.transport comes to for the program `app`; NULL: a pipeline. TRP_EINVAL: it is
 * `mpi`, which cannot be had on this machine. */
int trp_needs_transport(const trp_options *o, const char *app, struct trp_carried *ret,
                        trp_error *err);

#endif
