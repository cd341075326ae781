/*
 * Messages over a communicator.
 *
 * Sending copies once, into fragments from a pool, which MPI sends from. A fragment is
 * below Open MPI's eager limit over TCP (64 KiB), so a send is complete when the kernel
 * has it, whatever the receiver does. One receive is posted at a time, at most WINDOW
 * sends.
 *
 * One posted receive and MPI_Testsome over all peers cost one turn of Open MPI's
 * progress engine a step, however many peers are polled; MPI_Improbe would cost a turn
 * each and a second copy of every fragment.
 *
 * Requests to a dead peer never complete: their memory is left to MPI for ever (at most
 * nine fragments a peer).
 */
#include <assert.h>
#include <stdlib.h>

#include "mpi/module.h"

enum { WINDOW = 8, TAG = 1, POOL_MAX = 256 /* fragments kept for later */ };

struct trp_block {
    struct trp_block *next;
    MPI_Request request;
    uint32_t size;
    uint8_t data[TRP_FRAGMENT];
};

struct trp_mpi_lane {
    MPI_Comm comm;
    int rank;
    MPI_Request request; /* the posted receive while the peer is not polled */
    /* Sends: `first` … posted, then from `unposted` on not yet. */
    struct trp_block *first, *last, *unposted;
    uint32_t posted;
    uint8_t *fragment; /* being received */
};

/* Of a channel: the polled peers' posted receives, side by side for MPI_Testsome. */
struct trp_mpi_polls {
    MPI_Request *requests;
    MPI_Status *statuses;
    int *indices;
    struct trp_peer **ripe;
    uint32_t max;
    struct trp_block *free; /* the pool */
    uint32_t nfree;
};

/* ---- fragments ------------------------------------------------------------------- */

static struct trp_block *take_block(struct trp_mpi_polls *pool)
{
    struct trp_block *b = pool->free;
    if (b) {
        pool->free = b->next;
        pool->nfree--;
    } else {
        b = (struct trp_block *)malloc(sizeof *b);
        if (!b)
            return NULL;
    }
    b->next = NULL;
    b->size = 0;
    b->request = MPI_REQUEST_NULL;
    return b;
}

static void give_block(struct trp_mpi_polls *pool, struct trp_block *b)
{
    if (pool->nfree >= POOL_MAX) {
        free(b);
        return;
    }
    b->next = pool->free;
    pool->free = b;
    pool->nfree++;
}

/* Blocks for `n` more bytes behind what is queued; false: none were added. */
static bool make_blocks(struct trp_mpi_lane *l, struct trp_mpi_polls *pool, size_t n)
{
    size_t room = l->unposted ? TRP_FRAGMENT - l->last->size : 0;
    struct trp_block *before = l->last;
    while (room < n) {
        struct trp_block *b = take_block(pool);
        if (!b)
            break;
        if (l->last)
            l->last->next = b;
        else
            l->first = b;
        l->last = b;
        if (!l->unposted)
            l->unposted = b;
        room += TRP_FRAGMENT;
    }
    if (room >= n)
        return true;
    for (struct trp_block *b = before ? before->next : l->first, *next; b; b = next) {
        next = b->next;
        if (b == l->unposted)
            l->unposted = NULL;
        give_block(pool, b);
    }
    l->last = before;
    if (before)
        before->next = NULL;
    else
        l->first = NULL;
    return false;
}

static struct trp_block *copy_in(struct trp_block *b, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (b->size == TRP_FRAGMENT)
            b = b->next;
        assert(b); /* room was made for all of it */
        size_t piece = TRP_FRAGMENT - b->size < n ? TRP_FRAGMENT - b->size : n;
        memcpy(b->data + b->size, p, piece);
        b->size += (uint32_t)piece;
        p += piece;
        n -= piece;
    }
    return b;
}

/* ---- one lane -------------------------------------------------------------------- */

static int receive(struct trp_mpi_lane *l, MPI_Request *ret_request)
{
    int rc = MPI_Irecv(l->fragment, TRP_FRAGMENT, MPI_BYTE, l->rank, TAG, l->comm,
                       ret_request);
    return rc == MPI_SUCCESS ? 0 : TRP_ESYSTEM;
}

static int grow_array(void *array, size_t n, size_t size)
{
    void **at = (void **)array;
    void *grown = reallocarray(*at, n, size);
    if (!grown)
        return TRP_ENOMEM;
    *at = grown;
    return 0;
}

/* For all peers that the channel has room for. */
static int make_room(trp_channel *c)
{
    struct trp_mpi_polls *m = c->mpi;
    if (!m)
        m = c->mpi = (struct trp_mpi_polls *)calloc(1, sizeof *m);
    if (!m)
        return TRP_ENOMEM;
    if (m->max == c->peers_max)
        return 0;
    uint32_t n = c->peers_max;
    if (grow_array(&m->ripe, n, sizeof *m->ripe) < 0 ||
        grow_array(&m->requests, n, sizeof *m->requests) < 0 ||
        grow_array(&m->statuses, n, sizeof *m->statuses) < 0 ||
        grow_array(&m->indices, n, sizeof *m->indices) < 0)
        return TRP_ENOMEM;
    m->max = n;
    return 0;
}

static int mpi_open(struct trp_peer *p, const struct trp_route *route)
{
    struct trp_mpi_lane *l = (struct trp_mpi_lane *)calloc(1, sizeof *l);
    uint8_t *fragment = (uint8_t *)malloc(TRP_FRAGMENT);
    int rc = l && fragment ? make_room(p->channel) : TRP_ENOMEM;
    if (rc == 0) {
        *l = (struct trp_mpi_lane){.comm = MPI_Comm_f2c(route->comm),
                                   .rank = route->rank,
                                   .request = MPI_REQUEST_NULL,
                                   .fragment = fragment};
        MPI_Comm_set_errhandler(l->comm, MPI_ERRORS_RETURN);
        rc = receive(l, &l->request);
    }
    if (rc < 0) {
        free(fragment);
        free(l);
        return rc;
    }
    p->lane.mpi = l;
    return 0;
}

/* Where its posted receive is now. */
static MPI_Request *request_of(struct trp_peer *p)
{
    return p->slot == TRP_NONE ? &p->lane.mpi->request
                               : &p->channel->mpi->requests[p->slot];
}

static void mpi_poll(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    MPI_Request request = p->lane.mpi->request;
    p->slot = c->npolled++;
    c->polled[p->slot] = p;
    c->mpi->requests[p->slot] = request;
    p->lane.mpi->request = MPI_REQUEST_NULL;
}

static void mpi_unpoll(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    MPI_Request *requests = c->mpi->requests;
    p->lane.mpi->request = requests[p->slot];
    c->npolled--;
    c->polled[p->slot] = c->polled[c->npolled];
    requests[p->slot] = requests[c->npolled];
    c->polled[p->slot]->slot = p->slot;
    p->slot = TRP_NONE;
}

static void unpoll(struct trp_peer *p)
{
    if (p->slot != TRP_NONE)
        mpi_unpoll(p);
}

/* What MPI does not hold on to. An orderly peer's posted receive can be taken back; a
 * lost one's, and unfinished sends, stay where MPI may write. */
static void mpi_close(struct trp_peer *p, bool orderly)
{
    trp_channel *c = p->channel;
    struct trp_mpi_lane *l = p->lane.mpi;
    int done = l->request == MPI_REQUEST_NULL;
    if (!done && orderly && MPI_Cancel(&l->request) == MPI_SUCCESS)
        MPI_Test(&l->request, &done, MPI_STATUS_IGNORE);
    if (done)
        free(l->fragment);
    for (struct trp_block *b = l->unposted, *next; b; b = next) {
        next = b->next;
        give_block(c->mpi, b);
    }
    struct trp_route route = {MPI_Comm_c2f(l->comm), l->rank};
    if (orderly)
        c->transport.ops->leave(&c->transport, &route);
    else
        c->unclean = true;
    free(l);
    p->lane.mpi = NULL;
}

static int mpi_put(struct trp_peer *p, const void *data, size_t n)
{
    struct trp_mpi_lane *l = p->lane.mpi;
    struct trp_block *at = l->unposted ? l->last : NULL;
    if (!make_blocks(l, p->channel->mpi, TRP_RECORD_HEAD + n))
        return TRP_ENOMEM;
    uint32_t size = htole32((uint32_t)n);
    if (!at)
        at = l->unposted;
    at = copy_in(at, (const uint8_t *)&size, TRP_RECORD_HEAD);
    copy_in(at, (const uint8_t *)data, n);
    return 0;
}

static int flush(struct trp_mpi_lane *l, struct trp_mpi_polls *pool)
{
    while (l->first) {
        while (l->unposted && l->posted < WINDOW) {
            struct trp_block *b = l->unposted;
            if (MPI_Isend(b->data, (int)b->size, MPI_BYTE, l->rank, TAG, l->comm,
                          &b->request) != MPI_SUCCESS)
                return TRP_ESYSTEM;
            l->unposted = b->next;
            l->posted++;
        }
        int done;
        struct trp_block *b = l->first;
        if (MPI_Test(&b->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return TRP_ESYSTEM;
        if (!done)
            return 0;
        l->first = b->next;
        if (!l->first)
            l->last = NULL;
        l->posted--;
        give_block(pool, b);
    }
    return 1;
}

static int mpi_flush(struct trp_peer *p)
{
    trp_mpi_mark();
    int rc = flush(p->lane.mpi, p->channel->mpi);
    trp_mpi_mark();
    return rc;
}

/* ---- what arrives ---------------------------------------------------------------- */

/* What its finished receive brought, and the next receive. */
static void take_one(struct trp_peer *p, MPI_Status *status)
{
    int n;
    p->heard_ns = p->channel->now;
    *request_of(p) = MPI_REQUEST_NULL;
    int rc = MPI_Get_count(status, MPI_BYTE, &n) == MPI_SUCCESS ? 0 : TRP_ESYSTEM;
    if (rc == 0)
        rc = trp_host->take(p, p->lane.mpi->fragment, (size_t)n);
    if (p->state == TRP_PEER_GONE)
        return;
    if (rc == 0)
        rc = receive(p->lane.mpi, request_of(p));
    if (rc < 0)
        trp_host->end(p);
}

static void mpi_drain(struct trp_peer *p)
{
    enum { QUIET = 3 };
    unpoll(p);
    for (int quiet = 0; quiet < QUIET && p->lane.ops && p->state == TRP_PEER_UP;) {
        int done;
        MPI_Status status;
        trp_mpi_mark();
        int rc = MPI_Test(&p->lane.mpi->request, &done, &status);
        trp_mpi_mark();
        if (rc != MPI_SUCCESS)
            return;
        quiet = done ? 0 : quiet + 1;
        if (done)
            take_one(p, &status);
        unpoll(p); /* the handler may have answered */
    }
}

/* Which receives of the polled peers are complete. MPI_Test looks once more after it
 * turned Open MPI's progress engine, MPI_Testsome does not: with one peer a message is
 * seen a turn earlier. */
static int find_ripe(trp_channel *c, int *ret_n)
{
    int done = 0;
    struct trp_mpi_polls *m = c->mpi;
    bool one = c->npolled == 1;
    trp_mpi_mark();
    int rc = one ? MPI_Test(&m->requests[0], &done, &m->statuses[0])
                 : MPI_Testsome((int)c->npolled, m->requests, ret_n, m->indices,
                                m->statuses);
    trp_mpi_mark();
    if (one) {
        m->indices[0] = 0;
        m->statuses[0].MPI_ERROR = rc;
        *ret_n = done || rc != MPI_SUCCESS;
    } else if (*ret_n == MPI_UNDEFINED) {
        *ret_n = 0;
    }
    return rc;
}

static void mpi_take(trp_channel *c)
{
    int n = 0;
    int rc = find_ripe(c, &n);
    struct trp_mpi_polls *m = c->mpi;
    for (int i = 0; i < n; i++)
        m->ripe[i] = c->polled[m->indices[i]];
    for (int i = 0; i < n; i++) {
        struct trp_peer *p = m->ripe[i];
        if (p->state == TRP_PEER_GONE)
            continue;
        if (rc != MPI_SUCCESS && m->statuses[i].MPI_ERROR != MPI_SUCCESS)
            trp_host->end(p);
        else
            take_one(p, &m->statuses[i]);
    }
}

static void mpi_forget(struct trp_channel *c)
{
    struct trp_mpi_polls *m = c->mpi;
    while (m && m->free) {
        struct trp_block *b = m->free;
        m->free = b->next;
        free(b);
    }
    if (m) {
        free(m->ripe);
        free(m->requests);
        free(m->statuses);
        free(m->indices);
    }
    free(m);
}

const struct trp_lane_ops trp_lane_mpi = {
    .rings = true,
    .open = mpi_open,
    .put = mpi_put,
    .flush = mpi_flush,
    .drain = mpi_drain,
    .close = mpi_close,
    .poll = mpi_poll,
    .unpoll = mpi_unpoll,
    .take = mpi_take,
    .forget = mpi_forget,
};
