#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/slurm/steps/step.h"

enum {
    OTHERS_S = 2, /* executors on other nodes go by themselves, and tidy up */
    AGAIN_S = 1,  /* scancel has tried for some seconds by itself */
    DONE_S = 20,  /* Slurm has taken it: it ends us, unless it has forgotten */
    NO_SCANCEL = 127,
};

/* Its exit status; 1: it did not come to that. */
static int cancel(char *job)
{
    char command[] = "scancel";
    char *const argv[] = {command, job, NULL};
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(NO_SCANCEL);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 1;
}

void trp_slurm_end_own_job(void)
{
    char *job = getenv("SLURM_JOB_ID");
    sleep(OTHERS_S);
    for (int status; job && (status = cancel(job)) != NO_SCANCEL;)
        sleep(status == 0 ? DONE_S : AGAIN_S);
}
