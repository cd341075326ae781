/*
 * Limits: a run of one executor works with 40 descriptors; mpirun hangs with fewer, and
 * the driver wants some for each executor. Open MPI's own files have 4 MiB.
 *
 * Open MPI 4.1 is the only MPI that joins programs that were started separately, by its
 * ompi-server. For comm.transport=mpi its mpirun is asked whether it is that: several
 * MPIs may be in PATH, and an ompi-server says nothing of the mpirun before it.
 */
#include "needs.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "comm/mpi.h"
#include "driver/driver.h"
#include "mpis.h"
#include "os/linked_mpi.h"

enum { FILES = 64, FILE_MIB = 16, MIB = 1024 * 1024 };

static int check_limits(trp_error *err)
{
    struct rlimit files, size;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES)
        return trp_error_set(err, TRP_ESYSTEM,
                             "too few open files are allowed here: %llu, and a run "
                             "needs %d, and 4 more for each executor above 8; say "
                             "`ulimit -n 1024` first",
                             (unsigned long long)files.rlim_cur, FILES);
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur < (rlim_t)FILE_MIB * MIB)
        return trp_error_set(err, TRP_ESYSTEM,
                             "files may not be large enough here: %llu KiB, and a run "
                             "needs %d MiB, or more for its event log; say `ulimit -f "
                             "unlimited` first",
                             (unsigned long long)size.rlim_cur / 1024, FILE_MIB);
    return 0;
}

/* Whether MPI can join separately started programs here. Else TRP_ENEVER: why not. */
static int check_mpi(const char *app, trp_error *err)
{
    if (app && trp_linked_mpi(app) == TRP_LINKED_MPICH)
        return trp_error_set(err, TRP_ENEVER,
                             "%s is linked with MPICH, which cannot join separately "
                             "started programs",
                             app);
    if (!trp_mpi_has_openmpi())
        return trp_error_set(err, TRP_ENEVER, "this Troupe has no module for Open MPI");
    return trp_mpis_join(err);
}

int trp_needs_check(trp_error *err)
{
    return check_limits(err);
}

int trp_needs_transport(const trp_options *o, const char *app, struct trp_carried *ret,
                        trp_error *err)
{
    static const char key[] = "comm.transport";
    const char *value = trp_options_text(o, key);
    trp_error why;
    ret->sockets = strcmp(value, "mpi") != 0;
    if (!ret->sockets && check_mpi(app, &why) < 0)
        return trp_driver_without_mpi(o, why.text, err);
    snprintf(ret->text, sizeof ret->text, "over %s (%s=%s)",
             ret->sockets ? "sockets" : "MPI", key, value);
    return 0;
}
