/*
 * The file of a run's metrics, as node_exporter's textfile collector reads it: written
 * whole under another name, and renamed. A thread writes it; of what it has no time for
 * the newest is kept.
 */
#ifndef TRP_DRIVER_METRICS_FILE_H
#define TRP_DRIVER_METRICS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

typedef struct trp_metrics_file trp_metrics_file;

/* In a folder the file is troupe-RUN.prom. NULL: there can be none, as `err` says. */
trp_metrics_file *trp_metrics_file_new(const char *path, const char *run,
                                       trp_error *err);
/* The text is taken over. */
void trp_metrics_file_give(trp_metrics_file *f, struct trp_buf *take_text);
/* Whether it could not be written, and why. */
bool trp_metrics_file_failed(trp_metrics_file *f, char *text, size_t size);
/* When all was written. NULL is allowed. */
void trp_metrics_file_close(trp_metrics_file *take_f);

#endif
