/*
 * Files that are read and written whole.
 */
#ifndef TRP_OS_WHOLE_FILE_H
#define TRP_OS_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads to the end, of a pipe too, but no more than `most` + 1 bytes: one too many says
 * that there is more. *ret is malloc'ed and has a NUL behind it. 0, or an errno. */
int trp_file_read(int fd, size_t most, char **ret, size_t *ret_size);

/* Opens a regular file to read; a FIFO, which would wait for a writer, or a device is -1
 * with ENOTSUP, a folder with EISDIR. */
int trp_file_open_regular(const char *path);

/* The same of a file by its path, in a held folder (os/held.h) or elsewhere. */
int trp_held_read(const char *path, size_t most, char **ret, size_t *ret_size);

/* The beginning of a small file, below the folder `at` unless its path is absolute: as
 * text, of at most `size` - 1 bytes. `flags` besides O_RDONLY. Its length, or -1 with
 * errno: `buf` is "". */
ssize_t trp_file_begin(int at, const char *path, int flags, char *buf, size_t size);

/* -1 with errno. */
int trp_file_write(int fd, const void *data, size_t size);

/* In a held folder (os/held.h): written under another name and renamed, so that readers
 * see it whole. With `sync` it is on the disk before. -1 with errno: it is as it was. */
int trp_held_write(const char *path, const void *data, size_t size, bool sync);

#endif
