/*
 * `troupe cancel RUN`: tells the supervising `troupe` of a run to end it, as Ctrl-C
 * would, and waits until it has. The run's state names its pid; the run's lock is held
 * as long as it lives, and its name is checked as well, so that no stranger who got the
 * pid is signalled.
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

enum option { NOW = 1 };
static const struct trp_arg table[] = {
    {"now", TRP_ARG_FLAG, NOW},
    {NULL,  TRP_ARG_FLAG, 0  },
};

static const char usage[] =
    "usage: troupe cancel [--now] RUN\n\n"
    "RUN is a name that troupe ls shows, or `last`. Running tasks may finish within\n"
    "the run's grace time; with --now they are killed. Waits until the run has "
    "ended.\n";

enum { LOOK_MS = 50 };

/* The base folder and name of RUN, which may be a path. */
static bool locate(const char *run, char **ret_base, char **ret_name)
{
    char *path = NULL, *wanted = NULL;
    char *cwd = getcwd(NULL, 0);
    if (cwd && asprintf(&wanted, "%s/troupe-runs/%s", cwd, run) >= 0)
        path = realpath(strchr(run, '/') ? run : wanted, NULL);
    free(wanted);
    free(cwd);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash || slash == path) {
        free(path);
        return false;
    }
    *ret_name = strdup(slash + 1);
    *slash = '\0';
    char *above = strrchr(path, '/');
    if (above)
        *above = '\0';
    *ret_base = path;
    return *ret_name && above;
}

/* 1: runs, with its pid; 0: does not run; TRP_ENOENT: is not there. */
static int look(const char *base, const char *name, int *ret_pid, trp_error *err)
{
    struct trp_run_view *v;
    uint32_t n;
    int code = trp_run_folder_list(base, &v, &n, err);
    if (code < 0)
        return code;
    code = TRP_ENOENT;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(v[i].name, name) != 0)
            continue;
        code = strcmp(v[i].status, "running") == 0;
        *ret_pid = v[i].pid;
    }
    trp_run_folder_list_free(v, n);
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

static int wait_for_end(const char *base, const char *name, int pid)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    trp_error err;
    int now = 0, code;
    while ((code = look(base, name, &now, &err)) == 1 && now == pid)
        nanosleep(&pause, NULL);
    if (code < 0 && code != TRP_ENOENT)
        return trp_launcher_fail(&err);
    printf("%s ended\n", name);
    return trp_launcher_printed(0);
}

static int cancel(const char *run, bool hard)
{
    char *base = NULL, *name = NULL;
    int pid = 0, status;
    trp_error err;
    int code = locate(run, &base, &name) ? look(base, name, &pid, &err) : TRP_ENOENT;
    if (code == TRP_ENOENT)
        status = trp_launcher_misuse("cancel: no run %s here (see troupe ls)", run);
    else if (code < 0)
        status = trp_launcher_fail(&err);
    else if (code == 0)
        status = trp_launcher_misuse("cancel: run %s is not running", name);
    else if (!is_troupe(pid))
        status = trp_launcher_misuse(
            "cancel: process %d of run %s is not ours any more", pid, name);
    else if (kill(pid, hard ? SIGUSR2 : SIGTERM) < 0)
        status = trp_launcher_misuse("cancel: cannot signal run %s: %s", name,
                                     strerror(errno));
    else
        status = wait_for_end(base, name, pid);
    free(base);
    free(name);
    return status;
}

int trp_launcher_cancel(int argc, char **argv)
{
    struct trp_args a = trp_args_of("cancel", table, argc, argv);
    const char *value, *run = NULL;
    bool hard = false;
    trp_error err;
    int what;
    while ((what = trp_args_next(&a, &value, &err)) != TRP_ARG_END) {
        if (what == TRP_ARG_HELP) {
            fputs(usage, stdout);
            return trp_launcher_printed(0);
        }
        if (what < 0)
            return trp_launcher_fail(&err);
        if (what == TRP_ARG_REST || (what == TRP_ARG_WORD && run))
            return trp_launcher_misuse("cancel: one RUN, please");
        if (what == NOW)
            hard = true;
        else
            run = value;
    }
    if (!run || !*run)
        return trp_launcher_misuse("cancel: no RUN given (see troupe ls)");
    return cancel(run, hard);
}
