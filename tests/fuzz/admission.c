/*
 * The driver's side of the admission socket, without MPI: strangers and executors that
 * connect, prove themselves or not, say what they like, hang up, and come too late.
 *
 * A real channel listens on a socket without a name. Transport and time are this
 * file's: a meeting ends as the input says, never well, since from then on MPI is
 * needed. Over sockets nobody has to meet, and executors say messages. Checked: nobody
 * who was not let in is told `down`, nobody twice, messages are those of executors that
 * are up, and nothing stays open.
 *
 * Input: a byte whose bit 0 says whether messages travel over sockets, then moves of a
 * byte, with the bytes that they need behind them. A move's low 5 bits say what, its
 * high 3 bits by whom.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm/peer.h"
#include "fuzz.h"
#include "wire/message.h"

enum { CALLERS = 8, EXECUTORS = 16 };

struct caller {
    int fd; /* -1: not connected */
    struct trp_nonces nonces;
};

struct world {
    trp_channel *channel;
    struct sockaddr_un address;
    socklen_t address_size;
    struct caller callers[CALLERS];
    int64_t now;
    uint32_t refused, downs, failed;
    bool up[EXECUTORS];
};

/* ---- a transport on which nobody meets ---- */

static int meeting; /* what `met` says */

static int admit(struct trp_transport *t, uint32_t executor, trp_error *err)
{
    FUZZ_CHECK(executor < EXECUTORS, "executor %u is met", executor);
    snprintf(t->where, sizeof t->where, "here");
    if (meeting == TRP_ESTATE)
        return trp_error_set(err, TRP_ESYSTEM, "no meeting");
    return 0;
}

static int join(struct trp_transport *t, const char *where, trp_error *err)
{
    (void)t;
    FUZZ_CHECK(false, "a driver joins %s", where);
    return trp_error_set(err, TRP_ESTATE, "never");
}

static int met(struct trp_transport *t, struct trp_route *ret_route, trp_error *err)
{
    (void)t;
    (void)ret_route;
    return meeting < 0 ? trp_error_set(err, meeting, "nobody came") : 0;
}

static void leave(struct trp_transport *t, struct trp_route *route)
{
    (void)t;
    (void)route;
}

static bool close_transport(struct trp_transport *t)
{
    (void)t;
    return true;
}

static const struct trp_transport_ops nobody = {
    .admit = admit, .join = join, .met = met, .leave = leave, .close = close_transport};

/* ---- the channel's handler ---- */

static void up(void *context, uint32_t peer, const struct trp_hello *hello)
{
    struct world *w = context;
    FUZZ_CHECK(!w->channel->transport.ops, "executor %u on %s is up without MPI", peer,
               hello->host);
    FUZZ_CHECK(peer < EXECUTORS && !w->up[peer], "executor %u is up twice", peer);
    w->up[peer] = true;
    trp_channel_send(w->channel, peer, hello, sizeof *hello);
}

static void message(void *context, uint32_t peer, const uint8_t *data, size_t size)
{
    struct world *w = context;
    FUZZ_CHECK(peer < EXECUTORS && w->up[peer], "%zu bytes of executor %u, not up",
               size, peer);
    if (size > 0 && data[0] == 'd')
        trp_channel_drop(w->channel, peer);
    if (size > 0 && data[0] == 'd')
        w->up[peer] = false;
}

static void down(void *context, uint32_t peer, const struct trp_last_words *last_words)
{
    struct world *w = context;
    FUZZ_CHECK(peer < EXECUTORS, "executor %u was never expected", peer);
    FUZZ_CHECK(!w->channel->by_id[peer], "executor %u is down and there", peer);
    FUZZ_CHECK(last_words->reason <= TRP_LOSS_NEVER_CAME, "a loss of kind %d",
               (int)last_words->reason);
    w->downs++;
    w->up[peer] = false;
}

static void mpi_failed(void *context, const char *text)
{
    struct world *w = context;
    FUZZ_CHECK(*text && w->failed++ == 0, "MPI failed %u times: %s", w->failed, text);
}

static void refused(void *context, uint32_t executor, bool fatal_build,
                    const char *text)
{
    struct world *w = context;
    FUZZ_CHECK(*text && (!fatal_build || executor != TRP_NONE),
               "executor %u is refused: %s", executor, text);
    w->refused++;
}

static bool expected(void *context, uint32_t executor)
{
    (void)context;
    return executor < EXECUTORS;
}

/* ---- moves ---- */

static void put_frame(const struct caller *c, uint8_t kind, const void *p, size_t n)
{
    uint8_t frame[TRP_FRAME_HEAD + TRP_FRAME_MAX + 300] = {
        (uint8_t)n, (uint8_t)(n >> 8), kind, TRP_FRAME_MARK};
    if (n > 0)
        memcpy(frame + TRP_FRAME_HEAD, p, n);
    if (send(c->fd, frame, TRP_FRAME_HEAD + n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the driver has closed: that is one of the things that happen */
}

/* Connects, and keeps the driver's nonce, with which ANSWER can be right. */
static void move_connect(struct world *w, struct caller *c)
{
    uint8_t frame[TRP_FRAME_HEAD + TRP_NONCE_SIZE];
    if (c->fd >= 0)
        close(c->fd);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&w->address, w->address_size))
        abort();
    w->channel->slept = true;
    trp_channel_progress(w->channel, w->now);
    if (recv(c->fd, frame, sizeof frame, 0) == (ssize_t)sizeof frame)
        memcpy(c->nonces.driver, frame + TRP_FRAME_HEAD, TRP_NONCE_SIZE);
}

static void move_answer(const struct world *w, struct caller *c, struct fuzz_bytes *b)
{
    uint8_t answer[TRP_NONCE_SIZE + TRP_PROOF_SIZE + sizeof(uint32_t)] = {0};
    uint8_t wrong = fuzz_byte(b);
    memset(c->nonces.executor, fuzz_byte(b), TRP_NONCE_SIZE);
    memcpy(answer, c->nonces.executor, TRP_NONCE_SIZE);
    trp_proof_make(w->channel->secret, TRP_PROVER_EXECUTOR, &c->nonces,
                   answer + TRP_NONCE_SIZE);
    if (wrong >= 0xf0)
        answer[TRP_NONCE_SIZE + wrong % TRP_PROOF_SIZE] ^= 1;
    put_frame(c, TRP_FRAME_ANSWER, answer, sizeof answer);
}

static void move_hello(const struct world *w, const struct caller *c,
                       struct fuzz_bytes *b)
{
    struct trp_buf hello = {0};
    uint8_t build = fuzz_byte(b);
    trp_put_u32(&hello, TRP_WIRE_VERSION + (build == 1));
    trp_put_u32(&hello, fuzz_below(b, EXECUTORS + 1));
    trp_put_u32(&hello, 4711);
    trp_put_text(&hello, build == 2 ? "another" : w->channel->build);
    trp_put_text(&hello, "host");
    put_frame(c, TRP_FRAME_HELLO, hello.data, hello.size);
    trp_buf_free(&hello);
}

enum { ANY_KIND = 0x100, NO_FRAME };

/* A frame of some kind with any bytes, or bytes that are no frame. */
static void move_any(const struct caller *c, struct fuzz_bytes *b, int kind)
{
    uint8_t of = kind == ANY_KIND ? fuzz_byte(b) : (uint8_t)kind;
    size_t n = fuzz_byte(b);
    n = n < (size_t)(b->end - b->at) ? n : (size_t)(b->end - b->at);
    if (kind != NO_FRAME)
        put_frame(c, of, b->at, n);
    else if (send(c->fd, b->at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        n = 0;
    b->at += n;
}

static void move_drop(struct world *w, uint8_t executor)
{
    trp_channel_drop(w->channel, executor);
    if (executor < EXECUTORS)
        w->up[executor] = false;
}

static void hang_up(struct caller *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static void move_meeting(struct world *w, struct fuzz_bytes *b)
{
    static const int ends[] = {0, TRP_ESYSTEM, TRP_ETIME, TRP_ESTATE};
    meeting = ends[fuzz_below(b, 4)];
    w->channel->now = w->now;
    trp_admission_notice(w->channel);
}

static void move(struct world *w, struct fuzz_bytes *b)
{
    uint8_t what = fuzz_byte(b);
    struct caller *c = &w->callers[what >> 5];
    const uint32_t pid = 4712;
    switch ((what & 31) % 12) {
    case 0:
        move_connect(w, c);
        break;
    case 1:
        move_answer(w, c, b);
        break;
    case 2:
        move_hello(w, c, b);
        break;
    case 3:
        put_frame(c, TRP_FRAME_READY, &pid, sizeof pid);
        break;
    case 4:
        move_any(c, b, ANY_KIND);
        break;
    case 5:
        move_any(c, b, NO_FRAME);
        break;
    case 6:
        hang_up(c);
        break;
    case 7:
        w->now += INT64_C(1) << fuzz_below(b, 42);
        break;
    case 8:
        move_meeting(w, b);
        break;
    case 9:
        move_drop(w, fuzz_byte(b));
        break;
    case 10:
        move_any(c, b, TRP_FRAME_DATA);
        break;
    default:
        shutdown(c->fd, SHUT_WR);
        break;
    }
    w->now += TRP_SOCKETS_NS;
    trp_channel_progress(w->channel, w->now);
}

/* ---- one input ---- */

/* A listening socket whose name the kernel makes up. */
static int listen_somewhere(struct world *w)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    w->address.sun_family = AF_UNIX;
    w->address_size = sizeof w->address;
    if (fd < 0 || bind(fd, (struct sockaddr *)&w->address, sizeof(sa_family_t)) < 0 ||
        listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&w->address, &w->address_size) < 0)
        abort();
    return fd;
}

static void begin(struct world *w, bool over_sockets)
{
    trp_error err;
    *w = (struct world){0};
    for (int i = 0; i < CALLERS; i++)
        w->callers[i].fd = -1;
    meeting = 0;
    if (trp_channel_make(true, &w->channel, &err) < 0)
        abort();
    trp_channel *c = w->channel;
    c->config = (struct trp_listen_config){.network_timeout_ns = 120 * TRP_SECOND,
                                           .heartbeat_ns = 10 * TRP_SECOND,
                                           .handshake_timeout_ns = 10 * TRP_SECOND,
                                           .expected = expected};
    c->handler = (struct trp_channel_handler){.context = w,
                                              .up = up,
                                              .message = message,
                                              .down = down,
                                              .refused = refused,
                                              .mpi_failed = mpi_failed};
    memset(c->secret, 7, sizeof c->secret);
    c->transport.ops = over_sockets ? NULL : &nobody;
    c->callers_max = CALLERS - 2;
    c->listen_fd = listen_somewhere(w);
    if (trp_channel_watch(c, c->listen_fd, &c->listen_fd) < 0)
        abort();
    w->now = c->now = TRP_SECOND;
    c->look_due = c->now + c->config.network_timeout_ns / 10;
}

static void end(struct world *w)
{
    FUZZ_CHECK(trp_channel_next_timer(w->channel) > 0, "the next timer is due at 0");
    for (int i = 0; i < CALLERS; i++)
        hang_up(&w->callers[i]);
    w->channel->slept = true;
    trp_channel_progress(w->channel, w->now);
    trp_channel_destroy(w->channel);
}

static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes b = {data, data + size};
    struct world w;
    int before = next_descriptor();
    begin(&w, fuzz_byte(&b) & 1);
    while (b.at < b.end)
        move(&w, &b);
    end(&w);
    FUZZ_CHECK(next_descriptor() == before, "descriptor %d is left open", before);
    return 0;
}
