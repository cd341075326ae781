/*
 * Transport `socket`: nobody has to meet, the admission socket is the way. No MPI.
 */
#include "comm/transport.h"

static int socket_admit(struct trp_transport *t, uint32_t executor, int socket,
                        trp_error *err)
{
    (void)executor;
    (void)socket;
    (void)err;
    t->where[0] = 0;
    return 1;
}

static int socket_join(struct trp_transport *t, const char *where, trp_error *err)
{
    (void)t;
    (void)where;
    (void)err;
    return 1;
}

static int socket_met(struct trp_transport *t, struct trp_route *ret_route,
                      trp_error *err)
{
    (void)t;
    (void)ret_route;
    (void)err;
    return 0;
}

static void socket_leave(struct trp_transport *t, struct trp_route *route)
{
    (void)t;
    (void)route;
}

static bool socket_close(struct trp_transport *t)
{
    (void)t;
    return true;
}

const struct trp_transport_ops trp_transport_socket = {
    .name = "socket",
    .lane = &trp_lane_socket,
    .admit = socket_admit,
    .join = socket_join,
    .met = socket_met,
    .leave = socket_leave,
    .close = socket_close,
};
