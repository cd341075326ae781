/*
 * Frames on the admission socket.
 *
 * Writing goes straight to the socket while it takes all, which is nearly always.
 * Reading is into one growing buffer a link, emptied from the front; it is never larger
 * than one frame and one fill, and is given back when it grew and is empty: a driver
 * has thousands of them. An oversize or unmarked head is found after four bytes, so
 * garbage costs nothing.
 */
#include "comm/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/umac.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_SIZE = 4096,
    FILL_MAX = 64 * 1024,
    KEEP_IN = 16 * 1024,
    KEEP_OUT = 256 * 1024,
    COMPACT_OUT = 1024 * 1024,
};

struct trp_seal {
    struct umac128_ctx out, in; /* each counts its frames */
};

void trp_link_open(struct trp_link *l, int fd, uint32_t limit)
{
    int one = 1;
    *l = (struct trp_link){.fd = fd, .limit = limit, .open_at = TRP_NO_FRAME};
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void trp_link_close(struct trp_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    explicit_bzero(l->last_words_key, sizeof l->last_words_key);
    trp_buf_free(&l->in);
    trp_buf_free(&l->out);
    if (l->seal)
        explicit_bzero(l->seal, sizeof *l->seal);
    free(l->seal);
    l->seal = NULL;
    l->open_at = TRP_NO_FRAME;
}

int trp_link_seal(struct trp_link *l, const uint8_t *out_key, const uint8_t *in_key)
{
    l->seal = (struct trp_seal *)calloc(1, sizeof *l->seal);
    if (!l->seal)
        return TRP_ENOMEM;
    umac128_set_key(&l->seal->out, out_key);
    umac128_set_key(&l->seal->in, in_key);
    return 0;
}

/* ---- writing --------------------------------------------------------------------- */

static void put_head(struct trp_link *l, size_t size, enum trp_frame_kind kind)
{
    trp_put_u16(&l->out, (uint16_t)size);
    trp_put_u8(&l->out, (uint8_t)kind);
    trp_put_u8(&l->out, TRP_FRAME_MARK);
}

/* The tag of the frame that begins at `at` and is whole but for it. */
static void put_tag(struct trp_link *l, size_t at)
{
    size_t n = l->out.size - at;
    uint8_t *tag = l->seal ? trp_buf_reserve(&l->out, TRP_TAG_SIZE) : NULL;
    if (!tag)
        return;
    umac128_update(&l->seal->out, n, l->out.data + at);
    umac128_digest(&l->seal->out, TRP_TAG_SIZE, tag);
}

static void close_frame(struct trp_link *l)
{
    size_t at = l->open_at;
    if (at == TRP_NO_FRAME)
        return;
    uint16_t size = htole16((uint16_t)(l->out.size - at - TRP_FRAME_HEAD));
    memcpy(l->out.data + at, &size, sizeof size);
    l->open_at = TRP_NO_FRAME;
    put_tag(l, at);
}

/* A peer that reads slowly and always has something to come. */
static void compact(struct trp_link *l)
{
    if (l->out_at < COMPACT_OUT || l->out_at < l->out.size / 2)
        return;
    l->out.size -= l->out_at;
    memmove(l->out.data, l->out.data + l->out_at, l->out.size);
    l->out_at = 0;
}

int trp_link_flush(struct trp_link *l)
{
    close_frame(l);
    if (l->out.failed)
        return TRP_ENOMEM;
    while (trp_link_pending(l)) {
        ssize_t n = send(l->fd, l->out.data + l->out_at, l->out.size - l->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            compact(l);
            return 0;
        }
        if (n < 0)
            return TRP_ESYSTEM;
        l->out_at += (size_t)n;
    }
    if (l->out.capacity > KEEP_OUT)
        trp_buf_free(&l->out);
    trp_buf_clear(&l->out);
    l->out_at = 0;
    return 0;
}

int trp_link_queue(struct trp_link *l, enum trp_frame_kind kind, const void *p,
                   size_t n)
{
    if (l->fd < 0 || n > TRP_FRAME_MAX ||
        (!l->carries && l->out.size - l->out_at > TRP_LINK_OUT_MAX))
        return TRP_ESYSTEM;
    close_frame(l);
    size_t at = l->out.size;
    put_head(l, n, kind);
    trp_put_raw(&l->out, p, n);
    if (!l->out.failed)
        put_tag(l, at);
    return l->out.failed ? TRP_ENOMEM : 0;
}

int trp_link_put(struct trp_link *l, enum trp_frame_kind kind, const void *p, size_t n)
{
    bool first = !trp_link_pending(l) || l->open_at != TRP_NO_FRAME;
    int rc = trp_link_queue(l, kind, p, n);
    return rc == 0 && first ? trp_link_flush(l) : rc;
}

/* There is memory for it. */
static void put_data(struct trp_link *l, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (l->open_at == TRP_NO_FRAME) {
            l->open_at = l->out.size;
            put_head(l, 0, TRP_FRAME_DATA);
        }
        size_t room = TRP_FRAME_DATA_MAX + TRP_FRAME_HEAD + l->open_at - l->out.size;
        size_t piece = n < room ? n : room;
        trp_put_raw(&l->out, p, piece);
        p += piece;
        n -= piece;
        if (piece == room)
            close_frame(l);
    }
}

int trp_link_put_record(struct trp_link *l, const void *p, size_t n)
{
    uint32_t size = htole32((uint32_t)n);
    size_t frames = n / TRP_FRAME_DATA_MAX + 2;
    if (l->fd < 0)
        return TRP_ESYSTEM;
    if (!trp_buf_grow(&l->out,
                      sizeof size + n + frames * (TRP_FRAME_HEAD + TRP_TAG_SIZE)))
        return TRP_ENOMEM;
    put_data(l, (const uint8_t *)&size, sizeof size);
    put_data(l, (const uint8_t *)p, n);
    return 0;
}

/* ---- reading --------------------------------------------------------------------- */

int trp_link_fill(struct trp_link *l)
{
    if (l->in_at > 0) {
        l->in.size -= l->in_at;
        memmove(l->in.data, l->in.data + l->in_at, l->in.size);
        l->in_at = 0;
    }
    if (l->in.size == 0 && l->in.capacity > KEEP_IN)
        trp_buf_free(&l->in);
    for (size_t filled = 0, size = READ_SIZE; filled < FILL_MAX;) {
        uint8_t *to = trp_buf_reserve(&l->in, size);
        if (!to)
            return TRP_ENOMEM;
        ssize_t n = recv(l->fd, to, size, MSG_DONTWAIT);
        l->in.size -= size - (n > 0 ? (size_t)n : 0);
        if (n == 0)
            return TRP_ENOENT;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0 && errno != EINTR)
            return TRP_ESYSTEM;
        if (n > 0 && (size_t)n < size)
            return 0;
        filled += n > 0 ? (size_t)n : 0;
        if (l->carries) /* there is much: fewer calls */
            size = FILL_MAX - filled < READ_SIZE ? READ_SIZE : FILL_MAX - filled;
    }
    return 0;
}

static void words_tag(const uint8_t *key, const uint8_t *frame, size_t n, uint8_t *tag)
{
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, TRP_LAST_WORDS_KEY_SIZE, key);
    hmac_sha256_update(&ctx, n, frame);
    hmac_sha256_digest(&ctx, TRP_TAG_SIZE, tag);
    explicit_bzero(&ctx, sizeof ctx);
}

/* Whether `n` bytes of a frame are followed by their tag. */
static bool is_ours(const struct trp_link *l, uint8_t kind, const uint8_t *frame,
                    size_t n)
{
    uint8_t tag[TRP_TAG_SIZE];
    if (kind == TRP_FRAME_LAST_WORDS) {
        words_tag(l->last_words_key, frame, n, tag);
    } else {
        umac128_update(&l->seal->in, n, frame);
        umac128_digest(&l->seal->in, sizeof tag, tag);
    }
    return memeql_sec(tag, frame + n, sizeof tag);
}

int trp_link_next(struct trp_link *l, uint8_t *ret_kind, struct trp_view *ret_body)
{
    const uint8_t *frame = l->in.data + l->in_at;
    size_t have = l->in.size - l->in_at;
    struct trp_view v = trp_view_of(frame, have);
    if (have < TRP_FRAME_HEAD)
        return 0;
    uint16_t size = trp_get_u16(&v);
    uint8_t kind = trp_get_u8(&v);
    if (trp_get_u8(&v) != TRP_FRAME_MARK || size > l->limit)
        return TRP_EPROTO;
    bool tagged = l->seal || kind == TRP_FRAME_LAST_WORDS;
    size_t whole = TRP_FRAME_HEAD + (size_t)size;
    if (have < whole + (tagged ? TRP_TAG_SIZE : 0))
        return 0;
    if (tagged && !is_ours(l, kind, frame, whole))
        return TRP_EPROTO;
    *ret_kind = kind;
    *ret_body = trp_view_of(v.at, size);
    l->in_at += whole + (tagged ? TRP_TAG_SIZE : 0);
    return 1;
}

int trp_link_put_raw(struct trp_link *l, const void *p, size_t n)
{
    trp_put_raw(&l->out, p, n);
    return l->out.failed ? TRP_ENOMEM : 0;
}

ssize_t trp_link_take_raw(struct trp_link *l, void *to, size_t n)
{
    size_t have = l->in.size - l->in_at;
    if (have > 0) {
        have = have < n ? have : n;
        memcpy(to, l->in.data + l->in_at, have);
        l->in_at += have;
        return (ssize_t)have;
    }
    ssize_t got = n > 0 ? recv(l->fd, to, n, MSG_DONTWAIT) : 0;
    if (got == 0 && n > 0)
        return TRP_ENOENT;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    return got < 0 ? TRP_ESYSTEM : got;
}

/* ---- last words ------------------------------------------------------------------ */

size_t trp_words_frame(const uint8_t *last_words_key, const void *p, size_t n,
                       uint8_t *buf, size_t cap)
{
    const uint8_t head[TRP_FRAME_HEAD] = {(uint8_t)n, (uint8_t)(n >> 8),
                                          TRP_FRAME_LAST_WORDS, TRP_FRAME_MARK};
    size_t whole = TRP_FRAME_HEAD + n;
    if (n > UINT16_MAX || cap < whole + TRP_TAG_SIZE)
        return 0;
    memcpy(buf, head, sizeof head);
    memcpy(buf + TRP_FRAME_HEAD, p, n);
    words_tag(last_words_key, buf, whole, buf + whole);
    return whole + TRP_TAG_SIZE;
}

bool trp_link_last_words_at_end(const struct trp_link *l, size_t n,
                                struct trp_view *ret_body)
{
    size_t whole = TRP_FRAME_HEAD + n;
    if (l->in.size - l->in_at < whole + TRP_TAG_SIZE)
        return false;
    const uint8_t *frame = l->in.data + l->in.size - whole - TRP_TAG_SIZE;
    *ret_body = trp_view_of(frame + TRP_FRAME_HEAD, n);
    return frame[2] == TRP_FRAME_LAST_WORDS &&
           is_ours(l, TRP_FRAME_LAST_WORDS, frame, whole);
}
