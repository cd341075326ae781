/*
 * Depth first over an explicit stack of open folders, so that neither the stack of the
 * process nor the length of a path limits it. When the stack is full, the next folder
 * is moved to the top of the tree and removed from there later. A folder that cannot be
 * read is made readable first. Cost: one unlink an entry. Rejected: nftw (follows
 * paths, not descriptors) and `rm -rf`.
 *
 * The kernel refuses to remove a mount point (EBUSY), so none is ever gone into, but
 * for one that is made between the attempt and the opening: openat2 refuses that.
 */
#include "os/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/error.h"

enum { DEPTH = 64 };

/* A removal under way. */
struct removal {
    DIR *dir[DEPTH]; /* [0] is the tree's top */
    char name[DEPTH][NAME_MAX + 1];
    unsigned depth; /* open folders */
    unsigned moved; /* numbers names of folders moved to the top */
    bool keeps_top, failed;
};

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* An entry of the folder `at`. Before Linux 5.6, and in some containers, there is no
 * openat2. */
static int open_entry(int at, const char *name)
{
    struct open_how how = {.flags = FOLDER,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, at, name, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(at, name, FOLDER);
    return (int)fd;
}

/* A tree's top: a path may lead to it. */
static int open_top(int at, const char *path)
{
    return openat(at, path, FOLDER);
}

static DIR *open_folder(int at, const char *name, int (*open)(int, const char *))
{
    int fd = open(at, name);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = open(at, name);
    if (fd < 0)
        return NULL;
    DIR *d = fdopendir(fd);
    if (!d)
        close(fd);
    return d;
}

DIR *trp_folder_open(int at, const char *name)
{
    return open_folder(at, name, open_entry);
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
    DIR *d = open_folder(at, name, m->depth ? open_entry : open_top);
    if (!d) {
        m->failed = m->failed || errno != ENOENT;
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
static void leave_folder(struct removal *m, int at)
{
    m->depth--;
    closedir(m->dir[m->depth]);
    int parent = m->depth ? dirfd(m->dir[m->depth - 1]) : at;
    if (!(m->keeps_top && m->depth == 0) &&
        unlinkat(parent, m->name[m->depth], AT_REMOVEDIR) != 0 && errno != ENOENT)
        m->failed = true;
}

/* All below the folder that `m` begins with, and it too, in `at`, unless it is kept. */
static int walk(struct removal *m, int at, size_t *budget)
{
    while (m->depth && *budget) {
        struct dirent *e = readdir(m->dir[m->depth - 1]);
        if (!e)
            leave_folder(m, at);
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            --*budget;
            remove_entry(m, e);
        }
    }
    int r = m->depth ? TRP_EWAIT : m->failed ? TRP_ESYSTEM : TRP_OK;
    while (m->depth)
        closedir(m->dir[--m->depth]);
    free(m);
    return r;
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
    return walk(m, at, budget);
}

int trp_tree_empty(int folder, size_t *budget)
{
    struct removal *m = calloc(1, sizeof *m);
    if (!m)
        return TRP_ENOMEM;
    (void)fchmod(folder, 0700); /* whoever may not learns that below */
    int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    m->dir[0] = fd >= 0 ? fdopendir(fd) : NULL;
    if (!m->dir[0]) {
        if (fd >= 0)
            close(fd);
        free(m);
        return TRP_ESYSTEM;
    }
    rewinddir(m->dir[0]); /* the place is the descriptors' in common */
    m->depth = 1;
    m->keeps_top = true;
    return walk(m, -1, budget);
}
