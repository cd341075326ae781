/*
 * Starting and ending a throw-away peer, the program that frees a stuck MPI_Comm_accept
 * (mpi/throw_away_peer.c), under an mpirun of its own.
 *
 * It is started without the MPI and Slurm variables of this process (which would make
 * it part of this process's universe) but with its folder for Open MPI's files, which
 * is removed with the run even when its mpirun was killed, in a session of its own, and
 * it ends by an alarm when nobody accepts. Its mpirun is ended by SIGTERM, which ends
 * the program under it as well, and by SIGKILL when it does not go.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/transport.h"
#include "os/child.h"

enum { ARGS_MAX = 64, GO_MS = 500 };

static bool is_of_mpi(const char *entry)
{
    static const char *const prefixes[] = {"OMPI_",  "PMIX_", "PMI_",
                                           "SLURM_", "ORTE_", "PRTE_"};
    static const char *const kept[] = {"OMPI_ALLOW_RUN_AS_ROOT",
                                       "OMPI_MCA_orte_tmpdir_base="};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
            return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Pointers into environ. */
static char **clean_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **env = (char **)calloc(n + 1, sizeof *env);
    for (size_t i = 0; env && i < n; i++)
        if (!is_of_mpi(environ[i]))
            env[kept++] = environ[i];
    return env;
}

pid_t trp_throw_away_start(const char *const *argv, const char *last, trp_error *err)
{
    char *args[ARGS_MAX + 2];
    size_t n = 0;
    for (; argv[n] && n < ARGS_MAX; n++)
        args[n] = (char *)(uintptr_t)argv[n];
    args[n] = (char *)(uintptr_t)last;
    args[n + 1] = NULL;
    char **env = clean_environment();
    if (!env)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    pid_t pid;
    int rc = trp_child_start(args, env, (int[]){-1, -1, -1}, &pid);
    free(env);
    if (rc != 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot start %s: %s", argv[0],
                             strerror(rc));
    return pid;
}

bool trp_throw_away_gone(pid_t pid, bool kill_it)
{
    const struct timespec pause = {0, 5L * 1000 * 1000};
    if (waitpid(pid, NULL, WNOHANG) != 0)
        return true;
    if (!kill_it)
        return false;
    kill(pid, SIGTERM);
    for (int ms = 0; ms < GO_MS; ms += 5) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return true;
        nanosleep(&pause, NULL);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return true;
}
