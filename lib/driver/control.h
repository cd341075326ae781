/*
 * Between `troupe` (which the user started and which has the terminal) and the driver
 * (a child of mpirun): one stream socket in the abstract namespace, named by a random
 * token in TROUPE_CONTROL. Both check SO_PEERCRED: the same user.
 *
 * troupe → driver: one byte each, the first with the user's stdin, stdout and stderr as
 * SCM_RIGHTS: 'F' files, 'S' stop (first SIGINT/SIGTERM), 'K' kill (second), 'T' time
 * is up, 'O' ompi-server died: the run ends, 'P' is it there? driver → troupe: 'E' and a
 * little-endian int32: the exit status of the run; 'A' and 0: it is there, and behind 'E':
 * what is the run's has ended, and the program goes on by itself; then it closes. A close
 * without 'E' means the driver died. A driver whose `troupe` is gone cancels its run.
 */
#ifndef TRP_DRIVER_CONTROL_H
#define TRP_DRIVER_CONTROL_H

#include "core/base/error.h"

/* troupe: listens; `ret_name` (>= 64 bytes) is for TROUPE_CONTROL. */
int trp_control_listen(char *ret_name, trp_error *err);
/* troupe: takes the driver's connection (non-blocking: TRP_EWAIT) and sends 'F'. */
int trp_control_accept(int listen_fd, int *ret_fd, trp_error *err);
/* driver: connects, takes the three descriptors and puts them at 0, 1, 2. */
int trp_control_connect(const char *name, int *ret_fd, trp_error *err);

enum trp_control_byte {
    TRP_CONTROL_FILES = 'F',
    TRP_CONTROL_STOP = 'S',
    TRP_CONTROL_KILL = 'K',
    TRP_CONTROL_TIME = 'T',
    TRP_CONTROL_OMPI_SERVER = 'O',
    TRP_CONTROL_PING = 'P',
    TRP_CONTROL_EXIT = 'E',
    TRP_CONTROL_ANSWER = 'A',
};
int trp_control_send(int fd, enum trp_control_byte what);
int trp_control_exit(int fd, int status);
int trp_control_answer(int fd);

#endif
