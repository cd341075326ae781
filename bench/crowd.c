/*
 * The least that a crowd could be: processes that come, say a line each, and go.
 *
 *     crowd N     starts itself N times by posix_spawn; each connects over TCP on
 *                 loopback, says a line and ends (seconds, until all are reaped)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static void fail(const char *what)
{
    fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
    exit(4);
}

static int say(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        send(fd, "here\n", 5, MSG_NOSIGNAL) != 5)
        fail("connect");
    return 0;
}

static int listen_here(uint32_t n, uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(fd, (int)n) < 0 || getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        fail("listen");
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void hear_one(int listener)
{
    char line[8];
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || recv(fd, line, sizeof line, MSG_WAITALL) != 5)
        fail("accept");
    close(fd);
}

static void be_crowded(uint32_t n, char *self)
{
    char word[] = "say", text[8];
    uint16_t port;
    int listener = listen_here(n, &port);
    char *const words[] = {self, word, text, NULL};
    snprintf(text, sizeof text, "%u", port);
    int64_t begin = trp_bench_now();
    for (uint32_t i = 0; i < n; i++) {
        errno = posix_spawn(&(pid_t){0}, self, NULL, NULL, words, environ);
        if (errno)
            fail(self);
    }
    for (uint32_t i = 0; i < n; i++)
        hear_one(listener);
    for (uint32_t i = 0; i < n; i++)
        if (wait(NULL) < 0)
            fail("wait");
    trp_bench_print("seconds", (double)(trp_bench_now() - begin) / 1e9);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "say") == 0)
        return say((uint16_t)trp_bench_number("PORT", argv[2], 65535));
    if (argc != 2) {
        fprintf(stderr, "usage: crowd N\n");
        return 2;
    }
    be_crowded(trp_bench_number("N", argv[1], 100000), argv[0]);
    return 0;
}
