/*
 * One connection to a block server.
 *
 * Answers come in the order of the questions, so a ring of what was asked for is all
 * there is to know. Bytes are received where the reader wants them. Whatever fails
 * closes the connection, and all that was wanted on it is told so.
 */
#include "data/block_call.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

/* ---- opening and closing --------------------------------------------------------- */

static void hang_up(struct trp_block_call *call)
{
    if (call->state != TRP_CALL_CLOSED)
        trp_link_close(&call->link);
    call->state = TRP_CALL_CLOSED;
    call->left = call->got = call->answered = 0;
    call->watches_out = false;
}

static void free_call(struct trp_block_call *call)
{
    struct trp_block_calls *all = call->all;
    hang_up(call);
    DL_DELETE(all->list, call);
    all->counts.endpoints--;
    free(call->endpoint);
    free(call->pieces);
    free(call);
}

/* All that is wanted here has to be had otherwise. */
static void fail(struct trp_block_call *call, const char *why)
{
    struct trp_block_calls *all = call->all;
    char text[TRP_ERROR_TEXT];
    struct trp_fetch *queue = call->queue, *f, *next;
    snprintf(text, sizeof text, "%s: %s", call->endpoint, why);
    hang_up(call);
    call->queue = NULL;
    for (; call->npieces > 0; call->npieces--) {
        f = call->pieces[call->first].fetch;
        call->first = (call->first + 1) % TRP_WANTED_PENDING;
        if (f)
            all->again(all->context, f, text);
    }
    DL_FOREACH_SAFE(queue, f, next) {
        all->again(all->context, f, text);
    }
}

static void watch_socket(struct trp_block_call *call, bool out)
{
    struct epoll_event event = {.events = out ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = call};
    if (out != call->watches_out)
        epoll_ctl(call->all->epoll_fd, EPOLL_CTL_MOD, call->link.fd, &event);
    call->watches_out = out;
}

/* The socket of the endpoint's address number `attempts`. */
static int dial(struct trp_block_call *call, char *ret_why, size_t size)
{
    char host[300];
    const char *colon = strrchr(call->endpoint, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    size_t n = colon ? (size_t)(colon - call->endpoint) : 0;
    if (n == 0 || n >= sizeof host) {
        snprintf(ret_why, size, "it is not HOST:PORT");
        return -1;
    }
    memcpy(host, call->endpoint, n);
    host[n] = 0;
    int rc = getaddrinfo(host, colon + 1, &hints, &list);
    if (rc != 0) {
        snprintf(ret_why, size, "%s", gai_strerror(rc));
        return -1;
    }
    uint32_t count = 0;
    for (struct addrinfo *a = list; a; a = a->ai_next)
        count++;
    struct addrinfo *a = list;
    for (uint32_t i = count > 0 ? call->attempts++ % count : 0; i > 0; i--)
        a = a->ai_next;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS) {
        snprintf(ret_why, size, "%s", strerror(errno));
        close(fd);
        fd = -1;
    } else if (fd < 0) {
        snprintf(ret_why, size, "%s", strerror(errno));
    }
    freeaddrinfo(list);
    return fd;
}

static void open_call(struct trp_block_call *call)
{
    char why[200];
    call->moved_ns = call->all->now;
    int fd = dial(call, why, sizeof why);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = call};
    if (fd < 0) {
        fail(call, why);
        return;
    }
    trp_link_open(&call->link, fd, TRP_FRAME_MAX);
    call->state = TRP_CALL_CONNECTING;
    call->watches_out = true;
    call->all->counts.calls++;
    if (epoll_ctl(call->all->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        fail(call, strerror(errno));
}

static struct trp_handshake handshake_of(struct trp_block_call *call)
{
    return (struct trp_handshake){.secret = call->all->secret,
                                  .munge = call->all->config.munge,
                                  .mac = call->all->config.mac,
                                  .listener = TRP_PROVER_BLOCK_SERVER,
                                  .caller = TRP_PROVER_BLOCK_CLIENT,
                                  .listener_name = "the block server",
                                  .nonces = &call->nonces};
}

/* ---- asking ---------------------------------------------------------------------- */

/* Moves up to a frame's worth from the queue to what was asked for. */
static int ask_some(struct trp_block_call *call)
{
    struct trp_buf b = {0};
    uint32_t n = 0;
    trp_put_u32(&b, 0);
    while (call->queue && n < TRP_WANTED_FRAME) {
        struct trp_fetch *f = call->queue;
        DL_DELETE(call->queue, f);
        f->where = TRP_FETCH_SENT;
        f->slot = (call->first + call->npieces++) % TRP_WANTED_PENDING;
        call->pieces[f->slot] = (struct piece){f, f->wanted};
        trp_wanted_put(&b, &f->wanted);
        n++;
    }
    uint32_t count = htole32(n);
    if (!b.failed)
        memcpy(b.data, &count, sizeof count);
    call->all->counts.frames++;
    int rc = b.failed ? TRP_ENOMEM
                      : trp_link_put(&call->link, TRP_FRAME_WANTED, b.data, b.size);
    trp_buf_free(&b);
    return rc;
}

/* Asks for all that is in the queue, or as much as there is room for: whole frames. */
static void ask_pieces(struct trp_block_call *call)
{
    int rc = 0;
    if (call->npieces == 0)
        call->moved_ns = call->all->now;
    while (rc == 0 && call->queue &&
           call->npieces + TRP_WANTED_FRAME <= TRP_WANTED_PENDING &&
           !trp_link_pending(&call->link))
        rc = ask_some(call);
    if (rc < 0)
        fail(call, "the connection is broken");
    else
        watch_socket(call, trp_link_pending(&call->link));
}

int trp_block_call_want(struct trp_block_calls *all, const char *endpoint,
                        struct trp_fetch *f)
{
    struct trp_block_call *call;
    DL_FOREACH(all->list, call) {
        if (strcmp(call->endpoint, endpoint) == 0)
            break;
    }
    if (!call) {
        call = (struct trp_block_call *)calloc(1, sizeof *call);
        if (call) {
            call->all = all;
            call->moved_ns = all->now;
            call->endpoint = strdup(endpoint);
            call->pieces =
                (struct piece *)calloc(TRP_WANTED_PENDING, sizeof *call->pieces);
        }
        if (!call || !call->endpoint || !call->pieces) {
            if (call) {
                free(call->endpoint);
                free(call->pieces);
            }
            free(call);
            return TRP_ENOMEM;
        }
        DL_APPEND(all->list, call);
        all->counts.endpoints++;
    }
    f->call = call;
    f->where = TRP_FETCH_QUEUED;
    DL_APPEND(call->queue, f);
    return 0;
}

void trp_block_call_drop(struct trp_fetch *f)
{
    if (f->where == TRP_FETCH_QUEUED)
        DL_DELETE(f->call->queue, f);
    else if (f->where == TRP_FETCH_SENT)
        f->call->pieces[f->slot].fetch = NULL;
}

/* ---- answers --------------------------------------------------------------------- */

static void end_piece(struct trp_block_call *call, int result, bool again,
                      const char *why)
{
    struct trp_block_calls *all = call->all;
    struct trp_fetch *f = call->pieces[call->first].fetch;
    char text[TRP_BLOCK_WHY + 320];
    call->first = (call->first + 1) % TRP_WANTED_PENDING;
    call->npieces--;
    call->got = 0;
    all->counts.pieces++;
    if (!f)
        return;
    snprintf(text, sizeof text, "%s%s%s", again ? call->endpoint : "",
             again ? ": " : "", why);
    f->answered = !again;
    if (again)
        all->again(all->context, f, text);
    else
        all->over(all->context, f, result, text);
}

/* The head of an answer. */
static int take_head(struct trp_block_call *call, struct trp_view *v)
{
    struct trp_block_head h;
    const struct piece *p = &call->pieces[call->first];
    if (call->npieces == 0 || trp_block_head_get(v, &p->wanted, call->answered, &h) < 0)
        return TRP_EPROTO;
    call->answered++;
    if (p->fetch) {
        p->fetch->size = h.size;
        p->fetch->bytes = h.bytes;
    }
    call->left = h.bytes;
    if (h.bytes == 0)
        end_piece(call, h.status == TRP_BLOCK_HERE ? 0 : TRP_ENOENT,
                  h.status == TRP_BLOCK_LATER, h.why);
    return 1;
}

/* 1: something came; 0: nothing is there. */
static int take_bytes(struct trp_block_call *call)
{
    uint8_t scratch[8192];
    struct trp_fetch *f = call->pieces[call->first].fetch;
    size_t n = f || call->left < sizeof scratch ? call->left : sizeof scratch;
    ssize_t got = trp_link_take_raw(&call->link, f ? f->to + call->got : scratch, n);
    if (got <= 0)
        return (int)got;
    call->got += (uint32_t)got;
    call->left -= (uint32_t)got;
    call->all->counts.bytes += (uint64_t)got;
    if (call->left == 0)
        end_piece(call, 0, false, "");
    return 1;
}

static int take_frame(struct trp_block_call *call, char *ret_why)
{
    const struct trp_handshake h = handshake_of(call);
    uint8_t kind;
    struct trp_view v;
    trp_error err = {0};
    int rc = trp_link_next(&call->link, &kind, &v);
    if (rc == 0) {
        size_t before = call->link.in.size - call->link.in_at;
        rc = trp_link_fill(&call->link);
        bool more = call->link.in.size - call->link.in_at > before;
        return rc < 0 && !more ? rc : more;
    }
    if (rc > 0 && call->state == TRP_CALL_UP && kind == TRP_FRAME_BLOCK) {
        rc = take_head(call, &v);
    } else if (rc > 0 && call->state == TRP_CALL_PROVING &&
               kind == TRP_FRAME_CHALLENGE) {
        rc = trp_handshake_answer(&h, &call->link, &v, &err);
        rc = rc < 0 ? rc : 1;
    } else if (rc > 0 && call->state == TRP_CALL_PROVING && kind == TRP_FRAME_PROOF) {
        rc = trp_handshake_finish(&h, &call->link, &v, call->endpoint, &err);
        call->state = TRP_CALL_UP;
        call->link.carries = true;
        rc = rc < 0 ? rc : 1;
    } else {
        rc = TRP_EPROTO;
    }
    if (rc < 0)
        snprintf(ret_why, TRP_ERROR_TEXT, "%s",
                 err.text[0]                  ? err.text
                 : call->state == TRP_CALL_UP ? "what came is not what it sent"
                                              : "it is no block server of this run");
    return rc;
}

static void finish_connect(struct trp_block_call *call)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(call->link.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (error != 0) {
        fail(call, strerror(error));
        return;
    }
    call->state = TRP_CALL_PROVING;
    call->moved_ns = call->all->now;
    watch_socket(call, false);
}

void trp_block_call_move(struct trp_block_call *call, uint32_t events)
{
    char why[TRP_ERROR_TEXT] = "it closed the connection";
    int rc = 0;
    if (call->state == TRP_CALL_CONNECTING) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
            finish_connect(call);
        return;
    }
    if (call->state == TRP_CALL_CLOSED)
        return;
    if (events & EPOLLOUT)
        rc = trp_link_flush(&call->link);
    if (rc == 0)
        rc = 1;
    while (rc > 0) {
        rc = call->left > 0 ? take_bytes(call) : take_frame(call, why);
        if (rc > 0)
            call->moved_ns = call->all->now;
    }
    if (rc < 0)
        fail(call, why);
    else
        watch_socket(call, trp_link_pending(&call->link));
}

/* ---- time ------------------------------------------------------------------------ */

static bool progress(struct trp_block_call *call)
{
    int64_t quiet = call->all->now - call->moved_ns;
    bool owes = call->npieces > 0 || (call->state != TRP_CALL_UP && call->queue);
    if (call->state == TRP_CALL_CLOSED && call->queue)
        open_call(call);
    else if (call->state != TRP_CALL_CLOSED && owes &&
             quiet > call->all->config.timeout_ns)
        fail(call, "it does not answer");
    else if (call->state != TRP_CALL_CLOSED && !owes && !call->queue &&
             quiet > call->all->config.idle_ns)
        hang_up(call);
    if (call->state == TRP_CALL_UP && call->queue)
        ask_pieces(call);
    return call->state != TRP_CALL_CLOSED;
}

/* Executors come with endpoints of their own: what is closed, and was not used for a
 * while, goes. Until then it knows which of its addresses is tried next. */
static bool is_forgotten(const struct trp_block_call *call)
{
    return call->state == TRP_CALL_CLOSED && !call->queue && call->npieces == 0 &&
           call->all->now - call->moved_ns > call->all->config.idle_ns;
}

bool trp_block_calls_progress(struct trp_block_calls *all)
{
    struct trp_block_call *call, *next;
    bool busy = false;
    DL_FOREACH_SAFE(all->list, call, next) {
        busy = progress(call) || busy;
        if (is_forgotten(call))
            free_call(call);
    }
    return busy;
}

void trp_block_calls_close(struct trp_block_calls *all)
{
    struct trp_block_call *call, *next;
    DL_FOREACH_SAFE(all->list, call, next) {
        free_call(call);
    }
}
