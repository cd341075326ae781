/*
 * The process in front of a rank of a gang. It starts the rank, waits for it, writes
 * its end into a note, and ends in the same way. Launchers send signals to this process
 * or to its group; it passes them on to the rank's group, which is another, so that no
 * rank gets one twice.
 *
 * Not every mpirun tells how a rank ended. When one has failed MPICH's kills all
 * others, and then sometimes reports the end of a rank that it killed itself, or none.
 * Open MPI 6's sometimes takes a rank that fails at once for one that it could not
 * start, and ends with 255; openpmix/prrte issue 344 was such a race. The note is
 * written before mpirun can see the end, and a rank that mpirun kills leaves no note.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/spawner.h"
#include "os/held.h"

FILE *trp_gang_note(const char *spec, const char *name, const char *mode)
{
    char path[4400];
    const char *slash = strrchr(spec, '/');
    if (!slash)
        return NULL;
    snprintf(path, sizeof path, "%.*s/%s", (int)(slash - spec), spec, name);
    return trp_held_fopen(path, mode);
}

static int await(pid_t rank, const sigset_t *all)
{
    int status = 0;
    siginfo_t info;
    while (waitpid(rank, &status, WNOHANG) != rank) {
        if (sigwaitinfo(all, &info) > 0 && info.si_signo != SIGCHLD)
            kill(-rank, info.si_signo);
    }
    return status;
}

static int end_as(int status)
{
    sigset_t none;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int trp_gang_keep_rank(int argc, char **argv,
                       void (*note)(const char *spec, const int *status))
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t self = getpid(), rank = fork();
    if (rank >= 0)
        setpgid(rank, rank); /* both do, as either may be first */
    if (rank == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            return 1;
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    if (rank < 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    if (rank <= 0) /* without a process in front when there is none to be had */
        return trp_gang_rank_main(argc, argv);
    bool holds = argc == 5 && trp_gang_rank_hold(argv, NULL) == 0;
    if (holds)
        note(argv[2], NULL);
    int status = await(rank, &all);
    if (holds)
        note(argv[2], &status);
    return end_as(status);
}

/* A byte of each rank, in the order in which they end. */
static void note_end(const char *spec, const int *status)
{
    FILE *f = trp_gang_note(spec, "ends", "a");
    if (f && status)
        putc(WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status), f);
    if (!f || fclose(f) != 0)
        perror("troupe-rank: how the rank ended could not be told");
}

int trp_gang_keep_mpirun_rank(int argc, char **argv)
{
    return trp_gang_keep_rank(argc, argv, note_end);
}
