/*
 * See the header. The file is written with write(2) alone: stdio would hold back bytes
 * of its own choosing and could not say how many of them arrived. A write that stops in
 * the middle of a line (disk full, quota) is undone to the last LF by ftruncate.
 *
 * Links are relative, so that a folder of runs may be moved or seen through another
 * mount.
 */
#include "events/log_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/held.h"

static int failed(const char *what, const char *path, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s %s: %m", what, path);
}

/* Where the last whole line ends; -1 with errno. */
static off_t whole_lines(int fd, off_t size)
{
    char block[65536];
    while (size > 0) {
        size_t n = size < (off_t)sizeof block ? (size_t)size : sizeof block;
        ssize_t got = pread(fd, block, n, size - (off_t)n);
        if (got != (ssize_t)n)
            return -1;
        const char *lf = memrchr(block, '\n', n);
        if (lf)
            return size - (off_t)n + (lf - block) + 1;
        size -= (off_t)n;
    }
    return 0;
}

int trp_log_file_open(const char *path, trp_error *err)
{
    int fd = trp_held_open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        return failed("write", path, err);
    struct stat st;
    off_t end = 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        end = whole_lines(fd, st.st_size);
    if (end < 0 ||
        (end < st.st_size && S_ISREG(st.st_mode) && ftruncate(fd, end) < 0)) {
        failed("write", path, err);
        close(fd);
        return TRP_ESYSTEM;
    }
    return fd;
}

/* Of n bytes only `done` were written: takes back what is not a whole line. What is left;
 * where even this fails, with its errno, there is nothing left to try. */
static size_t take_back(int fd, const char *lines, size_t done)
{
    const char *lf = memrchr(lines, '\n', done);
    size_t keep = lf ? (size_t)(lf - lines) + 1 : 0;
    int why = errno;
    off_t size = lseek(fd, 0, SEEK_END);
    if (keep != done &&
        (size < (off_t)done || ftruncate(fd, size - (off_t)(done - keep)) < 0))
        return done;
    errno = why;
    return keep;
}

int trp_log_file_write(int fd, const char *path, const void *lines, size_t n,
                       size_t *ret_written, trp_error *err)
{
    size_t done = 0;
    *ret_written = n;
    while (done < n) {
        ssize_t w = write(fd, (const char *)lines + done, n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            int code = failed("write", path, err);
            *ret_written = take_back(fd, lines, done);
            return code;
        }
        done += (size_t)w;
    }
    return 0;
}

int trp_log_file_close(int fd, const char *path, trp_error *err)
{
    int code = 0;
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS) /* a device, a pipe */
        code = failed("write", path, err);
    if (close(fd) < 0 && code == 0)
        code = failed("write", path, err);
    return code;
}

/* `file` as seen from `dir`: relative when both lie below dir's parent. */
static void target_of(const char *dir, const char *file, char *buf, size_t size)
{
    const char *slash = strrchr(dir, '/');
    size_t n = slash ? (size_t)(slash - dir) + 1 : 0;
    if (slash && strncmp(dir, file, n) == 0)
        snprintf(buf, size, "../%s", file + n);
    else
        snprintf(buf, size, "%s", file);
}

/* Removes links in `dir` to the same target. */
static void remove_links(int dir, const char *target)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        char to[PATH_MAX];
        ssize_t n = readlinkat(dir, e->d_name, to, sizeof to - 1);
        if (n > 0 && (size_t)n == strlen(target) && memcmp(to, target, (size_t)n) == 0)
            unlinkat(dir, e->d_name, 0);
    }
    closedir(d);
}

static int open_dir(const char *dir, trp_error *err)
{
    int fd = trp_held_open(dir, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? failed("open", dir, err) : fd;
}

int trp_history_begin(const char *dir, const char *app_id, const char *file,
                      trp_error *err)
{
    if (trp_held_mkdir(dir, 0700) < 0 && errno != EEXIST)
        return failed("make", dir, err);
    int fd = open_dir(dir, err);
    if (fd < 0)
        return fd;
    char name[NAME_MAX + 1], target[PATH_MAX];
    snprintf(name, sizeof name, "%s.inprogress", app_id);
    target_of(dir, file, target, sizeof target);
    remove_links(fd, target);
    int code = 0;
    if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
        code = failed("replace a link in", dir, err);
    else if (symlinkat(target, fd, name) < 0)
        code = failed("make a link in", dir, err);
    close(fd);
    return code;
}

int trp_history_end(const char *dir, const char *app_id, trp_error *err)
{
    int fd = open_dir(dir, err);
    if (fd < 0)
        return fd;
    char name[NAME_MAX + 1];
    snprintf(name, sizeof name, "%s.inprogress", app_id);
    int code =
        renameat(fd, name, fd, app_id) < 0 ? failed("rename a link in", dir, err) : 0;
    close(fd);
    return code;
}
