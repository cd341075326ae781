/*
 * What the process in front of a rank (executor/gang_keep.c) notes in a Slurm step:
 * what the rank has used, and how much memory there was when it was killed.
 *
 * The rank cannot tell, and when it is gone its control group is about to go: Slurm
 * ends the step at once, so that an observer beside the rank would be too late now and
 * then. The step lasts as long as its task, which is this process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cluster/slurm/steps/step.h"
#include "executor/spawner.h"
#include "os/cgroup.h"

/* Slurm holds the step to its memory, on each node; below it are groups of tasks. */
static void leave_task_group(char *path)
{
    for (char *last; (last = strrchr(path, '/'));) {
        if (strncmp(last, "/task_", 6) != 0 && strcmp(last, "/user") != 0)
            return;
        *last = '\0';
    }
}

/* The first that is killed tells. */
static void note_memory(const char *spec)
{
    char group[TRP_CGROUP_PATH];
    bool v2;
    int64_t limit;
    if (!trp_cgroup_own_memory("", group, &v2, &limit) || limit <= 0)
        return;
    leave_task_group(group);
    FILE *f = trp_gang_note(spec, "memory", "wx");
    if (!f)
        return;
    fprintf(f, "%lld %lld\n", (long long)limit,
            (long long)trp_cgroup_peak_mib(group, v2));
    fclose(f);
}

/* For executor/gang_used.c, which knows nothing of ranks that did not tell. */
static void note_used(const char *spec)
{
    char name[32];
    struct rusage u;
    const char *rank = getenv("SLURM_PROCID");
    if (!rank || getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    snprintf(name, sizeof name, "used.%s", rank);
    FILE *f = trp_gang_note(spec, name, "wx");
    if (!f)
        return;
    fprintf(f, "%lld %ld\n",
            (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
                (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL,
            u.ru_maxrss);
    fclose(f);
}

static void note_status(const char *spec, const int *status)
{
    if (!status)
        return;
    note_used(spec);
    if (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL)
        note_memory(spec);
}

int trp_slurm_rank_main(int argc, char **argv)
{
    return trp_gang_keep_rank(argc, argv, note_status);
}
