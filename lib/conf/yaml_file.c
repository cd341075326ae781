/*
 * Reads a whole file for trp_yaml_parse. A pipe is fine (`troupe run <(generate)`), so
 * the size is bounded while reading; a regular file that is too large is refused
 * unread. What a user can mend (no such file, a directory, no permission) is
 * TRP_EINVAL; an error of the disk is TRP_ESYSTEM.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/yaml.h"

enum { READ_FIRST = 64 << 10 };

struct buffer {
    char *data;
    size_t size, room;
};

static const struct trp_mark file_begin = {.line = 1, .column = 1};

static int cannot_read(const char *file, int error, trp_error *err)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
        return trp_error_at(err, TRP_EINVAL, file, file_begin,
                            "cannot be opened: %s; name a file that can be read",
                            strerror(error));
    case ENOMEM:
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    default:
        return trp_error_at(err, TRP_ESYSTEM, file, file_begin,
                            "cannot be read: %s; see to the disk or file system",
                            strerror(error));
    }
}

/* Reads to the end or to one byte above the limit. Returns 0 or an errno. */
static int read_all(int fd, struct buffer *b)
{
    for (;;) {
        if (b->size == b->room) {
            size_t room = b->room ? b->room * 2 : READ_FIRST;
            if (room > TRP_PIPELINE_FILE_MAX)
                room = (size_t)TRP_PIPELINE_FILE_MAX + 1;
            char *grown = room > b->room ? realloc(b->data, room) : NULL;
            if (!grown)
                return room > b->room ? ENOMEM : 0;
            b->data = grown;
            b->room = room;
        }
        ssize_t n = read(fd, b->data + b->size, b->room - b->size);
        if (n == 0)
            return 0;
        if (n > 0)
            b->size += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
}

int trp_yaml_load(const char *file, struct trp_conf_arena *keep, trp_yaml **ret,
                  trp_error *err)
{
    struct buffer b = {0};
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return cannot_read(file, errno, err);
    int error = fstat(fd, &st) < 0 ? errno : 0;
    bool directory = !error && S_ISDIR(st.st_mode);
    if (!error && !directory) {
        if (S_ISREG(st.st_mode) && st.st_size > TRP_PIPELINE_FILE_MAX)
            b.size = (size_t)st.st_size; /* trp_yaml_parse refuses it by size */
        else
            error = read_all(fd, &b);
    }
    close(fd);

    int code;
    if (directory)
        code = trp_error_at(err, TRP_EINVAL, file, file_begin,
                            "this is a directory; name a YAML file");
    else if (error)
        code = cannot_read(file, error, err);
    else
        code = trp_yaml_parse(file, b.data ? b.data : "", b.size, keep, ret, err);
    free(b.data);
    return code;
}
