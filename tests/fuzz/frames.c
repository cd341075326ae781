/*
 * Streams cut into pieces: the frames of the admission socket and the messages of a
 * lane, both taken from pieces of any size, must be those that the stream as a whole
 * says it has, by a reader that is written here once more and plainly.
 *
 * Input: a byte, then pieces of a length byte and so many bytes. Bit 0 of the first
 * byte: a lane, else a link; with bit 1 lengths count in 64s.
 */
#include <string.h>

#include "comm/channel.h"
#include "comm/frame.h"
#include "comm/lane.h"
#include "fuzz.h"

enum { WHOLE_MAX = 1 << 20 }; /* larger messages are not waited for: time */

/* What of the stream was seen so far: where the next frame or message should be. */
struct stream {
    struct trp_buf all;
    size_t at;
    bool stopped; /* a receiver wanted no more */
};

static uint32_t le(const uint8_t *p, size_t n)
{
    uint32_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

/* ---- frames of a link ---- */

/* 1 with the frame's body, 0 when it is not whole yet, -1 when it is none of ours. */
static int expected_frame(const struct stream *s, uint32_t limit, size_t *ret_size)
{
    const uint8_t *p = s->all.data + s->at;
    size_t left = s->all.size - s->at;
    if (left < TRP_FRAME_HEAD)
        return 0;
    *ret_size = le(p, 2);
    if (p[3] != TRP_FRAME_MARK || *ret_size > limit)
        return -1;
    if (p[2] != TRP_FRAME_LAST_WORDS)
        return left >= TRP_FRAME_HEAD + *ret_size;
    /* Words have a tag, which nobody guesses. */
    return left >= TRP_FRAME_HEAD + *ret_size + TRP_TAG_SIZE ? -1 : 0;
}

static bool take_frames(struct trp_link *l, struct stream *s)
{
    uint8_t kind;
    struct trp_view v;
    size_t size = 0;
    for (;;) {
        int wanted = expected_frame(s, l->limit, &size);
        int got = trp_link_next(l, &kind, &v);
        FUZZ_CHECK(got == (wanted < 0 ? TRP_EPROTO : wanted),
                   "frame at %zu: wanted %d, got %d", s->at, wanted, got);
        if (got <= 0)
            return got == 0;
        const uint8_t *p = s->all.data + s->at;
        FUZZ_CHECK(kind == p[2] && (size_t)(v.end - v.at) == size &&
                       memcmp(v.at, p + TRP_FRAME_HEAD, size) == 0,
                   "frame at %zu is another", s->at);
        s->at += TRP_FRAME_HEAD + size;
    }
}

/* What trp_link_fill does with what it reads. */
static bool link_piece(struct trp_link *l, const uint8_t *p, size_t n)
{
    if (l->in_at > 0) {
        l->in.size -= l->in_at;
        memmove(l->in.data, l->in.data + l->in_at, l->in.size);
        l->in_at = 0;
    }
    trp_put_raw(&l->in, p, n);
    return !l->in.failed;
}

/* ---- messages of a lane ---- */

static bool take_message(void *context, const uint8_t *p, size_t n)
{
    struct stream *s = context;
    const uint8_t *head = s->all.data + s->at;
    size_t left = s->all.size - s->at;
    FUZZ_CHECK(left >= 4 && le(head, 4) == n && n <= left - 4 &&
                   (!n || memcmp(head + 4, p, n) == 0),
               "message at %zu is another", s->at);
    s->at += 4 + n;
    s->stopped = n > 0 && p[0] == 0xee;
    return !s->stopped;
}

/* Whether the stream's next message is of a size that is worth the wait. */
static bool worth_it(const struct stream *s)
{
    size_t at = s->at;
    while (s->all.size - at >= 4) {
        uint32_t size = le(s->all.data + at, 4);
        if (size > WHOLE_MAX)
            return size > TRP_MESSAGE_MAX;
        if (size > s->all.size - at - 4)
            return true;
        at += 4 + size;
    }
    return true;
}

static bool lane_piece(struct trp_lane *l, struct stream *s, const uint8_t *p, size_t n)
{
    uint64_t taken = l->taken;
    size_t at = s->at;
    if (!worth_it(s))
        return false;
    uint8_t *piece = malloc(n ? n : 1); /* of its own size, so that ASan sees its end */
    if (n > 0)
        memcpy(piece, p, n);
    int rc = trp_lane_take(l, piece, n, take_message, s);
    free(piece);
    FUZZ_CHECK(rc == 0 || rc == TRP_EPROTO, "a lane's verdict is %d", rc);
    FUZZ_CHECK((l->taken > taken) == (s->at > at), "messages counted wrongly");
    size_t left = s->all.size - s->at;
    if (rc == 0 && !s->stopped && left >= 4)
        FUZZ_CHECK(le(s->all.data + s->at, 4) > left - 4, "message at %zu is kept back",
                   s->at);
    return rc == 0 && !s->stopped;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes b = {data, data + size};
    struct trp_link link = {.fd = -1, .limit = TRP_FRAME_CALLER_MAX};
    struct trp_lane lane = {0};
    struct stream s = {0};
    uint8_t how = fuzz_byte(&b);
    bool more = true;
    while (more && b.at < b.end) {
        size_t n = (size_t)fuzz_byte(&b) * (how & 2 ? 64 : 1);
        n = n < (size_t)(b.end - b.at) ? n : (size_t)(b.end - b.at);
        if (n == 0)
            continue;
        trp_put_raw(&s.all, b.at, n);
        if (how & 1)
            more = lane_piece(&lane, &s, b.at, n);
        else
            more = link_piece(&link, b.at, n) && take_frames(&link, &s);
        b.at += n;
    }
    trp_link_close(&link);
    trp_buf_free(&lane.whole);
    trp_buf_free(&s.all);
    return 0;
}
