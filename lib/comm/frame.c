/*
 * Frames on the admission socket.
 *
 * Writing goes straight to the socket while it takes all, which is nearly always: the
 * frames are tiny. Reading is into one growing buffer a link, emptied from the front;
 * it is never larger than one frame and one read. An oversize or unmarked head is found
 * after four bytes, so garbage costs nothing.
 */
#include "comm/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 4096, READS_MAX = 16 };

void trp_link_open(struct trp_link *l, int fd, uint32_t limit)
{
    int one = 1;
    *l = (struct trp_link){.fd = fd, .limit = limit};
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void trp_link_close(struct trp_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    trp_buf_free(&l->in);
    trp_buf_free(&l->out);
}

int trp_link_flush(struct trp_link *l)
{
    while (trp_link_pending(l)) {
        ssize_t n = send(l->fd, l->out.data + l->out_at, l->out.size - l->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0)
            return TRP_ESYSTEM;
        l->out_at += (size_t)n;
    }
    trp_buf_clear(&l->out);
    l->out_at = 0;
    return 0;
}

int trp_link_put(struct trp_link *l, enum trp_frame_kind kind, const void *p, size_t n)
{
    if (l->fd < 0 || n > TRP_FRAME_MAX || l->out.size - l->out_at > TRP_LINK_OUT_MAX)
        return TRP_ESYSTEM;
    bool first = !trp_link_pending(l);
    trp_put_u16(&l->out, (uint16_t)n);
    trp_put_u8(&l->out, (uint8_t)kind);
    trp_put_u8(&l->out, TRP_FRAME_MARK);
    trp_put_raw(&l->out, p, n);
    if (l->out.failed)
        return TRP_ENOMEM;
    return first ? trp_link_flush(l) : 0;
}

int trp_link_fill(struct trp_link *l)
{
    if (l->in_at > 0) {
        l->in.size -= l->in_at;
        memmove(l->in.data, l->in.data + l->in_at, l->in.size);
        l->in_at = 0;
    }
    for (int i = 0; i < READS_MAX; i++) {
        uint8_t *to = trp_buf_reserve(&l->in, READ_SIZE);
        if (!to)
            return TRP_ENOMEM;
        ssize_t n = recv(l->fd, to, READ_SIZE, MSG_DONTWAIT);
        l->in.size -= READ_SIZE - (n > 0 ? (size_t)n : 0);
        if (n == 0)
            return TRP_ENOENT;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0 && errno != EINTR)
            return TRP_ESYSTEM;
        if (n > 0 && n < READ_SIZE)
            return 0;
    }
    return 0;
}

int trp_link_next(struct trp_link *l, uint8_t *ret_kind, struct trp_view *ret_body)
{
    struct trp_view v = trp_view_of(l->in.data + l->in_at, l->in.size - l->in_at);
    if (l->in.size - l->in_at < TRP_FRAME_HEAD)
        return 0;
    uint16_t size = trp_get_u16(&v);
    uint8_t kind = trp_get_u8(&v);
    if (trp_get_u8(&v) != TRP_FRAME_MARK || size > l->limit)
        return TRP_EPROTO;
    if ((size_t)(v.end - v.at) < size)
        return 0;
    *ret_kind = kind;
    *ret_body = trp_view_of(v.at, size);
    l->in_at += TRP_FRAME_HEAD + (size_t)size;
    return 1;
}
