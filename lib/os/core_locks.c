/*
 * Locks of open file descriptions (F_OFD_SETLK), which two descriptors of one process
 * do not share and which a close elsewhere does not drop. Nobody ever waits in the
 * kernel. One call takes a run of neighbouring cores; where no other run has a core, one
 * more call finds that out.
 *
 * Places in the queue are the nanoseconds since the machine was started: who asks for
 * one needs nothing that others have written, and nothing is to be repaired after a
 * crash.
 */
#include "os/core_locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/process.h"
#include "os/whole_file.h"

#define PLACES (INT64_C(1) << 32) /* the byte of the first place */
enum { SAME_MOMENT = 1000 };

/* ---- the file ---- */

static bool is_ours(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
           st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Whether that is a folder of this user alone. */
static int open_folder(const char *path, bool shared)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !shared && !is_ours(fd, S_IFDIR)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The folder; `name` is that of the file in it. */
static int find_folder(char *name, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[64];
    snprintf(name, size, "troupe-cores");
    if (runtime && *runtime)
        return open_folder(runtime, false);
    snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    int fd = open_folder(path, false);
    if (fd >= 0)
        return fd;
    snprintf(name, size, "troupe-cores-%u", (unsigned)geteuid());
    return open_folder("/tmp", true);
}

bool trp_core_locks_open(struct trp_core_locks *ret)
{
    char name[32];
    *ret = (struct trp_core_locks){.fd = -1};
    int folder = find_folder(name, sizeof name);
    if (folder < 0)
        return false;
    int fd = openat(folder, name,
                    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    ret->taken = fd < 0 ? errno == EACCES || errno == EISDIR || errno == ELOOP
                        : !is_ours(fd, S_IFREG);
    close(folder);
    if (fd >= 0 && ret->taken) {
        close(fd);
        fd = -1;
    }
    ret->fd = fd;
    return fd >= 0;
}

void trp_core_locks_close(struct trp_core_locks *l)
{
    if (l->fd >= 0)
        close(l->fd);
    *l = (struct trp_core_locks){.fd = -1};
}

/* ---- locks ---- */

static bool set_lock(int fd, short type, int64_t at, int64_t n)
{
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
    return fcntl(fd, F_OFD_SETLK, &f) == 0;
}

/* Does anybody else have a lock of these bytes? `n` 0: of all behind, too. */
static bool is_locked(int fd, int64_t at, int64_t n)
{
    struct flock f = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
    return fcntl(fd, F_OFD_GETLK, &f) == 0 && f.l_type != F_UNLCK;
}

/* How many neighbours stand together at the beginning. */
static uint32_t neighbours(const uint32_t *cpus, uint32_t n)
{
    uint32_t i = 1;
    while (i < n && cpus[i] == cpus[i - 1] + 1)
        i++;
    return i;
}

bool trp_core_locks_take(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n)
{
    for (uint32_t i = 0, some; i < n; i += some) {
        some = neighbours(cpus + i, n - i);
        if (!set_lock(l->fd, F_WRLCK, cpus[i], some)) {
            trp_core_locks_give(l, cpus, i);
            return false;
        }
    }
    return true;
}

void trp_core_locks_give(struct trp_core_locks *l, const uint32_t *cpus, uint32_t n)
{
    for (uint32_t i = 0, some; i < n; i += some) {
        some = neighbours(cpus + i, n - i);
        set_lock(l->fd, F_UNLCK, cpus[i], some);
    }
}

uint32_t trp_core_locks_look(const struct trp_core_locks *l, const uint32_t *cpus,
                             uint32_t n, bool *ret_others)
{
    bool any = is_locked(l->fd, 0, PLACES);
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i++) {
        ret_others[i] = any && is_locked(l->fd, cpus[i], 1);
        others += ret_others[i];
    }
    return others;
}

/* ---- who takes part ---- */

static const char title[] = "troupe: driver ";

/* The run that a process is the driver of; false: of none. */
static bool read_run(pid_t pid, char *buf, size_t size)
{
    char path[64], line[300];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    trp_file_begin(AT_FDCWD, path, 0, line, sizeof line);
    if (strncmp(line, title, sizeof title - 1) != 0)
        return false;
    snprintf(buf, size, "%s", line + sizeof title - 1);
    return true;
}

static bool has_open(pid_t pid, const struct stat *file)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        struct stat st;
        found = fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
                st.st_dev == file->st_dev && st.st_ino == file->st_ino;
    }
    if (d)
        closedir(d);
    return found;
}

char *trp_core_locks_runs(const struct trp_core_locks *l, char *buf, size_t size)
{
    struct trp_process *all = NULL;
    struct stat file;
    char run[300];
    size_t at = 0;
    int n = fstat(l->fd, &file) == 0 ? trp_process_list(&all) : 0;
    *buf = '\0';
    for (int i = 0; i < n; i++) {
        if (all[i].pid == getpid() || !read_run(all[i].pid, run, sizeof run) ||
            !has_open(all[i].pid, &file))
            continue;
        bool fits = at + strlen(run) + 8 < size;
        snprintf(buf + at, size - at, "%s%s", at ? ", " : "", fits ? run : "…");
        at += strlen(buf + at);
        if (!fits)
            break;
    }
    free(all);
    return buf;
}

/* ---- the queue ---- */

void trp_core_locks_queue(struct trp_core_locks *l)
{
    struct timespec t;
    if (l->place)
        return;
    clock_gettime(CLOCK_BOOTTIME, &t);
    int64_t place = PLACES + (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    for (int64_t end = place + SAME_MOMENT; place < end && !l->place; place++)
        if (set_lock(l->fd, F_WRLCK, place, 1))
            l->place = place;
}

void trp_core_locks_unqueue(struct trp_core_locks *l)
{
    if (l->place)
        set_lock(l->fd, F_UNLCK, l->place, 1);
    l->place = 0;
}

bool trp_core_locks_others_first(const struct trp_core_locks *l)
{
    return is_locked(l->fd, PLACES, l->place ? l->place - PLACES : 0);
}
