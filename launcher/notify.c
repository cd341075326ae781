#include "notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events/run_record.h"
#include "events/summary.h"
#include "events/task_logs.h"
#include "os/clock.h"

enum { TIME_MS = 60000 };

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

/* Has it ended in time? Else it is killed. */
static bool wait_for(pid_t child, int *ret_status)
{
    int end = (int)syscall(SYS_pidfd_open, child, 0);
    int64_t until = trp_clock_ms() + TIME_MS, left;
    struct pollfd ready = {.fd = end, .events = POLLIN};
    int n = end < 0 ? 1 : 0; /* a kernel that cannot tell: as long as it takes */
    while (n <= 0 && (left = until - trp_clock_ms()) > 0)
        n = poll(&ready, 1, (int)left);
    if (n <= 0)
        kill(-child, SIGKILL);
    while (waitpid(child, ret_status, 0) < 0 && errno == EINTR)
        ;
    if (end >= 0)
        close(end);
    return n > 0;
}

void trp_notify(const char *command, const trp_run_folder *folder, int status)
{
    int input = summary_fd(folder), ended = 0;
    fflush(stdout);
    pid_t child = input < 0 ? -1 : fork();
    if (child == 0)
        become(command, folder, status, input);
    if (input >= 0)
        close(input);
    if (child < 0) {
        fprintf(stderr, "troupe: notify: cannot be started: %s\n", strerror(errno));
        return;
    }
    setpgid(child, child); /* whoever of the two is first */
    if (!wait_for(child, &ended))
        fprintf(stderr, "troupe: notify: did not end within %d s and was killed\n",
                TIME_MS / 1000);
    else if (WIFSIGNALED(ended))
        fprintf(stderr, "troupe: notify: killed by signal %d\n", WTERMSIG(ended));
    else if (WEXITSTATUS(ended) != 0)
        fprintf(stderr, "troupe: notify: exit status %d\n", WEXITSTATUS(ended));
}
