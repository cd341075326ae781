/*
 * MPI's start, and what goes with it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void (*tell_stuck)(const char *text);

/* Looks once a second whether the loop is still in the same call of MPI. Counted, since
 * a process that was stopped meanwhile is not stuck. */
static void *watch_calls(void *arg)
{
    enum { LOOKS = 20 };
    const struct timespec second = {.tv_sec = 1};
    unsigned before = 0;
    (void)arg;
    for (int same = 0; same < LOOKS;) {
        nanosleep(&second, NULL);
        unsigned now = atomic_load(&trp_mpi_calls);
        same = now % 2 == 1 && now == before ? same + 1 : 0;
        before = now;
    }
    tell_stuck("a call of MPI did not return within 20 s: mpirun or ompi-server does "
               "not answer");
    return NULL;
}

static int begin_watch(void (*stuck)(const char *text), trp_error *err)
{
    if (!stuck || tell_stuck)
        return 0;
    tell_stuck = stuck;
    int rc = trp_mpi_thread(watch_calls, NULL);
    return rc == 0 ? 0
                   : trp_error_set(err, TRP_ESYSTEM, "cannot watch calls of MPI: %s",
                                   strerror(rc));
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
/* Open MPI prints a stack trace when a program crashes, and waits for ever for a lock of
 * malloc that the crash has left. A user who wants it says so by this very name. */
#define TRACES "OMPI_MCA_opal_signal"

static int start_mpi(int *ret_level, trp_error *err)
{
    const bool untraced = !getenv(TRACES);
    bool was_there[LOOKED_AT];
    for (int fd = 0; fd < LOOKED_AT; fd++)
        was_there[fd] = fcntl(fd, F_GETFD) >= 0;
    bool quick[TRP_QUICK_HWLOC] = {false};
    if (is_tcp_alone())
        trp_quick_hwloc_begin(quick);
    trp_mpi_mark();
    if (untraced)
        setenv(TRACES, "", 1);
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, ret_level);
    trp_mpi_mark();
    if (untraced)
        unsetenv(TRACES); /* not for what the program starts */
    trp_quick_hwloc_end(quick);
    if (rc != MPI_SUCCESS)
        return trp_error_set(err, TRP_ESYSTEM, "MPI_Init_thread failed");
    for (int fd = 0; fd < LOOKED_AT; fd++)
        if (!was_there[fd])
            fcntl(fd, F_SETFD, FD_CLOEXEC); /* most are none */
    return 0;
}

int trp_mpi_start(bool threads, void (*stuck)(const char *text), trp_error *err)
{
    const int least = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    int done, level = 0, rc = begin_watch(stuck, err);
    MPI_Initialized(&done);
    if (done)
        MPI_Query_thread(&level);
    else if (rc == 0)
        rc = start_mpi(&level, err);
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
