/*
 * A stream of records, taken apart. A message that lies whole in its piece is delivered
 * without a copy; others are put together in one buffer, sized when their size is
 * known.
 */
#include "comm/lane.h"

#include "comm/channel.h"

enum { KEEP_WHOLE = 64 * 1024 };

/* A message that did not lie whole in its piece: gathers its size, then its bytes.
 * Returns how many of the n bytes were used. */
static int gather(struct trp_lane *l, const uint8_t *p, size_t n)
{
    size_t have = l->whole.size, need = TRP_RECORD_HEAD;
    if (have >= TRP_RECORD_HEAD)
        need += l->want;
    size_t piece = need - have < n ? need - have : n;
    trp_put_raw(&l->whole, p, piece);
    if (l->whole.failed)
        return TRP_ENOMEM;
    if (have < TRP_RECORD_HEAD && l->whole.size == TRP_RECORD_HEAD) {
        struct trp_view v = trp_view_of(l->whole.data, TRP_RECORD_HEAD);
        l->want = trp_get_u32(&v);
        if (l->want > TRP_MESSAGE_MAX)
            return TRP_EPROTO;
        if (!trp_buf_grow(&l->whole, l->want))
            return TRP_ENOMEM;
    }
    return (int)piece;
}

int trp_lane_take(struct trp_lane *l, const uint8_t *bytes, size_t n,
                  bool (*deliver)(void *context, const uint8_t *p, size_t n),
                  void *context)
{
    while (n > 0) {
        struct trp_view v = trp_view_of(bytes, n);
        bool begins = l->whole.size == 0 && n >= TRP_RECORD_HEAD;
        uint32_t size = begins ? trp_get_u32(&v) : UINT32_MAX;
        if (begins && size <= n - TRP_RECORD_HEAD) {
            l->taken++;
            if (!deliver(context, v.at, size))
                return 0;
            bytes += TRP_RECORD_HEAD + size;
            n -= TRP_RECORD_HEAD + size;
            continue;
        }
        int used = gather(l, bytes, n);
        if (used < 0)
            return used;
        bytes += used;
        n -= (size_t)used;
        if (l->whole.size < TRP_RECORD_HEAD ||
            l->whole.size < TRP_RECORD_HEAD + (size_t)l->want)
            continue;
        struct trp_buf whole = l->whole; /* the lane may be closed by the handler */
        l->whole = (struct trp_buf){0};
        l->taken++;
        bool more = deliver(context, whole.data + TRP_RECORD_HEAD, l->want);
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
