/*
 * Before a rank of a gang in a Slurm step, or below MPICH's mpirun: a process that
 * waits for the rank, tells what it has used, and how much memory there was when it was
 * killed, and ends as it did. To MPICH's mpirun it also tells how (executor/gang.c says
 * why).
 *
 * The rank cannot tell, and when it is gone its control group is about to go: Slurm
 * ends the step at once, so that an observer beside the rank would be too late now and
 * then. The step lasts as long as its task, which is this process. To it alone Slurm
 * passes signals on; it passes them to the rank.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/local/cgroup.h"
#include "cluster/slurm/step.h"
#include "executor/spawner.h"
#include "files/held.h"

/* Slurm holds the step to its memory, on each node; below it are groups of tasks. */
static void leave_task_group(char *path)
{
    for (char *last; (last = strrchr(path, '/'));) {
        if (strncmp(last, "/task_", 6) != 0 && strcmp(last, "/user") != 0)
            return;
        *last = '\0';
    }
}

/* Into the gang's folder, beside its specification; the first that is killed tells. */
static void note_memory(const char *spec)
{
    char group[TRP_CGROUP_PATH], path[4400];
    bool v2;
    int64_t limit;
    const char *slash = strrchr(spec, '/');
    if (!slash || !trp_cgroup_own_memory("", group, &v2, &limit) || limit <= 0)
        return;
    leave_task_group(group);
    snprintf(path, sizeof path, "%.*s/memory", (int)(slash - spec), spec);
    FILE *f = trp_held_fopen(path, "wx");
    if (!f)
        return;
    fprintf(f, "%lld %lld\n", (long long)limit,
            (long long)trp_cgroup_peak_mib(group, v2));
    fclose(f);
}

/* For executor/gang_used.c, which knows nothing of ranks that did not tell. */
static void note_used(const char *spec)
{
    char path[4400];
    struct rusage u;
    const char *slash = strrchr(spec, '/'), *rank = getenv("SLURM_PROCID");
    if (!slash || !rank || getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    snprintf(path, sizeof path, "%.*s/used.%s", (int)(slash - spec), spec, rank);
    FILE *f = trp_held_fopen(path, "wx");
    if (!f)
        return;
    fprintf(f, "%lld %ld\n",
            (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
                (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL,
            u.ru_maxrss);
    fclose(f);
}

/* Of MPICH's mpirun: where it is told how each rank ends; -1 in a Slurm step. */
static int open_ends(const char *spec)
{
    char path[4400];
    const char *slash = strrchr(spec, '/');
    if (!slash || getenv("SLURM_PROCID"))
        return -1;
    snprintf(path, sizeof path, "%.*s/ends", (int)(slash - spec), spec);
    return trp_held_open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
}

static void note_end(int ends, int status)
{
    uint8_t code =
        (uint8_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (write(ends, &code, 1) != 1)
        perror("troupe-rank: how the rank ended could not be told");
}

static int await(pid_t rank, const sigset_t *all)
{
    int status = 0;
    siginfo_t info;
    while (waitpid(rank, &status, WNOHANG) != rank) {
        if (sigwaitinfo(all, &info) > 0 && info.si_signo != SIGCHLD)
            kill(rank, info.si_signo);
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

int trp_kept_rank_main(int argc, char **argv)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t self = getpid(), rank = fork();
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
    int ends = holds ? open_ends(argv[2]) : -1;
    int status = await(rank, &all);
    if (ends >= 0)
        note_end(ends, status);
    else if (holds)
        note_used(argv[2]);
    if (ends < 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && holds)
        note_memory(argv[2]);
    return end_as(status);
}
