/*
 * Block server: a thread that gives the blocks in a folder of map outputs to executors
 * of the same run on other hosts.
 *
 * Who calls has to prove the run's secret, and the user with MUNGE, before anything it
 * says is looked at (docs/security.md). Callers that have not done so are few at a
 * time and for a short while. The server keeps nothing of a caller but what it has
 * asked for: who comes again asks again.
 *
 *     trp_block_server_start(&config, &server, &err);
 *     … trp_block_server_endpoint(server) …
 *     trp_block_server_stop(server);
 */
#ifndef TRP_DATA_BLOCK_SERVER_H
#define TRP_DATA_BLOCK_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct trp_block_server_config {
    const char *folder;    /* the run's shuffle folder on this host */
    const char *shared;    /* another one, that all hosts see: outputs of hosts that
                                   * are gone may lie there; borrowed as long as the server
                                   * lives. NULL: there is none */
    const uint8_t *secret; /* TRP_SECRET_SIZE bytes (comm/channel.h), copied */
    bool munge, mac;       /* as in trp_call_config */
    bool here_only;        /* all executors are on this machine */
    int64_t handshake_timeout_ns; /* to prove oneself; 0: 10 s */
    int64_t timeout_ns; /* a caller that asks for nothing, or takes nothing of what it
                         * asked for, so long is hung up on: its host may be gone; 0:
                         * 120 s, longer than clients keep what they do not use */
};

struct trp_block_server_counts {
    uint64_t callers; /* connections that came */
    uint64_t refused; /* … and did not prove themselves */
    uint64_t answers; /* pieces of blocks, or why there are none */
    uint64_t bytes;   /* of blocks */
};

typedef struct trp_block_server trp_block_server;

/* Starts the thread. TRP_ESYSTEM: no socket, no folder; TRP_ENOMEM. */
int trp_block_server_start(const struct trp_block_server_config *config,
                           trp_block_server **ret, trp_error *err);
/* "HOST:PORT"; valid as long as the server. */
const char *trp_block_server_endpoint(const trp_block_server *s);
/* So far; of any thread. */
void trp_block_server_counts(trp_block_server *s, struct trp_block_server_counts *ret);
/* Hangs up on all and ends the thread. NULL: nothing. */
void trp_block_server_stop(trp_block_server *s);

#endif
