/*
 * MPI, as the rest of Troupe sees it. Nothing outside of lib/mpi is linked with an MPI:
 * what calls one is a module for each MPI that Troupe was built with (their binary
 * interfaces differ), lib/troupe/mpi-NAME.so (os/module.h). Its table is a struct
 * trp_mpi.
 *
 *     int rc = trp_mpi_begin(true, NULL, &err);      // the module, MPI_Init
 *     trp_mpi()->bcast(&code, sizeof code);
 *     trp_mpi()->finalize();
 */
#ifndef TRP_COMM_MPI_H
#define TRP_COMM_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/error.h"
#include "os/module.h"

struct trp_peer;
struct trp_channel;
struct trp_transport_ops;

/* What a module calls. */
struct trp_mpi_host {
    /* Bytes of a peer's stream have arrived (trp_lane_take). */
    int (*take)(struct trp_peer *p, const uint8_t *bytes, size_t n);
    /* The peer is lost. */
    void (*end)(struct trp_peer *p);
};

struct trp_mpi {
    struct trp_module module;
    size_t peer_size;    /* of what both sides look into: a module of another … */
    size_t channel_size; /* … build of Troupe is not used */
    const struct trp_mpi_host **host; /* written once it is loaded */

    /* "Open MPI 4.1.4", "MPICH 4.0.2"; before MPI_Init as well. `size` > 0. */
    void (*name)(char *text, size_t size);
    /* See trp_mpi_begin. */
    int (*begin)(bool threads, void (*stuck)(const char *text), trp_error *err);
    /* MPI_Finalize, where MPI has begun and not ended. */
    void (*finalize)(void);

    /* Over MPI_COMM_WORLD; 0 is the root. 0 or TRP_ESYSTEM. */
    int (*rank)(void);
    int (*size)(void);
    int (*bcast)(void *data, int n);
    int (*gather)(const void *own, int n, void *all);
    /* Rank i's `n` are sizes[i] bytes from at[i] on in `all`; NULL but at the root. */
    int (*gatherv)(const void *own, int n, void *all, const int *sizes, const int *at);
    /* A duplicate, for struct trp_transport. */
    int (*open_world)(int *ret_comm);

    const struct trp_transport_ops *connect, *world;
};

/* Whether an MPI of that name can join programs that were started separately. Open MPI
 * 4 does, by its ompi-server; since 5 it has none, and MPICH joins what one launcher
 * has started. */
static inline bool trp_mpi_joins(const char *name)
{
    static const char one[] = "Open MPI 4.";
    return strncmp(name, one, sizeof one - 1) == 0;
}

/* The module of this process, or NULL: none was loaded. */
const struct trp_mpi *trp_mpi(void);

/* Loads the module of the MPI that this program is linked with; of the one whose
 * launcher has started it; else Open MPI's. TRP_ENEVER: there is none for that MPI.
 * Once loaded it stays. Then MPI_Init_thread when nobody did; an error when MPI is at a lower level
 * than MPI_THREAD_MULTIPLE, or MPI_THREAD_SERIALIZED without `threads`. `stuck` (may be
 * NULL) is called, from another thread, when a call of the loop's into MPI, or the
 * beginning, has not returned after 20 s. */
int trp_mpi_begin(bool threads, void (*stuck)(const char *text), trp_error *err);

/* The same for programs that were started separately; TRP_ENEVER: this MPI cannot join
 * them. */
int trp_mpi_begin_joining(void (*stuck)(const char *text), trp_error *err);

/* All modules that this Troupe has: paths, NULL at the end, each and the array
 * malloc'ed. NULL: out of memory. */
char **trp_mpi_modules(void);

/* Whether there is one for Open MPI, the only one that joins what was started
 * separately. */
bool trp_mpi_has_openmpi(void);

/* The name of the MPI of the module at `path`. It is loaded, so this belongs into a
 * process that does nothing else with MPI. */
int trp_mpi_name(const char *path, char *text, size_t size, trp_error *err);

#endif
