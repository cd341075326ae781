/*
 * What the files of a module share (comm/mpi.h). Compiled once for each MPI.
 */
#ifndef TRP_MPI_MODULE_H
#define TRP_MPI_MODULE_H

#include <mpi.h>
#include <stdatomic.h>

#include "comm/mpi.h"
#include "comm/peer.h"
#include "comm/transport.h"

extern const struct trp_mpi trp_module;
extern const struct trp_mpi_host *trp_host;
extern const struct trp_lane_ops trp_lane_mpi;
extern const struct trp_transport_ops trp_transport_connect, trp_transport_world;

/* Around the loop's calls into MPI, which may be caught in there: odd while it is
 * inside of one. */
extern atomic_uint trp_mpi_calls;

static inline void trp_mpi_mark(void)
{
    unsigned n = atomic_load_explicit(&trp_mpi_calls, memory_order_relaxed);
    atomic_store_explicit(&trp_mpi_calls, n + 1, memory_order_relaxed);
}

/* begin.c: struct trp_mpi's. */
int trp_mpi_start(bool threads, void (*stuck)(const char *text), trp_error *err);

/* A detached thread with all signals blocked: they are the program's own threads'.
 * Returns 0 or an errno. (begin.c) */
int trp_mpi_thread(void *(*run)(void *), void *arg);

/* After MPI_Init: a peer's death no longer ends this process. (survive.c) */
void trp_mpi_survive(void);

/* The text of an MPI error code, in `buf`. (begin.c) */
const char *trp_mpi_text(int code, char buf[MPI_MAX_ERROR_STRING]);

#endif
