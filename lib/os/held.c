/*
 * A short list of folders, each with its path and descriptor; a path belongs to the
 * longest of them. From there on it is opened name by name, each with O_NOFOLLOW: that
 * is a call or two more than openat2, which kernels before 5.6 and some containers do
 * not have.
 *
 * An entry is published by its descriptor, so that threads may look while none is made.
 * Handing descriptors to every function that opens a file was rejected: paths are what
 * messages, configurations and other processes have of a run, and whoever forgot the
 * descriptor would open by path.
 */
#include "os/held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "os/whole_file.h"

enum { FOLDERS = 32, FILE_MODE = 0600 };

#define ELSEWHERE                                                                      \
    "use another folder for runs: --runs-dir DIR, or TROUPE_RUNS in the environment"

static struct held {
    atomic_int fd; /* + 1; 0: free */
    unsigned times;
    char *path;
    char id[TRP_HELD_ID];
} folders[FOLDERS];

/* What of `path` lies below the folder, without slashes in front; NULL: it does not. */
static const char *rest_of(const char *path, const struct held *f)
{
    size_t n = strlen(f->path);
    if (strncmp(path, f->path, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    return path + n + strspn(path + n, "/");
}

/* `above`: the folder that the path is in, not the one that it is. */
static struct held *folder_of(const char *path, bool above, const char **ret_rest)
{
    struct held *best = NULL;
    for (size_t i = 0; i < FOLDERS; i++) {
        struct held *f = &folders[i];
        const char *rest = atomic_load(&f->fd) ? rest_of(path, f) : NULL;
        if (rest && (*rest || !above) &&
            (!best || strlen(f->path) > strlen(best->path))) {
            best = f;
            *ret_rest = rest;
        }
    }
    return best;
}

/* ---- below a folder ---- */

/* Where a path ends: the folder of its last name. */
struct place {
    int fd;           /* AT_FDCWD: not below a held folder */
    bool own;         /* fd is to be closed */
    const char *name; /* of the path, without a slash behind it but for a root */
    char text[NAME_MAX + 1];
};

static void leave_place(const struct place *p)
{
    int error = errno;
    if (p->own)
        close(p->fd);
    errno = error;
}

/* The next name of *at, which goes on behind it. False: too long, or "..". */
static bool next_name(const char **at, char *name)
{
    size_t n = strcspn(*at, "/");
    errno = n > NAME_MAX ? ENAMETOOLONG : EINVAL;
    if (n > NAME_MAX || (n == 2 && memcmp(*at, "..", 2) == 0))
        return false;
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n;
    *at += strspn(*at, "/");
    return true;
}

static int find_place(const char *path, bool above, struct place *ret)
{
    const char *at;
    const struct held *f = folder_of(path, above, &at);
    *ret = (struct place){.fd = AT_FDCWD, .name = path};
    if (!f)
        return 0;
    ret->fd = f->fd - 1;
    ret->name = ret->text;
    if (!*at)
        strcpy(ret->text, ".");
    while (*at) {
        if (!next_name(&at, ret->text)) {
            leave_place(ret);
            return -1;
        }
        if (!*at)
            break;
        int fd =
            openat(ret->fd, ret->text, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        leave_place(ret);
        if (fd < 0)
            return -1;
        ret->fd = fd;
        ret->own = true;
    }
    return 0;
}

int trp_held_open(const char *path, int flags, mode_t mode)
{
    struct place p;
    if (find_place(path, false, &p) < 0)
        return -1;
    if (p.fd != AT_FDCWD)
        flags |= O_NOFOLLOW;
    int fd = openat(p.fd, p.name, flags | O_CLOEXEC, mode);
    leave_place(&p);
    return fd;
}

FILE *trp_held_fopen(const char *path, const char *mode)
{
    bool writes = mode[0] != 'r';
    int made = mode[0] == 'a' ? O_APPEND : strchr(mode, 'x') ? O_EXCL : O_TRUNC;
    int fd =
        trp_held_open(path, writes ? O_WRONLY | O_CREAT | made : O_RDONLY, FILE_MODE);
    FILE *f = fd < 0 ? NULL : fdopen(fd, writes ? "w" : "r");
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

int trp_held_mkdir(const char *path, mode_t mode)
{
    struct place p;
    if (find_place(path, true, &p) < 0)
        return -1;
    int result = mkdirat(p.fd, p.name, mode);
    leave_place(&p);
    return result;
}

int trp_held_unlink(const char *path, int flags)
{
    struct place p;
    if (find_place(path, true, &p) < 0)
        return -1;
    int result = unlinkat(p.fd, p.name, flags);
    leave_place(&p);
    return result;
}

int trp_held_rename(const char *from, const char *to)
{
    struct place p, q;
    if (find_place(from, true, &p) < 0)
        return -1;
    int result = find_place(to, true, &q);
    if (result == 0) {
        result = renameat(p.fd, p.name, q.fd, q.name);
        leave_place(&q);
    }
    leave_place(&p);
    return result;
}

int trp_held_symlink(const char *target, const char *path)
{
    struct place p;
    if (find_place(path, true, &p) < 0)
        return -1;
    int result = symlinkat(target, p.fd, p.name);
    leave_place(&p);
    return result;
}

int trp_held_stat(const char *path, struct stat *ret)
{
    struct place p;
    if (find_place(path, true, &p) < 0)
        return -1;
    int result = fstatat(p.fd, p.name, ret, AT_SYMLINK_NOFOLLOW);
    leave_place(&p);
    return result;
}

ssize_t trp_held_readlink(const char *path, char *buf, size_t size)
{
    struct place p;
    if (find_place(path, true, &p) < 0)
        return -1;
    ssize_t n = readlinkat(p.fd, p.name, buf, size);
    leave_place(&p);
    return n;
}

bool trp_held_name(const char *path, char *buf, size_t size)
{
    const char *rest;
    const struct held *f = folder_of(path, false, &rest);
    int n = f ? snprintf(buf, size, "/proc/%d/fd/%d/%s", (int)getpid(), f->fd - 1, rest)
              : snprintf(buf, size, "%s", path);
    return (size_t)n < size;
}

/* ---- holding ---- */

static int owned_by_another(const char *path, uid_t uid, trp_error *err)
{
    const struct passwd *user = getpwuid(uid);
    char number[24];
    snprintf(number, sizeof number, "user %u", (unsigned)uid);
    return trp_error_set(err, TRP_ESYSTEM, "%.600s belongs to %s: " ELSEWHERE, path,
                         user ? user->pw_name : number);
}

static int check(const char *path, const struct stat *st, trp_error *err)
{
    if (S_ISLNK(st->st_mode))
        return trp_error_set(err, TRP_ESYSTEM,
                             "%.600s is a link, and runs follow none: name the folder "
                             "that is meant by --runs-dir DIR, or TROUPE_RUNS in the "
                             "environment",
                             path);
    if (!S_ISDIR(st->st_mode))
        return trp_error_set(err, TRP_ESYSTEM, "%.600s is no folder: " ELSEWHERE, path);
    if (st->st_uid != geteuid())
        return owned_by_another(path, st->st_uid, err);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return trp_error_set(err, TRP_ESYSTEM,
                             "others can write in %.600s (mode %04o): take that from "
                             "them by chmod go-w, or " ELSEWHERE,
                             path, (unsigned)(st->st_mode & 07777));
    return 0;
}

/* Of the folder `fd`; "" when it has none. */
static void read_id(int fd, char id[TRP_HELD_ID])
{
    int state = openat(fd, "state", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int file = state < 0 ? -1 : openat(state, "id", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = file < 0 ? 0 : read(file, id, TRP_HELD_ID - 1);
    id[n == TRP_HELD_ID - 1 ? n : 0] = '\0';
    if (file >= 0)
        close(file);
    if (state >= 0)
        close(state);
}

static int add_folder(const char *path, int fd, const char *id, trp_error *err)
{
    for (size_t i = 0; i < FOLDERS; i++) {
        struct held *f = &folders[i];
        if (atomic_load(&f->fd))
            continue;
        f->path = strdup(path);
        if (!f->path)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
        f->times = 1;
        strcpy(f->id, id);
        atomic_store(&f->fd, fd + 1);
        return 0;
    }
    return trp_error_set(err, TRP_ELIMIT, "more than %d folders are held", FOLDERS);
}

static int not_the_one(const char *path, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM,
                         "%.600s is not the folder that its run began with: somebody "
                         "has put another in its place",
                         path);
}

int trp_held_folder(const char *path, const char *id, trp_error *err)
{
    const char *rest;
    struct held *f = folder_of(path, false, &rest);
    char found[TRP_HELD_ID];
    struct stat st;
    bool proves = id && *id;
    if (f && !*rest) {
        if (proves && strcmp(f->id, id) != 0)
            return not_the_one(path, err);
        f->times++;
        return 0;
    }
    int fd = trp_held_open(path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int code = errno == ENOENT ? TRP_ENOENT : TRP_ESYSTEM;
        trp_error_set(err, code, "cannot open %.600s: %m", path);
        if (fd >= 0)
            close(fd);
        return code;
    }
    int code = check(path, &st, err);
    if (code == 0) {
        read_id(fd, found);
        code = proves && strcmp(found, id) != 0 ? not_the_one(path, err)
                                                : add_folder(path, fd, found, err);
    }
    if (code < 0)
        close(fd);
    return code;
}

void trp_held_leave(const char *path)
{
    const char *rest;
    struct held *f = folder_of(path, false, &rest);
    if (!f || *rest || --f->times)
        return;
    close(atomic_exchange(&f->fd, 0) - 1);
    free(f->path);
    f->path = NULL;
}

int trp_held_identify(const char *path, trp_error *err)
{
    const char *rest;
    struct held *f = folder_of(path, false, &rest);
    unsigned char random[(TRP_HELD_ID - 1) / 2];
    char id[TRP_HELD_ID], file[PATH_MAX];
    if (!f || *rest)
        return trp_error_set(err, TRP_ESTATE, "%.600s is not held", path);
    if (f->id[0])
        return 0;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return trp_error_set(err, TRP_ESYSTEM, "no random bytes: %m");
    trp_hex_put(random, sizeof random, id);
    if (snprintf(file, sizeof file, "%s/state/id", path) >= PATH_MAX)
        return trp_error_set(err, TRP_ELIMIT, "the path of %.600s is too long", path);
    if (trp_held_write(file, id, strlen(id), false) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot write %.600s: %m", file);
    strcpy(f->id, id);
    return 0;
}

const char *trp_held_id(const char *path)
{
    const char *rest;
    const struct held *f = folder_of(path, false, &rest);
    return f ? f->id : "";
}

size_t trp_held_descriptors(int *ret, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < FOLDERS && n < room; i++) {
        int fd = atomic_load(&folders[i].fd);
        if (fd)
            ret[n++] = fd - 1;
    }
    return n;
}
