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
    p->request = MPI_REQUEST_NULL;
    p->opened_ns = p->heard_ns = c->now;
    DL_APPEND(c->callers, p);
    c->ncallers++;
    return p;
}

static int grow(void *array, size_t n, size_t size)
{
    void **at = (void **)array;
    void *grown = reallocarray(*at, n, size);
    if (!grown)
        return TRP_ENOMEM;
    *at = grown;
    return 0;
}

int trp_peer_make_room(trp_channel *c)
{
    if (c->npeers < c->polled_max)
        return 0;
    uint32_t n = c->polled_max ? 2 * c->polled_max : 16;
    if (grow(&c->polled, n, sizeof *c->polled) < 0 ||
        grow(&c->ripe, n, sizeof *c->ripe) < 0 ||
        grow(&c->requests, n, sizeof *c->requests) < 0 ||
        grow(&c->statuses, n, sizeof *c->statuses) < 0 ||
        grow(&c->indices, n, sizeof *c->indices) < 0 ||
        grow(&c->sending, n, sizeof *c->sending) < 0)
        return TRP_ENOMEM;
    c->polled_max = n;
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
    trp_channel *c = p->channel;
    if (p->slot != TRP_NONE || !p->lane.open)
        return;
    p->slot = c->npolled++;
    c->polled[p->slot] = p;
    c->requests[p->slot] = p->request;
    p->request = MPI_REQUEST_NULL;
}

void trp_peer_unpoll(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    if (p->slot == TRP_NONE)
        return;
    p->request = c->requests[p->slot];
    c->npolled--;
    c->polled[p->slot] = c->polled[c->npolled];
    c->requests[p->slot] = c->requests[c->npolled];
    c->polled[p->slot]->slot = p->slot;
    p->slot = TRP_NONE;
}

int trp_peer_send(struct trp_peer *p, const void *data, size_t n)
{
    trp_channel *c = p->channel;
    int rc = trp_lane_put(&p->lane, &c->pool, data, n);
    if (rc < 0)
        return rc;
    if (!p->sending) {
        p->sending = true;
        c->sending[c->nsending++] = p;
        trp_peer_poll(p); /* an answer is likely */
    }
    return 0;
}

static bool deliver(void *context, const uint8_t *data, size_t n)
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

void trp_peer_take(struct trp_peer *p, MPI_Status *status)
{
    int n;
    trp_channel *c = p->channel;
    p->heard_ns = c->now;
    MPI_Request *request = p->slot == TRP_NONE ? &p->request : &c->requests[p->slot];
    *request = MPI_REQUEST_NULL;
    int rc = MPI_Get_count(status, MPI_BYTE, &n) == MPI_SUCCESS ? 0 : TRP_ESYSTEM;
    if (rc == 0)
        rc = trp_lane_take(&p->lane, (size_t)n, deliver, p);
    if (p->state == TRP_PEER_GONE)
        return;
    request = p->slot == TRP_NONE ? &p->request : &c->requests[p->slot];
    if (rc == 0)
        rc = trp_lane_receive(&p->lane, request);
    if (rc < 0)
        trp_peer_end(p, true);
}

void trp_peer_drain(struct trp_peer *p)
{
    enum { QUIET = 3 };
    trp_peer_unpoll(p);
    for (int quiet = 0; quiet < QUIET && p->lane.open && p->state == TRP_PEER_UP;) {
        int done;
        MPI_Status status;
        trp_mpi_mark();
        int rc = MPI_Test(&p->request, &done, &status);
        trp_mpi_mark();
        if (rc != MPI_SUCCESS)
            return;
        quiet = done ? 0 : quiet + 1;
        if (done)
            trp_peer_take(p, &status);
        trp_peer_unpoll(p); /* the handler may have answered */
    }
}

/* MPI_Test looks once more after it turned Open MPI's progress engine, MPI_Testsome
 * does not: with one peer a message is seen a turn earlier. */
int trp_peer_find_ripe(trp_channel *c, int *ret_n)
{
    int done = 0;
    bool one = c->npolled == 1;
    trp_mpi_mark();
    int rc = one ? MPI_Test(&c->requests[0], &done, &c->statuses[0])
                 : MPI_Testsome((int)c->npolled, c->requests, ret_n, c->indices,
                                c->statuses);
    trp_mpi_mark();
    if (one) {
        c->indices[0] = 0;
        c->statuses[0].MPI_ERROR = rc;
        *ret_n = done || rc != MPI_SUCCESS;
    } else if (*ret_n == MPI_UNDEFINED) {
        *ret_n = 0;
    }
    return rc;
}

int trp_peer_join(struct trp_peer *p, const struct trp_route *route)
{
    int rc = trp_lane_open(&p->lane, route, &p->request);
    if (rc == 0)
        trp_peer_poll(p);
    return rc;
}

static void close_lane(struct trp_peer *p, bool orderly)
{
    trp_channel *c = p->channel;
    struct trp_route route = p->lane.route;
    if (!p->lane.open)
        return;
    trp_peer_unpoll(p);
    for (uint32_t i = 0; p->sending && i < c->nsending; i++)
        if (c->sending[i] == p) {
            c->sending[i] = c->sending[--c->nsending];
            p->sending = false;
        }
    trp_lane_close(&p->lane, &c->pool, orderly, &p->request);
    if (orderly)
        c->transport.ops->leave(&c->transport, &route);
    else
        c->unclean = true;
}

void trp_peer_abandon(struct trp_peer *p)
{
    close_lane(p, false);
    p->lane = (struct trp_lane){0};
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
        p->words = (struct trp_last_words){.said = true, .reason = TRP_LOSS_RELEASED};
    if (tell && let_in && c->handler.down && !c->closing && !c->joining)
        c->handler.down(c->handler.context, p->id, &p->words);
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
