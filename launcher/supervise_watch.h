/*
 * What supervising a run has in mind (supervise.c), and what it makes of a run whose
 * driver did not say how it ended (supervise_status.c).
 */
#ifndef TRP_LAUNCHER_SUPERVISE_WATCH_H
#define TRP_LAUNCHER_SUPERVISE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "events/run_folder.h"
#include "supervise.h"

enum {
    TRP_WATCH_COME_UP_MS = 60000, /* for a driver of a pipeline to be there */
    TRP_WATCH_MPIRUN_MS = 20000,  /* the same of one that mpirun starts; as long as a
                                   * meeting over MPI may take */
    TRP_WATCH_PLATFORM = 4,       /* exit status: the platform failed */
    TRP_WATCH_SPARED = 63,
};

struct trp_watch {
    const trp_run_folder *folder;
    const struct trp_supervised *what;
    struct trp_supervisor *supervisor;
    int signals, listen, control, guard; /* -1: closed */
    pid_t guard_pid;                     /* 0: reaped, with guard_status */
    int guard_status;
    uint32_t guards;                   /* that were lost so far */
    pid_t driver;                      /* what the guard has started; 0: nothing yet */
    bool adopted;                      /* a guard was lost: its children are ours */
    pid_t spare[TRP_WATCH_SPARED + 1]; /* children from before; room for the guard */
    uint32_t nspare;
    int interrupts;  /* SIGINT, SIGTERM, SIGHUP so far */
    bool time_is_up; /* SIGUSR1 came */
    bool connected;  /* the driver was there */
    bool has_status; /* 'E' came */
    int64_t asked,
        heard;         /* when the driver was last asked whether it is there, and when
                           * it last said so; ms */
    bool told_silent;  /* it has not for long */
    bool driver_ended; /* with driver_status */
    int driver_status;
    int status;
    uint8_t said[5]; /* of the driver, so far */
    size_t nsaid;
    int64_t deadline; /* INT64_MAX: none */
    bool told_coming_up;
    bool absent; /* the driver did not come up in time */
    bool over;
    char failure[TRP_ERROR_TEXT]; /* the platform failed: why */
};

/* For how long the driver may take to be there. */
static inline int trp_watch_come_up_ms(const struct trp_watch *w)
{
    return *w->supervisor->ompi_server ? TRP_WATCH_MPIRUN_MS : TRP_WATCH_COME_UP_MS;
}

/* The exit status of a run: what its driver has said, if that holds, or what its end
 * says. On stderr stands why. */
int trp_watch_status(const struct trp_watch *w);

#endif
