/*
 * The buffer doubles, whatever stat says: the file may be a pipe, or grow meanwhile.
 */
#include "os/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/held.h"

enum { READ_FIRST = 64 << 10 };

int trp_file_read(int fd, size_t most, char **ret, size_t *ret_size)
{
    char *data = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        if (size == capacity) {
            capacity = capacity ? capacity * 2 : READ_FIRST;
            capacity = capacity > most ? most + 1 : capacity;
            char *grown = realloc(data, capacity + 1);
            if (!grown) {
                free(data);
                return ENOMEM;
            }
            data = grown;
        }
        ssize_t n = read(fd, data + size, capacity - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int code = errno;
            free(data);
            return code;
        }
        size += (size_t)n;
        if (n == 0 || size > most)
            break;
    }
    data[size] = '\0';
    *ret = data;
    *ret_size = size;
    return 0;
}

int trp_file_open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
    return -1;
}

int trp_held_read(const char *path, size_t most, char **ret, size_t *ret_size)
{
    int fd = trp_held_open(path, O_RDONLY, 0);
    if (fd < 0)
        return errno;
    int code = trp_file_read(fd, most, ret, ret_size);
    close(fd);
    return code;
}

ssize_t trp_file_begin(int at, const char *path, int flags, char *buf, size_t size)
{
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC | flags);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

int trp_file_write(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int trp_held_write(const char *path, const void *data, size_t size, bool sync)
{
    char fresh[PATH_MAX + 8];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = trp_held_open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return -1;
    bool written = trp_file_write(fd, data, size) == 0 && (!sync || fsync(fd) == 0);
    if (close(fd) == 0 && written && trp_held_rename(fresh, path) == 0)
        return 0;
    int code = errno;
    trp_held_unlink(fresh, 0);
    errno = code;
    return -1;
}
