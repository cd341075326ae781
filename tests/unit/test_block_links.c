/*
 * Bad links between a block client and a block server: bytes that are turned, cut off,
 * held back, or come a few at a time, all along what goes over a connection. What is
 * read is right, or the block is named whose bytes they were.
 */
#include <errno.h>
#include <poll.h>

#include "block_world.h"
#include "unit.h"

/* ---- a cable that does what it is told -------------------------------------------- */

enum fault {
    FAULT_NONE,
    FAULT_GARBLE, /* the highest bit of byte `at` is turned */
    FAULT_CUT,    /* both sides are hung up on before that byte */
    FAULT_HOLD,   /* nothing goes from that byte on, and nobody is hung up on */
    FAULT_TRICKLE /* three bytes at a time */
};

struct cable {
    char *endpoint, *to; /* which the client calls; the server's */
    int listener, stop[2];
    enum fault fault;
    gboolean to_server; /* which way it happens */
    uint64_t at;
    uint32_t bad; /* calls that it happens to: the first ones */
    uint32_t calls;
    uint64_t passed[2]; /* of the first call: to the client, to the server */
    GThread *thread;
};

static void put_all(int fd, const uint8_t *bytes, size_t n, size_t piece)
{
    while (n > 0) {
        ssize_t put = send(fd, bytes, n < piece ? n : piece, MSG_NOSIGNAL);
        if (put <= 0)
            return; /* it is seen when it is read */
        bytes += put;
        n -= (size_t)put;
    }
}

/* Passes on what one side said. False: the call is over. */
static gboolean pass(struct cable *c, int from, int to, gboolean to_server,
                     uint64_t *passed, gboolean bad)
{
    uint8_t bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);
    if (n <= 0)
        return FALSE;
    bad = bad && to_server == c->to_server;
    uint64_t before = *passed, left = c->at > before ? c->at - before : 0;
    gboolean here = left < (uint64_t)n;
    *passed += (uint64_t)n;
    if (bad && here && c->fault == FAULT_GARBLE && c->at >= before)
        bytes[left] ^= 0x80;
    if (bad && here && (c->fault == FAULT_CUT || c->fault == FAULT_HOLD))
        n = (ssize_t)left;
    put_all(to, bytes, (size_t)n, bad && c->fault == FAULT_TRICKLE ? 3 : sizeof bytes);
    return !(bad && here && c->fault == FAULT_CUT);
}

static void carry(struct cable *c, int client)
{
    const gboolean bad = c->calls++ < c->bad;
    int server = connect_to(c->to);
    uint64_t passed[2] = {0, 0};
    struct pollfd p[] = {
        {.fd = client,     .events = POLLIN},
        {.fd = server,     .events = POLLIN},
        {.fd = c->stop[0], .events = POLLIN}
    };
    gboolean goes = TRUE;
    while (goes && poll(p, 3, -1) > 0 && !p[2].revents) {
        if (p[0].revents)
            goes = pass(c, client, server, TRUE, &passed[1], bad);
        if (goes && p[1].revents)
            goes = pass(c, server, client, FALSE, &passed[0], bad);
    }
    if (c->calls == 1)
        memcpy(c->passed, passed, sizeof passed);
    close(client);
    close(server);
}

static void *cable_run(void *arg)
{
    struct cable *c = arg;
    struct pollfd p[] = {
        {.fd = c->listener, .events = POLLIN},
        {.fd = c->stop[0],  .events = POLLIN}
    };
    while (poll(p, 2, -1) > 0 && !p[1].revents)
        carry(c, accept(c->listener, NULL, NULL));
    return NULL;
}

/* Between the world's client and its host 0. */
static void cable_open(struct cable *c, struct world *w)
{
    c->to = w->own[0];
    c->listener = listen_here(&c->endpoint);
    g_assert_cmpint(pipe(c->stop), ==, 0);
    w->endpoints[0][0] = c->endpoint;
    c->thread = g_thread_new("cable", cable_run, c);
}

static void cable_close(struct cable *c)
{
    close(c->stop[1]);
    g_thread_join(c->thread);
    close(c->stop[0]);
    close(c->listener);
    g_free(c->endpoint);
}

/* ---- reading over it -------------------------------------------------------------- */

struct got {
    int rc;
    struct trp_fetch_problem problem;
    trp_error err;
    struct trp_block_client_counts counts;
    struct cable cable;
};

/* A new client reads all. Tries are many and waits short: a client whose server is held
 * up by a busy machine asks again, too. */
static struct got read_over(struct world *w, const struct cable *like, size_t most,
                            int64_t timeout_ms)
{
    const struct trp_block_client_config config = {.secret = secret,
                                                   .mac = true,
                                                   .timeout_ns = timeout_ms * MS,
                                                   .retry_ns = MS,
                                                   .tries = 6};
    struct got g = {.cable = *like};
    struct trp_shuffle_read read = read_of(w, 0);
    cable_open(&g.cable, w);
    g_assert_cmpint(trp_block_client_start(&config, &read.client, &g.err), ==, 0);
    g.rc = read_numbers(w, &read, most, NULL, &g.problem, &g.err);
    trp_block_client_counts(read.client, &g.counts);
    trp_block_client_stop(read.client);
    cable_close(&g.cable);
    return g;
}

enum { NUMBERS = 12, MOST = 30, PATIENT = 20000, SHORT = 300 };
enum { STEP = 5 }; /* a call that is made anew takes 20 ms */

static struct world *small_world(void)
{
    return world_make(1, 1, NUMBERS, MOST, 0);
}

static void came(const struct got *g)
{
    g_assert_cmpstr(g->err.text, ==, "");
    g_assert_cmpint(g->rc, ==, 0);
}

/* What goes over the link when all is well, and how many bytes of it are a block's. */
static struct got without_fault(struct world *w)
{
    struct got g = read_over(w, &(struct cable){0}, MOST, PATIENT);
    came(&g);
    g_assert_cmpuint(g.cable.calls, ==, 1);
    g_assert_cmpuint(g.counts.bytes, >, 100);
    g_assert_cmpuint(g.cable.passed[0], >, g.counts.bytes + 50);
    return g;
}

/* Each byte that goes to the client, in turn: those of the block, which come last, are
 * found by its checksums, and name it; all others by the tags of frames or the proofs,
 * and are had anew over another call. */
TEST("turned bits of an answer are asked for again, or name the block")
{
    struct world *w = small_world();
    const struct got well = without_fault(w);
    const uint64_t all = well.cable.passed[0], block = all - well.counts.bytes;
    for (uint64_t at = 0; at < all; at++) {
        const struct cable c = {.fault = FAULT_GARBLE, .at = at, .bad = 1};
        struct got g = read_over(w, &c, MOST, at < block ? SHORT : PATIENT);
        if (at < block) {
            came(&g);
            g_assert_cmpuint(g.cable.calls, >, 1);
            g_assert_cmpuint(g.counts.retries, >, 0);
            continue;
        }
        g_assert_cmpint(g.rc, ==, TRP_ENOENT);
        g_assert_true(g.problem.is);
        g_assert_cmpuint(g.problem.shuffle, ==, 7);
        g_assert_cmpuint(g.problem.map, ==, 0);
        g_assert_cmpuint(g.problem.attempt, ==, 1000);
        g_assert_nonnull(strstr(g.err.text, "map 0 "));
        g_assert_nonnull(strstr(g.err.text, "part"));
    }
    world_free(w);
}

/* The server hangs up, and is asked again. */
TEST("turned bits of a request close the connection, and it is made anew")
{
    struct world *w = small_world();
    const struct got well = without_fault(w);
    for (uint64_t at = 0; at < well.cable.passed[1]; at += STEP) {
        const struct cable c = {
            .fault = FAULT_GARBLE, .to_server = TRUE, .at = at, .bad = 1};
        struct got g = read_over(w, &c, MOST, SHORT);
        came(&g);
        g_assert_cmpuint(g.cable.calls, >, 1);
    }
    world_free(w);
}

TEST("what is cut off is asked for again")
{
    struct world *w = small_world();
    const struct got well = without_fault(w);
    for (int way = 0; way < 2; way++)
        for (uint64_t at = 0; at < well.cable.passed[way]; at += STEP) {
            const struct cable c = {
                .fault = FAULT_CUT, .to_server = way, .at = at, .bad = 1};
            struct got g = read_over(w, &c, MOST, PATIENT);
            came(&g);
            g_assert_cmpuint(g.cable.calls, ==, 2);
        }
    world_free(w);
}

/* In a proof, in the head of an answer and in a block. */
TEST("who stops in the midst is given up, and asked again")
{
    struct world *w = small_world();
    const struct got well = without_fault(w);
    const uint64_t all = well.cable.passed[0], payload = well.counts.bytes;
    const uint64_t places[] = {0, 20, all - payload - 10, all - payload / 2, all - 1};
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        const struct cable c = {.fault = FAULT_HOLD, .at = places[i], .bad = 1};
        struct got g = read_over(w, &c, MOST, SHORT);
        came(&g);
        g_assert_cmpuint(g.cable.calls, >, 1);
    }
    world_free(w);
}

/* Blocks of several pieces: whoever goes on saying something is waited for. */
TEST("three bytes at a time are as good as all")
{
    enum { LARGE = 20000 };
    for (int way = 0; way < 2; way++) {
        struct world *w = world_make(4, 1, 40, LARGE, 0);
        const struct cable c = {
            .fault = FAULT_TRICKLE, .to_server = way, .bad = UINT32_MAX};
        struct got g = read_over(w, &c, LARGE, PATIENT);
        came(&g);
        g_assert_cmpuint(g.cable.calls, ==, 1);
        g_assert_cmpuint(g.counts.retries, ==, 0);
        world_free(w);
    }
}

/* As often as it is asked again: the block is named, and why. */
TEST("what is never right is named with the reason")
{
    struct world *w = small_world();
    const struct got well = without_fault(w);
    const uint64_t head = well.cable.passed[0] - well.counts.bytes - 10;
    const struct cable c = {.fault = FAULT_GARBLE, .at = head, .bad = UINT32_MAX};
    struct got g = read_over(w, &c, MOST, SHORT);
    g_assert_cmpint(g.rc, ==, TRP_ENOENT);
    g_assert_true(g.problem.is);
    g_assert_cmpuint(g.problem.map, ==, 0);
    g_assert_cmpuint(g.cable.calls, ==, 6);
    g_test_message("%s", g.err.text);
    g_assert_nonnull(strstr(g.err.text, "what came is not what it sent"));
    world_free(w);
}
