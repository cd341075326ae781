/*
 * Transport `connect`: each executor is an MPI universe of its own, joined by
 * MPI_Comm_accept and MPI_Comm_connect through an ompi-server.
 *
 * Both calls block without a time-out, so each runs in a thread of its own, which ends
 * with the call; the loop learns of it by an eventfd and never waits. Rejected: one
 * lasting thread with a queue (a start costs 20 us, a meeting 4–20 ms).
 *
 * Open MPI mixes up several that connect at once, so the channel lets one in at a time,
 * and each accept has a port of its own (a local call, microseconds), so that what a
 * dead or late executor left in the ompi-server meets nobody. The meeting is over
 * MPI_COMM_SELF itself: after an accept that failed half-way Open MPI makes no more
 * communicators out of others.
 *
 * A call that never returns is left to its thread, and the process can only _exit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/module.h"

/* Shared by the loop and the thread that meets; the last one frees it. */
struct trp_meeting {
    atomic_int users;
    bool accept;
    int notice_fd; /* the transport's, a duplicate */
    atomic_bool over;
    int rc;
    MPI_Comm comm;
    char where[MPI_MAX_PORT_NAME];
};

static void let_go(struct trp_meeting *m)
{
    if (atomic_fetch_sub(&m->users, 1) > 1)
        return;
    close(m->notice_fd);
    free(m);
}

static void *meet(void *arg)
{
    struct trp_meeting *m = (struct trp_meeting *)arg;
    const uint64_t one = 1;
    m->rc = m->accept
                ? MPI_Comm_accept(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm)
                : MPI_Comm_connect(m->where, MPI_INFO_NULL, 0, MPI_COMM_SELF, &m->comm);
    atomic_store(&m->over, true);
    ssize_t n = write(m->notice_fd, &one, sizeof one);
    (void)n; /* can only say that a notice is there already */
    let_go(m);
    return NULL;
}

static int start_meeting(struct trp_transport *t, const char *where, bool accept,
                         trp_error *err)
{
    struct trp_meeting *m = (struct trp_meeting *)calloc(1, sizeof *m);
    if (!m)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    atomic_init(&m->users, 2);
    m->accept = accept;
    m->comm = MPI_COMM_NULL;
    snprintf(m->where, sizeof m->where, "%s", where);
    m->notice_fd = fcntl(t->notice_fd, F_DUPFD_CLOEXEC, 0);
    int rc = m->notice_fd < 0 ? errno : trp_mpi_thread(meet, m);
    if (rc != 0) {
        if (m->notice_fd >= 0)
            close(m->notice_fd);
        free(m);
        return trp_error_set(err, TRP_ESYSTEM, "cannot begin to meet: %s",
                             strerror(rc));
    }
    t->meeting = m;
    return 0;
}

static int connect_met(struct trp_transport *t, struct trp_route *ret_route,
                       trp_error *err)
{
    struct trp_meeting *m = t->meeting;
    char text[MPI_MAX_ERROR_STRING];
    if (!m || !atomic_load(&m->over))
        return 0;
    int rc = m->rc;
    bool accept = m->accept;
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

static int connect_admit(struct trp_transport *t, uint32_t executor, trp_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    struct trp_route nobody;
    (void)executor;
    if (t->meeting && connect_met(t, &nobody, NULL) == 0)
        return 0; /* it goes on, for another executor */
    int rc = MPI_Open_port(MPI_INFO_NULL, t->where);
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Open_port: %s",
                             trp_mpi_text(rc, text));
    return start_meeting(t, t->where, true, err);
}

static int connect_join(struct trp_transport *t, const char *where, trp_error *err)
{
    return start_meeting(t, where, false, err);
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
    return !t->meeting || connect_met(t, &route, NULL) != 0;
}

const struct trp_transport_ops trp_transport_connect = {
    .lane = &trp_lane_mpi,
    .admit = connect_admit,
    .join = connect_join,
    .met = connect_met,
    .leave = connect_leave,
    .close = connect_close,
};
