/*
 * From the settled run to its exit status: starts the driver below a guard (guard.h),
 * hands it the user's stdio, turns signals into control bytes, and makes sure that
 * nothing is left when it returns.
 *
 *     trp_supervisor_open(&s, &err);       // private folder, control socket
 *     … write s.control and s.ompi_server into the run specification …
 *     status = trp_supervise(&s, folder, &what);
 *     trp_supervisor_close(&s);
 */
#ifndef TRP_LAUNCHER_SUPERVISE_H
#define TRP_LAUNCHER_SUPERVISE_H

#include <stdbool.h>

#include "core/base/error.h"
#include "events/run_folder.h"
#include "os/private_folder.h"

struct trp_supervisor {
    char folder[TRP_PRIVATE_FOLDER]; /* private, for Open MPI's files; its path is short
                                      */
    char ompi_server[160];           /* file for the URI of ompi-server; "": none */
    char control[64];                /* name of the control socket */
    int listen_fd;
};

/* `sockets`: messages do not travel over MPI. TRP_ESYSTEM: no folder or socket. */
int trp_supervisor_open(struct trp_supervisor *s, bool sockets, trp_error *err);

/* What the driver is. */
struct trp_supervised {
    const char *const *argv; /* program and arguments, NULL at the end */
    bool is_program;         /* the user's own, not troupe-rank */
    bool resumes;            /* it looks first at what earlier starts have done */
    const char *helper;      /* troupe-slurm of a run in Slurm, else NULL */
};

/* Runs it; returns the exit status of the run and says on stderr why when that is not
 * the driver's own. */
int trp_supervise(struct trp_supervisor *s, const trp_run_folder *folder,
                  const struct trp_supervised *what);

/* Removes what trp_supervisor_open made. */
void trp_supervisor_close(struct trp_supervisor *s);

#endif
