/*
 * Transports: how two processes come to share a communicator. Internal to lib/comm.
 *
 * All else (sockets, frames, sleep) is the same for all; what carries messages then is
 * the transport's lane (lane.h). A *meeting* is one try of the driver and one executor
 * to join; there is at most one at a time on either side. When it is over `notice_fd`
 * is readable.
 */
#ifndef TRP_COMM_TRANSPORT_H
#define TRP_COMM_TRANSPORT_H

#include "comm/channel.h"
#include "comm/lane.h"

struct trp_transport;

/* How a peer is reached over MPI; filled by a transport. */
struct trp_route {
    int comm; /* an MPI_Comm as MPI_Comm_c2f tells it: of any MPI */
    int rank;
};

enum { TRP_PORT_MAX = 1024 }; /* an MPI's name of a port */

struct trp_transport_ops {
    const struct trp_lane_ops *lane; /* what carries messages then */
    /* Driver: begins to meet `executor`, and writes t->where, which is told to it. When
     * the meeting with an executor that has died has not ended, it goes on as this one. */
    int (*admit)(struct trp_transport *t, uint32_t executor, trp_error *err);
    /* Executor: begins to meet the driver that told `where`. */
    int (*join)(struct trp_transport *t, const char *where, trp_error *err);
    /* 1: met, *ret_route; 0: not yet; negative: it failed. */
    int (*met)(struct trp_transport *t, struct trp_route *ret_route, trp_error *err);
    /* Forgets the route of a peer that left orderly, without a word to it. */
    void (*leave)(struct trp_transport *t, struct trp_route *route);
    /* False: a thread of ours is inside of MPI, perhaps for ever. */
    bool (*close)(struct trp_transport *t);
};

struct trp_meeting; /* mpi/transport_connect.c */

struct trp_transport {
    const struct trp_transport_ops *ops;
    int notice_fd; /* eventfd, or -1 */
    char where[TRP_PORT_MAX];
    /* connect */
    struct trp_meeting *meeting;
    /* world */
    int world;             /* as in struct trp_route */
    uint32_t met_executor; /* being met, or TRP_NONE */
};

int trp_transport_open(struct trp_transport *t, enum trp_transport_kind kind,
                       trp_error *err);
bool trp_transport_close(struct trp_transport *t);

#endif
