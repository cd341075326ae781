/*
 * Transport `connect`: each executor is an MPI universe of its own, joined by
 * MPI_Comm_accept and MPI_Comm_connect through an ompi-server.
 *
 * Both calls block without a time-out, so each runs in a thread of its own, which ends
 * with the call; the loop learns of it by an eventfd and never waits. Rejected: one
 * lasting thread with a queue (a start costs 20 us, a meeting 4–20 ms).
 *
 * Open MPI mixes up several that connect at once, so the channel lets one in at a time,
 * and each meeting has a port of its own (a local call, microseconds), so that what a
 * dead or late executor left in the ompi-server meets nobody. The meeting is over
 * MPI_COMM_SELF itself: after an accept that failed half-way Open MPI makes no more
 * communicators out of others.
 *
 * An accept whose executor died waits for ever, and so does one whose mpirun, or the
 * ompi-server, is held up by somebody. A second thread, the watcher, looks at the
 * executor's socket (which the loop shuts when the accept takes too long), and when
 * that closes and the accept has not returned soon after, starts a throw-away peer that
 * frees it (comm/throw_away.c). It is a thread because the loop itself may be caught:
 * Open MPI continues an accept from whatever thread turns its progress engine. When no
 * throw-away peer has helped within UNSTICK_MS, the meeting is left to its thread, and
 * the next ones try on their own, without throw-away peers until one comes about. A
 * stuck thread at the end is left alone with its meeting: the process can only _exit
 * then.
 *
 * A loop that is caught in MPI for CAUGHT_MS does not come back: the process is told to
 * end (`stuck`). That is looked at once an accept is late, and for ever after one that
 * was left to its thread: such an accept is what catches it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mpi/module.h"
#include "os/clock.h"

enum {
    GRACE_MS = 500,
    LOOK_MS = 50,
    UNSTICK_MS = 6000, /* for all throw-away peers of a meeting */
    CAUGHT_MS = 10000,
    WATCH_MS = 1000, /* how often the loop is looked at */
};

/* Shared by the loop, the thread that meets and the watcher; the last one frees it. */
struct trp_meeting {
    atomic_int users;
    bool accept;
    int notice_fd; /* the transport's, a duplicate */
    int over_fd;   /* eventfd, readable when it is over: for the watcher */
    int socket;    /* the executor's, a duplicate, or -1 */
    const char *const *throw_away_argv; /* NULL: nothing frees it */
    void (*stuck)(const char *text);
    atomic_bool over, hopeless;
    int rc;
    MPI_Comm comm;
    char where[MPI_MAX_PORT_NAME];
};

static void let_go(struct trp_meeting *m)
{
    if (atomic_fetch_sub(&m->users, 1) > 1)
        return;
    close(m->over_fd);
    close(m->notice_fd);
    if (m->socket >= 0)
        close(m->socket);
    free(m);
}

static void notify(int fd)
{
    const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* can only say that a notice is there already */
}

static void *meet(void *arg)
{
    struct trp_meeting *m = (struct trp_meeting *)arg;
    m->rc = m->accept
                ? MPI_Comm_accept(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm)
                : MPI_Comm_connect(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm);
    atomic_store(&m->over, true);
    notify(m->over_fd);
    notify(m->notice_fd);
    let_go(m);
    return NULL;
}

/* ---- the watcher ---- */

static bool over_within(struct trp_meeting *m, int ms)
{
    struct pollfd p = {.fd = m->over_fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* One throw-away peer, until `end`; true when the meeting is over. */
static bool try_helper(struct trp_meeting *m, int64_t end)
{
    trp_error err;
    pid_t pid = trp_throw_away_start(m->throw_away_argv, m->where, &err);
    if (pid < 0)
        return over_within(m, GRACE_MS);
    bool over = false, gone = false;
    while (!over && !gone && trp_clock_ms() < end) {
        over = over_within(m, LOOK_MS);
        gone = trp_throw_away_gone(pid, false);
    }
    if (!gone)
        trp_throw_away_gone(pid, true);
    return over || over_within(m, GRACE_MS);
}

/* What the loop was last seen doing. */
struct caught {
    unsigned call;
    int64_t since; /* ms */
};

/* Tells when the loop is in one call of MPI all the time. */
static void look_at_loop(const struct trp_meeting *m, struct caught *c)
{
    char text[120];
    unsigned call = atomic_load(&trp_mpi_calls);
    if (call % 2 == 0 || call != c->call) {
        *c = (struct caught){.call = call, .since = trp_clock_ms()};
        return;
    }
    if (!m->stuck || trp_clock_ms() - c->since < CAUGHT_MS)
        return;
    snprintf(text, sizeof text,
             "a call of MPI did not return within %d s: mpirun or ompi-server does not "
             "answer",
             CAUGHT_MS / 1000);
    m->stuck(text);
}

/* Until the meeting is over (true) or its executor's socket is closed. */
static bool await_end(struct trp_meeting *m)
{
    struct caught loop = {0};
    struct pollfd p[] = {
        {.fd = m->over_fd, .events = POLLIN   },
        {.fd = m->socket,  .events = POLLRDHUP},
    };
    for (int ms = TRP_ACCEPT_MS; poll(p, 2, ms) <= 0; ms = WATCH_MS)
        look_at_loop(m, &loop);
    return p[0].revents != 0;
}

static void *watch_meeting(void *arg)
{
    struct trp_meeting *m = (struct trp_meeting *)arg;
    struct caught loop = {0};
    bool over = await_end(m) || over_within(m, GRACE_MS);
    for (int64_t end = trp_clock_ms() + UNSTICK_MS;
         !over && m->throw_away_argv && trp_clock_ms() < end;)
        over = try_helper(m, end);
    if (!over) {
        atomic_store(&m->hopeless, true);
        notify(m->notice_fd);
    }
    while (!over && !over_within(m, WATCH_MS))
        look_at_loop(m, &loop);
    let_go(m);
    return NULL;
}

/* ---- meetings ---- */

static int start_thread(void *(*run)(void *), struct trp_meeting *m)
{
    atomic_fetch_add(&m->users, 1);
    int rc = trp_mpi_thread(run, m);
    if (rc != 0)
        atomic_fetch_sub(&m->users, 1);
    return rc;
}

static int start_meeting(struct trp_transport *t, const char *where, int socket,
                         trp_error *err)
{
    struct trp_meeting *m = (struct trp_meeting *)calloc(1, sizeof *m);
    if (!m)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    atomic_init(&m->users, 1);
    m->accept = socket >= 0;
    m->notice_fd = fcntl(t->notice_fd, F_DUPFD_CLOEXEC, 0);
    m->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->socket = socket >= 0 ? fcntl(socket, F_DUPFD_CLOEXEC, 0) : -1;
    m->throw_away_argv = t->hopeless ? NULL : t->throw_away_argv;
    m->stuck = t->stuck;
    m->comm = MPI_COMM_NULL;
    snprintf(m->where, sizeof m->where, "%s", where);
    bool all = m->notice_fd >= 0 && m->over_fd >= 0 && (!m->accept || m->socket >= 0);
    int rc = all ? start_thread(meet, m) : errno;
    if (rc == 0 && m->accept)
        rc = start_thread(watch_meeting, m);
    if (rc != 0) {
        t->abandoned = atomic_load(&m->users) > 1;
        let_go(m);
        return trp_error_set(err, TRP_ESYSTEM, "cannot begin to meet: %s",
                             strerror(rc));
    }
    t->meeting = m;
    return 0;
}

static int connect_admit(struct trp_transport *t, uint32_t executor, int socket,
                         trp_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    (void)executor;
    int rc = MPI_Open_port(MPI_INFO_NULL, t->where);
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Open_port: %s",
                             trp_mpi_text(rc, text));
    return start_meeting(t, t->where, socket, err);
}

static int connect_join(struct trp_transport *t, const char *where, trp_error *err)
{
    return start_meeting(t, where, -1, err);
}

static int connect_met(struct trp_transport *t, struct trp_route *ret_route,
                       trp_error *err)
{
    struct trp_meeting *m = t->meeting;
    char text[MPI_MAX_ERROR_STRING];
    if (m && !atomic_load(&m->over) && atomic_load(&m->hopeless)) {
        t->meeting = NULL;
        t->abandoned = t->hopeless = true;
        let_go(m);
        return trp_error_set(err, TRP_ETIME, "MPI_Comm_accept did not return");
    }
    if (!m || !atomic_load(&m->over))
        return 0;
    int rc = m->rc;
    bool accept = m->accept;
    t->hopeless = t->hopeless && rc != MPI_SUCCESS;
    *ret_route = (struct trp_route){MPI_Comm_c2f(m->comm), 0};
    if (accept)
        MPI_Close_port(m->where);
    let_go(m);
    t->meeting = NULL;
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %s",
                             accept ? "MPI_Comm_accept" : "MPI_Comm_connect",
                             trp_mpi_text(rc, text));
    return 1;
}

static void connect_leave(struct trp_transport *t, struct trp_route *route)
{
    MPI_Comm comm = MPI_Comm_f2c(route->comm);
    (void)t;
    MPI_Comm_free(&comm); /* local in Open MPI, unlike MPI_Comm_disconnect */
}

static bool connect_close(struct trp_transport *t)
{
    struct trp_route route;
    if (t->meeting && connect_met(t, &route, NULL) == 0)
        return false;
    return !t->abandoned;
}

const struct trp_transport_ops trp_transport_connect = {
    .name = "connect",
    .lane = &trp_lane_mpi,
    .admit = connect_admit,
    .join = connect_join,
    .met = connect_met,
    .leave = connect_leave,
    .close = connect_close,
};
