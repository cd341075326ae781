/* The clock that tests move (tests/clock/clock.c). */
#include <glib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "unit.h"

#define HOUR INT64_C(3600000000000)

static char *mover;

static void advance(const char *by)
{
    char time_of[16], *argv[] = {mover, time_of, NULL};
    int status;
    g_strlcpy(time_of, by, sizeof time_of);
    g_assert_true(
        g_spawn_sync(NULL, argv, NULL, 0, NULL, NULL, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
}

/* ---- ways to wait for an hour ---- */

static void by_poll(void)
{
    g_assert_cmpint(poll(NULL, 0, 3600000), ==, 0);
}

static void by_ppoll(void)
{
    struct timespec t = {.tv_sec = 3600};
    g_assert_cmpint(ppoll(NULL, 0, &t, NULL), ==, 0);
}

static void by_epoll(void)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    g_assert_cmpint(epoll_wait(fd, &event, 1, 3600000), ==, 0);
    close(fd);
}

static void by_nanosleep(void)
{
    struct timespec t = {.tv_sec = 3600};
    g_assert_cmpint(nanosleep(&t, NULL), ==, 0);
}

static void until_a_moment(void)
{
    struct timespec t = trp_clock_after(HOUR);
    g_assert_cmpint(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), ==, 0);
}

static void by_sleep(void)
{
    g_assert_cmpint(sleep(3600), ==, 0);
}

static void on_a_condition(clockid_t clock)
{
    pthread_condattr_t attributes;
    pthread_cond_t cond;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_init(&cond, &attributes);
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_sec += 3600;
    pthread_mutex_lock(&lock);
    g_assert_cmpint(pthread_cond_timedwait(&cond, &lock, &until), ==, ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

static void on_a_monotonic_condition(void)
{
    on_a_condition(CLOCK_MONOTONIC);
}

static void on_a_condition_of_day(void)
{
    on_a_condition(CLOCK_REALTIME);
}

static void (*const ways[])(void) = {by_poll,
                                     by_ppoll,
                                     by_epoll,
                                     by_nanosleep,
                                     until_a_moment,
                                     by_sleep,
                                     on_a_monotonic_condition,
                                     on_a_condition_of_day};

struct sleeper {
    void (*way)(void);
    int begun, ended; /* atomic */
    int64_t took;
};

static void *sleeps(void *arg)
{
    struct sleeper *s = arg;
    int64_t begin = trp_clock_ns();
    g_atomic_int_set(&s->begun, 1);
    s->way();
    s->took = trp_clock_ns() - begin;
    g_atomic_int_set(&s->ended, 1);
    return NULL;
}

TEST("every wait ends in its time and not before")
{
    struct sleeper s[G_N_ELEMENTS(ways)] = {0};
    pthread_t threads[G_N_ELEMENTS(ways)];
    time_t began = time(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        s[i].way = ways[i];
        g_assert_cmpint(pthread_create(&threads[i], NULL, sleeps, &s[i]), ==, 0);
    }
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        while (!g_atomic_int_get(&s[i].begun))
            sched_yield();
    }
    advance("30m");
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++)
        g_assert_false(g_atomic_int_get(&s[i].ended));
    advance("30m");
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        pthread_join(threads[i], NULL);
        g_assert_cmpint(s[i].took, >=, HOUR - 1000000);
    }
    g_assert_cmpint(time(NULL) - began, >=, 3600);
}

static int64_t real_ns(void)
{
    return trp_clock_read(CLOCK_BOOTTIME); /* nobody moves it */
}

TEST("a held clock moves by advance alone")
{
    advance("--hold");
    int64_t begin = trp_clock_ns(), real = real_ns();
    while (real_ns() < real + 20000000)
        sched_yield();
    g_assert_cmpint(trp_clock_ns() - begin, <, 20000000);
    advance("100s");
    int64_t passed = trp_clock_ns() - begin;
    g_assert_cmpint(passed, >=, INT64_C(100000000000));
    g_assert_cmpint(passed, <, INT64_C(100020000000));
    advance("--release");
    g_assert_cmpint(trp_clock_ns() - begin, >=, passed);
}

/* ---- two processes ---- */

/* Says something once a second. */
static _Noreturn void beat(int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        sleep(1);
        if (write(fd, "x", 1) != 1)
            _exit(0);
    }
}

struct listener {
    int fd, beats, silences; /* atomic */
};

static void *listens(void *arg)
{
    struct listener *l = arg;
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    char c;
    for (;;) {
        if (poll(&p, 1, 1500) == 0)
            g_atomic_int_inc(&l->silences);
        else if (read(l->fd, &c, 1) == 1)
            g_atomic_int_inc(&l->beats);
        else
            return NULL;
    }
}

TEST("a beat of another process comes before a time limit beyond it")
{
    int fds[2];
    g_assert_cmpint(pipe(fds), ==, 0);
    pid_t pid = fork();
    if (pid == 0)
        beat(fds[1]);
    close(fds[1]);
    struct listener l = {.fd = fds[0]};
    pthread_t thread;
    g_assert_cmpint(pthread_create(&thread, NULL, listens, &l), ==, 0);
    while (!g_atomic_int_get(&l.beats))
        poll(NULL, 0, 10);
    advance("--hold");
    advance("1s");
    l.silences = 0; /* it may have come up slowly */
    advance("5m");
    g_assert_cmpint(g_atomic_int_get(&l.beats), >=, 299);
    g_assert_cmpint(g_atomic_int_get(&l.silences), ==, 0);
    kill(pid, SIGSTOP);
    advance("3s");
    g_assert_cmpint(g_atomic_int_get(&l.silences), >=, 1);
    advance("--release");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    pthread_join(thread, NULL);
    close(fds[0]);
}

/* ---- signals ---- */

static void on_signal(int sig)
{
    (void)sig;
}

static void *signals(void *arg)
{
    pthread_t *thread = arg;
    advance("1m"); /* it has lain down by then */
    pthread_kill(*thread, SIGUSR1);
    return NULL;
}

TEST("another signal ends a wait")
{
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &act, NULL);
    pthread_t self = pthread_self(), thread;
    struct timespec t = {.tv_sec = 3600}, left;
    g_assert_cmpint(pthread_create(&thread, NULL, signals, &self), ==, 0);
    g_assert_cmpint(nanosleep(&t, &left), ==, -1);
    g_assert_cmpint(errno, ==, EINTR);
    g_assert_cmpint(left.tv_sec, <=, 3600 - 60);
    pthread_join(thread, NULL);
}

/* The clock is taken from the environment when a program begins. */
static void begin_with_clock(char **argv)
{
    char *file = g_build_filename(g_get_tmp_dir(), "test-clock.XXXXXX", NULL);
    close(g_mkstemp(file));
    g_setenv("TROUPE_CLOCK", file, TRUE);
    advance("0s");
    execv("/proc/self/exe", argv);
    g_assert_not_reached();
}

int main(int argc, char **argv)
{
    mover = g_build_filename(g_getenv("TROUPE_BUILD"), "tests", "advance", NULL);
    if (!g_getenv("TROUPE_CLOCK"))
        begin_with_clock(argv);
    int status = unit_run(argc, argv);
    unlink(g_getenv("TROUPE_CLOCK"));
    return status;
}
