/*
 * The guard: a small process between `troupe` and everything else of a run.
 *
 * It starts the driver, over MPI below an mpirun and after an ompi-server, in sessions of
 * their own, and is the subreaper of all that descends from them, executors and orphans
 * included. So "nothing of the run is left" can be made true exactly, whoever was killed
 * before: when the driver is gone, when `troupe` says so or is gone itself (its socket
 * closes), the guard ends what is left, removes the private folder and the memory groups,
 * and goes.
 *
 * A guard that is killed itself is replaced by another one. What the first has started
 * descends from `troupe` from then on, which ends it when the run is over; the second
 * guard adopts the driver, which is no child of its own: when `troupe` is gone it waits
 * for the driver to end in order, ends what is left below it, and removes the files.
 *
 * Messages on a SOCK_SEQPACKET pair: guard → troupe struct trp_guard_report; troupe →
 * guard any byte: end now.
 */
#ifndef TRP_LAUNCHER_GUARD_H
#define TRP_LAUNCHER_GUARD_H

#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"

struct trp_guard_config {
    const char *run_name, *run_dir;
    const char *folder;      /* private, made by the caller, removed by the guard */
    char *ompi_server;       /* file for its URI, in `folder`; NULL: over sockets */
    char *const *server_env; /* of ompi-server */
    char *const *driver;     /* mpirun …: argv of execvp */
    char *const *driver_env;
    const char *helper; /* troupe-slurm, which outlives its driver as long as it has
                         * jobs to end; NULL: none */
    pid_t adopts;       /* the driver's process, which an earlier guard has started; 0:
                         * the guard starts ompi-server and the driver itself */
    int adopted;        /* a pidfd of that, for its number may be another's later; -1 */
    int theirs[3];      /* descriptors of the caller's, closed in the guard; -1: none */
};

enum trp_guard_event {
    TRP_GUARD_FAILED = 1, /* the platform failed: `text`; everything is being ended */
    TRP_GUARD_STARTED,    /* the driver's process is there: its number is `status` */
    TRP_GUARD_DRIVER,     /* the driver's mpirun ended with wait status `status` */
    TRP_GUARD_WAITS,      /* Slurm does not answer, and jobs are to be given back */
    TRP_GUARD_SERVER,     /* ompi-server died: `text`. Or it never came up: there is no
                           * driver, and the guard ends */
};

struct trp_guard_report {
    uint8_t event;
    int32_t status;
    char text[512];
};

/* Forks. `ret_socket` is the caller's end; it closes when the guard is gone. */
int trp_guard_start(const struct trp_guard_config *config, pid_t *ret_pid,
                    int *ret_socket, trp_error *err);

/* Kills all that descends from this process but what descends from `spare`, and what
 * runs `helper` (NULL: none), until nothing else is left or `limit_ms` have passed;
 * reaps children when nothing is spared. */
void trp_guard_end_descendants(const pid_t *spare, uint32_t nspare, const char *helper,
                               int limit_ms);

/* Waits until no descendant runs `helper` (NULL: none is waited for); `tell` is called
 * once when that takes long. */
void trp_guard_await_helper(const char *helper, void (*tell)(void *context),
                            void *context);

/* Removes what spawners that were killed have left in the run's folder, when nobody of
 * the run is alive. */
void trp_guard_remove_scratch(const char *run_dir);

#endif
