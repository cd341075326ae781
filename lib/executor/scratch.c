/*
 * Scratch folders.
 *
 * A folder that a command did not touch is handed out again, which spares two to four
 * slow calls an attempt. Untouched means: same inode, owner, mode, size and times. The
 * kernel's clock for file times ticks every 1–10 ms, so a file made within the tick in
 * which the folder was made would not show: a folder that was handed out that young is
 * looked into instead.
 *
 * Removal is depth first over an explicit stack of open folders, so that neither the
 * stack of the process nor the length of a path limits it. When the stack is full, the
 * next folder is moved to the top of the tree and removed from there later. A folder
 * that cannot be read is made readable first (it is ours: the parent is 0700). Cost:
 * one unlink an entry. Rejected: nftw (follows paths, not descriptors) and `rm -rf`.
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
#include <unistd.h>

enum { DEPTH = 64, YOUNG_NS = 20000000 };

static int make_one(const char *path)
{
    if (mkdir(path, 0700) == 0)
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
        return trp_error_set(err, TRP_ESYSTEM, "cannot make folder %s: %s", path,
                             strerror(errno));
    return r;
}

/* A removal under way. */
struct removal {
    DIR *dir[DEPTH]; /* [0] is the tree's top */
    char name[DEPTH][NAME_MAX + 1];
    unsigned depth; /* open folders */
    unsigned moved; /* numbers names of folders moved to the top */
    bool failed;
};

static DIR *open_folder(int at, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    if (fd < 0)
        return NULL;
    DIR *d = fdopendir(fd);
    if (!d)
        close(fd);
    return d;
}

/* Goes into the folder `name` of the innermost one. */
static void enter(struct removal *m, int at, const char *name)
{
    if (m->depth == DEPTH) {
        char up[32];
        int top = dirfd(m->dir[0]);
        do
            snprintf(up, sizeof up, ".moved-%u", m->moved++);
        while (faccessat(top, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
        if (fchmodat(at, name, 0700, 0) != 0 || renameat(at, name, top, up) != 0)
            m->failed = true;
        else
            rewinddir(m->dir[0]);
        return;
    }
    DIR *d = open_folder(at, name);
    if (!d) {
        m->failed = true;
        return;
    }
    snprintf(m->name[m->depth], sizeof m->name[0], "%s", name);
    m->dir[m->depth++] = d;
}

/* Removes one entry, or goes into it. */
static void remove_entry(struct removal *m, const struct dirent *e)
{
    int at = dirfd(m->dir[m->depth - 1]);
    if (e->d_type != DT_DIR && unlinkat(at, e->d_name, 0) == 0)
        return;
    if (e->d_type != DT_DIR && errno == EACCES && fchmod(at, 0700) == 0 &&
        unlinkat(at, e->d_name, 0) == 0)
        return;
    if (e->d_type != DT_DIR && errno != EISDIR && errno != EPERM) {
        m->failed = m->failed || errno != ENOENT;
        return;
    }
    if (unlinkat(at, e->d_name, AT_REMOVEDIR) == 0)
        return;
    if (errno == EACCES && fchmod(at, 0700) == 0 &&
        unlinkat(at, e->d_name, AT_REMOVEDIR) == 0)
        return;
    if (errno == ENOTEMPTY || errno == EEXIST)
        enter(m, at, e->d_name);
    else if (errno != ENOENT)
        m->failed = true;
}

/* The innermost folder has been read to its end: up one level. */
static void leave(struct removal *m, int at)
{
    m->depth--;
    closedir(m->dir[m->depth]);
    int parent = m->depth ? dirfd(m->dir[m->depth - 1]) : at;
    if (unlinkat(parent, m->name[m->depth], AT_REMOVEDIR) != 0)
        m->failed = true;
}

int trp_tree_remove(int at, const char *name, size_t *budget)
{
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return TRP_OK;
    if (errno == ENOTDIR)
        return unlinkat(at, name, 0) == 0 ? TRP_OK : TRP_ESYSTEM;
    struct removal *m = calloc(1, sizeof *m);
    if (!m)
        return TRP_ENOMEM;
    enter(m, at, name);
    while (m->depth && *budget && !m->failed) {
        struct dirent *e = readdir(m->dir[m->depth - 1]);
        if (!e)
            leave(m, at);
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            --*budget;
            remove_entry(m, e);
        }
    }
    int r = m->failed ? TRP_ESYSTEM : m->depth ? TRP_EWAIT : TRP_OK;
    while (m->depth)
        closedir(m->dir[--m->depth]);
    free(m);
    return r;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_empty(int at, const char *name)
{
    DIR *d = open_folder(at, name);
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
