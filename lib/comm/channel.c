/*
 * The loop of a channel, on either side.
 *
 * A step flushes sends, looks at the sockets (every 50 us while busy, at once after
 * sleep: an epoll_wait costs as much as a turn of MPI), takes arrived fragments of the
 * polled peers with one MPI_Testsome, flushes the answers, and looks at the timers that
 * are due. It never blocks.
 *
 * Sleep is agreed per peer and direction. SLEEP n means: I have received n of your
 * messages so far and poll for no more; ring to wake me. The other side notes this
 * (is_deaf), and rings once when it has sent more than n: behind the messages, since
 * who is woken before they are there polls for them, on a busy machine on the very
 * processor that their sender was about to send them on. SLEEP and RING count whole
 * messages. Messages travel on one ordered stream, frames on another. So a SLEEP that
 * crosses a message is answered by a RING, and a RING that crosses a second
 * SLEEP is only a needless wake-up. A side must never conclude from a *message* that
 * its sender is awake: the message may be older than the SLEEP. A driver that polls
 * many peers also sends SLEEP to those that sleep, although it stays awake itself, and
 * polls them no more: 1,000 sleeping peers cost nothing.
 *
 * Leaving. BYE n means: I have sent n messages in all, and none is still in this
 * process. The receiver takes them, finishes its own sends and sends BYE too. A side
 * closes when it has sent and received BYE and has all messages. Then no call of MPI
 * needs the other side: each cancels its posted receive and frees its communicator
 * locally.
 *
 * Teardown: peers, half-open connections, transport, descriptors, memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "comm/mpi.h"
#include "comm/peer.h"
#include "os/clock.h"

enum { EVENTS = 64 };

/* ---- sleeping -------------------------------------------------------------------- */

static int put_count(struct trp_peer *p, enum trp_frame_kind kind, uint64_t count)
{
    count = htole64(count);
    return trp_peer_put(p, kind, &count, sizeof count);
}

static void ring(struct trp_peer *p)
{
    p->is_deaf = false;
    put_count(p, TRP_FRAME_RING, p->lane.sent);
}

static void go_deaf(struct trp_peer *p)
{
    trp_peer_unpoll(p);
    if (p->told_deaf)
        return;
    p->told_deaf = true;
    put_count(p, TRP_FRAME_SLEEP, p->lane.taken);
}

static bool may_go_deaf(const struct trp_peer *p)
{
    return !p->sending && !p->leaving && p->state == TRP_PEER_UP &&
           p->lane.taken >= p->promised;
}

bool trp_channel_sleep(trp_channel *c)
{
    struct epoll_event event;
    if (c->nsending > 0 || c->nleaving > 0 || c->gone || c->unread)
        return false;
    for (uint32_t i = 0; i < c->npolled; i++)
        if (!may_go_deaf(c->polled[i]))
            return false;
    if (epoll_wait(c->epoll_fd, &event, 1, 0) != 0) {
        c->slept = true; /* look at once */
        return false;
    }
    while (c->npolled > 0)
        go_deaf(c->polled[c->npolled - 1]);
    c->slept = true;
    return true;
}

/* ---- frames ---------------------------------------------------------------------- */

static int on_beat(struct trp_peer *p, struct trp_view *v)
{
    if (p->channel->driver)
        trp_peer_put(p, TRP_FRAME_BEAT, NULL, 0);
    return trp_view_end(v) ? 0 : TRP_EPROTO;
}

/* SLEEP may come before its lane is open. */
static bool rings(const struct trp_peer *p)
{
    return !p->lane.ops || p->lane.ops->rings;
}

static int on_data(struct trp_peer *p, struct trp_view *v)
{
    if (rings(p))
        return TRP_EPROTO;
    return trp_lane_take(&p->lane, v->at, (size_t)(v->end - v->at), trp_peer_deliver,
                         p);
}

static int on_sleep(struct trp_peer *p, struct trp_view *v)
{
    trp_channel *c = p->channel;
    uint64_t n = trp_get_u64(v);
    if (!trp_view_end(v) || n > p->lane.sent || !rings(p))
        return TRP_EPROTO;
    p->is_deaf = true;
    if (p->lane.sent > n && !p->sending)
        ring(p);
    else if (c->npolled > TRP_DEAF_ABOVE && p->slot != TRP_NONE && may_go_deaf(p))
        go_deaf(p);
    return 0;
}

static int on_ring(struct trp_peer *p, struct trp_view *v)
{
    uint64_t n = trp_get_u64(v);
    if (!trp_view_end(v) || !rings(p))
        return TRP_EPROTO;
    if (n > p->promised)
        p->promised = n;
    p->told_deaf = false;
    trp_peer_poll(p);
    return 0;
}

static void begin_leaving(struct trp_peer *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    p->channel->nleaving++;
    trp_peer_poll(p);
}

static int on_bye(struct trp_peer *p, struct trp_view *v)
{
    uint64_t n = trp_get_u64(v);
    if (!trp_view_end(v))
        return TRP_EPROTO;
    if (n > p->promised)
        p->promised = n;
    p->bye_heard = true;
    begin_leaving(p);
    return 0;
}

enum {
    D = 1,
    E = 2,
    IN = TRP_PEER_GREETED | TRP_PEER_QUEUED | TRP_PEER_MEETING | TRP_PEER_VERIFYING |
         TRP_PEER_UP,
    JOINED = TRP_PEER_VERIFYING | TRP_PEER_UP,
};

/* Who may be told what, when. What is not here is an error. */
static const struct rule {
    uint8_t kind, sides;
    uint8_t states;
    int (*take)(struct trp_peer *p, struct trp_view *v);
} rules[] = {
    {TRP_FRAME_ANSWER,     D,     TRP_PEER_PROVING,          trp_admission_answer},
    {TRP_FRAME_HELLO,      D,     TRP_PEER_GREETING,         trp_admission_hello },
    {TRP_FRAME_READY,      D,     TRP_PEER_GREETED,          trp_admission_ready },
    {TRP_FRAME_ADMIT,      E,     TRP_PEER_GREETED,          trp_call_admit      },
    {TRP_FRAME_BEAT,       D | E, IN,                        on_beat             },
    {TRP_FRAME_SLEEP,      D | E, JOINED | TRP_PEER_MEETING, on_sleep            },
    {TRP_FRAME_RING,       D | E, JOINED,                    on_ring             },
    {TRP_FRAME_LAST_WORDS, D,     IN,                        trp_last_words_take },
    {TRP_FRAME_BYE,        D | E, TRP_PEER_UP,               on_bye              },
    {TRP_FRAME_DATA,       D | E, TRP_PEER_UP,               on_data             },
};

static int take_frame(struct trp_peer *p, uint8_t kind, struct trp_view *v)
{
    int side = p->channel->driver ? D : E;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == kind && rules[i].sides & side &&
            rules[i].states & p->state)
            return rules[i].take(p, v);
    return TRP_EPROTO;
}

/* A driver tells its log, an executor its driver. */
static void tell_garbage(const struct trp_peer *p)
{
    char text[400];
    if (!p->channel->driver) {
        trp_channel_last_words(
            p->channel,
            &(struct trp_last_words){.reason = TRP_LOSS_EXITED, .garbled = true});
        return;
    }
    snprintf(
        text, sizeof text,
        "executor %u on %s: what came on its connection is not what it sent; it is "
        "given up",
        p->id, p->hello.host);
    trp_admission_tell(p->channel, false, p->id, false, text);
}

/* Its socket closed, or broke, or brought garbage. */
static void lose(struct trp_peer *p, bool garbage)
{
    trp_channel *c = p->channel;
    if (p->state & (TRP_PEER_PROVING | TRP_PEER_GREETING)) {
        trp_admission_refuse(p, false,
                             garbage ? "not an executor of this version: garbage"
                                     : "it closed the connection before its hello");
        return;
    }
    if (p->lane.ops && p->lane.ops->drain)
        p->lane.ops->drain(p);
    if (p->state == TRP_PEER_GONE)
        return;
    struct trp_view last_words;
    if (c->driver &&
        trp_link_last_words_at_end(&p->link, TRP_LAST_WORDS_SIZE, &last_words))
        trp_last_words_take(p, &last_words);
    else if (garbage) {
        p->last_words.garbled = true;
        tell_garbage(p);
    }
    if (p->bye_said && p->bye_heard && p->lane.taken < p->promised) {
        trp_peer_close_socket(p); /* its last messages are on their way */
        p->leave_ns = c->now;
        trp_peer_poll(p);
        return;
    }
    trp_peer_end(p, true);
}

static void take_frames(struct trp_peer *p, int filled)
{
    trp_channel *c = p->channel;
    uint8_t kind;
    struct trp_view v;
    int rc = 0;
    while (p->state != TRP_PEER_GONE && p->link.fd >= 0 &&
           (rc = trp_link_next(&p->link, &kind, &v)) > 0) {
        c->handled++;
        p->heard_ns = c->now;
        rc = take_frame(p, kind, &v);
        if (rc < 0)
            break;
        if (c->joining && p->state == TRP_PEER_UP) {
            c->unread = true; /* nothing is told to the handler yet */
            return;
        }
    }
    if (p->state == TRP_PEER_GONE || p->link.fd < 0)
        return;
    if (rc < 0 || filled < 0)
        lose(p, rc < 0);
}

static void read_socket(struct trp_peer *p)
{
    take_frames(p, trp_link_fill(&p->link));
}

static void look_at_sockets(trp_channel *c)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(c->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        void *what = events[i].data.ptr;
        struct trp_peer *p = (struct trp_peer *)what;
        if (what == &c->listen_fd || what == &c->here_fd) {
            trp_admission_accept(c, *(int *)what);
            c->handled++;
        } else if (what == &c->transport) {
            uint64_t count;
            ssize_t got = read(c->transport.notice_fd, &count, sizeof count);
            (void)got; /* only to make it unreadable */
            if (c->driver)
                trp_admission_notice(c);
            else
                trp_call_notice(c);
            c->handled++;
        } else if (p->state != TRP_PEER_GONE) {
            if (events[i].events & EPOLLOUT && trp_link_flush(&p->link) == 0)
                trp_peer_watch_out(p);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                read_socket(p);
        }
    }
    c->slept = n == EVENTS; /* there may be more */
    c->sockets_due = c->now + TRP_SOCKETS_NS;
}

/* ---- messages -------------------------------------------------------------------- */

static void flush_sends(trp_channel *c)
{
    for (uint32_t i = 0; i < c->nsending;) {
        struct trp_peer *p = c->sending[i];
        if (p->state == TRP_PEER_GONE) {
            i++; /* leaves the list when it is buried */
            continue;
        }
        int rc = p->lane.ops->flush(p);
        if (p->is_deaf && rc >= 0)
            ring(p);
        if (rc == 0) {
            i++;
            continue;
        }
        p->sending = false;
        c->sending[i] = c->sending[--c->nsending];
        if (rc < 0)
            trp_peer_end(p, true);
    }
}

static void take_messages(trp_channel *c)
{
    if (c->npolled > 0 && !c->joining)
        c->polled[0]->lane.ops->take(c);
}

/* ---- a step ---- */

static void leave_on(struct trp_peer *p)
{
    if (!p->leaving || p->state != TRP_PEER_UP)
        return;
    if (!p->bye_said && !p->sending) {
        p->bye_said = true;
        put_count(p, TRP_FRAME_BYE, p->lane.sent);
    }
    bool late = p->leave_ns != 0 && p->channel->now - p->leave_ns > TRP_LEAVE_NS;
    bool all = p->bye_said && p->bye_heard && p->lane.taken >= p->promised;
    if (late || (all && !trp_link_pending(&p->link)))
        trp_peer_end(p, true);
}

int trp_channel_progress(trp_channel *c, int64_t now_ns)
{
    struct trp_peer *p, *next;
    c->now = now_ns;
    c->handled = 0;
    if (c->nsending > 0)
        flush_sends(c);
    if (c->unread && !c->joining) {
        c->unread = false;
        take_frames(c->only, 0);
    }
    if (c->slept || now_ns >= c->sockets_due) {
        look_at_sockets(c);
        trp_channel_look_at_time(c);
    } else if (c->ncarrying > 0) {
        if (c->npeers == 1 && c->peers)
            read_socket(c->peers); /* cheaper than to ask epoll */
        else
            look_at_sockets(c);
    }
    take_messages(c);
    if (c->handled > 0 && c->handler.delivered)
        c->handler.delivered(c->handler.context);
    if (c->nsending > 0)
        flush_sends(c);
    if (c->nleaving > 0)
        DL_FOREACH_SAFE(c->peers, p, next)
            leave_on(p);
    if (c->gone)
        trp_peer_bury(c);
    return (int)c->handled;
}

/* ---- calls from outside ---------------------------------------------------------- */

static struct trp_peer *find_peer(const trp_channel *c, uint32_t peer)
{
    struct trp_peer *p = NULL;
    if (!c->driver)
        p = peer == TRP_DRIVER_PEER ? c->only : NULL;
    else if (peer < c->nby_id)
        p = c->by_id[peer];
    return p;
}

int trp_channel_send(trp_channel *c, uint32_t peer, const void *data, size_t size)
{
    struct trp_peer *p = find_peer(c, peer);
    if (!p || p->state != TRP_PEER_UP || p->bye_said)
        return TRP_ENOENT;
    if (size > TRP_MESSAGE_MAX)
        return TRP_ELIMIT;
    return trp_peer_send(p, data, size);
}

void trp_channel_drop(trp_channel *c, uint32_t peer)
{
    struct trp_peer *p = find_peer(c, peer);
    if (p)
        trp_peer_end(p, false);
}

int trp_channel_fd(const trp_channel *c)
{
    return c->epoll_fd;
}

int trp_channel_socket(const trp_channel *c)
{
    return c->only ? c->only->link.fd : -1;
}

const char *trp_channel_address(const trp_channel *c)
{
    return c->address;
}

/* ---- making and ending ----------------------------------------------------------- */

int trp_channel_watch(trp_channel *c, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? TRP_ESYSTEM : 0;
}

int trp_channel_make(bool driver, trp_channel **ret, trp_error *err)
{
    trp_channel *c = calloc(1, sizeof *c);
    if (!c)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a channel");
    c->now = trp_clock_ns();
    c->driver = driver;
    c->listen_fd = c->here_fd = -1;
    c->transport = (struct trp_transport){.notice_fd = -1};
    c->slept = true;
    snprintf(c->build, sizeof c->build, "%s", trp_build_id());
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll_fd < 0) {
        int code = trp_error_set(err, TRP_ESYSTEM, "epoll_create1: %m");
        free(c);
        return code;
    }
    *ret = c;
    return 0;
}

/* What trp_channel_close leaves when there is nobody to say goodbye to. */
void trp_channel_destroy(trp_channel *c)
{
    struct trp_peer *p, *next;
    c->closing = true;
    if (c->listen_fd >= 0)
        close(c->listen_fd);
    if (c->here_fd >= 0)
        close(c->here_fd);
    DL_FOREACH_SAFE(c->callers, p, next)
        trp_peer_end(p, false);
    while (c->queue) {
        p = c->queue;
        trp_peer_end(p, false);
    }
    DL_FOREACH_SAFE(c->peers, p, next)
        trp_peer_end(p, false);
    trp_peer_bury(c);
    if (c->mpi)
        c->transport.ops->lane->forget(c);
    if (!trp_transport_close(&c->transport))
        c->unclean = true;
    close(c->epoll_fd);
    free(c->by_id);
    free(c->polled);
    free(c->sending);
    explicit_bzero(c->secret, sizeof c->secret);
    free(c);
}

bool trp_channel_close(trp_channel *c)
{
    struct trp_peer *p;
    struct epoll_event event;
    if (!c)
        return true;
    int64_t deadline = 0;
    if (c->driver)
        trp_admission_tell_rest(c);
    c->closing = true;
    DL_FOREACH(c->peers, p)
        if (p->state == TRP_PEER_UP)
            begin_leaving(p);
    while (c->nleaving > 0) {
        int64_t now = trp_clock_ns();
        if (deadline == 0)
            deadline = now + TRP_LEAVE_NS;
        if (now > deadline)
            break;
        int64_t left = (deadline - now) / (TRP_SECOND / 1000) + 1;
        c->slept = true;
        /* A lane that rings has to be polled. */
        if (trp_channel_progress(c, now) == 0 && c->nleaving > 0)
            epoll_wait(c->epoll_fd, &event, 1, c->npolled > 0 ? 1 : (int)left);
    }
    bool clean = !c->unclean && c->nleaving == 0 && !c->meeting;
    DL_FOREACH(c->peers, p)
        clean = clean && !p->lane.ops;
    trp_channel_destroy(c);
    return clean;
}

static int start_listening(trp_channel *c, const struct trp_listen_config *config,
                           const struct trp_channel_handler *handler, trp_error *err)
{
    c->config = *config;
    c->handler = *handler;
    memcpy(c->secret, config->secret, TRP_SECRET_SIZE);
    c->config.secret = NULL;
    c->look_due = c->now + config->network_timeout_ns / 10;
    if (config->transport == TRP_TRANSPORT_SOCKET)
        return trp_admission_open(c, err);
    int rc = config->transport == TRP_TRANSPORT_WORLD
                 ? trp_mpi_begin(false, NULL, err)
                 : trp_mpi_begin_joining(config->stuck, err);
    if (rc == 0)
        rc = trp_transport_open(&c->transport, config->transport, err);
    if (rc == 0 && trp_channel_watch(c, c->transport.notice_fd, &c->transport) < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "epoll: %m");
    return rc < 0 ? rc : trp_admission_open(c, err);
}

int trp_channel_listen(const struct trp_listen_config *config,
                       const struct trp_channel_handler *handler,
                       trp_channel **ret_channel, trp_error *err)
{
    trp_channel *c = NULL;
    int rc = trp_channel_make(true, &c, err);
    if (rc < 0)
        return rc;
    rc = start_listening(c, config, handler, err);
    if (rc < 0)
        trp_channel_destroy(c);
    else
        *ret_channel = c;
    return rc;
}
