/*
 * What an executor said last, from its log.
 */
#ifndef TRP_CLUSTER_LOCAL_LOG_TAIL_H
#define TRP_CLUSTER_LOCAL_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>

/* The last line that is neither empty nor mpirun's. False: there is none, it does not
 * fit into `size` bytes, or the file cannot be read. */
bool trp_log_last_line(const char *path, char *line, size_t size);

#endif
