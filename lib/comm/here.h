/*
 * The driver's second admission socket, for executors on its own host: a Unix socket
 * with a name in the abstract namespace, so there is no path that could be too long,
 * lie on a network file system or be left behind. Internal to lib/comm.
 *
 * The name is derived from the run's secret and the driver's address: both sides know
 * it, nobody guesses it. It can be seen once it is there, so both ask the kernel whose
 * process the other one is; what is proved at admission is proved here as well. Where
 * there is no such name (another host, another network namespace), executors use the
 * address.
 */
#ifndef TRP_COMM_HERE_H
#define TRP_COMM_HERE_H

#include <stdbool.h>
#include <stdint.h>

/* Non-blocking and close-on-exec; -1: it cannot be had. */
int trp_here_listen(const uint8_t *secret, const char *address, int backlog);

/* A connection to the driver at `address`, whose process is this user's; -1: there is
 * none. Never blocks. */
int trp_here_connect(const uint8_t *secret, const char *address);

/* The same, whoever that is. */
int trp_here_dial(const uint8_t *secret, const char *address);

#endif
