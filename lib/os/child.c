#include "os/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setsigmask(attributes, &none);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID |
                                                    POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSIGMASK);
}

static int set_files(posix_spawn_file_actions_t *actions, const int fds[3])
{
    int error = 0;
    for (int fd = 0; !error && fd < 3; fd++)
        error = fds[fd] >= 0 ? posix_spawn_file_actions_adddup2(actions, fds[fd], fd)
                             : posix_spawn_file_actions_addopen(actions, fd,
                                                                "/dev/null", O_RDWR, 0);
    return error;
}

int trp_child_start(char *const *argv, char *const *env, const int fds[3],
                    pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    int error = set_attributes(&attributes);
    if (!error)
        error = set_files(&actions, fds);
    if (!error)
        error = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}
