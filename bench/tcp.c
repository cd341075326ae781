/*
 * The same as pair.c without MPI: two processes that poll a TCP connection on loopback.
 *
 *     tcp tasks N      batches of 256 descriptors of 16 bytes out, ends of 24 bytes
 *                      back, 8 batches in flight (per_second); N is rounded up to
 *                      whole batches
 *     tcp pings N      a round trip of 16 bytes, N times (p50_us, p99_us)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch.h"
#include "bench.h"

static void fail(const char *what)
{
    fprintf(stderr, "tcp: %s: %s\n", what, strerror(errno));
    exit(4);
}

/* Whole, spinning meanwhile. False: the other side has closed. */
static bool take(int fd, void *to, size_t n)
{
    char *at = to;
    while (n > 0) {
        ssize_t got = recv(fd, at, n, 0);
        if (got == 0)
            return false;
        if (got < 0 && errno != EAGAIN)
            fail("recv");
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void give(int fd, const void *from, size_t n)
{
    const char *at = from;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            fail("send");
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

/* ---- the other side -------------------------------------------------------------- */

static void answer(int fd, bool tasks)
{
    static struct descriptor in[BATCH];
    static struct end out[BATCH];
    while (take(fd, in, tasks ? sizeof in : PING)) {
        for (uint32_t i = 0; tasks && i < BATCH; i++)
            out[i] = (struct end){.task = in[i].task, .attempt = in[i].attempt};
        give(fd, tasks ? (void *)out : (void *)in, tasks ? sizeof out : PING);
    }
    _exit(0);
}

/* ---- the server ------------------------------------------------------------------ */

static void send_batch(int fd, struct state *states, uint32_t from)
{
    static struct descriptor out[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        states[from + i].running = true;
        out[i] = (struct descriptor){.task = from + i,
                                     .attempt = states[from + i].attempt,
                                     .argument = from + i};
    }
    give(fd, out, sizeof out);
}

static void take_ends(int fd, struct state *states)
{
    static struct end in[BATCH];
    if (!take(fd, in, sizeof in))
        fail("closed");
    for (uint32_t i = 0; i < BATCH; i++) {
        struct state *s = &states[in[i].task];
        if (!s->running || s->attempt != in[i].attempt) {
            fprintf(stderr, "tcp: an end of a task that does not run\n");
            exit(4);
        }
        s->running = false;
        s->done = in[i].status == 0;
    }
}

static void run_tasks(int fd, struct state *states, uint32_t nbatches)
{
    uint32_t next = 0;
    for (uint32_t ended = 0; ended < nbatches; ended++) {
        for (; next < nbatches && next - ended < IN_FLIGHT; next++)
            send_batch(fd, states, next * BATCH);
        take_ends(fd, states);
    }
}

static void serve_tasks(int fd, uint32_t n)
{
    uint32_t nbatches = (n + BATCH - 1) / BATCH;
    struct state *states = trp_bench_alloc((size_t)nbatches * BATCH, sizeof *states);
    run_tasks(fd, states, nbatches < 10 ? nbatches : 10); /* warm */
    memset(states, 0, (size_t)nbatches * BATCH * sizeof *states);
    int64_t begin = trp_bench_now();
    run_tasks(fd, states, nbatches);
    double seconds = (double)(trp_bench_now() - begin) / 1e9;
    trp_bench_print("per_second", (double)nbatches * BATCH / seconds);
    free(states);
}

static void serve_pings(int fd, uint32_t n)
{
    double *us = trp_bench_alloc(n, sizeof *us);
    char ping[PING] = {0};
    for (uint32_t i = 0; i < n + WARM; i++) {
        int64_t begin = trp_bench_now();
        give(fd, ping, sizeof ping);
        if (!take(fd, ping, sizeof ping))
            fail("closed");
        if (i >= WARM)
            us[i - WARM] = (double)(trp_bench_now() - begin) / 1e3;
    }
    trp_bench_print("p50_us", trp_bench_quantile(us, n, 0.5));
    trp_bench_print("p99_us", trp_bench_quantile(us, n, 0.99));
    free(us);
}

static int polled(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        fail("fcntl");
    return fd;
}

int main(int argc, char **argv)
{
    bool tasks = argc == 3 && strcmp(argv[1], "tasks") == 0;
    if (!tasks && !(argc == 3 && strcmp(argv[1], "pings") == 0)) {
        fprintf(stderr, "usage: tcp tasks|pings N\n");
        return 2;
    }
    uint32_t n = trp_bench_number("N", argv[2], 100000000);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) < 0)
        fail("listen");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    int fd = pid == 0 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
                      : accept(listener, NULL, NULL);
    if (fd < 0 || (pid == 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0))
        fail("connect");
    if (pid == 0)
        answer(polled(fd), tasks);
    if (tasks)
        serve_tasks(polled(fd), n);
    else
        serve_pings(polled(fd), n);
    close(fd);
    return waitpid(pid, NULL, 0) == pid ? 0 : 4;
}
