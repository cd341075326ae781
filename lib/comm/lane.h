/*
 * What carries whole messages between two that have met, as one table of functions a
 * carrier. Internal to lib/comm.
 *
 *   mpi/lane_mpi.c fragments over a communicator, found by polling MPI
 *   lane_socket.c  frames on the admission socket itself
 *
 * A direction is a stream of records (u32 size, bytes), cut wherever the carrier's
 * pieces end: small messages of one step share a piece, large ones take several.
 */
#ifndef TRP_COMM_LANE_H
#define TRP_COMM_LANE_H

#include "core/base/bytes.h"
#include "core/base/error.h"

enum {
    TRP_FRAGMENT = 32 * 1024, /* a piece */
    TRP_RECORD_HEAD = 4,
};

struct trp_peer;
struct trp_channel;
struct trp_route; /* transport.h */

struct trp_lane_ops {
    /* What arrives wakes no epoll: it is polled for, and who sleeps is rung
     * (channel.h). */
    bool rings;
    int (*open)(struct trp_peer *p, const struct trp_route *route);
    /* Queues a copy. */
    int (*put)(struct trp_peer *p, const void *data, size_t n);
    /* Sends what is queued: 1 there is nothing left to do here, 0 not yet, negative: it
     * failed. */
    int (*flush)(struct trp_peer *p);
    /* All that is there now: the socket has closed. */
    void (*drain)(struct trp_peer *p);
    /* Frees. `orderly`: the peer has left so, else it is lost. */
    void (*close)(struct trp_peer *p, bool orderly);

    /* Where `rings`, else NULL. From now on, and until it rings or is sent to. */
    void (*poll)(struct trp_peer *p);
    void (*unpoll)(struct trp_peer *p);
    /* What has arrived from all polled peers. */
    void (*take)(struct trp_channel *c);
    /* Frees what was kept for the channel. */
    void (*forget)(struct trp_channel *c);
};

extern const struct trp_lane_ops trp_lane_socket;

struct trp_lane {
    const struct trp_lane_ops *ops; /* NULL: it is not open */
    uint64_t sent, taken;           /* whole messages queued and delivered */
    struct trp_buf whole; /* a message that came in pieces, from its size on */
    uint32_t want;        /* size of that message, once known */
    struct trp_mpi_lane *mpi;
};

/* Takes `n` bytes of the stream apart: `deliver` gets each whole message, and returns
 * false to stop (the peer is gone). TRP_EPROTO: no stream of ours. */
int trp_lane_take(struct trp_lane *l, const uint8_t *bytes, size_t n,
                  bool (*deliver)(void *context, const uint8_t *p, size_t n),
                  void *context);

#endif
