/*
 * What the run tells a monitoring system (events/metrics.h): a file that is written anew
 * every TRP_METRICS_EVERY_MS and at the end (`metrics.file`), and an answer over HTTP
 * (`metrics.listen`, metrics_http.h). Where neither is wanted nothing is done.
 *
 * The text is made on the driver's loop; the file is written by a thread of its own, since
 * it may lie on a file system that hangs.
 */
#ifndef TRP_DRIVER_MONITORING_H
#define TRP_DRIVER_MONITORING_H

#include "core/base/bytes.h"
#include "core/base/error.h"

enum { TRP_METRICS_EVERY_MS = 15000 };

struct trp_driver;

/* TRP_EINVAL: metrics.listen is no address that is served. One that cannot be had, and a
 * file that cannot be written, are told, and the run goes on. */
int trp_driver_metrics_start(struct trp_driver *d, trp_error *err);
/* Nothing is answered any more; the loop is to run once more. */
void trp_driver_metrics_close(struct trp_driver *d);
/* The run has ended: writes the last file. After _close. */
void trp_driver_metrics_end(struct trp_driver *d);

#endif
