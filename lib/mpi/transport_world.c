/*
 * Transport `world`: all are ranks of one MPI_COMM_WORLD. Meeting is a matter of
 * knowing the other's rank: executor e is rank e + 1, the driver rank 0. Messages go
 * over a duplicate of MPI_COMM_WORLD (t->world), so that they never meet those of the
 * application.
 */
#include <stdio.h>
#include <unistd.h>

#include "mpi/module.h"

static void notice(struct trp_transport *t)
{
    const uint64_t one = 1;
    ssize_t n = write(t->notice_fd, &one, sizeof one);
    (void)n; /* can only say that a notice is there already */
}

static int world_admit(struct trp_transport *t, uint32_t executor, trp_error *err)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (executor >= (uint32_t)size - 1)
        return trp_error_set(err, TRP_EPROTO, "there is no rank %u", executor + 1);
    t->met_executor = executor;
    snprintf(t->where, sizeof t->where, "world");
    notice(t);
    return 0;
}

static int world_join(struct trp_transport *t, const char *where, trp_error *err)
{
    (void)where;
    (void)err;
    t->met_executor = TRP_DRIVER_PEER - 1;
    notice(t);
    return 0;
}

static int world_met(struct trp_transport *t, struct trp_route *ret_route,
                     trp_error *err)
{
    (void)err;
    if (t->met_executor == TRP_NONE)
        return 0;
    bool driver = t->met_executor == TRP_DRIVER_PEER - 1;
    *ret_route = (struct trp_route){t->world, driver ? 0 : (int)t->met_executor + 1};
    t->met_executor = TRP_NONE;
    return 1;
}

static void world_leave(struct trp_transport *t, struct trp_route *route)
{
    (void)t; /* the communicator is shared by all */
    (void)route;
}

static bool world_close(struct trp_transport *t)
{
    (void)t;
    return true;
}

const struct trp_transport_ops trp_transport_world = {
    .lane = &trp_lane_mpi,
    .admit = world_admit,
    .join = world_join,
    .met = world_met,
    .leave = world_leave,
    .close = world_close,
};
