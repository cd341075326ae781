/*
 * The baselines that need no MPI.
 *
 *     bare exec N SLOTS PROGRAM   starts PROGRAM N times, SLOTS at once, with
 *                                 posix_spawn and waitpid and nothing else (per_second)
 *     bare wake N                 two sleeping processes and a socket pair between
 *                                 them: after 1 s of silence one byte there and one
 *                                 back, N times (p50_us)
 *     bare line N PROGRAM         posix_spawn of PROGRAM to the first byte that it
 *                                 prints, N times (p50_ms)
 *     bare time PROGRAM ARG…      runs it (seconds), and the most memory that it, or a
 *                                 process below it, had resident (peak_kib)
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static void fail(const char *what)
{
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(4);
}

static void start_words(char *const *words)
{
    pid_t pid;
    errno = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
    if (errno)
        fail(words[0]);
}

static void start(char *program)
{
    char *const words[] = {program, NULL};
    start_words(words);
}

static void wait_one(void)
{
    int status;
    if (waitpid(-1, &status, 0) < 0)
        fail("waitpid");
    if (status != 0) {
        fprintf(stderr, "bare: a command failed\n");
        exit(1);
    }
}

static void run_commands(uint32_t n, uint32_t slots, char *program)
{
    int64_t begin = trp_bench_now();
    for (uint32_t i = 0; i < n; i++) {
        if (i >= slots)
            wait_one();
        start(program);
    }
    for (uint32_t i = 0; i < n && i < slots; i++)
        wait_one();
    trp_bench_print("per_second", n * 1e9 / (double)(trp_bench_now() - begin));
}

static void echo(int fd)
{
    char byte;
    while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
        ;
    _exit(0);
}

static void run_wakes(uint32_t n)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        close(fds[0]);
        echo(fds[1]);
    }
    close(fds[1]);
    double *us = trp_bench_alloc(n, sizeof *us);
    char byte = 0;
    for (uint32_t i = 0; i < n; i++) {
        trp_bench_sleep(1000000000);
        int64_t begin = trp_bench_now();
        if (write(fds[0], &byte, 1) != 1 || read(fds[0], &byte, 1) != 1)
            fail("socket");
        us[i] = (double)(trp_bench_now() - begin) / 1e3;
    }
    trp_bench_print("p50_us", trp_bench_quantile(us, n, 0.5));
    free(us);
    close(fds[0]);
    if (waitpid(pid, NULL, 0) < 0)
        fail("waitpid");
}

static void run_lines(uint32_t n, char *program)
{
    double *ms = trp_bench_alloc(n, sizeof *ms);
    char *const words[] = {program, NULL};
    for (uint32_t i = 0; i < n; i++) {
        posix_spawn_file_actions_t actions;
        char byte;
        int fds[2];
        pid_t pid;
        int64_t begin = trp_bench_now();
        if (pipe(fds) < 0)
            fail("pipe");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
        posix_spawn_file_actions_addclose(&actions, fds[0]);
        errno = posix_spawn(&pid, program, &actions, NULL, words, environ);
        close(fds[1]);
        if (errno || read(fds[0], &byte, 1) != 1)
            fail(program);
        ms[i] = (double)(trp_bench_now() - begin) / 1e6;
        close(fds[0]);
        posix_spawn_file_actions_destroy(&actions);
        wait_one();
    }
    trp_bench_print("p50_ms", trp_bench_quantile(ms, n, 0.5));
    free(ms);
}

static void run_timed(char *const *words)
{
    struct rusage usage;
    int64_t begin = trp_bench_now();
    start_words(words);
    wait_one();
    trp_bench_print("seconds", (double)(trp_bench_now() - begin) / 1e9);
    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        fail("getrusage");
    trp_bench_print("peak_kib", (double)usage.ru_maxrss);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "exec") == 0) {
        run_commands(trp_bench_number("N", argv[2], 100000000),
                     trp_bench_number("SLOTS", argv[3], 4096), argv[4]);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "wake") == 0) {
        run_wakes(trp_bench_number("N", argv[2], 1000));
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "line") == 0) {
        run_lines(trp_bench_number("N", argv[2], 1000), argv[3]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "time") == 0) {
        run_timed(argv + 2);
        return 0;
    }
    fprintf(stderr, "usage: bare exec N SLOTS PROGRAM\n"
                    "       bare line N PROGRAM\n"
                    "       bare time PROGRAM ARG…\n"
                    "       bare wake N\n");
    return 2;
}
