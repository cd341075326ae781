/*
 * A process of its own, the keeper, runs the command and is the subreaper of all that
 * descends from it. So it knows when nothing of that is left, whatever has gone to the
 * background or into a session of its own, and finds what there is when time is up.
 * What is in the background is not killed at the command's end: mail(1) leaves there what
 * hands the mail on.
 */
#include "notify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "events/run_record.h"
#include "events/summary.h"
#include "events/task_logs.h"
#include "os/clock.h"
#include "os/processes.h"

enum { TIME_MS = 60000, KILL_MS = 5000, LOOK_MS = 10 };

/* The summary, from the run's log, in a file without a name; -1: no memory for it. */
static int summary_fd(const trp_run_folder *folder)
{
    struct trp_run_records runs;
    char log[4300];
    trp_error err;
    int fd = memfd_create("troupe-summary", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
    if (!out) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    snprintf(log, sizeof log, "%s/events.jsonl", folder->path);
    if (trp_run_records_read(log, &runs, &err) == 0) {
        trp_summary_print(&runs.v[runs.n - 1]->statistics, false, false, out);
        trp_run_records_free(&runs);
        snprintf(log, sizeof log, "%s/logs", folder->path);
        if (trp_logs_any(log))
            fprintf(out, "logs: %s/logs\n", folder->shown);
        fprintf(out, "events: %s/events.jsonl\n", folder->shown);
    } else {
        fprintf(out, "%s\n", err.text);
    }
    fclose(out);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void tell_failed(void)
{
    fprintf(stderr, "troupe: notify: cannot be started: %s\n", strerror(errno));
}

/* In the child. */
static void become(const char *command, const trp_run_folder *folder, int status,
                   int input)
{
    char number[16];
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    snprintf(number, sizeof number, "%d", status);
    if (setenv("TROUPE_STATUS", number, 1) < 0 ||
        setenv("TROUPE_RUN_DIR", folder->path, 1) < 0 || dup2(input, 0) < 0 ||
        dup2(2, 1) < 0)
        _exit(127);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void tell_end(int ended)
{
    if (WIFSIGNALED(ended))
        fprintf(stderr, "troupe: notify: killed by signal %d\n", WTERMSIG(ended));
    else if (WEXITSTATUS(ended) != 0)
        fprintf(stderr, "troupe: notify: exit status %d\n", WEXITSTATUS(ended));
}

/* Takes those that have ended. False: none is left. */
static bool reap(pid_t shell)
{
    int ended;
    pid_t pid;
    while ((pid = waitpid(-1, &ended, WNOHANG)) > 0)
        if (pid == shell)
            tell_end(ended);
    return pid == 0;
}

static void kill_all(pid_t shell)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    int64_t until = trp_clock_ms() + KILL_MS;
    fprintf(stderr, "troupe: notify: did not end within %d s and was killed\n",
            TIME_MS / 1000);
    while (trp_descendants_signal(getpid(), NULL, 0, SIGKILL) > 0 && reap(shell) &&
           trp_clock_ms() < until)
        nanosleep(&pause, NULL);
}

/* In a process of its own, whose children all become whose parents have ended. */
static void keep(const char *command, const trp_run_folder *folder, int status,
                 int input)
{
    int64_t until = trp_clock_ms() + TIME_MS, left;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    pid_t shell = fork();
    if (shell == 0)
        become(command, folder, status, input);
    if (shell < 0)
        tell_failed();
    while (reap(shell)) {
        left = until - trp_clock_ms();
        if (left <= 0) {
            kill_all(shell);
            break;
        }
        const struct timespec t = {.tv_sec = left / 1000,
                                   .tv_nsec = left % 1000 * 1000000};
        sigtimedwait(&child, NULL, &t);
    }
    _exit(0);
}

void trp_notify(const char *command, const trp_run_folder *folder, int status)
{
    int input = summary_fd(folder);
    fflush(stdout);
    pid_t keeper = input < 0 ? -1 : fork();
    if (keeper == 0)
        keep(command, folder, status, input);
    if (input >= 0)
        close(input);
    if (keeper < 0)
        tell_failed();
    while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
        ;
}
