/*
 * Sockets that others call. Internal to lib/comm and lib/data.
 */
#ifndef TRP_COMM_LISTEN_H
#define TRP_COMM_LISTEN_H

#include <stdbool.h>

#include "core/base/error.h"

enum { TRP_LISTEN_BACKLOG = 1024, TRP_ADDRESS_TEXT = 300 };

/* A non-blocking TCP socket, on any port of all interfaces or, `here_only`, of this
 * machine alone. "HOST:PORT", by which other nodes know it, is put at ret_address.
 * TRP_ESYSTEM. */
int trp_listen(bool here_only, char ret_address[TRP_ADDRESS_TEXT], trp_error *err);

#endif
