/*
 * --stage-pipeline=FILE in a user's sbatch. The file is read by `troupe submit
 * --print`, which checks what `troupe submit` would, with Slurm asked what its nodes have:
 * this process does not get YAML and the libraries for it, and whatever the file does
 * to its reader is done to a child.
 *
 * `troupe plan` would not do: in a job it plans for that job.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/wording.h"
#include "plugin/plugin.h"

static int start_submit(const struct trp_plugin *p, char *file, pid_t *ret_pid)
{
    char site[PATH_MAX + 8], command[PATH_MAX], submit[] = "submit",
                                                print[] = "--print";
    char *words[] = {command, submit, print, site, file, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    strcpy(command, p->command);
    snprintf(site, sizeof site, "--site=%s", p->site);
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int reason = posix_spawn(ret_pid, p->command, &files, &how, words, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return reason;
}

static int code_of(int status)
{
    return status == 2 ? TRP_EINVAL : status == 3 ? TRP_ENEVER : TRP_ESYSTEM;
}

int trp_plugin_pipeline(const struct trp_plugin *p, const char *file, trp_error *err)
{
    char *path = NULL;
    int status = 0;
    pid_t pid = 0, got = -1;
    if (!file || !*file)
        return trp_error_set(err, TRP_EINVAL, "no file");
    /* A name that begins with a dash is no option. */
    if (asprintf(&path, "%s%s", *file == '/' ? "" : "./", file) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    /* Where SIGCHLD is ignored nobody would be told how it ended. */
    struct sigaction told = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &told, &before);
    int reason = start_submit(p, path, &pid);
    free(path);
    while (reason == 0 && (got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    sigaction(SIGCHLD, &before, NULL);
    if (reason != 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "%s cannot be started: %s; the administrator says where "
                             "troupe is: troupe=PROGRAM in plugstack.conf",
                             p->command, strerror(reason));
    if (got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (got == pid && WIFSIGNALED(status))
        return trp_error_set(err, TRP_ESYSTEM, "%s was killed by signal %d", p->command,
                             WTERMSIG(status));
    int code = got == pid ? code_of(WEXITSTATUS(status)) : TRP_ESYSTEM;
    return trp_error_set(err, code, "%s is not submitted: it cannot run on this site",
                         trp_show(file).text);
}
