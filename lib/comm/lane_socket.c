/*
 * Messages on the admission socket itself, in DATA frames between the others: what was
 * put in one step shares frames, and one write. Order is that of the socket, so a BYE
 * comes after all messages before it, and nobody has to be rung: epoll sees what comes.
 *
 * A peer that does not read holds up nobody: what its socket does not take waits here,
 * and epoll says when there is room. How much may wait is bounded by who sends: a
 * driver has no more tasks at an executor than its slots and its queue ahead, an
 * executor no more ends than it had tasks.
 */
#include <sys/socket.h>

#include "comm/peer.h"

static int socket_open(struct trp_peer *p, const struct trp_route *route)
{
    (void)route;
    p->link.carries = true;
    p->link.limit = TRP_FRAME_DATA_MAX;
    p->channel->ncarrying++;
    return 0;
}

static int socket_put(struct trp_peer *p, const void *data, size_t n)
{
    return trp_link_put_record(&p->link, data, n);
}

/* What is not taken now goes when epoll says so. A socket that failed is only shut
 * down: the loop finds its end as it finds every other. */
static int socket_flush(struct trp_peer *p)
{
    if (trp_link_flush(&p->link) < 0 && p->link.fd >= 0)
        shutdown(p->link.fd, SHUT_RDWR);
    trp_peer_watch_out(p);
    return 1;
}

static void socket_close(struct trp_peer *p, bool orderly)
{
    (void)orderly;
    p->channel->ncarrying--;
}

const struct trp_lane_ops trp_lane_socket = {
    .rings = false,
    .open = socket_open,
    .put = socket_put,
    .flush = socket_flush,
    .close = socket_close,
};
