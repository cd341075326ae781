/*
 * `troupe cancel RUN`: tells the supervising `troupe` of a run to end it, as Ctrl-C
 * would, and waits until it has. The run's state names its pid; its name is checked as
 * well, so that no stranger who got the pid is signalled. Of a run in a Slurm job on
 * another host a step of that job tells it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "events/run_folder.h"
#include "step_call.h"

enum { LOOK_MS = 50, TELL_LOOKS = 20 };

/* 1: runs, with its pid; 0: does not run; TRP_ENOENT: is not there. *ret_host (may be
 * NULL): where, malloc'ed, when that is not here. */
static int read_state(const char *folder, int *ret_pid, char **ret_host)
{
    struct trp_run_view v;
    if (!trp_run_folder_view(folder, &v))
        return TRP_ENOENT;
    int code = strcmp(v.status, "running") == 0;
    *ret_pid = v.pid;
    if (ret_host && *v.host && !trp_run_is_here(&v))
        *ret_host = strdup(v.host);
    trp_run_view_clear(&v);
    return code;
}

static bool is_troupe(int pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool read = fgets(name, sizeof name, f) != NULL;
    fclose(f);
    return read && strncmp(name, "troupe", 6) == 0;
}

static int wait_for_end(const char *folder, int pid, bool hard)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    const char *run = strrchr(folder, '/') + 1;
    int now = 0, looks = 0;
    while (read_state(folder, &now, NULL) == 1 && now == pid) {
        if (++looks == TELL_LOOKS && !hard)
            fprintf(
                stderr,
                "troupe: cancel: running tasks of %s may finish, for as long as its "
                "run.grace; with --now they are killed\n",
                run);
        nanosleep(&pause, NULL);
    }
    printf("%s ended\n", run);
    return trp_launcher_printed(0);
}

/* Its troupe is gone, as the run's state does not tell yet. */
static int gone(const char *folder)
{
    return trp_launcher_misuse(
        trp_run_folder_is_driven(folder)
            ? "cancel: run %s ends already: its troupe is gone, and its driver follows"
            : "cancel: run %s has no process of ours any more",
        strrchr(folder, '/') + 1);
}

static int cancel_here(const char *folder, int pid, bool hard)
{
    if (!is_troupe(pid))
        return gone(folder);
    if (kill(pid, hard ? SIGUSR2 : SIGTERM) < 0)
        return trp_launcher_misuse("cancel: cannot signal run %s: %s",
                                   strrchr(folder, '/') + 1, strerror(errno));
    return wait_for_end(folder, pid, hard);
}

static int cancel_there(const char *folder, const char *host, int pid, bool hard)
{
    trp_error err;
    int now = 0;
    int code = trp_step_signal(folder, host, pid, hard ? SIGUSR2 : SIGTERM, &err);
    /* The step may have gone with the job that it has ended. */
    if (code == 0 || read_state(folder, &now, NULL) != 1)
        return wait_for_end(folder, pid, hard);
    if (code == TRP_ESTATE)
        return gone(folder);
    trp_error_set(&err, code, "cancel: run %.100s is on %.100s: %s%s",
                  strrchr(folder, '/') + 1, host, err.text,
                  code == TRP_ENOENT ? "; cancel it there" : "");
    return trp_launcher_fail(&err);
}

static int cancel(const char *run, const char *given, bool hard)
{
    char *runs = NULL, *folder = NULL, *host = NULL;
    int pid = 0, status;
    trp_error err;
    int code = trp_runs_dir(given, &runs, &err);
    if (code == 0)
        code = trp_run_folder_find(runs, run, &folder, &err);
    const char *name = code == 0 ? strrchr(folder, '/') + 1 : "";
    if (code < 0)
        status =
            code == TRP_EINVAL
                ? trp_launcher_misuse("cancel: no run %s here (see troupe ls)", run)
                : trp_launcher_fail(&err);
    else if (read_state(folder, &pid, &host) != 1)
        status = trp_launcher_misuse("cancel: run %s is not running", name);
    else
        status = host ? cancel_there(folder, host, pid, hard)
                      : cancel_here(folder, pid, hard);
    free(host);
    free(folder);
    free(runs);
    return status;
}

static struct {
    const char *run, *runs;
    bool hard;
} call;

const struct trp_line trp_line_cancel = {
    "cancel",
    "usage: troupe cancel [options] RUN\n\n"
    "RUN is a name that troupe ls shows, or `last`. Running tasks may finish within\n"
    "the run's grace time. Waits until the run has ended.\n\n",
    "",
    .table = TRP_ARGS(TRP_ARGS_FLAG("now", &call.hard, "kill what runs, at once"),
                      TRP_ARGS_RUNS(&call.runs)),
    .words = {&call.run},
    .please = "one RUN, please"};

int trp_launcher_cancel(void)
{
    if (!call.run || !*call.run)
        return trp_launcher_misuse("cancel: no RUN given (see troupe ls)");
    return cancel(call.run, call.runs, call.hard);
}
