/*
 * Threads that take no signal of the process: its other threads have them. (A write above
 * a file's limit then fails, in place of SIGXFSZ.)
 */
#ifndef TRP_OS_THREAD_H
#define TRP_OS_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create: 0, or an errno. */
static inline int trp_thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

#endif
