/*
 * Messages over a communicator.
 *
 * Sending copies once, into fragments from a pool, which MPI sends from. A fragment is
 * below Open MPI's eager limit over TCP (64 KiB), so a send is complete when the kernel
 * has it, whatever the receiver does. Receiving delivers a message that lies whole in
 * its fragment without a copy; others are put together in one buffer sized when their
 * size is known.
 *
 * One posted receive and MPI_Testsome over all peers cost one turn of Open MPI's
 * progress engine a step, however many peers are polled; MPI_Improbe would cost a turn
 * each and a second copy of every fragment.
 *
 * Requests to a dead peer never complete: their memory is left to MPI for ever (at most
 * nine fragments a peer).
 */
#include "comm/lane.h"

#include <assert.h>
#include <stdlib.h>

enum { HEAD = 4, KEEP_WHOLE = 64 * 1024 };

static struct trp_block *take_block(struct trp_pool *pool)
{
    struct trp_block *b = pool->free;
    if (b) {
        pool->free = b->next;
        pool->count--;
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

static void give_block(struct trp_pool *pool, struct trp_block *b)
{
    if (pool->count >= TRP_POOL_MAX) {
        free(b);
        return;
    }
    b->next = pool->free;
    pool->free = b;
    pool->count++;
}

void trp_pool_free(struct trp_pool *p)
{
    while (p->free) {
        struct trp_block *b = p->free;
        p->free = b->next;
        free(b);
    }
    p->count = 0;
}

int trp_lane_receive(struct trp_lane *l, MPI_Request *ret_request)
{
    int rc = MPI_Irecv(l->fragment, TRP_FRAGMENT, MPI_BYTE, l->route.rank, TRP_LANE_TAG,
                       l->route.comm, ret_request);
    return rc == MPI_SUCCESS ? 0 : TRP_ESYSTEM;
}

int trp_lane_open(struct trp_lane *l, const struct trp_route *route,
                  MPI_Request *ret_request)
{
    uint8_t *fragment = (uint8_t *)malloc(TRP_FRAGMENT);
    if (!fragment)
        return TRP_ENOMEM;
    *l = (struct trp_lane){.open = true, .route = *route, .fragment = fragment};
    MPI_Comm_set_errhandler(route->comm, MPI_ERRORS_RETURN);
    int rc = trp_lane_receive(l, ret_request);
    if (rc < 0) {
        free(fragment);
        l->open = false;
    }
    return rc;
}

void trp_lane_close(struct trp_lane *l, struct trp_pool *pool, bool alive,
                    MPI_Request *request)
{
    if (!l->open)
        return;
    l->open = false;
    int done = *request == MPI_REQUEST_NULL;
    if (!done && alive && MPI_Cancel(request) == MPI_SUCCESS)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (done)
        free(l->fragment);
    l->fragment = NULL;
    *request = MPI_REQUEST_NULL;
    for (struct trp_block *b = l->unposted, *next; b; b = next) {
        next = b->next;
        give_block(pool, b);
    }
    l->first = l->last = l->unposted = NULL;
    trp_buf_free(&l->whole);
}

/* Blocks for `n` more bytes behind what is queued; false: none were added. */
static bool make_room(struct trp_lane *l, struct trp_pool *pool, size_t n)
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

int trp_lane_put(struct trp_lane *l, struct trp_pool *pool, const void *p, size_t n)
{
    struct trp_block *at = l->unposted ? l->last : NULL;
    if (!make_room(l, pool, HEAD + n))
        return TRP_ENOMEM;
    uint32_t size = htole32((uint32_t)n);
    if (!at)
        at = l->unposted;
    at = copy_in(at, (const uint8_t *)&size, HEAD);
    copy_in(at, (const uint8_t *)p, n);
    l->sent++;
    return 0;
}

int trp_lane_flush(struct trp_lane *l, struct trp_pool *pool)
{
    while (l->first) {
        while (l->unposted && l->posted < TRP_LANE_WINDOW) {
            struct trp_block *b = l->unposted;
            if (MPI_Isend(b->data, (int)b->size, MPI_BYTE, l->route.rank, TRP_LANE_TAG,
                          l->route.comm, &b->request) != MPI_SUCCESS)
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

/* A message that did not lie whole in its fragment: gathers its size, then its bytes.
 * Returns how many of the n bytes were used. */
static int gather(struct trp_lane *l, const uint8_t *p, size_t n)
{
    size_t have = l->whole.size, need = HEAD;
    if (have >= HEAD)
        need += l->want;
    size_t piece = need - have < n ? need - have : n;
    trp_put_raw(&l->whole, p, piece);
    if (l->whole.failed)
        return TRP_ENOMEM;
    if (have < HEAD && l->whole.size == HEAD) {
        struct trp_view v = trp_view_of(l->whole.data, HEAD);
        l->want = trp_get_u32(&v);
        if (l->want > TRP_MESSAGE_MAX)
            return TRP_EPROTO;
        if (!trp_buf_grow(&l->whole, l->want))
            return TRP_ENOMEM;
    }
    return (int)piece;
}

int trp_lane_take(struct trp_lane *l, size_t n,
                  bool (*deliver)(void *context, const uint8_t *p, size_t n),
                  void *context)
{
    const uint8_t *p = l->fragment;
    while (n > 0) {
        struct trp_view v = trp_view_of(p, n);
        uint32_t size = l->whole.size == 0 && n >= HEAD ? trp_get_u32(&v) : UINT32_MAX;
        if (n >= HEAD && size <= n - HEAD) {
            l->taken++;
            if (!deliver(context, v.at, size))
                return 0;
            p += HEAD + size;
            n -= HEAD + size;
            continue;
        }
        int used = gather(l, p, n);
        if (used < 0)
            return used;
        p += used;
        n -= (size_t)used;
        if (l->whole.size < HEAD || l->whole.size < HEAD + (size_t)l->want)
            continue;
        struct trp_buf whole = l->whole; /* deliver may close the lane */
        l->whole = (struct trp_buf){0};
        l->taken++;
        bool more = deliver(context, whole.data + HEAD, l->want);
        if (more && whole.capacity <= KEEP_WHOLE) {
            trp_buf_clear(&whole);
            l->whole = whole;
        } else {
            trp_buf_free(&whole);
        }
        if (!more)
            return 0;
    }
    return 0;
}
