/*
 * Nothing in /dev/shm says of which Slurm job it is: Open MPI's names have the host,
 * the user and a number that mpirun made up. So what counts is not whose it is but
 * whether anybody uses it: a segment is open or mapped from when it is made until its
 * maker ends. One that no living process of its user has, whatever job that is of, is a
 * dead job's. A segment that is made while this looks is not in the list, which is read
 * first; of a process descriptors are read before mappings, since a segment is mapped
 * before its descriptor is closed. A process that cannot be read has everything.
 *
 * Other names are left alone: what a user put into /dev/shm as a file may be meant to
 * stay for another job. So are segments of System V, which Open MPI does not use.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/as_user.h"
#include "plugin/strays.h"

enum { SEGMENTS = 4096 };

static const char *const names[] = {"vader_segment.", "sm_segment.", "osc_rdma.",
                                    "osc_sm."};

struct segment {
    char name[NAME_MAX + 1];
    ino_t inode;
    bool used;
};

struct segments {
    int folder;
    uid_t uid;
    struct segment *all;
    unsigned n, removed;
};

static bool may_be_ours(const struct segments *s, const char *name, ino_t *ret_inode)
{
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(name, names[i], strlen(names[i])) != 0)
            continue;
        if (fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode) || st.st_uid != s->uid)
            return false;
        *ret_inode = st.st_ino;
        return true;
    }
    return false;
}

/* Fills s->all; more than SEGMENTS are for the next job's end. */
static void list(struct segments *s)
{
    ino_t inode = 0;
    DIR *d = fdopendir(fcntl(s->folder, F_DUPFD_CLOEXEC, 0));
    for (struct dirent *e; d && s->n < SEGMENTS && (e = readdir(d));) {
        if (!may_be_ours(s, e->d_name, &inode))
            continue;
        if (!s->all)
            s->all = calloc(SEGMENTS, sizeof *s->all);
        if (!s->all)
            break;
        struct segment *x = &s->all[s->n++];
        snprintf(x->name, sizeof x->name, "%s", e->d_name);
        x->inode = inode;
    }
    if (d)
        closedir(d);
}

static void mark(struct segments *s, ino_t inode)
{
    for (unsigned i = 0; i < s->n; i++)
        s->all[i].used |= s->all[i].inode == inode;
}

static bool is_users(int process, uid_t uid)
{
    uid_t u[4];
    return trp_process_users(process, u) &&
           (u[0] == uid || u[1] == uid || u[2] == uid || u[3] == uid);
}

/* False: they could not be read. */
static bool mark_open(struct segments *s, int process)
{
    struct statx st;
    int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d)
        return false;
    /* A file system that does not answer, which the user chose, is not asked. */
    for (struct dirent *e; (e = readdir(d));) {
        if (statx(fd, e->d_name, AT_STATX_DONT_SYNC, STATX_INO, &st) == 0)
            mark(s, (ino_t)st.stx_ino);
    }
    closedir(d);
    return true;
}

static bool mark_mapped(struct segments *s, int process)
{
    char line[PATH_MAX + 256];
    unsigned long inode;
    int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!f)
        return false;
    while (fgets(line, sizeof line, f)) {
        /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
        if (sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode != 0)
            mark(s, (ino_t)inode);
    }
    bool whole = !ferror(f);
    fclose(f);
    return whole;
}

static void mark_process(struct segments *s, int proc, const char *name)
{
    struct stat st;
    int fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (is_users(fd, s->uid) && !(mark_open(s, fd) && mark_mapped(s, fd)) &&
        fstatat(fd, "status", &st, 0) == 0) {
        for (unsigned i = 0; i < s->n; i++)
            s->all[i].used = true;
    }
    close(fd);
}

static int remove_unused(void *context)
{
    struct segments *s = context;
    unsigned n = 0;
    for (unsigned i = 0; i < s->n; i++) {
        if (!s->all[i].used && unlinkat(s->folder, s->all[i].name, 0) == 0)
            n++;
    }
    return n > 125 ? 125 : (int)n;
}

unsigned trp_shared_memory_remove(const char *folder, uid_t uid, gid_t gid)
{
    struct segments s = {.uid = uid,
                         .folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    int removed = 0;
    if (s.folder >= 0)
        list(&s);
    DIR *proc = s.n ? opendir("/proc") : NULL;
    for (struct dirent *e; proc && (e = readdir(proc));) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            mark_process(&s, dirfd(proc), e->d_name);
    }
    if (proc) {
        closedir(proc);
        removed = trp_as_user(uid, gid, 0, remove_unused, &s);
    }
    free(s.all);
    if (s.folder >= 0)
        close(s.folder);
    return removed > 0 ? (unsigned)removed : 0;
}
