/*
 * What readers want of the block client. Internal to lib/data.
 */
#ifndef TRP_DATA_FETCH_H
#define TRP_DATA_FETCH_H

#include "data/block_client.h"
#include "data/block_wire.h"

/* A piece that is wanted. The reader's until it is begun, and again when it is done. */
struct trp_fetch {
    const struct trp_data_host *host;
    struct trp_wanted wanted;
    uint8_t *to; /* room for wanted.size bytes */

    /* When it is done: 0, or TRP_ENOENT: it cannot be had, and `why`. */
    bool done;
    int result;
    bool answered;  /* by a server, which had it looked for */
    uint64_t size;  /* of the whole block */
    uint32_t bytes; /* that were put at `to` */
    char why[TRP_BLOCK_WHY + 1];

    /* The client's. */
    bool begun;
    bool ending; /* in the list of those that nobody wants */
    enum { TRP_FETCH_WAITS, TRP_FETCH_QUEUED, TRP_FETCH_SENT, TRP_FETCH_OVER } where;
    struct trp_block_call *call; /* QUEUED, SENT: of this connection */
    uint32_t slot;               /* SENT */
    uint32_t tries;
    int64_t due_ns; /* WAITS: until then … */
    bool unknown;   /* … or until there is a server of its location */
    struct trp_fetch *prev, *next, *next_ended;
};

void trp_fetch_begin(trp_block_client *c, struct trp_fetch *f);
/* Waits until it is done. TRP_ECANCELLED: `killed` says so (it goes on); else 0. */
int trp_fetch_wait(trp_block_client *c, struct trp_fetch *f,
                   const volatile int *killed);
/* Nobody wants it any more; waits until the client has let go of it. */
void trp_fetch_end(trp_block_client *c, struct trp_fetch *f);

#endif
