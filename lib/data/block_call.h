/*
 * A block client's connection to one block server. Internal to lib/data.
 *
 * It is made when something is wanted, and closed when it fails or nothing is for a
 * while; the record of it stays. Of the client's thread.
 */
#ifndef TRP_DATA_BLOCK_CALL_H
#define TRP_DATA_BLOCK_CALL_H

#include "comm/handshake.h"
#include "data/fetch.h"

enum trp_call_state {
    TRP_CALL_CLOSED,
    TRP_CALL_CONNECTING,
    TRP_CALL_PROVING,
    TRP_CALL_UP
};

struct trp_block_call {
    struct trp_block_calls *all;
    char *endpoint;
    enum trp_call_state state;
    struct trp_link link;
    struct trp_nonces nonces;
    uint32_t attempts; /* each tries the next address of the host */
    bool watches_out;
    int64_t moved_ns;            /* when something came last, or was waited for anew */
    struct trp_fetch *queue;     /* not asked for yet */
    struct piece {               /* asked for: a ring of TRP_WANTED_PENDING */
        struct trp_fetch *fetch; /* NULL: nobody wants it any more */
        struct trp_wanted wanted;
    } * pieces;
    uint32_t first, npieces, answered;
    uint32_t left, got; /* bytes of the first piece that are to come, that came */
    struct trp_block_call *prev, *next;
};

/* All of a client's, and what they tell it. */
struct trp_block_calls {
    struct trp_block_client_config config;
    uint8_t secret[32];
    int epoll_fd;
    int64_t now;
    struct trp_block_call *list;
    struct trp_block_client_counts counts;
    void *context;
    /* The fetch is over: 0 or TRP_ENOENT. */
    void (*over)(void *context, struct trp_fetch *f, int result, const char *why);
    /* The fetch failed in a way that may not last. */
    void (*again)(void *context, struct trp_fetch *f, const char *why);
};

/* Wants it from this endpoint. TRP_ENOMEM. */
int trp_block_call_want(struct trp_block_calls *all, const char *endpoint,
                        struct trp_fetch *f);
/* Nobody wants a fetch that is QUEUED or SENT any more. */
void trp_block_call_drop(struct trp_fetch *f);
/* Something has come, or goes again. */
void trp_block_call_move(struct trp_block_call *call, uint32_t events);
/* Asks for what is queued, and looks at who is late; true: something is under way. */
bool trp_block_calls_progress(struct trp_block_calls *all);
void trp_block_calls_close(struct trp_block_calls *all);

#endif
