/*
 * Short questions to the driver, taken on its loop and answered there: a request and an
 * answer a connection, after which it is closed.
 *
 * Nobody who asks can hold the run up. All is done without blocking; a request has at most
 * TRP_SERVED_REQUEST bytes; there are at most TRP_SERVED_CLIENTS connections, of which the
 * oldest that has asked nothing makes room for a new one; and after an answer that took the
 * loop so long there is none for TRP_SERVED_PAUSE times as long. Those who wait are answered
 * in turn.
 */
#ifndef TRP_DRIVER_SERVED_H
#define TRP_DRIVER_SERVED_H

#include <stdbool.h>
#include <uv.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

enum {
    TRP_SERVED_CLIENTS = 16,
    TRP_SERVED_REQUEST = 4096,
    TRP_SERVED_WAIT_MS = 5000,      /* for a side that does not go on */
    TRP_SERVED_PAUSE = 10,          /* at most a tenth of the loop's time … */
    TRP_SERVED_PAUSE_MAX_MS = 1000, /* … but for answers that take longer than this */
};

struct trp_served_how {
    /* How many of the bytes are a whole request; 0: it goes on. */
    size_t (*whole)(const char *text, size_t n);
    /* Appends the answer to a request: a whole one, or TRP_SERVED_REQUEST bytes of one that
     * is too long. */
    void (*answer)(void *context, const char *text, size_t n, struct trp_buf *ret);
    bool same_user; /* a Unix socket: only this user's processes are heard */
};

typedef struct trp_served trp_served;

/* `take_fd` listens, and does not block; it is closed when this fails as well. */
trp_served *trp_served_new(uv_loop_t *loop, int take_fd,
                           const struct trp_served_how *how, void *context,
                           trp_error *err);
/* Closes all connections; the loop frees it when it runs next. NULL is allowed. */
void trp_served_close(trp_served *take_s);

#endif
