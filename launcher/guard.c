/*
 * States: the server starts → the driver runs → lingering → ending.
 *
 * Lingering: after the driver's mpirun has ended in order nothing is left and this is
 * over at once. When the driver was killed, its executors see its socket close,
 * end their tasks, remove their scratch folders and go, and then troupe-slurm ends what
 * they ran in; they get LINGER_MS for it, and troupe-slurm as long as it takes. When
 * `troupe` is gone, the driver sees that itself and cancels its run; it gets ORPHAN_MS.
 * Ending kills whatever descends from here until there is nothing.
 *
 * A guard that adopts a driver waits for `troupe` to tell it the end, or to be gone. What
 * is left of the driver then descends from neither: all that is below the driver is
 * stopped, so that nothing is started any more, and killed.
 *
 * ompi-server dies with the guard (PR_SET_PDEATHSIG), which is why the guard, not
 * `troupe`, starts it. Rejected: looking for leftovers by their environment or by
 * recorded pids (a process can change the one, the kernel reuses the other).
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "events/run_folder.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/processes.h"
#include "os/title.h"
#include "os/tree.h"

enum {
    SERVER_MS = 10000, /* for ompi-server to write its URI */
    LINGER_MS = 4000,
    ORPHAN_MS = 6000,
    END_MS = 3000,
    LOOK_MS = 10,
    TELL_MS = 2000,
    SPARED = 64,
};

struct guard {
    const struct trp_guard_config *config;
    int socket, signals;
    pid_t server, driver; /* 0: not there. An adopted driver is no child of ours */
    bool told, orphan;    /* end now; `troupe` is gone */
};

static void pause_ms(int ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000L};
    nanosleep(&t, NULL);
}

static void report(struct guard *g, enum trp_guard_event event, int status,
                   const char *text)
{
    struct trp_guard_report r = {.event = (uint8_t)event, .status = status};
    snprintf(r.text, sizeof r.text, "%s", text);
    send(g->socket, &r, sizeof r, MSG_NOSIGNAL);
}

void trp_guard_end_descendants(const pid_t *spare, uint32_t nspare, const char *helper,
                               int limit_ms)
{
    int64_t end = trp_clock_ms() + limit_ms;
    pid_t all[SPARED + 1];
    uint32_t n = nspare < SPARED ? nspare : SPARED;
    for (uint32_t i = 0; i < n; i++)
        all[i] = spare[i];
    pid_t found = helper ? trp_descendants_find(getpid(), helper) : 0;
    if (found)
        all[n++] = found;
    do {
        uint32_t left = trp_descendants_signal(getpid(), all, n, SIGKILL);
        if (!n) {
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        }
        if (!left)
            return;
        pause_ms(LOOK_MS);
    } while (trp_clock_ms() < end);
}

void trp_guard_await_helper(const char *helper, void (*tell)(void *context),
                            void *context)
{
    int64_t late = trp_clock_ms() + TELL_MS;
    while (helper && trp_descendants_find(getpid(), helper)) {
        if (trp_clock_ms() >= late) {
            tell(context);
            late = INT64_MAX;
        }
        pause_ms(5 * LOOK_MS);
    }
}

/* In the child: stdio, session, signals; then the program. `guard` is whom it dies with;
 * 0: nobody. */
static void become(char *const *argv, char *const *env, const char *out,
                   const char *errors, pid_t guard)
{
    sigset_t none;
    if (guard)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (guard && getppid() != guard)
        _exit(1); /* it had died before */
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd1 = trp_held_open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int fd2 = trp_held_open(errors, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (in < 0 || fd1 < 0 || fd2 < 0 || dup2(in, 0) < 0 || dup2(fd1, 1) < 0 ||
        dup2(fd2, 2) < 0)
        _exit(126);
    setsid();
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(argv[0], argv, env);
    dprintf(2, "troupe: cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static pid_t start_program(struct guard *g, char *const *argv, char *const *env,
                           const char *log, bool dies_with_us, const char *what)
{
    char out[4200], errors[4200];
    snprintf(out, sizeof out, "%s/state/%s.out", g->config->run_dir, log);
    snprintf(errors, sizeof errors, "%s/state/%s.err", g->config->run_dir, log);
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become(argv, env, out, errors, dies_with_us ? self : 0);
    if (pid < 0) {
        char text[256];
        snprintf(text, sizeof text, "cannot start %s: %m", what);
        report(g, TRP_GUARD_FAILED, 0, text);
        return 0;
    }
    trp_run_folder_pid(g->config->run_dir, pid, what);
    return pid;
}

/* Reaps; tells the end of the driver. */
static void reap(struct guard *g)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == g->server)
            g->server = 0;
        if (pid != g->driver)
            continue;
        g->driver = 0;
        report(g, TRP_GUARD_DRIVER, status, "");
    }
    struct pollfd adopted = {.fd = g->config->adopted, .events = POLLIN};
    if (g->orphan && poll(&adopted, 1, 0) > 0)
        g->driver = 0;
}

/* Waits for something to happen, at most `ms` (-1: for ever). */
static void wait_ms(struct guard *g, int ms)
{
    struct signalfd_siginfo info;
    struct pollfd v[] = {
        {.fd = g->signals,                          .events = POLLIN},
        {.fd = g->orphan ? -1 : g->socket,          .events = POLLIN},
        {.fd = g->orphan ? g->config->adopted : -1, .events = POLLIN}
    };
    if (poll(v, 3, ms) <= 0)
        return;
    while (read(g->signals, &info, sizeof info) == sizeof info)
        ;
    char byte;
    if (v[1].revents) {
        ssize_t n = recv(g->socket, &byte, 1, MSG_DONTWAIT);
        if (n > 0)
            g->told = true;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            g->orphan = true;
    }
    reap(g);
}

static bool has_uri(const char *file)
{
    char text[512];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 && memchr(text, '\n', (size_t)n);
}

/* False when it does not come up (told), or the run is to end. */
static bool start_server(struct guard *g)
{
    char program[] = "ompi-server", stay[] = "--no-daemonize", write_uri[] = "-r";
    char *const argv[] = {program, stay, write_uri, g->config->ompi_server, NULL};
    int64_t end = trp_clock_ms() + SERVER_MS;
    if (!g->config->ompi_server)
        return true;
    unlink(g->config->ompi_server); /* of a guard that was killed */
    g->server = start_program(g, argv, g->config->server_env, "ompi-server", true,
                              "ompi-server");
    while (g->server && !g->told && !g->orphan) {
        if (has_uri(g->config->ompi_server))
            return true;
        if (trp_clock_ms() > end) {
            report(
                g, TRP_GUARD_SERVER, 0,
                "ompi-server did not come up within 10 s; see state/ompi-server.err");
            return false;
        }
        wait_ms(g, LOOK_MS);
    }
    if (!g->server && !g->told && !g->orphan)
        report(g, TRP_GUARD_SERVER, 0,
               "ompi-server did not start; see state/ompi-server.err");
    return false;
}

static void watch_driver(struct guard *g)
{
    bool told = g->config->adopts; /* that went with its guard */
    while (g->driver && !g->told && !g->orphan) {
        wait_ms(g, -1);
        if (g->told || g->orphan || !g->driver)
            continue;
        if (g->config->ompi_server && !g->server && !told) {
            told = true; /* `troupe` tells the driver, which gives everything back */
            report(g, TRP_GUARD_SERVER, 0,
                   "ompi-server died; see state/ompi-server.err");
        }
    }
    int64_t end = trp_clock_ms() + ORPHAN_MS;
    while (g->driver && g->orphan && !g->told && trp_clock_ms() < end)
        wait_ms(g, LOOK_MS);
}

/* After the driver: what descends from it goes by itself. A driver that is still there
 * by now is ended by force, and all with it. */
static void linger(struct guard *g)
{
    int64_t end = trp_clock_ms() + LINGER_MS;
    pid_t spare[] = {g->server};
    if (g->driver)
        return;
    while (trp_clock_ms() < end &&
           trp_descendants_signal(getpid(), spare, g->server ? 1 : 0, 0) > 0)
        wait_ms(g, 2 * LOOK_MS);
}

void trp_guard_remove_scratch(const char *run_dir)
{
    char path[4300];
    size_t all = SIZE_MAX;
    snprintf(path, sizeof path, "%s/state/scratch", run_dir);
    trp_tree_remove(AT_FDCWD, path, &all);
}

static void signal_adopted(const struct guard *g, int signal)
{
    syscall(SYS_pidfd_send_signal, g->config->adopted, signal, NULL, 0);
}

/* What an adopted driver has below it, when `troupe` is gone and it does not end. */
static void end_adopted(struct guard *g)
{
    const char *helper = g->config->helper;
    pid_t spare = helper ? trp_descendants_find(g->driver, helper) : 0;
    uint32_t before = UINT32_MAX, n;
    signal_adopted(g, SIGSTOP);
    while ((n = trp_descendants_signal(g->driver, &spare, spare != 0, SIGSTOP)) !=
           before)
        before = n;
    trp_descendants_signal(g->driver, &spare, spare != 0, SIGKILL);
    signal_adopted(g, SIGKILL);
    g->driver = 0;
}

static void tell_wait(void *context)
{
    report(context, TRP_GUARD_WAITS, 0, "");
}

static void end_all(struct guard *g)
{
    reap(g); /* the number of a driver that is gone may be another's */
    if (g->config->adopts && g->orphan && g->driver)
        end_adopted(g);
    trp_guard_end_descendants(NULL, 0, g->config->helper, END_MS);
    trp_guard_await_helper(g->config->helper, tell_wait, g);
    reap(g);
    trp_private_folder_end_groups(g->config->folder);
    trp_private_folder_remove(g->config->folder);
    trp_guard_remove_scratch(g->config->run_dir);
}

static void guard_main(const struct trp_guard_config *config, int socket)
{
    struct guard g = {.config = config, .socket = socket};
    sigset_t signals;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 0);
    /* A driver must not reach, nor believe in, a `troupe` that is gone. */
    for (size_t i = 0; i < sizeof config->theirs / sizeof *config->theirs; i++) {
        if (config->theirs[i] >= 0)
            close(config->theirs[i]);
    }
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    trp_process_title("troupe: guard %s", config->run_name);
    trp_run_folder_pid(config->run_dir, getpid(), "guard");
    if (!config->adopts) /* of an earlier start that had no end */
        trp_guard_remove_scratch(config->run_dir);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    g.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g.signals < 0) {
        report(&g, TRP_GUARD_FAILED, 0, "no signalfd");
    } else if (config->adopts) {
        g.driver = config->adopts;
        watch_driver(&g);
    } else if (start_server(&g)) {
        g.driver =
            start_program(&g, config->driver, config->driver_env, "driver", false,
                          config->ompi_server ? "mpirun of the driver" : "driver");
        if (g.driver)
            report(&g, TRP_GUARD_STARTED, g.driver, "");
        watch_driver(&g);
        linger(&g);
    }
    end_all(&g);
    _exit(0);
}

int trp_guard_start(const struct trp_guard_config *config, pid_t *ret_pid,
                    int *ret_socket, trp_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "no socket pair: %m");
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        guard_main(config, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return trp_error_set(err, TRP_ESYSTEM, "cannot fork: %m");
    }
    *ret_pid = pid;
    *ret_socket = pair[0];
    return 0;
}
