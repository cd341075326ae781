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
#include "os/whole_file.h"

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

int trp_yaml_load(const char *file, struct trp_conf_arena *keep, trp_yaml **ret,
                  trp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return cannot_read(file, errno, err);
    int error = fstat(fd, &st) < 0 ? errno : 0;
    bool directory = !error && S_ISDIR(st.st_mode);
    if (!error && !directory) {
        if (S_ISREG(st.st_mode) && st.st_size > TRP_PIPELINE_FILE_MAX)
            size = (size_t)st.st_size; /* trp_yaml_parse refuses it by size */
        else
            error = trp_file_read(fd, TRP_PIPELINE_FILE_MAX, &text, &size);
    }
    close(fd);

    int code;
    if (directory)
        code = trp_error_at(err, TRP_EINVAL, file, file_begin,
                            "this is a directory; name a YAML file");
    else if (error)
        code = cannot_read(file, error, err);
    else
        code = trp_yaml_parse(file, text ? text : "", size, keep, ret, err);
    free(text);
    return code;
}

int trp_yaml_open(const char *file, const char *text, size_t size,
                  struct trp_conf_arena *keep, trp_yaml **ret, trp_error *err)
{
    return text ? trp_yaml_parse(file, text, size, keep, ret, err)
                : trp_yaml_load(file, keep, ret, err);
}
