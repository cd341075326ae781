/*
 * Driver: who comes in.
 *
 * Listening, on two sockets: by TCP, and for executors on this host (here.h). Every
 * connection is a stranger until it has proved the secret; strangers are few bytes
 * each, capped in number (the oldest goes first, so that a flood cannot keep out one
 * who answers at once) and in time. The secret is asked before MUNGE is: a stranger
 * costs one HMAC, never a wait for the daemon. How refusals are told is in refusal.c.
 *
 *     connection → CHALLENGE, ANSWER, PROOF, HELLO → WELCOME → READY → queue → meeting
 *     (ADMIT) → admission nonce over MPI → up
 *
 * Over sockets nobody has to meet: who is admitted is up.
 *
 * Meetings. One at a time, and the next begins only when the admission nonce has
 * arrived on the new communicator: whoever else has answered the accept is refused with
 * the guest. A guest that dies during the meeting leaves an accept behind, which the next
 * guest is told to connect to. When an accept does not return in TRP_MEETING_NS though a
 * guest is there, or TRP_FAILURES_MAX meetings failed in a row, MPI is at fault and not
 * the guests: nobody is let in any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "comm/handshake.h"
#include "comm/here.h"
#include "comm/listen.h"
#include "comm/peer.h"
#include "core/base/array.h"
#include "os/same_user.h"
#include "wire/message.h"

enum { ACCEPTS_A_STEP = 64 };

/* When descriptors are short, a half-open connection that is older than this is closed:
 * an executor has proved itself by then. */
#define YOUNG_NS (TRP_SECOND / 10)

/* ---- strangers ------------------------------------------------------------------- */

static void greet_stranger(trp_channel *c, int fd)
{
    struct trp_peer *p = trp_peer_new(c, fd);
    if (!p)
        return;
    p->state = TRP_PEER_PROVING;
    p->hello.executor = TRP_NONE;
    if (trp_nonce_make(p->nonces.driver) < 0 ||
        trp_peer_put(p, TRP_FRAME_CHALLENGE, p->nonces.driver, TRP_NONCE_SIZE) < 0)
        trp_peer_end(p, false);
    else if (c->ncallers > c->callers_max)
        trp_admission_refuse(c->callers, false,
                             "too many half-open connections, the oldest is closed");
}

/* Until somebody has gone: trp_admission_time looks again. Who comes meanwhile waits in
 * the backlog. */
static void pause_listening(trp_channel *c)
{
    char text[160];
    snprintf(text, sizeof text,
             "%m: executors that come now wait until others have gone; `ulimit -n` "
             "says how many files may be open");
    epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->listen_fd, NULL);
    if (c->here_fd >= 0)
        epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->here_fd, NULL);
    c->listen_paused = true;
    if (!c->full_told && c->handler.full)
        c->handler.full(c->handler.context, text);
    c->full_told = true;
}

static void resume_listening(trp_channel *c)
{
    if (trp_channel_watch(c, c->listen_fd, &c->listen_fd) < 0)
        return;
    c->listen_paused = false;
    if (c->here_fd >= 0)
        trp_channel_watch(c, c->here_fd, &c->here_fd);
}

/* Another user's process is told nothing. */
static void take_caller(trp_channel *c, int fd, bool here)
{
    if (!here || trp_same_user(fd)) {
        greet_stranger(c, fd);
        return;
    }
    close(fd);
    trp_admission_tell(
        c, true, TRP_NONE, false,
        "another user's process at the socket for executors on this host");
}

void trp_admission_accept(trp_channel *c, int from)
{
    for (int i = 0; i < ACCEPTS_A_STEP; i++) {
        int fd = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            take_caller(c, fd, from == c->here_fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (c->callers && c->now - c->callers->opened_ns > YOUNG_NS) {
            trp_admission_refuse(c->callers, false,
                                 "out of descriptors, the oldest half-open connection "
                                 "is closed");
            continue;
        }
        pause_listening(c);
        return;
    }
}

static void get_text_into(struct trp_view *v, char *to, size_t size)
{
    size_t n;
    const uint8_t *p = trp_get_bytes(v, &n);
    if (!p || n >= size || memchr(p, 0, n)) {
        v->bad = true;
        return;
    }
    memcpy(to, p, n);
    to[n] = 0;
}

static struct trp_handshake handshake_of(struct trp_peer *p)
{
    const trp_channel *c = p->channel;
    return (struct trp_handshake){.secret = c->secret,
                                  .munge = c->config.munge,
                                  .mac = c->config.mac,
                                  .listener = TRP_PROVER_DRIVER,
                                  .caller = TRP_PROVER_EXECUTOR,
                                  .listener_name = "the driver",
                                  .nonces = &p->nonces};
}

int trp_admission_answer(struct trp_peer *p, struct trp_view *v)
{
    const struct trp_handshake h = handshake_of(p);
    trp_error err;
    int rc = trp_handshake_check(&h, &p->link, v, &err);
    trp_peer_watch_out(p);
    if (rc != TRP_ESTATE && rc != TRP_EPROTO) { /* it knows the secret */
        p->state = TRP_PEER_GREETING;
        p->link.limit = TRP_FRAME_MAX;
    }
    if (rc != TRP_ESTATE && rc != TRP_ESYSTEM)
        return rc;
    trp_admission_refuse(p, false, err.text);
    return 0;
}

/* ---- hellos ---------------------------------------------------------------------- */

/* By executor id; grows. */
static int take_place(trp_channel *c, struct trp_peer *p)
{
    uint32_t id = p->hello.executor;
    if (!TRP_ARRAY_RESERVE_ZEROED(c->by_id, c->nby_id, (uint64_t)id + 1) ||
        trp_peer_make_room(c) < 0)
        return TRP_ENOMEM;
    c->by_id[id] = p;
    p->id = id;
    return 0;
}

/* Guards are of Troupe itself, also where the driver is a program of the user's: they say
 * hello and no more. */
static bool is_ours(const trp_channel *c, const struct trp_hello *h, uint32_t wire)
{
    bool guard = c->config.first_guard && h->executor >= c->config.first_guard;
    return wire == TRP_WIRE_VERSION && (guard || strcmp(h->build, c->build) == 0);
}

int trp_admission_hello(struct trp_peer *p, struct trp_view *v)
{
    trp_channel *c = p->channel;
    struct trp_hello h = {0};
    char text[800];
    uint32_t wire = trp_get_u32(v);
    h.executor = trp_get_u32(v);
    h.pid = (int32_t)trp_get_u32(v);
    get_text_into(v, h.build, sizeof h.build);
    get_text_into(v, h.host, sizeof h.host);
    if (!trp_view_end(v))
        return TRP_EPROTO;
    p->hello = h;
    bool wanted =
        h.executor < TRP_PEERS_MAX &&
        (!c->config.expected || c->config.expected(c->handler.context, h.executor));
    if (!wanted) {
        snprintf(text, sizeof text, "executor %u is not expected", h.executor);
        trp_admission_refuse(p, false, text);
    } else if (!is_ours(c, &h, wire)) {
        snprintf(
            text, sizeof text,
            "executor %u on %s runs another build: it is %s (wire version %u), the "
            "driver is %s (wire version %d)",
            h.executor, h.host, h.build, wire, c->build, TRP_WIRE_VERSION);
        trp_admission_refuse(p, true, text);
    } else if (h.executor < c->nby_id && c->by_id[h.executor]) {
        snprintf(
            text, sizeof text,
            "executor %u has come already: another process says that it is the same",
            h.executor);
        trp_admission_refuse(p, false, text);
    } else if (take_place(c, p) < 0) {
        trp_admission_refuse(p, false, "out of memory");
    } else {
        DL_DELETE(c->callers, p);
        c->ncallers--;
        DL_APPEND(c->peers, p);
        c->npeers++;
        p->state = TRP_PEER_GREETED;
        p->opened_ns = c->now;
        trp_peer_put(p, TRP_FRAME_WELCOME, NULL, 0); /* if it is gone: seen when read */
    }
    return 0;
}

/* ---- meetings -------------------------------------------------------------------- */

static void fail(trp_channel *c, const char *why)
{
    char text[TRP_ERROR_TEXT + 240];
    snprintf(text, sizeof text, "MPI lets no executor in: %s", why);
    c->failed = c->unclean = true;
    if (c->handler.mpi_failed && !c->closing)
        c->handler.mpi_failed(c->handler.context, text);
}

/* A meeting has failed, and nothing says that it is the guest's own fault. */
static void count_failure(trp_channel *c, const char *why)
{
    char text[TRP_ERROR_TEXT + 160];
    if (c->closing || c->failed || ++c->failures < TRP_FAILURES_MAX)
        return;
    snprintf(text, sizeof text, "%d in a row did not get through (the last: %s)",
             TRP_FAILURES_MAX, why);
    fail(c, text);
}

static void refuse_guest(trp_channel *c, const char *text)
{
    struct trp_peer *p = c->guest;
    uint32_t id = p->id;
    c->guest = NULL;
    trp_peer_end(p, true);
    trp_admission_tell(c, false, id, false, text);
    count_failure(c, text);
}

/* It can be sent to from now on. */
static void come_up(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    p->state = TRP_PEER_UP;
    if (c->handler.up && !c->closing)
        c->handler.up(c->handler.context, p->id, &p->hello);
}

static int put_admit(struct trp_peer *p, const char *where)
{
    struct trp_buf b = {0};
    trp_put_text(&b, where);
    trp_put_raw(&b, p->admission, TRP_NONCE_SIZE);
    int rc = b.failed ? TRP_ENOMEM : trp_peer_put(p, TRP_FRAME_ADMIT, b.data, b.size);
    trp_buf_free(&b);
    return rc;
}

/* Over sockets nobody has to meet. */
static void admit_all(trp_channel *c)
{
    while (c->queue && !c->closing) {
        struct trp_peer *p = c->queue;
        DL_DELETE(c->queue, p);
        DL_APPEND(c->peers, p);
        p->state = TRP_PEER_GREETED;
        put_admit(p, "");
        if (trp_peer_open(p, &trp_lane_socket, NULL) < 0)
            trp_peer_end(p, true);
        else
            come_up(p);
    }
}

static void admit_next(trp_channel *c)
{
    if (!c->transport.ops)
        admit_all(c);
    while (c->queue && !c->guest && !c->failed && !c->closing) {
        struct trp_peer *p = c->queue;
        trp_error err = {0};
        DL_DELETE(c->queue, p);
        DL_APPEND(c->peers, p);
        c->guest = p;
        c->meeting_ns = c->now;
        p->state = TRP_PEER_MEETING;
        int rc = trp_nonce_make(p->admission);
        if (rc == 0)
            rc = c->transport.ops->admit(&c->transport, p->id, &err);
        c->meeting = rc == 0;
        if (rc < 0)
            refuse_guest(c, err.text);
        else
            put_admit(p, c->transport.where);
    }
}

int trp_admission_ready(struct trp_peer *p, struct trp_view *v)
{
    trp_channel *c = p->channel;
    p->hello.spawner_pid = (int32_t)trp_get_u32(v);
    if (!trp_view_end(v))
        return TRP_EPROTO;
    p->state = TRP_PEER_QUEUED;
    DL_DELETE(c->peers, p);
    DL_APPEND(c->queue, p);
    admit_next(c);
    return 0;
}

void trp_admission_notice(trp_channel *c)
{
    struct trp_route route;
    trp_error err = {0};
    if (!c->meeting || (c->guest && c->guest->state != TRP_PEER_MEETING))
        return;
    int rc = c->transport.ops->met(&c->transport, &route, &err);
    if (rc == 0)
        return;
    if (rc > 0 && c->guest &&
        trp_peer_open(c->guest, c->transport.ops->lane, &route) == 0) {
        c->guest->state = TRP_PEER_VERIFYING;
        c->meeting_ns = c->now;
        return;
    }
    c->unclean = true; /* a communicator with nobody at its other end */
    c->meeting = false;
    if (c->guest) {
        refuse_guest(c, rc < 0 ? err.text : "out of memory");
    } else if (rc < 0) { /* it may have gone since its side failed as well */
        trp_admission_tell(c, false, TRP_NONE, false, err.text);
        count_failure(c, err.text);
    }
    admit_next(c);
}

void trp_admission_verify(struct trp_peer *p, const uint8_t *data, size_t n)
{
    trp_channel *c = p->channel;
    bool good = n == TRP_NONCE_SIZE && trp_proof_equal(data, p->admission, n);
    c->meeting = false;
    if (!good) {
        refuse_guest(c, "another process than the executor has connected");
        admit_next(c);
        return;
    }
    c->guest = NULL;
    c->failures = 0;
    admit_next(c);
    come_up(p);
}

void trp_admission_forget(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    if (p->state == TRP_PEER_QUEUED) {
        DL_DELETE(c->queue, p);
        DL_APPEND(c->peers, p);
    }
    if (c->guest != p)
        return;
    c->guest = NULL;
    c->meeting = p->state == TRP_PEER_MEETING; /* the accept goes on */
    admit_next(c);
}

static void on_late_guest(trp_channel *c)
{
    char text[120];
    if (c->guest->state == TRP_PEER_VERIFYING) {
        c->meeting = false;
        refuse_guest(c, "it connected, but its admission nonce never came");
        admit_next(c);
        return;
    }
    snprintf(text, sizeof text, "MPI_Comm_accept of executor %u did not return in %d s",
             c->guest->id, (int)(TRP_MEETING_NS / TRP_SECOND));
    fail(c, text);
}

void trp_admission_time(trp_channel *c)
{
    c->patrol_ns = c->now;
    if (c->refusals_hidden > 0 && c->now >= c->refusals_until)
        trp_admission_tell_rest(c);
    while (c->callers &&
           c->now - c->callers->opened_ns > c->config.handshake_timeout_ns)
        trp_admission_refuse(c->callers, false,
                             "it did not prove itself and say hello in time");
    if (c->listen_paused)
        resume_listening(c);
    if (c->guest && !c->failed && c->now - c->meeting_ns > TRP_MEETING_NS)
        on_late_guest(c);
}

int64_t trp_admission_due(const trp_channel *c)
{
    int64_t due = INT64_MAX;
    if (c->callers)
        due = c->callers->opened_ns + c->config.handshake_timeout_ns + 1;
    if (c->listen_paused)
        due = trp_earlier(due, c->patrol_ns + TRP_SECOND / 10);
    if (c->refusals_hidden > 0)
        due = trp_earlier(due, c->refusals_until);
    if (c->guest && !c->failed)
        due = trp_earlier(due, c->meeting_ns + TRP_MEETING_NS + 1);
    return due;
}

/* ---- opening --------------------------------------------------------------------- */

int trp_admission_open(trp_channel *c, trp_error *err)
{
    struct rlimit files;
    c->callers_max = TRP_CALLERS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < TRP_CALLERS_MAX)
        c->callers_max = (uint32_t)(files.rlim_cur / 4);
    c->listen_fd = trp_listen(c->config.here_only, c->address, err);
    if (c->listen_fd < 0)
        return TRP_ESYSTEM;
    if (trp_channel_watch(c, c->listen_fd, &c->listen_fd) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "epoll: %m");
    c->here_fd = trp_here_listen(c->secret, c->address, TRP_LISTEN_BACKLOG);
    if (c->here_fd >= 0 && trp_channel_watch(c, c->here_fd, &c->here_fd) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "epoll: %m");
    return 0;
}
