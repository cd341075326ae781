/*
 * Sleep and doorbell between a driver's channel and those of executors, all in one
 * process, over socket pairs and a lane that is polled as MPI is: what was flushed on
 * one side is there for the other.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <glib.h>
#include <utlist.h>

#include "comm/peer.h"
#include "unit.h"

enum { PAIRS = 20 }; /* at most */

/* One end of a connection; the other one is beside it. */
static struct end {
    trp_channel *channel; /* the driver's ends have one */
    struct trp_peer *peer;
    GByteArray *queued; /* put, not flushed */
    GByteArray *there;  /* has arrived here, not taken */
    guint sent, taken;  /* messages */
    guint rung_early;   /* frames that came before what was being flushed */
    gboolean asleep;    /* trp_channel_sleep let it, and it took no turn since */
} ends[2 * PAIRS];
static guint npairs;

static struct end *const driver = &ends[0], *const executor = &ends[1];

static struct end *end_of(const struct trp_peer *p)
{
    for (guint i = 0; i < 2 * npairs; i++)
        if (ends[i].peer == p)
            return &ends[i];
    g_assert_not_reached();
}

static struct end *beyond(const struct end *e)
{
    return &ends[(e - ends) ^ 1];
}

static gboolean is_drivers(const struct end *e)
{
    return (e - ends) % 2 == 0;
}

static int bytes_on_socket(const struct end *e)
{
    int n = -1;
    g_assert_cmpint(ioctl(e->peer->link.fd, FIONREAD, &n), ==, 0);
    return n;
}

/* A sleeper would wake. */
static gboolean is_woken(const struct end *e)
{
    return bytes_on_socket(e) > 0;
}

/* ---- the lane -------------------------------------------------------------------- */

static int lane_open(struct trp_peer *p, const struct trp_route *route)
{
    (void)p, (void)route;
    return 0;
}

static int lane_put(struct trp_peer *p, const void *data, size_t n)
{
    guint32 size = GUINT32_TO_LE((guint32)n);
    g_byte_array_append(end_of(p)->queued, (const guint8 *)&size, sizeof size);
    g_byte_array_append(end_of(p)->queued, data, (guint)n);
    return 0;
}

static int lane_flush(struct trp_peer *p)
{
    struct end *from = end_of(p), *to = beyond(from);
    to->rung_early += bytes_on_socket(to) > 0;
    g_byte_array_append(to->there, from->queued->data, from->queued->len);
    g_byte_array_set_size(from->queued, 0);
    return 1;
}

static void lane_close(struct trp_peer *p, bool orderly)
{
    (void)p, (void)orderly;
}

static void lane_poll(struct trp_peer *p)
{
    p->slot = p->channel->npolled++;
    p->channel->polled[p->slot] = p;
}

static void lane_unpoll(struct trp_peer *p)
{
    trp_channel *c = p->channel;
    c->polled[p->slot] = c->polled[--c->npolled];
    c->polled[p->slot]->slot = p->slot;
    p->slot = TRP_NONE;
}

static void take_what_is_there(struct end *e)
{
    GByteArray *bytes = e->there;
    if (bytes->len == 0)
        return;
    e->there = g_byte_array_new();
    int rc = trp_lane_take(&e->peer->lane, bytes->data, bytes->len, trp_peer_deliver,
                           e->peer);
    g_assert_cmpint(rc, ==, 0);
    g_byte_array_unref(bytes);
}

static void lane_take(struct trp_channel *c)
{
    struct trp_peer *polled[PAIRS];
    guint n = c->npolled;
    memcpy(polled, c->polled, n * sizeof(struct trp_peer *));
    for (guint i = 0; i < n; i++)
        take_what_is_there(end_of(polled[i]));
}

static const struct trp_lane_ops lane = {
    .rings = true,
    .open = lane_open,
    .put = lane_put,
    .flush = lane_flush,
    .close = lane_close,
    .poll = lane_poll,
    .unpoll = lane_unpoll,
    .take = lane_take,
};

/* ---- channels -------------------------------------------------------------------- */

static void on_message(void *context, uint32_t peer, const uint8_t *data, size_t size)
{
    struct end *e = context ? context : &ends[2 * peer];
    (void)data, (void)size;
    e->taken++;
}

static trp_channel *begin_channel(gboolean drives, struct end *only)
{
    trp_error err;
    trp_channel *c = NULL;
    g_assert_cmpint(trp_channel_make(drives, &c, &err), ==, 0);
    c->handler = (struct trp_channel_handler){.context = only, .message = on_message};
    c->config.heartbeat_ns = c->config.network_timeout_ns = 3600 * TRP_SECOND;
    c->beat_due = c->look_due = INT64_MAX;
    return c;
}

static void begin_end(struct end *e, trp_channel *c, int fd)
{
    *e = (struct end){
        .channel = c, .queued = g_byte_array_new(), .there = g_byte_array_new()};
    struct trp_peer *p = e->peer = trp_peer_new(c, fd);
    g_assert_nonnull(p);
    g_assert_cmpint(trp_peer_make_room(c), ==, 0);
    DL_DELETE(c->callers, p);
    c->ncallers--;
    DL_APPEND(c->peers, p);
    c->npeers++;
    p->state = TRP_PEER_UP;
    if (is_drivers(e)) {
        p->id = c->nby_id++;
        c->by_id[p->id] = p;
    } else {
        p->id = TRP_DRIVER_PEER;
        c->only = p;
    }
    g_assert_cmpint(trp_peer_open(p, &lane, NULL), ==, 0);
}

static void send_one(struct end *e)
{
    g_assert_cmpint(trp_channel_send(e->channel, e->peer->id, "m", 1), ==, 0);
    e->sent++;
}

static void set_asleep(const trp_channel *c, gboolean asleep)
{
    for (guint i = 0; i < 2 * npairs; i++)
        if (ends[i].channel == c)
            ends[i].asleep = asleep;
}

/* A turn, some time after the last one. */
static void turn(struct end *e)
{
    set_asleep(e->channel, FALSE);
    trp_channel_progress(e->channel, e->channel->now + TRP_SOCKETS_NS);
}

static gboolean may_sleep(struct end *e)
{
    gboolean may = trp_channel_sleep(e->channel);
    set_asleep(e->channel, may);
    return may;
}

static void until_asleep(struct end *e)
{
    for (guint turns = 0; !may_sleep(e); turns++) {
        g_assert_cmpuint(turns, <, 100);
        turn(e);
    }
}

/* Those that are woken take turns until all sleep. */
static void until_quiet(void)
{
    for (gboolean busy = TRUE; busy;) {
        busy = FALSE;
        for (guint i = 0; i < 2 * npairs; i++)
            if (!ends[i].asleep || is_woken(&ends[i])) {
                turn(&ends[i]);
                until_asleep(&ends[i]);
                busy = TRUE;
            }
    }
}

static void begin(guint n)
{
    int fds[2];
    trp_channel *drives = begin_channel(TRUE, NULL);
    drives->by_id = calloc(n, sizeof *drives->by_id);
    for (npairs = 0; npairs < n; npairs++) {
        struct end *e = &ends[2 * npairs];
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
        begin_end(e, drives, fds[0]);
        begin_end(e + 1, begin_channel(FALSE, e + 1), fds[1]);
    }
    until_quiet();
    for (guint i = 0; i < 2 * n; i++)
        ends[i].rung_early = 0;
}

static void end(void)
{
    trp_channel_destroy(driver->channel);
    for (guint i = 0; i < 2 * npairs; i++) {
        if (!is_drivers(&ends[i]))
            trp_channel_destroy(ends[i].channel);
        g_byte_array_unref(ends[i].queued);
        g_byte_array_unref(ends[i].there);
    }
}

/* ---- tests ----------------------------------------------------------------------- */

TEST("what it is rung for is there when a sleeper wakes")
{
    begin(1);
    for (guint i = 1; i <= 20; i++) {
        send_one(driver);
        turn(driver);
        g_assert_true(is_woken(executor));
        turn(executor);
        g_assert_cmpuint(executor->taken, ==, i);
        until_quiet();
    }
    g_assert_cmpuint(executor->rung_early, ==, 0);
    end();
}

TEST("a message that crosses a sleep wakes the sleeper")
{
    begin(1);
    send_one(driver);
    turn(driver);
    turn(executor);
    send_one(driver);
    g_assert_true(may_sleep(executor)); /* the message is not on its way yet */
    turn(driver);                       /* sends it, and hears of the sleep */
    turn(driver);
    g_assert_true(is_woken(executor));
    until_quiet();
    g_assert_cmpuint(executor->taken, ==, 2);
    end();
}

TEST("who is awake is not rung")
{
    begin(1);
    for (guint i = 0; i < 20; i++) {
        send_one(driver);
        turn(driver);
        g_assert_cmpint(is_woken(executor), ==, i == 0);
        turn(executor);
    }
    g_assert_cmpuint(executor->taken, ==, 20);
    end();
}

/* Whatever crosses whatever: once all sleep, all messages have come. */
static void no_message_is_slept_over(guint n, guint rounds)
{
    for (guint round = 0; round < rounds; round++) {
        begin(n);
        for (gint step = g_test_rand_int_range(0, 60); step > 0; step--) {
            struct end *e = &ends[g_test_rand_int_range(0, (gint32)(2 * n))];
            gint what = g_test_rand_int_range(0, 4);
            gboolean sleeps = e->asleep && !is_woken(e);
            if (what == 0 && !sleeps)
                may_sleep(e);
            else if (what == 1)
                send_one(e), set_asleep(e->channel, FALSE);
            else if (!sleeps)
                turn(e);
        }
        until_quiet();
        for (guint i = 0; i < 2 * n; i++)
            g_assert_cmpuint(ends[i].taken, ==, beyond(&ends[i])->sent);
        end();
    }
}

TEST("no message is slept over by two")
{
    no_message_is_slept_over(1, 2000);
}

TEST("no message is slept over by many")
{
    no_message_is_slept_over(PAIRS, 100);
}
