/*
 * One poll loop over four descriptors: signals (signalfd), the listening control
 * socket, the driver's control connection, the guard. What it has in mind:
 * supervise_watch.h.
 *
 * Exit status: what the driver says ('E'). Without it the driver died: 4. Ways out,
 * each with its time limit: after 'E' the driver has EXIT_MS to end, and its mpirun
 * GONE_MS from then on; after a kill (second signal) KILL_MS; after its connection
 * closed without 'E' LOST_MS (its own end, as told by the guard, says more). A program
 * that goes on when what is Troupe's has ended may take its time. A driver
 * of a pipeline that is not there within trp_watch_come_up_ms is given up, unless it
 * looks at what earlier starts have done; a user's own program may take its time before
 * trp_init, once mpirun has started it. Over MPI nothing goes on without ompi-server: the driver is told that it is
 * gone, and ends the run with 4; SERVER_MS, since MPI may not let it go. A driver that
 * does not answer is told of, and left to the user.
 *
 * A guard that is killed while the run goes on is replaced at once. Its orphans are
 * ours (we are a subreaper too, before it is forked), so the driver is reaped here, and
 * the next guard adopts it (guard.h). A pipeline whose driver was not started yet is
 * begun again; a user's own program, which may have had effects before trp_init, never.
 * ompi-server dies with its guard.
 *
 * The end: the guard is told, ends everything and goes. When the driver was adopted, or
 * the guard is killed now, what is left is ended from here; children that this process
 * had before it became `troupe` (exec from a shell) are spared.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpirun.h"
#include "driver/control.h"
#include "driver/driver.h"
#include "guard.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/process.h"
#include "os/processes.h"
#include "supervise_watch.h"

enum {
    EXIT_MS = 10000,
    GONE_MS = 2000,
    KILL_MS = 8000,
    SERVER_MS = 20000,
    LOST_MS = 3000,
    GUARD_END_MS = 12000,
    SWEEP_MS = 3000,
    LINGER_MS = 4000, /* as in guard.c */
    ASK_MS = 10000,
    SILENT_MS = 30000,
    LOOK_MS = 20,
    MOST_GUARDS = 20, /* that may be lost in a run */
};

static void hurry(struct trp_watch *w, int64_t ms)
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
        trp_private_folder_remove(s->folder);
    s->folder[0] = '\0';
}

/* ---- what happens ---- */

static void send_control(struct trp_watch *w, enum trp_control_byte byte)
{
    if (w->control >= 0)
        trp_control_send(w->control, byte);
}

/* Of a run whose driver is not started yet, since ompi-server is waited for, nothing has
 * to be ended in order. */
static void interrupt(struct trp_watch *w, bool at_once)
{
    w->interrupts += at_once ? 2 : 1;
    if (w->interrupts == 1 && w->driver && !w->has_status) {
        send_control(w, TRP_CONTROL_STOP);
        return;
    }
    send_control(w, TRP_CONTROL_KILL);
    hurry(w, w->connected ? KILL_MS : 0);
}

/* Whether slurmstepd sent it: Slurm ends the job, and seconds are left. */
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

static void on_control(struct trp_watch *w);

static void end_watch(struct trp_watch *w)
{
    if (w->control >= 0)
        on_control(w); /* its last words may be there already */
    w->over = true;
}

/* The guard, and what was adopted from one. */
static void reap(struct trp_watch *w)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == w->guard_pid) {
            w->guard_pid = 0;
            w->guard_status = status;
        } else if (pid == w->driver && !w->driver_ended) {
            w->driver_ended = true;
            w->driver_status = status;
            end_watch(w);
        }
    }
}

static void on_signal(struct trp_watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            reap(w);
        } else if (info.ssi_signo == SIGUSR1) {
            w->time_is_up = true;
            send_control(w, TRP_CONTROL_TIME);
        } else {
            interrupt(w, info.ssi_signo == SIGUSR2 ||
                             (info.ssi_signo == SIGTERM && is_of_slurm(&info)));
        }
    }
}

/* What the user wanted before the driver was there is told now. */
static void on_connection(struct trp_watch *w)
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
    w->heard = w->asked = trp_clock_ms();
    if (w->time_is_up)
        send_control(w, TRP_CONTROL_TIME);
    if (w->interrupts)
        send_control(w, TRP_CONTROL_STOP);
    if (w->interrupts > 1) {
        send_control(w, TRP_CONTROL_KILL);
        hurry(w, KILL_MS);
    }
}

/* It is there; or its run is over, and the program may do what it likes. */
static void on_answer(struct trp_watch *w)
{
    w->heard = trp_clock_ms();
    if (w->told_silent)
        fprintf(stderr, "troupe: the driver answers again\n");
    w->told_silent = false;
    if (w->has_status && w->what->is_program && !w->interrupts)
        w->deadline = INT64_MAX;
}

/* A program may hold up the driver's own thread, by a lock of the C library for instance.
 * Returns when it is to be looked at again. */
static int64_t ask_driver(struct trp_watch *w)
{
    int64_t now = trp_clock_ms();
    if (w->control < 0 || w->has_status)
        return INT64_MAX;
    if (now >= w->heard + SILENT_MS && !w->told_silent) {
        w->told_silent = true;
        fprintf(stderr, "troupe: the driver has not answered for %d s; %s\n",
                SILENT_MS / 1000,
                w->interrupts ? "once more Ctrl-C, or `troupe cancel --now`, ends it"
                              : "Ctrl-C twice, or `troupe cancel --now`, ends it");
    }
    if (now >= w->asked + ASK_MS) {
        send_control(w, TRP_CONTROL_PING);
        w->asked = now;
    }
    return w->asked + ASK_MS;
}

/* What the driver says of its status: when the run is over, and again when the program
 * then ends with another one than 0. */
static void on_control(struct trp_watch *w)
{
    ssize_t n;
    while ((n = recv(w->control, w->said + w->nsaid, sizeof w->said - w->nsaid, 0)) >
           0) {
        w->nsaid += (size_t)n;
        if (w->nsaid < sizeof w->said)
            continue;
        w->nsaid = 0;
        if (w->said[0] == TRP_CONTROL_ANSWER) {
            on_answer(w);
            continue;
        }
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
    hurry(w, !w->has_status ? LOST_MS : w->what->is_program ? EXIT_MS : GONE_MS);
}

static int start_guard(struct trp_watch *w, pid_t adopts, trp_error *err);

/* Ends all descendants of this process but those that it had before, and the guard. */
static void end_all(struct trp_watch *w)
{
    uint32_t n = w->nspare;
    if (w->guard_pid)
        w->spare[n++] = w->guard_pid;
    trp_guard_end_descendants(w->spare, n, w->what->helper, SWEEP_MS);
}

/* Ends the driver, drops connections that wait to be accepted, starts another guard. */
static int begin_again(struct trp_watch *w, trp_error *err)
{
    end_all(w);
    reap(w);
    for (int fd; trp_control_accept(w->listen, &fd, err) == 0;)
        close(fd);
    w->driver = 0;
    return start_guard(w, 0, err);
}

/* ompi-server died, or never came up: `why`. */
static void on_server_lost(struct trp_watch *w, const char *why)
{
    snprintf(w->failure, sizeof w->failure, "%s; " TRP_TRANSPORT_ADVICE, why);
    if (w->connected) {
        send_control(w, TRP_CONTROL_OMPI_SERVER);
        hurry(w, SERVER_MS);
    } else {
        end_watch(w);
    }
}

/* TRP_ESTATE: there is nothing that another guard could watch over. */
static int replace_guard(struct trp_watch *w, trp_error *err)
{
    bool server = w->supervisor->ompi_server[0] != '\0';
    struct trp_process driver;
    if (++w->guards > MOST_GUARDS)
        return trp_error_set(
            err, TRP_ESTATE,
            "the run's guard, which ends what is left when troupe dies, was killed %d "
            "times",
            w->guards);
    if (!w->driver && !server && !w->what->is_program && w->listen >= 0)
        return begin_again(w, err);
    if (!w->driver || (server && !w->connected) ||
        !trp_process_read(w->driver, &driver) || driver.parent != getpid())
        return trp_error_set(
            err, TRP_ESTATE,
            "the run's guard, which ends what is left when troupe dies, was killed");
    if (server)
        on_server_lost(w, "ompi-server died with the run's guard, which was killed");
    return start_guard(w, w->driver, err);
}

/* Kills the guard, should it still be there. Its children are ours from here on. */
static void reap_guard(struct trp_watch *w)
{
    if (w->guard_pid)
        kill(w->guard_pid, SIGKILL);
    while (w->guard_pid && waitpid(w->guard_pid, &w->guard_status, 0) < 0 &&
           errno == EINTR)
        ;
    w->guard_pid = 0;
}

/* Its socket is closed, which the kernel does before it gives its children away. */
static void on_guard_lost(struct trp_watch *w)
{
    trp_error err;
    close(w->guard);
    w->guard = -1;
    reap_guard(w);
    w->adopted =
        true; /* the guard's children are ours now, a driver that died or not */
    reap(w);
    if (w->listen >= 0 && !w->over)
        on_connection(w); /* it may just have come */
    if (w->over || (!w->driver_ended && replace_guard(w, &err) == 0))
        return;
    if (!w->driver_ended && !w->failure[0])
        snprintf(w->failure, sizeof w->failure, "%s", err.text);
    end_watch(w);
}

static void on_guard(struct trp_watch *w)
{
    struct trp_guard_report r;
    ssize_t n = recv(w->guard, &r, sizeof r, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof r) {
        on_guard_lost(w);
        return;
    }
    if (r.event == TRP_GUARD_STARTED) {
        w->driver = r.status;
        if ((!w->what->is_program || *w->supervisor->ompi_server) && !w->connected &&
            w->interrupts < 2)
            w->deadline = trp_clock_ms() + trp_watch_come_up_ms(w);
        return;
    }
    if (r.event == TRP_GUARD_SERVER) {
        on_server_lost(w, r.text);
        return;
    }
    if (r.event == TRP_GUARD_FAILED) {
        snprintf(w->failure, sizeof w->failure, "%s", r.text);
    } else {
        w->driver_ended = true;
        w->driver_status = r.status;
    }
    end_watch(w);
}

/* The driver of a resumed run has first to look at all that earlier starts have done: with
 * many outputs, or large ones that it reads whole, that takes more than the time to come
 * up. The user may end it. */
static bool is_coming_up(struct trp_watch *w)
{
    if (w->what->is_program && !w->connected && w->interrupts < 2 &&
        trp_descendants_signal(w->driver, NULL, 0, 0) > 0) {
        w->deadline = INT64_MAX; /* mpirun has started it */
        return true;
    }
    if (!w->what->resumes || w->connected || w->interrupts > 1 ||
        !trp_run_folder_is_driven(w->folder->path))
        return false;
    if (!w->told_coming_up)
        fprintf(stderr,
                "troupe: the driver still looks at what earlier starts of the run have "
                "done; Ctrl-C twice, or `troupe cancel --now`, ends it\n");
    w->told_coming_up = true;
    w->deadline = trp_clock_ms() + trp_watch_come_up_ms(w);
    return true;
}

static void watch_run(struct trp_watch *w)
{
    while (!w->over) {
        struct pollfd v[] = {
            {.fd = w->signals, .events = POLLIN},
            {.fd = w->listen,  .events = POLLIN},
            {.fd = w->control, .events = POLLIN},
            {.fd = w->guard,   .events = POLLIN}
        };
        int64_t ask = ask_driver(w), due = w->deadline < ask ? w->deadline : ask;
        int64_t left = due == INT64_MAX ? -1 : due - trp_clock_ms();
        if (left < 0 && due == ask && due != INT64_MAX)
            left = 0;
        if (w->deadline != INT64_MAX && w->deadline <= trp_clock_ms()) {
            if (is_coming_up(w))
                continue;
            w->absent = !w->connected && !w->interrupts;
            return;
        }
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
            "troupe: waiting for Slurm to end the jobs and steps of this run\n");
}

/* The guard ends everything. True when it went by itself. */
static bool end_guard(struct trp_watch *w)
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
    reap_guard(w);
    return in_order && w->guard_status == 0;
}

/* What a guard left to us ends by itself when the driver is gone; what is left after
 * LINGER_MS is killed. */
static void end_adopted(struct trp_watch *w)
{
    int64_t end = trp_clock_ms() + LINGER_MS;
    uint32_t n = w->nspare;
    struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    if (w->guard_pid)
        w->spare[n++] = w->guard_pid;
    while (w->driver_ended && trp_clock_ms() < end &&
           trp_descendants_signal(getpid(), w->spare, n, 0) > 0) {
        nanosleep(&look, NULL);
        reap(w);
    }
    end_all(w);
    trp_guard_await_helper(w->what->helper, tell_wait, NULL);
}

static int start_guard(struct trp_watch *w, pid_t adopts, trp_error *err)
{
    const struct trp_supervised *what = w->what;
    struct trp_supervisor *s = w->supervisor;
    char driver[4200], control[128], id[64];
    snprintf(driver, sizeof driver, "TROUPE_DRIVER=%s", w->folder->path);
    snprintf(control, sizeof control, "TROUPE_CONTROL=%s", s->control);
    /* Else it looks for ssh, which a container may not have. */
    const char *alone[] = {"OMPI_MCA_plm=isolated", NULL};
    snprintf(id, sizeof id, "TROUPE_RUN_ID=%s", trp_held_id(w->folder->path));
    const char *more[] = {control, driver, id, NULL};
    char **argv = trp_mpirun_argv(s->ompi_server, what->argv);
    char **server_env = trp_mpirun_environ(environ, s->folder, alone);
    char **driver_env = trp_mpirun_environ(environ, s->folder, more);
    /* A child of ours that is not reaped yet: the number is its own. */
    int adopted = adopts ? (int)syscall(SYS_pidfd_open, adopts, 0) : -1;
    int code = TRP_ENOMEM;
    if (adopts && adopted < 0) {
        code = trp_error_set(err, TRP_ESYSTEM, "pidfd_open: %m");
    } else if (argv && server_env && driver_env) {
        struct trp_guard_config config = {
            .run_name = w->folder->name,
            .run_dir = w->folder->path,
            .folder = s->folder,
            .ompi_server = s->ompi_server[0] ? s->ompi_server : NULL,
            .server_env = server_env,
            .driver = argv,
            .driver_env = driver_env,
            .helper = what->helper,
            .adopts = adopts,
            .adopted = adopted,
            .theirs = {w->listen, w->control, w->signals}
        };
        code = trp_guard_start(&config, &w->guard_pid, &w->guard, err);
    } else {
        trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    if (adopted >= 0)
        close(adopted);
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
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int trp_supervise(struct trp_supervisor *s, const trp_run_folder *folder,
                  const struct trp_supervised *what)
{
    trp_error err;
    struct trp_watch w = {.folder = folder,
                          .what = what,
                          .supervisor = s,
                          .listen = s->listen_fd,
                          .control = -1,
                          .guard = -1,
                          .deadline = INT64_MAX};
    w.nspare = trp_children_list(w.spare, TRP_WATCH_SPARED);
    if (w.nspare > TRP_WATCH_SPARED)
        w.nspare = TRP_WATCH_SPARED;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    w.signals = open_signals();
    if (w.signals < 0 || start_guard(&w, 0, &err) < 0) {
        fprintf(stderr, "troupe: cannot start the run: %s\n",
                w.signals < 0 ? strerror(errno) : err.text);
        return TRP_WATCH_PLATFORM;
    }
    s->listen_fd = -1; /* closed by the loop, or below */
    watch_run(&w);
    if (w.adopted)
        end_adopted(&w);
    if (!end_guard(&w)) {
        end_all(&w);
        trp_guard_await_helper(what->helper, tell_wait, NULL);
        trp_private_folder_end_groups(s->folder);
        trp_guard_remove_scratch(folder->path);
    }
    if (w.listen >= 0)
        close(w.listen);
    if (w.control >= 0)
        close(w.control);
    close(w.signals);
    return trp_watch_status(&w);
}
