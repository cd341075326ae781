/*
 * The table that a module is.
 */
#include <stdio.h>
#include <string.h>

#include "mpi/module.h"

_Static_assert(MPI_MAX_PORT_NAME <= TRP_PORT_MAX, "room for a port's name");

const struct trp_mpi_host *trp_host;

/* "Open MPI v4.1.4, package: …", "MPICH Version:      4.0.2\n…" */
static void name(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(version, &n);
    bool open = strncmp(version, "Open MPI v", 10) == 0;
    const char *mpich = strstr(version, "MPICH Version:");
    const char *number = open ? version + 10 : mpich ? mpich + 14 : version;
    number += strspn(number, " \t");
    snprintf(text, size, "%s%.*s",
             open    ? "Open MPI "
             : mpich ? "MPICH "
                     : "",
             (int)strcspn(number, ", \t\n"), number);
}

static void finalize(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun && !ended)
        MPI_Finalize();
}

/* ---- the world ------------------------------------------------------------------- */

static int code_of(int rc)
{
    return rc == MPI_SUCCESS ? 0 : TRP_ESYSTEM;
}

static int rank(void)
{
    int n = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &n);
    return n;
}

static int size(void)
{
    int n = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    return n;
}

static int bcast(void *data, int n)
{
    return code_of(MPI_Bcast(data, n, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static int gather(const void *own, int n, void *all)
{
    return code_of(MPI_Gather(own, n, MPI_BYTE, all, n, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static int gatherv(const void *own, int n, void *all, const int *sizes, const int *at)
{
    return code_of(
        MPI_Gatherv(own, n, MPI_BYTE, all, sizes, at, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static int open_world(int *ret_comm)
{
    MPI_Comm world;
    int rc = code_of(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    if (rc == 0)
        *ret_comm = MPI_Comm_c2f(world);
    return rc;
}

/* ---- the table ------------------------------------------------------------------- */

TRP_MODULE_TABLE const struct trp_mpi trp_module = {
    .module = {TROUPE_VERSION},
    .peer_size = sizeof(struct trp_peer),
    .channel_size = sizeof(struct trp_channel),
    .host = &trp_host,
    .name = name,
    .begin = trp_mpi_start,
    .finalize = finalize,
    .rank = rank,
    .size = size,
    .bcast = bcast,
    .gather = gather,
    .gatherv = gatherv,
    .open_world = open_world,
    .connect = &trp_transport_connect,
    .world = &trp_transport_world,
};
