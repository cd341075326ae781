/*
 * Effective ids only: real and saved ones stay root's, and it is those that decide
 * whether the user may signal this process. All capabilities leave the effective set
 * with the user id.
 */
#include "plugin/as_user.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 126 };

static void set_alarm(unsigned seconds)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    alarm(seconds);
}

static _Noreturn void become(uid_t uid, gid_t gid, unsigned seconds,
                             int (*work)(void *), void *context)
{
    if (seconds)
        set_alarm(seconds);
    if (geteuid() == 0 && uid != 0 &&
        (setgroups(1, &gid) != 0 || setegid(gid) != 0 || seteuid(uid) != 0))
        _exit(CANNOT);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* forgotten with a change of user, so now */
    _exit(work(context));
}

int trp_as_user(uid_t uid, gid_t gid, unsigned seconds, int (*work)(void *context),
                void *context)
{
    int status = 0;
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0)
        become(uid, gid, seconds, work, context);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) < CANNOT ? WEXITSTATUS(status) : -1;
}
