/*
 * One peer: its socket's frames, its lane, its end.
 *
 * A peer whose socket fails while something is written to it is only shut down there;
 * the loop then finds its end as it finds every other, so `down` is never called from
 * within trp_channel_send. An end takes a peer out of every list at once and leaves its
 * memory to the end of the progress call (peer.h).
 *
 * A socket that closes may be ahead of messages that were sent before: they are taken
 * first, so that what a dying executor had finished counts.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "comm/peer.h"
#include "core/base/array.h"

struct trp_peer *trp_peer_new(trp_channel *c, int fd)
{
    struct trp_peer *p = (struct trp_peer *)calloc(1, sizeof *p);
    struct trp_link link;
    trp_link_open(&link, fd, TRP_FRAME_CALLER_MAX);
    if (!p || trp_channel_watch(c, fd, p) < 0) {
        trp_link_close(&link);
        free(p);
        return NULL;
    }
    p->channel = c;
    p->link = link;
    p->id = TRP_NONE;
    p->slot = TRP_NONE;
    p->opened_ns = p->heard_ns = c->now;
    DL_APPEND(c->callers, p);
    c->ncallers++;
    return p;
}

int trp_peer_make_room(trp_channel *c)
{
    if (c->npeers < c->peers_max)
        return 0;
    uint32_t polled = c->peers_max, sending = c->peers_max; /* grow alike */
    if (!TRP_ARRAY_GROW(c->polled, c->npeers, polled) ||
        !TRP_ARRAY_GROW(c->sending, c->npeers, sending))
        return TRP_ENOMEM;
    c->peers_max = sending;
    return 0;
}

int trp_peer_put(struct trp_peer *p, enum trp_frame_kind kind, const void *data,
                 size_t n)
{
    int rc = trp_link_put(&p->link, kind, data, n);
    if (rc < 0 && p->link.fd >= 0)
        shutdown(p->link.fd, SHUT_RDWR);
    trp_peer_watch_out(p);
    return rc;
}

void trp_peer_watch_out(struct trp_peer *p)
{
    bool pending = trp_link_pending(&p->link);
    if (pending == p->watched_out || p->link.fd < 0)
        return;
    struct epoll_event event = {.events = EPOLLIN | (pending ? EPOLLOUT : 0),
                                .data.ptr = p};
    epoll_ctl(p->channel->epoll_fd, EPOLL_CTL_MOD, p->link.fd, &event);
    p->watched_out = pending;
}

/* ---- messages -------------------------------------------------------------------- */

void trp_peer_poll(struct trp_peer *p)
{
    if (p->slot == TRP_NONE && p->lane.ops && p->lane.ops->rings)
        p->lane.ops->poll(p);
}

void trp_peer_unpoll(struct trp_peer *p)
{
    if (p->slot != TRP_NONE)
        p->lane.ops->unpoll(p);
}

int trp_peer_send(struct trp_peer *p, const void *data, size_t n)
{
    trp_channel *c = p->channel;
    int rc = p->lane.ops->put(p, data, n);
    if (rc < 0)
        return rc;
    p->lane.sent++;
    if (!p->sending) {
        p->sending = true;
        c->sending[c->nsending++] = p;
        trp_peer_poll(p); /* an answer is likely */
    }
    return 0;
}

bool trp_peer_deliver(void *context, const uint8_t *data, size_t n)
{
    struct trp_peer *p = (struct trp_peer *)context;
    trp_channel *c = p->channel;
    c->handled++;
    if (p->state == TRP_PEER_VERIFYING)
        trp_admission_verify(p, data, n);
    else if (p->state == TRP_PEER_UP && c->handler.message && !c->closing)
        c->handler.message(c->handler.context, p->id, data, n);
    return p->state != TRP_PEER_GONE;
}

int trp_peer_open(struct trp_peer *p, const struct trp_lane_ops *ops,
                  const struct trp_route *route)
{
    p->lane = (struct trp_lane){0};
    int rc = ops->open(p, route);
    if (rc < 0)
        return rc;
    p->lane.ops = ops;
    trp_peer_poll(p);
    return 0;
}

static void close_lane(struct trp_peer *p, bool orderly)
{
    trp_channel *c = p->channel;
    const struct trp_lane_ops *ops = p->lane.ops;
    if (!ops)
        return;
    trp_peer_unpoll(p);
    for (uint32_t i = 0; p->sending && i < c->nsending; i++)
        if (c->sending[i] == p) {
            c->sending[i] = c->sending[--c->nsending];
            p->sending = false;
        }
    ops->close(p, orderly);
    trp_buf_free(&p->lane.whole);
    p->lane.ops = NULL;
}

void trp_peer_abandon(struct trp_peer *p)
{
    close_lane(p, false);
}

/* ---- its end --------------------------------------------------------------------- */

void trp_peer_close_socket(struct trp_peer *p)
{
    if (p->link.fd < 0)
        return;
    /* Told to epoll, since a child forked by somebody may hold the socket as well. */
    epoll_ctl(p->channel->epoll_fd, EPOLL_CTL_DEL, p->link.fd, NULL);
    trp_link_close(&p->link);
}

void trp_peer_end(struct trp_peer *p, bool tell)
{
    trp_channel *c = p->channel;
    if (p->state == TRP_PEER_GONE)
        return;
    bool let_in = p->state & ~(TRP_PEER_PROVING | TRP_PEER_GREETING);
    enum trp_peer_state was = p->state;
    if (let_in)
        trp_admission_forget(p);
    p->state = TRP_PEER_GONE;
    p->orderly = p->bye_said && p->bye_heard && p->lane.taken >= p->promised;
    if (p->leaving)
        c->nleaving--;
    trp_peer_close_socket(p);
    trp_peer_unpoll(p);
    if (!let_in) {
        DL_DELETE(c->callers, p);
        c->ncallers--;
    } else {
        DL_DELETE(c->peers, p);
        c->npeers--;
        if (c->driver)
            c->by_id[p->id] = NULL;
        else
            c->only = NULL;
    }
    LL_PREPEND(c->gone, p);
    if (was == TRP_PEER_MEETING)
        c->unclean = true;
    if (p->orderly)
        p->last_words =
            (struct trp_last_words){.said = true, .reason = TRP_LOSS_RELEASED};
    if (tell && let_in && c->handler.down && !c->closing && !c->joining)
        c->handler.down(c->handler.context, p->id, &p->last_words);
}

void trp_peer_bury(trp_channel *c)
{
    while (c->gone) {
        struct trp_peer *p = c->gone;
        LL_DELETE(c->gone, p);
        close_lane(p, p->orderly);
        free(p);
    }
}
