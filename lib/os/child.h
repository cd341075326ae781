/*
 * Programs started by a process that may be large: its memory is not copied for them
 * (posix_spawn).
 */
#ifndef TRP_OS_CHILD_H
#define TRP_OS_CHILD_H

#include <sys/types.h>

/* Starts argv[0], looked for in PATH, in a session of its own, with signals as at the
 * start of a program. `fds` are its stdin, stdout and stderr; -1: /dev/null. 0, or an
 * errno: then there is no child. */
int trp_child_start(char *const *argv, char *const *env, const int fds[3],
                    pid_t *ret_pid);

#endif
