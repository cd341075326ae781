#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/slurm/step.h"

enum {
    OTHERS_S = 2, /* executors on other nodes go by themselves, and tidy up */
    AGAIN_S = 1,  /* scancel has tried for some seconds by itself */
    NO_SCANCEL = 127,
};

/* True: it is cancelled, or cannot be from here. */
static bool cancel(char *job)
{
    char command[] = "scancel";
    char *const words[] = {command, job, NULL};
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(words[0], words);
        _exit(NO_SCANCEL);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NO_SCANCEL);
}

void trp_slurm_end_own_job(void)
{
    char *job = getenv("SLURM_JOB_ID");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* Slurm's SIGTERM: it is cancelled */
    sleep(OTHERS_S);
    while (job && !cancel(job))
        sleep(AGAIN_S);
}
