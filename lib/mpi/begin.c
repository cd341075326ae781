/*
 * MPI's start, and what goes with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mpi/module.h"
#include "os/quick_hwloc.h"

atomic_uint trp_mpi_calls;

const char *trp_mpi_text(int code, char buf[MPI_MAX_ERROR_STRING])
{
    int n = 0;
    if (MPI_Error_string(code, buf, &n) != MPI_SUCCESS)
        snprintf(buf, MPI_MAX_ERROR_STRING, "MPI error %d", code);
    return buf;
}

int trp_mpi_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, run, arg);
    if (rc == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* One at a time in a process: MPI begins once. */
static struct {
    int over_fd; /* eventfd */
    int64_t limit_ns;
    void (*stuck)(const char *text);
} start;

static void *watch_start(void *arg)
{
    char text[200];
    struct pollfd p = {.fd = start.over_fd, .events = POLLIN};
    (void)arg;
    if (poll(&p, 1, (int)(start.limit_ns / 1000000)) == 0) {
        snprintf(text, sizeof text,
                 "MPI_Init did not return within %.3g s: mpirun or ompi-server does "
                 "not answer (comm.start_timeout)",
                 (double)start.limit_ns / 1e9);
        start.stuck(text);
    }
    close(start.over_fd);
    return NULL;
}

enum { LOOKED_AT = 1024 }; /* descriptors: MPI begins before a process has more */

/* As our own mpirun has it (cluster/mpirun.c): no device is near or far then. */
static bool is_tcp_alone(void)
{
    const char *ways = getenv("OMPI_MCA_btl");
    return ways && strcmp(ways, "self,tcp") == 0;
}

/* Open MPI leaves the sockets that it listens on to every srun and mpirun that is
 * started later: what it has opened when it has begun is closed by exec. */
static int start_mpi(int *ret_level, trp_error *err)
{
    bool was_there[LOOKED_AT];
    for (int fd = 0; fd < LOOKED_AT; fd++)
        was_there[fd] = fcntl(fd, F_GETFD) >= 0;
    bool quick[TRP_QUICK_HWLOC] = {false};
    if (is_tcp_alone())
        trp_quick_hwloc_begin(quick);
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, ret_level);
    trp_quick_hwloc_end(quick);
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Init_thread failed");
    for (int fd = 0; fd < LOOKED_AT; fd++)
        if (!was_there[fd])
            fcntl(fd, F_SETFD, FD_CLOEXEC); /* most are none */
    return 0;
}

/* The same with somebody who looks at the time. */
static int start_watched(int *ret_level, trp_error *err)
{
    const uint64_t one = 1;
    start.over_fd = eventfd(0, EFD_CLOEXEC);
    int rc = start.over_fd < 0 ? errno : trp_mpi_thread(watch_start, NULL);
    if (rc != 0) {
        if (start.over_fd >= 0)
            close(start.over_fd);
        return trp_error_set(err, TRP_ESYSTEM, "cannot watch MPI_Init: %s",
                             strerror(rc));
    }
    rc = start_mpi(ret_level, err);
    ssize_t n = write(start.over_fd, &one, sizeof one); /* closed by who reads it */
    (void)n;
    return rc;
}

int trp_mpi_start(bool threads, int64_t limit_ns, void (*stuck)(const char *text),
                  trp_error *err)
{
    const int least = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    int done, level = 0, rc = 0;
    start.limit_ns = limit_ns;
    start.stuck = stuck;
    MPI_Initialized(&done);
    if (done)
        MPI_Query_thread(&level);
    else
        rc = stuck ? start_watched(&level, err) : start_mpi(&level, err);
    if (rc < 0)
        return rc;
    if (level < least)
        return trp_error_set(err, TRP_ESYSTEM,
                             "MPI offers thread level %d, Troupe needs %d "
                             "(MPI_THREAD_MULTIPLE is %d): initialise MPI with "
                             "MPI_Init_thread, or leave it to Troupe",
                             level, least, MPI_THREAD_MULTIPLE);
    trp_mpi_survive();
    return 0;
}
