/*
 * What an executor said last, from its log.
 */
#ifndef TRP_OS_LOG_TAIL_H
#define TRP_OS_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>

/* The last line that is neither empty nor mpirun's. False: there is none, it does not
 * fit into `size` bytes, or the file cannot be read. */
bool trp_log_last_line(const char *path, char *line, size_t size);

/* Cuts off what mpirun says at the log's end of the death of its program, for one that
 * was ended on purpose. Nobody may write to the log any more. */
void trp_log_drop_banners(const char *path);

#endif
