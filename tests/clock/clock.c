/*
 * A clock that a test moves. A build with TROUPE_TEST_CLOCK links this file into every
 * program. It defines the functions of libc that tell the time or wait for a time, in front
 * of libc's: the symbols of a program come first, also for the shared libraries that it uses
 * and before the interceptors of a sanitizer. Without TROUPE_CLOCK in the environment each
 * function only calls the next of its name. With TROUPE_CLOCK=FILE the process maps FILE
 * (page.h), adds its offset to CLOCK_MONOTONIC and CLOCK_REALTIME, and has a slot in it for
 * each thread that sleeps until a deadline.
 *
 * `advance 6s` (advance.c) holds the clock, moves it by exactly that, and lets it go on. It
 * goes from deadline to deadline: a step reaches the next moment for which a thread sleeps,
 * but is 100 ms at least, and the next step begins when all is still. Heartbeats, time limits
 * and answers come in the order in which they would have come, however busy the machine is;
 * those that are due within 100 ms of each other come together. Between two calls the clock
 * runs as the real one does, unless `advance --hold` stops it: then it moves by `advance`
 * alone, until `advance --release`, and how long anything really takes plays no part. A held
 * clock creeps by a microsecond each time it is read, so that who spins for a while ends.
 *
 * All is still when every thread of every process in the file sleeps in the kernel, those
 * that sleep until a deadline do so by the newest time, and no thread has run between two
 * such looks. A message on its way between two of these processes is seen by that: who sent
 * it has run, and who gets it can run from the moment of the send on, so that /proc shows it
 * as running even before it has a core. A process between them that does not have this
 * clock, such as a relay, is named to `advance` by its pid and has to sleep too. Nothing is
 * known of other programs (the commands of tasks, srun, mpirun): what they do takes real
 * time, and a test waits for its effect before it moves the clock. Time limits for what
 * takes real time run out early while the clock moves, so nothing of that kind may be under
 * way then.
 *
 * A sleeper is woken by SIGURG, which an unready process ignores; the wait is gone into
 * again, and its caller sees nothing of it. pthread_cond_timedwait cannot be woken in that
 * way, so it waits in slices of 10 ms. sigtimedwait, SO_RCVTIMEO and times of files stay on
 * the real clock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "page.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define SLICE (10 * MS)
#define CREEP 1000

/* The function of the same name that comes after this one. */
#define NEXT(name)                                                                     \
    static __typeof__(name) *next_##name;                                              \
    next_##name =                                                                      \
        next_##name ? next_##name : (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define EXPORTED __attribute__((visibility("default")))

static struct trp_clock_page *page; /* NULL: the real clock */
static __thread struct trp_clock_slot *own;
static __thread volatile sig_atomic_t woken;
static bool handles; /* this process has the handler */

/* ---- the file ---- */

_Noreturn static void give_up(const char *why)
{
    fprintf(stderr, "TROUPE_CLOCK: %s\n", why);
    abort();
}

static void on_urgent(int sig)
{
    (void)sig;
    woken = 1;
}

static bool is_dead(pid_t pid, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
    return access(path, F_OK) < 0;
}

/* Takes the slot that `holder` has for this thread. */
static bool take(struct trp_clock_slot *s, int32_t holder)
{
    struct stat program = {0};
    if (!atomic_compare_exchange_strong(&s->tid, &holder, -1))
        return false;
    if (stat("/proc/self/exe", &program) == 0)
        s->program = program.st_ino;
    s->pid = getpid();
    s->state = TRP_CLOCK_AWAKE;
    s->tid = gettid();
    own = s;
    return true;
}

/* Its own slot of before an exec, a free one, or that of a thread that has ended. */
static bool claim(void)
{
    struct trp_clock_slot *slots = page->slots;
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        if (slots[i].tid == gettid() && take(&slots[i], gettid()))
            return true;
    }
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        if (!slots[i].tid && take(&slots[i], 0))
            return true;
    }
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        int32_t tid = slots[i].tid;
        if (tid > 0 && is_dead(slots[i].pid, tid) && take(&slots[i], tid))
            return true;
    }
    return false;
}

static void enter(void)
{
    if (!claim())
        give_up("no slot is free");
    if (!handles) /* also after a fork whose child has forgotten all handlers */
        sigaction(SIGURG,
                  &(struct sigaction){.sa_handler = on_urgent, .sa_flags = SA_RESTART},
                  NULL);
    handles = true;
}

static void on_fork(void)
{
    own = NULL;
    handles = false;
}

__attribute__((constructor)) static void map(void)
{
    const char *file = getenv("TROUPE_CLOCK");
    if (!file || !*file)
        return;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    void *at =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        give_up("the file cannot be mapped");
    close(fd);
    page = at;
    pthread_atfork(NULL, NULL, on_fork);
    enter();
}

/* ---- what time it is ---- */

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec > INT64_MAX / SECOND / 2 ? INT64_MAX / 2
                                              : t->tv_sec * SECOND + t->tv_nsec;
}

static bool is_moved(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
           clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
}

static int64_t real_now(clockid_t clock)
{
    NEXT(clock_gettime);
    struct timespec t;
    next_clock_gettime(clock, &t);
    return ns_of(&t);
}

/* Also when it has just been set: then this thread is woken. */
static bool is_held(void)
{
    return page->settings[page->moves % 2].held;
}

static int64_t now(clockid_t clock)
{
    bool of_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t ns;
    uint32_t move;
    do {
        move = page->moves;
        const struct trp_clock_setting *s = &page->settings[move % 2];
        if (s->held)
            ns = (of_day ? s->held_real : s->held_monotonic) + (page->crept += CREEP);
        else
            ns = real_now(clock) + page->crept;
        ns += s->offset;
    } while (move != page->moves);
    return ns;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *t)
{
    NEXT(clock_gettime);
    if (!page || !is_moved(clock))
        return next_clock_gettime(clock, t);
    *t = timespec_of(now(clock));
    return 0;
}

EXPORTED time_t time(time_t *ret)
{
    NEXT(time);
    if (!page)
        return next_time(ret);
    time_t t = now(CLOCK_REALTIME) / SECOND;
    if (ret)
        *ret = t;
    return t;
}

EXPORTED int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    NEXT(gettimeofday);
    if (!page)
        return next_gettimeofday(t, zone);
    int64_t ns = now(CLOCK_REALTIME);
    *t = (struct timeval){.tv_sec = ns / SECOND, .tv_usec = ns % SECOND / 1000};
    return 0;
}

/* ---- waits ---- */

/* Says until when this thread sleeps; how long that really is from now on, INT64_MAX while
 * the clock is held. */
static int64_t lie_down(int64_t deadline, enum trp_clock_state state)
{
    if (!own)
        enter();
    own->seen = page->moves;
    own->deadline = deadline;
    own->state = (int32_t)state;
    int64_t left = deadline - now(CLOCK_MONOTONIC);
    return left <= 0 ? 0 : is_held() ? INT64_MAX : left;
}

static void get_up(void)
{
    own->state = TRP_CLOCK_AWAKE;
    own->turns++;
}

/* What is waited for: descriptors of poll, or an epoll. */
struct wait {
    struct pollfd *fds;
    nfds_t nfds;
    int epoll;
    struct epoll_event *events;
    int nevents;
};

static int wait_once(const struct wait *w, int64_t left, const sigset_t *mask)
{
    NEXT(ppoll);
    NEXT(epoll_pwait);
    if (w->events) {
        int64_t ms = left / MS + (left % MS > 0);
        return next_epoll_pwait(w->epoll, w->events, w->nevents,
                                ms < INT_MAX ? (int)ms : INT_MAX, mask);
    }
    struct timespec t = timespec_of(left);
    return next_ppoll(w->fds, w->nfds, &t, mask);
}

/* At most for `ns`; `mask` as ppoll has it. */
static int wait_for(const struct wait *w, int64_t ns, const sigset_t *mask)
{
    sigset_t open;
    if (mask)
        open = *mask;
    else
        pthread_sigmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGURG);
    int64_t deadline = ns < INT64_MAX / 2 ? now(CLOCK_MONOTONIC) + ns : ns;
    int n;
    do {
        woken = 0;
        n = wait_once(w, lie_down(deadline, TRP_CLOCK_ASLEEP), &open);
    } while ((n < 0 && errno == EINTR && woken) ||
             (n == 0 && now(CLOCK_MONOTONIC) < deadline));
    int error = errno;
    get_up();
    errno = error;
    return n;
}

EXPORTED int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                   const sigset_t *mask)
{
    NEXT(ppoll);
    if (!page || !timeout || ns_of(timeout) <= 0)
        return next_ppoll(fds, n, timeout, mask);
    return wait_for(&(struct wait){.fds = fds, .nfds = n}, ns_of(timeout), mask);
}

EXPORTED int poll(struct pollfd *fds, nfds_t n, int ms)
{
    NEXT(poll);
    if (!page || ms <= 0)
        return next_poll(fds, n, ms);
    return wait_for(&(struct wait){.fds = fds, .nfds = n}, ms * MS, NULL);
}

EXPORTED int epoll_pwait(int epoll, struct epoll_event *events, int n, int ms,
                         const sigset_t *mask)
{
    NEXT(epoll_pwait);
    if (!page || ms <= 0)
        return next_epoll_pwait(epoll, events, n, ms, mask);
    struct wait w = {.epoll = epoll, .events = events, .nevents = n};
    return wait_for(&w, ms * MS, mask);
}

EXPORTED int epoll_wait(int epoll, struct epoll_event *events, int n, int ms)
{
    NEXT(epoll_wait);
    if (!page || ms <= 0)
        return next_epoll_wait(epoll, events, n, ms);
    return epoll_pwait(epoll, events, n, ms, NULL);
}

/* An errno. */
static int nap(int64_t ns, struct timespec *ret_left)
{
    int64_t deadline = now(CLOCK_MONOTONIC) + ns;
    if (ns <= 0 || wait_for(&(struct wait){.nfds = 0}, ns, NULL) == 0)
        return 0;
    int error = errno;
    int64_t left = deadline - now(CLOCK_MONOTONIC);
    if (ret_left)
        *ret_left = timespec_of(left > 0 ? left : 0);
    return error;
}

EXPORTED int nanosleep(const struct timespec *t, struct timespec *ret_left)
{
    NEXT(nanosleep);
    if (!page)
        return next_nanosleep(t, ret_left);
    int error = nap(ns_of(t), ret_left);
    errno = error ? error : errno;
    return error ? -1 : 0;
}

EXPORTED int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
                             struct timespec *ret_left)
{
    NEXT(clock_nanosleep);
    if (!page || !is_moved(clock))
        return next_clock_nanosleep(clock, flags, t, ret_left);
    if (flags & TIMER_ABSTIME)
        return nap(ns_of(t) - now(clock), NULL);
    return nap(ns_of(t), ret_left);
}

EXPORTED int usleep(useconds_t us)
{
    NEXT(usleep);
    if (!page)
        return next_usleep(us);
    struct timespec t = timespec_of(us * INT64_C(1000));
    return nanosleep(&t, NULL);
}

EXPORTED unsigned sleep(unsigned seconds)
{
    NEXT(sleep);
    if (!page)
        return next_sleep(seconds);
    struct timespec t = timespec_of(seconds * SECOND), left = {0};
    return nanosleep(&t, &left) < 0 ? (unsigned)(left.tv_sec + (left.tv_nsec > 0)) : 0;
}

/* libc has an older one of that name, which RTLD_NEXT alone would find. */
static int (*next_timedwait(void))(pthread_cond_t *, pthread_mutex_t *,
                                   const struct timespec *)
{
    static __typeof__(pthread_cond_timedwait) *next;
    static const char *const versions[] = {"GLIBC_2.3.2", "GLIBC_2.17"};
    for (int i = 0; i < 2 && !next; i++)
        next =
            (__typeof__(next))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", versions[i]);
    return next;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                    const struct timespec *until)
{
    if (!page)
        return next_timedwait()(cond, lock, until);
    /* Which clock the condition has is told by the deadline: a machine has not been up for
     * thirty years. */
    clockid_t clock = until->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    int64_t deadline = ns_of(until) - now(clock) + now(CLOCK_MONOTONIC);
    int code;
    do {
        int64_t left = lie_down(deadline, TRP_CLOCK_DOZING);
        struct timespec end =
            timespec_of(real_now(clock) + (left < SLICE ? left : SLICE));
        code = next_timedwait()(cond, lock, &end);
    } while (code == ETIMEDOUT && now(CLOCK_MONOTONIC) < deadline);
    get_up();
    return code;
}
