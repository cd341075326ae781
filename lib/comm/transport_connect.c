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
 * dead or late executor left in the ompi-server meets nobody. An accept whose executor
 * died waits for ever; a throw-away peer (unstick.c) lets it return. Should it not, its
 * thread is abandoned after three tries and others meet in threads of their own, which
 * helps when it waits for its first answer (no lock is held there). The meeting is over
 * MPI_COMM_SELF itself: after an accept that failed half-way Open MPI makes no more
 * communicators out of others. A stuck thread at the end is left alone with its
 * meeting: the process can only _exit then.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/transport.h"

enum { HELPER_SECONDS = 10, HELPERS_MAX = 3 };

/* Owned by the thread until `over`, then by the loop. */
struct trp_meeting {
    pthread_t thread;
    bool accept;
    int notice_fd;
    atomic_bool over;
    int rc;
    MPI_Comm comm;
    char where[MPI_MAX_PORT_NAME];
};

static void *meet(void *arg)
{
    struct trp_meeting *m = (struct trp_meeting *)arg;
    m->rc = m->accept
                ? MPI_Comm_accept(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm)
                : MPI_Comm_connect(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm);
    int fd = m->notice_fd;
    atomic_store(&m->over, true);
    const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* can only say that a notice is there already */
    return NULL;
}

static int begin(struct trp_transport *t, const char *where, bool accept,
                 trp_error *err)
{
    struct trp_meeting *m = (struct trp_meeting *)calloc(1, sizeof *m);
    if (!m)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    m->accept = accept;
    m->notice_fd = t->notice_fd;
    m->comm = MPI_COMM_NULL;
    snprintf(m->where, sizeof m->where, "%s", where);
    int rc = pthread_create(&m->thread, NULL, meet, m);
    if (rc != 0) {
        free(m);
        return trp_error_set(err, TRP_ESYSTEM, "cannot start a thread: %s",
                             strerror(rc));
    }
    t->meeting = m;
    return 0;
}

static int connect_admit(struct trp_transport *t, uint32_t executor, trp_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    (void)executor;
    int rc = MPI_Open_port(MPI_INFO_NULL, t->where);
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Open_port: %s",
                             trp_mpi_text(rc, text));
    return begin(t, t->where, true, err);
}

static int connect_join(struct trp_transport *t, const char *where, trp_error *err)
{
    return begin(t, where, false, err);
}

static int connect_met(struct trp_transport *t, struct trp_route *ret_route,
                       trp_error *err)
{
    struct trp_meeting *m = t->meeting;
    if (!m || !atomic_load(&m->over))
        return 0;
    char text[MPI_MAX_ERROR_STRING];
    int rc = m->rc;
    bool accept = m->accept;
    pthread_join(m->thread, NULL);
    if (accept)
        MPI_Close_port(m->where);
    *ret_route = (struct trp_route){m->comm, 0};
    free(m);
    t->meeting = NULL;
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %s",
                             accept ? "MPI_Comm_accept" : "MPI_Comm_connect",
                             trp_mpi_text(rc, text));
    return 1;
}

static int connect_unstick(struct trp_transport *t, int64_t now_ns, trp_error *err)
{
    bool over = !t->meeting || atomic_load(&t->meeting->over);
    if (t->helper > 0) {
        bool late = now_ns - t->helper_ns > HELPER_SECONDS * INT64_C(1000000000);
        if (over && !late)
            kill(t->helper, SIGTERM); /* it may wait for an answer that never comes */
        if (!trp_unstick_gone(t->helper, late))
            return 0;
        t->helper = 0;
    }
    if (over) {
        t->helpers = 0;
        return 0;
    }
    pid_t pid = TRP_ENOENT;
    if (t->unstick_argv && t->helpers++ < HELPERS_MAX)
        pid = trp_unstick_start(t->unstick_argv, t->where, err);
    if (pid > 0) {
        t->helper = pid;
        t->helper_ns = now_ns;
        return 0;
    }
    t->meeting = NULL; /* its thread has it, and t->notice_fd */
    t->abandoned = true;
    t->helpers = 0;
    return 1;
}

static void connect_leave(struct trp_transport *t, struct trp_route *route)
{
    (void)t;
    MPI_Comm_free(&route->comm); /* local in Open MPI, unlike MPI_Comm_disconnect */
}

static bool connect_close(struct trp_transport *t)
{
    if (t->helper > 0)
        trp_unstick_gone(t->helper, true);
    struct trp_route route;
    if (t->meeting && connect_met(t, &route, NULL) == 0)
        return false;
    return !t->abandoned;
}

const struct trp_transport_ops trp_transport_connect = {
    .name = "connect",
    .admit = connect_admit,
    .join = connect_join,
    .met = connect_met,
    .unstick = connect_unstick,
    .leave = connect_leave,
    .close = connect_close,
};
