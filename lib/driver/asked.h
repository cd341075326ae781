/*
 * The driver's side of ask.h: takes requests on its loop and answers them there (served.h
 * says why that holds nobody up).
 *
 * Where no socket can be had (a file system without them) the run goes on without one:
 * `troupe status` reads its event log then.
 */
#ifndef TRP_DRIVER_ASKED_H
#define TRP_DRIVER_ASKED_H

#include <uv.h>

#include "core/base/bytes.h"
#include "driver/ask.h"

typedef struct trp_asked trp_asked;

/* Appends the answer to a request, a JSON object without a newline. */
typedef void trp_answer(void *context, const struct trp_ask *q, struct trp_buf *ret);

/* NULL: there is no socket; `err` says why. `run_dir` is copied. */
trp_asked *trp_asked_new(uv_loop_t *loop, const char *run_dir, trp_answer *answer,
                         void *context, trp_error *err);
/* Closes all connections and removes the socket; the loop frees it when it runs next.
 * NULL is allowed. */
void trp_asked_close(trp_asked *take_a);

#endif
