/*
 * Executor: how it comes to its driver.
 *
 * trp_channel_call runs before MPI_Init, so it blocks on one socket with a deadline. A
 * connection that closes before any verdict (a driver short of descriptors under a
 * flood of strangers) is tried again a few times; a REFUSED is final. After it the
 * secret is forgotten. trp_channel_join then runs the channel's ordinary loop until the
 * meeting is over; the meeting itself blocks in a thread of its own, so that
 * heartbeats go on, and the death of the driver is seen, while MPI_Comm_connect waits.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "comm/handshake.h"
#include "comm/here.h"
#include "comm/mpi.h"
#include "comm/peer.h"
#include "os/clock.h"
#include "wire/message.h"

enum { TRIES = 5, PAUSE_MS = 200 };

static int wait_for(int fd, short events, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline - trp_clock_ns();
        struct pollfd p = {.fd = fd, .events = events};
        if (left <= 0)
            return TRP_ETIME;
        int n =
            poll(&p, 1, (int)(left / 1000000 < 1000000 ? left / 1000000 + 1 : 1000000));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return TRP_ESYSTEM;
    }
}

static int connect_one(const struct addrinfo *a, int64_t deadline)
{
    int error = 0;
    socklen_t n = sizeof error;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS) {
        int rc = wait_for(fd, POLLOUT, deadline);
        if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 &&
            error == 0)
            return fd;
        if (rc == TRP_ETIME)
            error = ETIMEDOUT;
        errno = error ? error : errno;
    }
    close(fd);
    return -1;
}

/* "HOST:PORT", the last colon counts. */
static int connect_to(const char *address, int64_t deadline, trp_error *err)
{
    char host[300];
    const char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof host)
        return trp_error_set(err, TRP_EINVAL, "driver address '%s' is not HOST:PORT",
                             address);
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(host, colon + 1, &hints, &list);
    if (rc != 0)
        return trp_error_set(err, TRP_ENOENT, "driver %s: %s", address,
                             gai_strerror(rc));
    int fd = -1;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = connect_one(a, deadline);
    if (fd < 0)
        trp_error_set(err, TRP_ESYSTEM, "driver %s: %m", address);
    freeaddrinfo(list);
    return fd >= 0 ? fd : TRP_ESYSTEM;
}

static int refused(struct trp_view *body, trp_error *err)
{
    uint8_t build = trp_get_u8(body);
    size_t n;
    const char *text = (const char *)trp_get_bytes(body, &n);
    return trp_error_set(err, TRP_ESTATE, "%s: %.*s",
                         build ? "the driver refuses this build"
                               : "the driver refuses this executor",
                         (int)n, text ? text : "");
}

/* Waits for one frame, which must be `kind`. TRP_EWAIT: the connection closed. */
static int await(struct trp_link *l, enum trp_frame_kind kind, int64_t deadline,
                 struct trp_view *ret_body, trp_error *err)
{
    bool closed = false;
    for (;;) {
        uint8_t got;
        int rc = trp_link_next(l, &got, ret_body);
        if (rc > 0 && got == kind)
            return 0;
        if (rc > 0 && got == TRP_FRAME_REFUSED)
            return refused(ret_body, err);
        if (rc != 0)
            return trp_error_set(err, TRP_EPROTO,
                                 "what answers at the driver's address is no driver of "
                                 "this version");
        if (closed)
            return trp_error_set(err, TRP_EWAIT, "the driver closed the connection");
        if (wait_for(l->fd, POLLIN, deadline) < 0)
            return trp_error_set(err, TRP_ETIME, "the driver did not answer in time");
        closed = trp_link_fill(l) < 0;
    }
}

static int say_hello(trp_channel *c, const struct trp_call_config *config,
                     struct trp_link *l)
{
    struct trp_buf b = {0};
    char host[sizeof((struct trp_hello *)0)->host] = "";
    gethostname(host, sizeof host - 1);
    trp_put_u32(&b, TRP_WIRE_VERSION);
    trp_put_u32(&b, config->executor);
    trp_put_u32(&b, (uint32_t)getpid());
    trp_put_text(&b, c->build);
    trp_put_text(&b, host);
    int rc = b.failed ? TRP_ENOMEM : trp_link_put(l, TRP_FRAME_HELLO, b.data, b.size);
    trp_buf_free(&b);
    return rc;
}

static int handshake(trp_channel *c, const struct trp_call_config *config,
                     struct trp_link *l, int64_t deadline, trp_error *err)
{
    struct trp_view v;
    struct trp_nonces nonces;
    const struct trp_handshake h = {.secret = config->secret,
                                    .munge = config->munge,
                                    .mac = config->mac,
                                    .listener = TRP_PROVER_DRIVER,
                                    .caller = TRP_PROVER_EXECUTOR,
                                    .listener_name = "the driver",
                                    .nonces = &nonces};
    int rc = await(l, TRP_FRAME_CHALLENGE, deadline, &v, err);
    if (rc == 0)
        rc = trp_handshake_answer(&h, l, &v, err);
    if (rc == 0)
        rc = await(l, TRP_FRAME_PROOF, deadline, &v, err);
    if (rc == 0)
        rc = trp_handshake_finish(&h, l, &v, config->address, err);
    if (rc < 0)
        return rc;
    if (say_hello(c, config, l) < 0)
        return trp_error_set(err, TRP_EWAIT, "the driver closed the connection");
    return await(l, TRP_FRAME_WELCOME, deadline, &v, err);
}

/* A link on which the handshake was done. */
static int call(trp_channel *c, const struct trp_call_config *config,
                struct trp_link *ret_link, trp_error *err)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    int64_t deadline = trp_clock_ns() + config->network_timeout_ns;
    int rc = TRP_EWAIT;
    for (int try = 0; try < TRIES && rc == TRP_EWAIT; try++) {
        if (try > 0)
            nanosleep(&pause, NULL);
        int fd = trp_here_connect(config->secret, config->address);
        if (fd < 0)
            fd = connect_to(config->address, deadline, err);
        if (fd < 0)
            return fd;
        trp_link_open(ret_link, fd, TRP_FRAME_MAX);
        rc = handshake(c, config, ret_link, deadline, err);
        if (rc < 0)
            trp_link_close(ret_link);
    }
    if (rc == TRP_EWAIT && err)
        err->code = TRP_ESYSTEM;
    return rc == TRP_EWAIT ? TRP_ESYSTEM : rc;
}

int trp_channel_call(const struct trp_call_config *config, trp_channel **ret_channel,
                     trp_error *err)
{
    struct trp_link link;
    trp_channel *c;
    int rc = trp_channel_make(false, &c, err);
    if (rc < 0)
        return rc;
    c->config.transport = config->transport;
    c->config.network_timeout_ns = config->network_timeout_ns;
    c->config.heartbeat_ns = config->heartbeat_ns;
    if (config->build)
        snprintf(c->build, sizeof c->build, "%s", config->build);
    rc = call(c, config, &link, err);
    if (rc < 0) {
        trp_channel_destroy(c);
        return rc;
    }
    c->now = trp_clock_ns();
    c->beat_due = c->now + config->heartbeat_ns;
    c->look_due = c->now + config->network_timeout_ns / 10;
    struct trp_peer *p = trp_peer_new(c, link.fd);
    if (!p || trp_peer_make_room(c) < 0) {
        trp_channel_destroy(c);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    trp_buf_free(&p->link.in);
    p->link = link; /* with what came behind the welcome */
    DL_DELETE(c->callers, p);
    c->ncallers--;
    DL_APPEND(c->peers, p);
    c->npeers++;
    p->id = TRP_DRIVER_PEER;
    p->state = TRP_PEER_GREETED;
    c->only = p;
    *ret_channel = c;
    return 0;
}

static int begin_mpi(trp_channel *c, trp_error *err)
{
    const enum trp_transport_kind kind = c->config.transport;
    int rc = kind == TRP_TRANSPORT_WORLD ? trp_mpi_begin(false, NULL, err)
                                         : trp_mpi_begin_joining(NULL, err);
    if (rc == 0)
        rc = trp_transport_open(&c->transport, kind, err);
    if (rc == 0 && trp_channel_watch(c, c->transport.notice_fd, &c->transport) < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "epoll: %m");
    return rc;
}

int trp_channel_join(trp_channel *c, const struct trp_channel_handler *handler,
                     pid_t spawner_pid, trp_error *err)
{
    uint32_t pid = htole32((uint32_t)spawner_pid);
    int rc = c->config.transport == TRP_TRANSPORT_SOCKET ? 0 : begin_mpi(c, err);
    if (rc < 0)
        return rc;
    c->handler = *handler;
    c->joining = true;
    trp_peer_put(c->only, TRP_FRAME_READY, &pid, sizeof pid);
    while (c->only && c->only->state != TRP_PEER_UP) {
        struct epoll_event event;
        int64_t wait = (trp_channel_next_timer(c) - trp_clock_ns()) / 1000000 + 1;
        epoll_wait(c->epoll_fd, &event, 1,
                   (int)(wait < 0       ? 0
                         : wait < 10000 ? wait
                                        : 10000));
        c->slept = true;
        trp_channel_progress(c, trp_clock_ns());
    }
    c->joining = false;
    return c->only
               ? 0
               : trp_error_set(err, TRP_ESYSTEM,
                               "the driver went away before it let this executor in");
}

/* ADMIT: the driver accepts now; "" is over sockets. */
int trp_call_admit(struct trp_peer *p, struct trp_view *v)
{
    trp_error err;
    char *where = trp_get_text(v);
    const uint8_t *nonce = trp_get_raw(v, TRP_NONCE_SIZE);
    trp_channel *c = p->channel;
    int rc = TRP_EPROTO;
    bool good = where && trp_view_end(v) && !*where == !c->transport.ops;
    if (good && !*where) {
        p->state = TRP_PEER_UP;
        rc = trp_peer_open(p, &trp_lane_socket, NULL);
    } else if (good) {
        memcpy(p->admission, nonce, TRP_NONCE_SIZE);
        p->state = TRP_PEER_MEETING;
        rc = c->transport.ops->join(&c->transport, where, &err);
    }
    free(where);
    return rc;
}

void trp_call_notice(trp_channel *c)
{
    struct trp_route route;
    trp_error err;
    struct trp_peer *p = c->only;
    if (!p || p->state != TRP_PEER_MEETING)
        return;
    int rc = c->transport.ops->met(&c->transport, &route, &err);
    if (rc == 0)
        return;
    if (rc > 0 && trp_peer_open(p, c->transport.ops->lane, &route) == 0 &&
        trp_peer_send(p, p->admission, TRP_NONCE_SIZE) == 0)
        p->state = TRP_PEER_UP;
    else
        trp_peer_end(p, true);
}
