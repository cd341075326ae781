/*
 * The folder is handed over as Open MPI's own parameter (orte_tmpdir_base), not as
 * TMPDIR: TMPDIR stays the user's, for a program that runs below.
 */
#include "cluster/mpirun.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/processes.h"
#include "os/quick_hwloc.h"

#define FOLDER_ENTRY TRP_MPI_FOLDER "="

char **trp_mpirun_argv(const char *ompi_server, const char *const *program)
{
    static const char *const flags[] = {
        "mpirun", "-np", "1", "--bind-to", "none", "--oversubscribe", "--mca", "ras",
        "^slurm", "--mca", "plm", "isolated",
        /* Messages go over TCP alone (docs/decisions/0074). */
        "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
        /* How long an accept asks for an executor that has died meanwhile. */
        "--mca", "pmix_server_max_wait", "3",
        /* Else mpirun waits 1 s twice after a rank that fails. */
        "--mca", "odls_base_sigkill_timeout", "0", "--ompi-server"};
    struct trp_argv a = {0};
    for (size_t i = 0; *ompi_server && i < sizeof flags / sizeof *flags; i++)
        trp_argv_add(&a, "%s", flags[i]);
    if (*ompi_server)
        trp_argv_add(&a, "%s%s", *ompi_server == '/' ? "file:" : "", ompi_server);
    for (; *program; program++)
        trp_argv_add(&a, "%s", *program);
    return trp_argv_done(&a);
}

/* ---- gangs ----------------------------------------------------------------------- */

const char *const trp_mpirun_programs[] = {"mpirun", "mpirun.openmpi", "mpiexec.hydra",
                                           NULL};

/* Which MPI's the program of that name in PATH is; none: it is not there. MPICH's is
 * called hydra, whatever links to it. */
static enum trp_linked_mpi launcher_in_path(const char *name)
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/bin:/bin"; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        char path[4096];
        snprintf(path, sizeof path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
        char *real = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
        const char *base = real ? strrchr(real, '/') : NULL;
        bool hydra = base && strstr(base, "hydra");
        free(real);
        if (base)
            return hydra ? TRP_LINKED_MPICH : TRP_LINKED_OPENMPI;
        at += n;
    }
    return TRP_LINKED_NONE;
}

static const char *const mpi_names[] = {
    [TRP_LINKED_OPENMPI] = "Open MPI", [TRP_LINKED_MPICH] = "MPICH"};

static int no_launcher(enum trp_linked_mpi mpi, enum trp_linked_mpi here,
                       trp_error *err)
{
    if (!here)
        return trp_error_set(err, TRP_ENEVER, "there is no mpirun in PATH");
    return trp_error_set(
        err, TRP_ENEVER,
        "its program is linked with %s, and the mpirun in PATH is of %s; put "
        "the one of %s there as well (mpirun, %s), or build it with %s",
        mpi_names[mpi], mpi_names[here], mpi_names[mpi],
        mpi == TRP_LINKED_MPICH ? "mpiexec.hydra" : "mpirun.openmpi", mpi_names[here]);
}

int trp_mpirun_gang_argv(enum trp_linked_mpi mpi, uint32_t ranks, char ***ret_argv,
                         trp_error *err)
{
    /* Open MPI 4 would ask for ssh (rsh), which its later ones know by another name. */
    static const char *const of_openmpi[] = {
        "--oversubscribe", "--bind-to", "none", "--mca",     "ras",
        "^slurm",          "--mca",     "plm",  "^slurm,rsh"};
    static const char *const of_mpich[] = {"-bind-to", "none", "-launcher", "fork"};
    enum trp_linked_mpi first = TRP_LINKED_NONE, found = TRP_LINKED_NONE;
    const char *name = NULL;
    for (size_t i = 0; trp_mpirun_programs[i] && !name; i++) {
        found = launcher_in_path(trp_mpirun_programs[i]);
        first = first ? first : found;
        if (found && (!mpi || found == mpi))
            name = trp_mpirun_programs[i];
    }
    if (!name)
        return no_launcher(mpi, first, err);
    bool mpich = found == TRP_LINKED_MPICH;
    const char *const *flags = mpich ? of_mpich : of_openmpi;
    size_t n = (mpich ? sizeof of_mpich : sizeof of_openmpi) / sizeof *flags;
    struct trp_argv a = {0};
    trp_argv_add(&a, "%s", name);
    trp_argv_add(&a, "-np");
    trp_argv_add(&a, "%u", ranks);
    for (size_t i = 0; i < n; i++)
        trp_argv_add(&a, "%s", flags[i]);
    *ret_argv = trp_argv_done(&a);
    return *ret_argv ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* ---- ends ------------------------------------------------------------------------ */

void trp_mpirun_kill_program(pid_t pid, bool by_mpirun)
{
    if (by_mpirun)
        trp_children_signal(pid, SIGKILL);
    else
        kill(pid, SIGKILL);
}

static bool is_dropped(const char *entry)
{
    static const char folder[] = FOLDER_ENTRY;
    static const char *const kept[] = {"SLURM_CONF=", "SLURM_STEPMGR="};
    static const char *const prefixes[] = {
        "OMPI_",          "PMIX_",          "PMI_",
        "SLURM_",         folder,           "TROUPE_CONTROL=",
        "TROUPE_DRIVER=", "TROUPE_RUN_ID=", "TROUPE_EXECUTOR=",
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
            return false;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

char **trp_mpirun_environ(char *const *from, const char *folder,
                          const char *const *more)
{
    struct trp_argv a = {0};
    for (; *from; from++) {
        if (!is_dropped(*from))
            trp_argv_add(&a, "%s", *from);
    }
    for (; *more; more++)
        trp_argv_add(&a, "%s", *more);
    if (folder) {
        trp_argv_add(&a, "OMPI_MCA_orte_tmpdir_base=%s", folder);
        trp_argv_add(&a, FOLDER_ENTRY "%s", folder);
        trp_argv_add(&a, TRP_QUICK_HWLOC_MARK "=1");
    }
    for (int i = 0; folder && i < TRP_QUICK_HWLOC; i++)
        if (!getenv(trp_quick_hwloc[i][0]))
            trp_argv_add(&a, "%s=%s", trp_quick_hwloc[i][0], trp_quick_hwloc[i][1]);
    if (geteuid() == 0) {
        trp_argv_add(&a, "OMPI_ALLOW_RUN_AS_ROOT=1");
        trp_argv_add(&a, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    return trp_argv_done(&a);
}
