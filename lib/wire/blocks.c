#include "wire/blocks.h"

#include "wire/message.h"

enum { STATE_SIZE = 34 };

void trp_blocks_begin(struct trp_buf *b, uint32_t problem, uint32_t count)
{
    trp_put_u8(b, TRP_MSG_BLOCKS);
    trp_put_u32(b, problem);
    trp_put_u32(b, count);
}

void trp_block_state_put(struct trp_buf *b, const struct trp_block_state *s)
{
    trp_put_u32(b, s->dataset);
    trp_put_u32(b, s->partition);
    trp_put_u64(b, s->attempt.n);
    trp_put_u8(b, s->there);
    trp_put_u8(b, s->level);
    trp_put_u64(b, s->memory);
    trp_put_u64(b, s->disk);
}

int trp_blocks_open(const void *p, size_t n, struct trp_view *ret_v,
                    uint32_t *ret_problem, uint32_t *ret_count)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_BLOCKS);
    uint32_t problem = trp_get_u32(&v);
    uint32_t count = trp_get_count(&v, STATE_SIZE);
    if (v.bad || (uint64_t)(v.end - v.at) != (uint64_t)count * STATE_SIZE)
        return TRP_EPROTO;
    *ret_v = v;
    *ret_problem = problem;
    *ret_count = count;
    return 0;
}

int trp_blocks_next(struct trp_view *v, struct trp_block_state *ret)
{
    if (v->at == v->end)
        return 0;
    ret->dataset = trp_get_u32(v);
    ret->partition = trp_get_u32(v);
    ret->attempt.n = trp_get_u64(v);
    ret->there = trp_get_flag(v);
    ret->level = trp_get_u8(v);
    ret->memory = trp_get_u64(v);
    ret->disk = trp_get_u64(v);
    bool good = !v->bad && ret->level <= TRP_BLOCK_LEVELS &&
                (ret->memory | ret->disk) < TRP_LARGEST;
    return good && (ret->there || !(ret->memory | ret->disk)) ? 1 : TRP_EPROTO;
}
