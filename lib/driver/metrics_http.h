/*
 * A run's metrics over HTTP/1: GET /metrics, a connection a request (served.h).
 *
 *     unix:PATH        a Unix socket, which its user alone may open (0600)
 *     127.0.0.1:PORT, [::1]:PORT, localhost:PORT
 *                      of this host alone; who asks has the token of the run:
 *                      `Authorization: Bearer TOKEN`. PORT 0: any that is free
 *
 * Files of the run: state/metrics, the address; state/metrics.token, 0600.
 */
#ifndef TRP_DRIVER_METRICS_HTTP_H
#define TRP_DRIVER_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <uv.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

typedef struct trp_metrics_http trp_metrics_http;

/* `put` appends the metrics. NULL with TRP_EINVAL: `where` is no such address; with
 * another code: it cannot be had. */
trp_metrics_http *trp_metrics_http_new(uv_loop_t *loop, const char *run_dir,
                                       const char *where,
                                       void (*put)(void *context, struct trp_buf *ret),
                                       void *context, trp_error *err);
/* The loop is to run once more. NULL is allowed. */
void trp_metrics_http_close(trp_metrics_http *take_h);

/* For the tests. The address that `where` is: TRP_EINVAL. */
int trp_metrics_http_address(const char *where, struct sockaddr_storage *ret,
                             socklen_t *ret_size, trp_error *err);
/* What a request is answered with: 200, 400, 401, 404, 405, 431. `token` "": none is
 * needed. */
int trp_metrics_http_judge(const char *request, size_t n, const char *token);

#endif
