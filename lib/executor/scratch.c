/*
 * Scratch folders.
 *
 * A folder that a command did not touch is handed out again, which spares two to four
 * slow calls an attempt. Untouched means: same inode, owner, mode, size and times. The
 * kernel's clock for file times ticks every 1–10 ms, so a file made within the tick in
 * which the folder was made would not show: a folder that was handed out that young is
 * looked into instead.
 */
#include "executor/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/held.h"
#include "os/tree.h"

enum { YOUNG_NS = 20000000 };

static int make_one(const char *path)
{
    if (trp_held_mkdir(path, 0700) == 0)
        return 1;
    struct stat st;
    int error = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    errno = error == EEXIST ? ENOTDIR : error;
    return -1;
}

int trp_folder_make(const char *path, trp_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return trp_error_set(err, TRP_ELIMIT, "a folder's path has %zu bytes", n);
    memcpy(part, path, n + 1);
    int r = make_one(part);
    for (size_t i = 1; r < 0 && errno == ENOENT && i < n; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        if (make_one(part) < 0)
            break;
        part[i] = '/';
        errno = ENOENT;
    }
    if (r < 0)
        r = make_one(path);
    if (r < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot make folder %s: %m", path);
    return r;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_empty(int at, const char *name)
{
    DIR *d = trp_folder_open(at, name);
    if (!d)
        return false;
    struct dirent *e = readdir(d);
    while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0))
        e = readdir(d);
    closedir(d);
    return e == NULL;
}

static bool unchanged(int at, const char *name, const struct stat *before)
{
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == before->st_ino && st.st_dev == before->st_dev &&
           st.st_mode == before->st_mode && st.st_uid == before->st_uid &&
           st.st_size == before->st_size && st.st_nlink == before->st_nlink &&
           same_time(&st.st_mtim, &before->st_mtim) &&
           same_time(&st.st_ctim, &before->st_ctim);
}

int trp_scratch_take(struct trp_scratch *s, int at, const char *name)
{
    if (!s->there) {
        if (mkdirat(at, name, 0700) != 0 || fchmodat(at, name, 0700, 0) != 0 ||
            fstatat(at, name, &s->state, AT_SYMLINK_NOFOLLOW) != 0)
            return TRP_ESYSTEM;
        s->there = true;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    int64_t age = (int64_t)(now.tv_sec - s->state.st_ctim.tv_sec) * 1000000000 +
                  now.tv_nsec - s->state.st_ctim.tv_nsec;
    s->trusted = age > YOUNG_NS;
    return TRP_OK;
}

bool trp_scratch_give(struct trp_scratch *s, int at, const char *name)
{
    if (!unchanged(at, name, &s->state) || (!s->trusted && !is_empty(at, name)))
        s->there = false;
    return s->there;
}
