/*
 * Sleep and doorbell between two channels in one process, over a socket pair and a lane
 * that is polled as MPI is: what was flushed on one side is there for the other.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <glib.h>
#include <utlist.h>

#include "comm/peer.h"

static struct side {
    trp_channel *channel;
    struct trp_peer *peer; /* the other side, as this one sees it */
    GByteArray *queued;    /* put, not flushed */
    GByteArray *there;     /* has arrived here, not taken */
    guint taken;           /* messages */
    gboolean answers;      /* one for one */
    guint rung_early;      /* frames that came before what was being flushed */
} sides[2];

static struct side *here(const struct trp_peer *p)
{
    return p->channel == sides[0].channel ? &sides[0] : &sides[1];
}

static struct side *beyond(const struct trp_peer *p)
{
    return p->channel == sides[0].channel ? &sides[1] : &sides[0];
}

static int bytes_on_socket(const struct side *s)
{
    int n = -1;
    g_assert_cmpint(ioctl(s->peer->link.fd, FIONREAD, &n), ==, 0);
    return n;
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
    g_byte_array_append(here(p)->queued, (const guint8 *)&size, sizeof size);
    g_byte_array_append(here(p)->queued, data, (guint)n);
    return 0;
}

static int lane_flush(struct trp_peer *p)
{
    struct side *from = here(p), *to = beyond(p);
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
    p->channel->npolled--;
    p->slot = TRP_NONE;
}

static void lane_take(struct trp_channel *c)
{
    struct side *s = here(c->polled[0]);
    if (s->there->len == 0)
        return;
    GByteArray *bytes = s->there;
    s->there = g_byte_array_new();
    int rc = trp_lane_take(&s->peer->lane, bytes->data, bytes->len, trp_peer_deliver,
                           s->peer);
    g_assert_cmpint(rc, ==, 0);
    g_byte_array_unref(bytes);
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

/* ---- two sides ------------------------------------------------------------------- */

static void send_one(struct side *s)
{
    g_assert_cmpint(trp_channel_send(s->channel, s->peer->id, "m", 1), ==, 0);
}

static void on_message(void *context, uint32_t peer, const uint8_t *data, size_t size)
{
    struct side *s = context;
    (void)peer, (void)data, (void)size;
    s->taken++;
    if (s->answers)
        send_one(s);
}

static void begin_side(struct side *s, gboolean driver, int fd)
{
    trp_error err;
    *s = (struct side){.queued = g_byte_array_new(), .there = g_byte_array_new()};
    g_assert_cmpint(trp_channel_make(driver, &s->channel, &err), ==, 0);
    trp_channel *c = s->channel;
    c->handler = (struct trp_channel_handler){.context = s, .message = on_message};
    c->config.heartbeat_ns = c->config.network_timeout_ns = 3600 * TRP_SECOND;
    c->beat_due = c->look_due = c->patrol_ns = INT64_MAX;
    struct trp_peer *p = s->peer = trp_peer_new(c, fd);
    g_assert_nonnull(p);
    g_assert_cmpint(trp_peer_make_room(c), ==, 0);
    DL_DELETE(c->callers, p);
    c->ncallers--;
    DL_APPEND(c->peers, p);
    c->npeers++;
    p->state = TRP_PEER_UP;
    p->id = driver ? 0 : TRP_DRIVER_PEER;
    if (driver) {
        c->by_id = calloc(1, sizeof *c->by_id);
        c->by_id[0] = p;
        c->nby_id = 1;
    } else {
        c->only = p;
    }
    g_assert_cmpint(trp_peer_open(p, &lane, NULL), ==, 0);
}

static void begin(void)
{
    int fds[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    begin_side(&sides[0], TRUE, fds[0]);
    begin_side(&sides[1], FALSE, fds[1]);
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        trp_channel_destroy(sides[i].channel);
        g_byte_array_unref(sides[i].queued);
        g_byte_array_unref(sides[i].there);
    }
}

/* A turn, some time after the last one. */
static int turn(struct side *s)
{
    return trp_channel_progress(s->channel, s->channel->now + TRP_SOCKETS_NS);
}

/* Turns until it may sleep: how many. */
static guint until_asleep(struct side *s)
{
    guint turns = 0;
    while (!trp_channel_sleep(s->channel) && turns < 100) {
        turn(s);
        turns++;
    }
    g_assert_cmpuint(turns, <, 100);
    return turns;
}

static gboolean is_woken(const struct side *s)
{
    return bytes_on_socket(s) > 0;
}

/* Both asleep, and each knows it of the other. */
static void both_asleep(void)
{
    for (gboolean woken = TRUE; woken;) {
        until_asleep(&sides[0]);
        until_asleep(&sides[1]);
        woken = is_woken(&sides[0]) || is_woken(&sides[1]);
        for (int i = 0; i < 2; i++)
            if (is_woken(&sides[i]))
                turn(&sides[i]);
    }
    sides[0].taken = sides[1].taken = 0;
    sides[0].rung_early = sides[1].rung_early = 0;
}

/* ---- tests ----------------------------------------------------------------------- */

static void what_it_is_rung_for_is_there_when_a_sleeper_wakes(void)
{
    begin();
    both_asleep();
    for (guint i = 1; i <= 20; i++) {
        send_one(&sides[0]);
        turn(&sides[0]);
        g_assert_true(is_woken(&sides[1]));
        turn(&sides[1]);
        g_assert_cmpuint(sides[1].taken, ==, i);
        until_asleep(&sides[1]);
        until_asleep(&sides[0]);
    }
    g_assert_cmpuint(sides[1].rung_early, ==, 0);
    end();
}

static void a_message_that_crosses_a_sleep_wakes_the_sleeper(void)
{
    begin();
    both_asleep();
    send_one(&sides[0]);
    turn(&sides[0]);
    turn(&sides[1]);
    g_assert_cmpuint(sides[1].taken, ==, 1);
    send_one(&sides[0]);
    g_assert_true(trp_channel_sleep(sides[1].channel));
    turn(&sides[0]);
    turn(&sides[0]); /* it hears of the sleep, at the latest */
    g_assert_true(is_woken(&sides[1]));
    until_asleep(&sides[1]);
    g_assert_cmpuint(sides[1].taken, ==, 2);
    end();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/doorbell/what it is rung for is there when a sleeper wakes",
                    what_it_is_rung_for_is_there_when_a_sleeper_wakes);
    g_test_add_func("/doorbell/a message that crosses a sleep wakes the sleeper",
                    a_message_that_crosses_a_sleep_wakes_the_sleeper);
    return g_test_run();
}
