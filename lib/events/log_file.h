/*
 * The file of an event log: whole lines only, also after a crash and on a full disk;
 * and the link to it under which Spark's History Server finds it.
 */
#ifndef TRP_EVENTS_LOG_FILE_H
#define TRP_EVENTS_LOG_FILE_H

#include <stddef.h>

#include "core/base/error.h"

/* Opens (0600) for appending; a last line without LF, left by a crash, is cut off.
 * Returns the descriptor or TRP_ESYSTEM with the path. */
int trp_log_file_open(const char *path, trp_error *err);
/* Adds whole lines. On TRP_ESYSTEM, with errno, those that fitted are there, *ret_written
 * bytes, and no part of another. */
int trp_log_file_write(int fd, const char *path, const void *lines, size_t n,
                       size_t *ret_written, trp_error *err);
/* Everything is on disk, then closes. */
int trp_log_file_close(int fd, const char *path, trp_error *err);

/* Makes DIR (0700) when needed and in it the link APPID.inprogress to `file`; links of
 * earlier runs to the same file (it was resumed) go. */
int trp_history_begin(const char *dir, const char *app_id, const char *file,
                      trp_error *err);
/* APPID.inprogress becomes APPID. */
int trp_history_end(const char *dir, const char *app_id, trp_error *err);

#endif
