#include "data/block_wire.h"

void trp_wanted_put(struct trp_buf *to, const struct trp_wanted *w)
{
    trp_put_u32(to, w->id.shuffle);
    trp_put_u32(to, w->id.map);
    trp_put_u64(to, w->id.attempt);
    trp_put_u32(to, w->partition);
    trp_put_u32(to, w->partitions);
    trp_put_u64(to, w->offset);
    trp_put_u32(to, w->size);
}

int trp_wanted_count(struct trp_view *v)
{
    uint32_t n = trp_get_count(v, TRP_WANTED_SIZE);
    return v->bad || n < 1 || n > TRP_WANTED_FRAME ||
                   (size_t)(v->end - v->at) != (size_t)n * TRP_WANTED_SIZE
               ? TRP_EPROTO
               : (int)n;
}

int trp_wanted_get(struct trp_view *v, struct trp_wanted *ret)
{
    ret->id.shuffle = trp_get_u32(v);
    ret->id.map = trp_get_u32(v);
    ret->id.attempt = trp_get_u64(v);
    ret->partition = trp_get_u32(v);
    ret->partitions = trp_get_u32(v);
    ret->offset = trp_get_u64(v);
    ret->size = trp_get_u32(v);
    return v->bad || ret->partitions > TRP_SHUFFLE_PARTITIONS_MAX ||
                   ret->partition >= ret->partitions || ret->size > TRP_WANTED_BYTES
               ? TRP_EPROTO
               : 0;
}

void trp_block_head_put(struct trp_buf *to, const struct trp_block_head *h)
{
    trp_put_u8(to, h->status);
    trp_put_u32(to, h->number);
    trp_put_u64(to, h->size);
    trp_put_u32(to, h->bytes);
    trp_put_text(to, h->why);
}

int trp_block_head_get(struct trp_view *v, const struct trp_wanted *w, uint32_t number,
                       struct trp_block_head *ret)
{
    size_t n;
    ret->status = trp_get_u8(v);
    ret->number = trp_get_u32(v);
    ret->size = trp_get_u64(v);
    ret->bytes = trp_get_u32(v);
    const uint8_t *why = trp_get_bytes(v, &n);
    if (!trp_view_end(v) || n > TRP_BLOCK_WHY || ret->number != number ||
        ret->status > TRP_BLOCK_LATER)
        return TRP_EPROTO;
    memcpy(ret->why, why, n);
    ret->why[n] = 0;
    if (ret->status != TRP_BLOCK_HERE)
        return ret->bytes == 0 ? 0 : TRP_EPROTO;
    /* As much as was asked for, or as there is. */
    uint64_t left = ret->size > w->offset ? ret->size - w->offset : 0;
    return ret->bytes == (left < w->size ? left : w->size) ? 0 : TRP_EPROTO;
}
