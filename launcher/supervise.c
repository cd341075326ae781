/*
 * One poll loop over four descriptors: signals (signalfd), the listening control
 * socket, the driver's control connection, the guard.
 *
 * Exit status: what the driver says ('E'). Without it the driver died: 4. Ways out,
 * each with its time limit: after 'E' the driver has EXIT_MS to end, and its mpirun
 * GONE_MS from then on; after a kill (second signal) KILL_MS; after its connection
 * closed without 'E' LOST_MS (its own end, as told by the guard, says more). A driver
 * of a pipeline that does not connect within COME_UP_MS is given up; a user's own
 * program may take its time before trp_init. When ompi-server died before the driver
 * was there it never will be; later the driver goes on over sockets.
 *
 * The end: the guard is told, ends everything and goes. Only when the guard itself was
 * killed are its orphans ours (we are a subreaper too, before it is forked) and ended
 * from here; children that this process had before it became `troupe` (exec from a
 * shell) are spared.
 */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpirun.h"
#include "driver/control.h"
#include "guard.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/processes.h"

enum {
    COME_UP_MS = 60000,
    EXIT_MS = 10000,
    GONE_MS = 2000,
    KILL_MS = 8000,
    LOST_MS = 3000,
    GUARD_END_MS = 12000,
    SWEEP_MS = 3000,
    SPARED = 64,
    CANCELLED = 130,
    PLATFORM = 4,
    WRONG_CALL = 2,
};

struct watch {
    const trp_run_folder *folder;
    const struct trp_supervised *what;
    int signals, listen, control, guard; /* -1: closed */
    pid_t guard_pid;
    int interrupts;    /* SIGINT, SIGTERM, SIGHUP so far */
    bool time_is_up;   /* SIGUSR1 came */
    bool connected;    /* the driver was there */
    bool has_status;   /* 'E' came */
    bool driver_ended; /* the guard has told so, and the status: */
    int driver_status;
    int status;
    uint8_t said[5]; /* of the driver, so far */
    size_t nsaid;
    int64_t deadline; /* INT64_MAX: none */
    bool over;
    char failure[TRP_ERROR_TEXT]; /* the platform failed: why */
};

static void hurry(struct watch *w, int64_t ms)
{
    int64_t at = trp_clock_ms() + ms;
    if (at < w->deadline)
        w->deadline = at;
}

int trp_supervisor_open(struct trp_supervisor *s, bool sockets, trp_error *err)
{
    s->listen_fd = -1;
    if (trp_private_folder("", s->folder, err) < 0)
        return TRP_ESYSTEM;
    trp_private_folders_sweep_aside(s->folder);
    s->ompi_server[0] = '\0';
    if (!sockets)
        snprintf(s->ompi_server, sizeof s->ompi_server, "%s/ompi-server.uri",
                 s->folder);
    s->listen_fd = trp_control_listen(s->control, err);
    if (s->listen_fd < 0) {
        trp_supervisor_close(s);
        return TRP_ESYSTEM;
    }
    return 0;
}

void trp_supervisor_close(struct trp_supervisor *s)
{
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    s->listen_fd = -1;
    if (s->folder[0])
        trp_guard_remove_folder(s->folder);
    s->folder[0] = '\0';
}

/* ---- what happens ---- */

static void send_control(struct watch *w, enum trp_control_byte byte)
{
    if (w->control >= 0)
        trp_control_send(w->control, byte);
}

static void interrupt(struct watch *w, bool at_once)
{
    w->interrupts += at_once ? 2 : 1;
    if (w->interrupts == 1) {
        send_control(w, TRP_CONTROL_STOP);
        return;
    }
    send_control(w, TRP_CONTROL_KILL);
    hurry(w, w->connected ? KILL_MS : 0);
}

/* Slurm ends the job: what is left of it is counted in seconds. */
static bool is_of_slurm(const struct signalfd_siginfo *info)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", info->ssi_pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    return n > 0 && strncmp(name, "slurmstepd", strlen("slurmstepd")) == 0;
}

static void on_signal(struct watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGUSR1) {
            w->time_is_up = true;
            send_control(w, TRP_CONTROL_TIME);
        } else {
            interrupt(w, info.ssi_signo == SIGUSR2 ||
                             (info.ssi_signo == SIGTERM && is_of_slurm(&info)));
        }
    }
}

/* What the user wanted before the driver was there is told now. */
static void on_connection(struct watch *w)
{
    trp_error err;
    int code = trp_control_accept(w->listen, &w->control, &err);
    if (code == TRP_EWAIT)
        return;
    if (code < 0) {
        snprintf(w->failure, sizeof w->failure, "%s", err.text);
        w->over = true;
        return;
    }
    close(w->listen);
    w->listen = -1;
    w->connected = true;
    w->deadline = INT64_MAX;
    if (w->time_is_up)
        send_control(w, TRP_CONTROL_TIME);
    if (w->interrupts)
        send_control(w, TRP_CONTROL_STOP);
}

/* What the driver says of its status: when the run is over, and again when the program
 * then ends with another one than 0. */
static void on_control(struct watch *w)
{
    ssize_t n;
    while ((n = recv(w->control, w->said + w->nsaid, sizeof w->said - w->nsaid, 0)) >
           0) {
        w->nsaid += (size_t)n;
        if (w->nsaid < sizeof w->said)
            continue;
        w->nsaid = 0;
        if (w->said[0] != TRP_CONTROL_EXIT)
            break;
        const uint8_t *b = w->said + 1;
        int32_t status = (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 |
                                   (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
        if (!w->has_status || w->status == 0)
            w->status = status;
        w->has_status = true;
        hurry(w, EXIT_MS);
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(w->control);
    w->control = -1;
    hurry(w, w->has_status ? GONE_MS : LOST_MS);
}

static void on_guard(struct watch *w)
{
    struct trp_guard_report r;
    ssize_t n = recv(w->guard, &r, sizeof r, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof r) {
        if (!w->driver_ended && !w->failure[0])
            snprintf(w->failure, sizeof w->failure, "the guard of the run died");
        close(w->guard);
        w->guard = -1;
    } else if (r.event == TRP_GUARD_SERVER && w->connected) {
        send_control(w, TRP_CONTROL_OMPI_SERVER);
        return;
    } else if (r.event == TRP_GUARD_FAILED || r.event == TRP_GUARD_SERVER) {
        snprintf(w->failure, sizeof w->failure, "%s", r.text);
    } else {
        w->driver_ended = true;
        w->driver_status = r.status;
    }
    if (w->control >= 0)
        on_control(w); /* its last words may be there already */
    w->over = true;
}

static void watch_run(struct watch *w)
{
    while (!w->over) {
        struct pollfd v[] = {
            {.fd = w->signals, .events = POLLIN},
            {.fd = w->listen,  .events = POLLIN},
            {.fd = w->control, .events = POLLIN},
            {.fd = w->guard,   .events = POLLIN}
        };
        int64_t left = w->deadline == INT64_MAX ? -1 : w->deadline - trp_clock_ms();
        if (w->deadline != INT64_MAX && left <= 0)
            return;
        if (poll(v, 4, (int)left) < 0)
            continue;
        if (v[0].revents)
            on_signal(w);
        if (v[1].revents)
            on_connection(w);
        if (v[2].revents && w->control >= 0)
            on_control(w);
        if (v[3].revents)
            on_guard(w);
    }
}

/* ---- the end ---- */

static void tell_wait(void *context)
{
    (void)context;
    fprintf(stderr,
            "troupe: waiting for Slurm to end what this run has asked it for\n");
}

/* The guard ends everything. True when it went by itself. */
static bool end_guard(struct watch *w)
{
    int64_t end = trp_clock_ms() + GUARD_END_MS;
    char byte = 'X';
    send(w->guard, &byte, 1, MSG_NOSIGNAL);
    while (w->guard >= 0) {
        struct pollfd v = {.fd = w->guard, .events = POLLIN};
        struct trp_guard_report r;
        int64_t left = end - trp_clock_ms();
        if (left <= 0)
            break;
        if (poll(&v, 1, (int)left) <= 0)
            continue;
        ssize_t n = recv(w->guard, &r, sizeof r, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            close(w->guard);
            w->guard = -1;
        } else if (n == sizeof r && r.event == TRP_GUARD_DRIVER) {
            w->driver_ended = true;
            w->driver_status = r.status;
        } else if (n == sizeof r && r.event == TRP_GUARD_WAITS) {
            tell_wait(NULL);
            end = INT64_MAX;
        }
    }
    bool in_order = w->guard < 0;
    if (!in_order)
        kill(w->guard_pid, SIGKILL);
    int status = 1;
    while (waitpid(w->guard_pid, &status, 0) < 0 && errno == EINTR)
        ;
    return in_order && status == 0;
}

/* A program that ended before trp_init has spoken into files: passes that on, up to
 * mpirun's own page about an exit status, which begins with a line of dashes. */
static void relay(const struct watch *w, const char *name, FILE *to)
{
    char path[4200], *line = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof path, "%s/state/%s", w->folder->path, name);
    FILE *f = trp_held_fopen(path, "r");
    if (!f)
        return;
    for (ssize_t n; (n = getline(&line, &capacity, f)) > 0;) {
        if (n > 60 && strspn(line, "-") == (size_t)n - 1)
            break;
        fwrite(line, 1, (size_t)n, to);
    }
    free(line);
    fclose(f);
}

/* mpirun passes a signal on as 128 + its number. */
static void describe_status(int status, char *text, size_t size)
{
    int signal = WIFSIGNALED(status)         ? WTERMSIG(status)
                 : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                             : 0;
    const char *name = signal ? sigabbrev_np(signal) : NULL;
    if (name)
        snprintf(text, size, "killed by SIG%s (%d)", name, signal);
    else
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static bool was_asked_for_help(const char *const *argv)
{
    for (size_t i = 1; argv[i]; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--version"))
            return true;
    return false;
}

/* A program that ended before it was a driver. Where it has said why, at trp_init, that
 * stands above. */
static int early_end(const struct watch *w, const char *how)
{
    relay(w, "driver.out", stdout);
    relay(w, "driver.err", stderr);
    if (WIFEXITED(w->driver_status) && WEXITSTATUS(w->driver_status) == 0) {
        if (was_asked_for_help(w->what->argv))
            return 0;
        fprintf(stderr,
                "troupe: %s ended and never came through trp_init; `troupe run --` is "
                "for programs that use troupe.h\n",
                w->what->argv[0]);
        return WRONG_CALL;
    }
    fprintf(stderr, "troupe: %s ended before trp_init: %s; see %s/state/driver.err\n",
            w->what->argv[0], how, w->folder->shown);
    return WIFEXITED(w->driver_status) && WEXITSTATUS(w->driver_status) < 128
               ? 1
               : PLATFORM;
}

/* The exit status of a run whose driver did not say one. */
static int status_without_word(const struct watch *w)
{
    char how[64] = "it did not end in time";
    if (w->driver_ended)
        describe_status(w->driver_status, how, sizeof how);
    if (w->failure[0]) {
        fprintf(stderr, "troupe: %s (run %s)\n", w->failure, w->folder->shown);
        return PLATFORM;
    }
    if (w->interrupts) {
        fprintf(stderr, "troupe: run %s was cancelled\n", w->folder->shown);
        return CANCELLED;
    }
    if (w->what->is_program && !w->connected && w->driver_ended)
        return early_end(w, how);
    if (!w->connected && !w->driver_ended)
        fprintf(stderr,
                "troupe: the driver did not come up within %d s; see "
                "%s/state/driver.err\n",
                COME_UP_MS / 1000, w->folder->shown);
    else
        fprintf(stderr,
                "troupe: the driver died (%s); events and logs are in %s, its last "
                "words in %s/state/driver.err\n",
                how, w->folder->shown, w->folder->shown);
    return PLATFORM;
}

static int start_guard(struct watch *w, struct trp_supervisor *s, trp_error *err)
{
    const struct trp_supervised *what = w->what;
    char driver[4200], control[128], id[64];
    snprintf(driver, sizeof driver, "TROUPE_DRIVER=%s", w->folder->path);
    snprintf(control, sizeof control, "TROUPE_CONTROL=%s", s->control);
    const char *none[] = {NULL};
    snprintf(id, sizeof id, "TROUPE_RUN_ID=%s", trp_held_id(w->folder->path));
    const char *more[] = {control, driver, id, NULL};
    char **argv = trp_mpirun_argv(s->ompi_server, what->argv);
    char **server_env = trp_mpirun_environ(environ, s->folder, none);
    char **driver_env = trp_mpirun_environ(environ, s->folder, more);
    int code = TRP_ENOMEM;
    if (argv && server_env && driver_env) {
        struct trp_guard_config config = {.run_name = w->folder->name,
                                          .run_dir = w->folder->path,
                                          .folder = s->folder,
                                          .ompi_server =
                                              s->ompi_server[0] ? s->ompi_server : NULL,
                                          .server_env = server_env,
                                          .driver = argv,
                                          .driver_env = driver_env,
                                          .helper = what->helper,
                                          .listen_fd = s->listen_fd};
        code = trp_guard_start(&config, &w->guard_pid, &w->guard, err);
    } else {
        trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    trp_argv_free(argv);
    trp_argv_free(server_env);
    trp_argv_free(driver_env);
    return code;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int trp_supervise(struct trp_supervisor *s, const trp_run_folder *folder,
                  const struct trp_supervised *what)
{
    struct watch w = {.folder = folder,
                      .what = what,
                      .listen = s->listen_fd,
                      .control = -1,
                      .guard = -1,
                      .deadline = INT64_MAX};
    pid_t spare[SPARED];
    trp_error err;
    uint32_t nspare = trp_children_list(spare, SPARED);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    w.signals = open_signals();
    if (w.signals < 0 || start_guard(&w, s, &err) < 0) {
        fprintf(stderr, "troupe: cannot start the run: %s\n",
                w.signals < 0 ? strerror(errno) : err.text);
        return PLATFORM;
    }
    s->listen_fd = -1; /* closed by the loop, or below */
    if (!what->is_program)
        w.deadline = trp_clock_ms() + COME_UP_MS;
    watch_run(&w);
    if (!end_guard(&w)) {
        trp_guard_end_descendants(spare, nspare < SPARED ? nspare : SPARED,
                                  what->helper, SWEEP_MS);
        trp_guard_await_helper(what->helper, tell_wait, NULL);
        trp_guard_remove_cgroups(s->folder);
        trp_guard_remove_scratch(folder->path);
    }
    if (w.listen >= 0)
        close(w.listen);
    if (w.control >= 0)
        close(w.control);
    close(w.signals);
    return w.has_status ? w.status : status_without_word(&w);
}
