/*
 * Whole messages over a communicator: the MPI half of one peer. Internal to lib/comm.
 *
 * A direction is a stream of records (u32 size, bytes), cut into fragments of at most
 * 32 KiB wherever they fill: small messages of one step share a fragment, large ones
 * take several. One receive is posted at a time, at most TRP_LANE_WINDOW sends.
 */
#ifndef TRP_COMM_LANE_H
#define TRP_COMM_LANE_H

#include <mpi.h>

#include "comm/channel.h"
#include "wire/codec.h"

enum {
    TRP_FRAGMENT = 32 * 1024,
    TRP_LANE_WINDOW = 8,
    TRP_LANE_TAG = 1,
    TRP_POOL_MAX = 256, /* fragments kept for later */
};

/* How a peer is reached; filled by a transport. */
struct trp_route {
    MPI_Comm comm;
    int rank;
};

struct trp_block {
    struct trp_block *next;
    MPI_Request request;
    uint32_t size;
    uint8_t data[TRP_FRAGMENT];
};

struct trp_pool {
    struct trp_block *free;
    uint32_t count;
};
void trp_pool_free(struct trp_pool *p);

struct trp_lane {
    bool open;
    struct trp_route route;
    uint64_t sent, taken; /* whole messages queued and delivered */
    /* Sends: `first` … posted, then from `unposted` on not yet. */
    struct trp_block *first, *last, *unposted;
    uint32_t posted;
    /* The fragment being received, and the message being put together. */
    uint8_t *fragment;
    struct trp_buf whole; /* from its size on */
    uint32_t want;        /* size of that message, once known */
};

/* Posts the first receive, whose request the caller keeps. */
int trp_lane_open(struct trp_lane *l, const struct trp_route *route,
                  MPI_Request *ret_request);
int trp_lane_receive(struct trp_lane *l, MPI_Request *ret_request);

/* Frees what MPI does not hold on to. `alive`: the peer left orderly, so the posted
 * receive can be taken back; else it and unfinished sends stay where MPI may write. */
void trp_lane_close(struct trp_lane *l, struct trp_pool *pool, bool alive,
                    MPI_Request *request);

/* Queues a copy. */
int trp_lane_put(struct trp_lane *l, struct trp_pool *pool, const void *p, size_t n);

/* Posts and finishes sends: 1 all is sent, 0 not yet, negative: MPI failed. */
int trp_lane_flush(struct trp_lane *l, struct trp_pool *pool);

/* Takes the `n` bytes of a received fragment apart; `deliver` gets each whole message
 * and returns false to stop (the peer is gone). TRP_EPROTO: no stream of ours. */
int trp_lane_take(struct trp_lane *l, size_t n,
                  bool (*deliver)(void *context, const uint8_t *p, size_t n),
                  void *context);

#endif
