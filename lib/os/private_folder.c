/*
 * Who made a folder holds a lock on it (flock, of the folder itself), which the kernel
 * takes away with the last process that has the descriptor: so a folder that can be
 * locked has no owner any more. A file in it says that it was made here, and for whom:
 * the name alone could be anybody's, `troupe-backup`. It comes after the lock, so that
 * a folder which nobody has locked yet is left alone.
 */
#include "os/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/cgroup.h"
#include "os/held.h"
#include "os/tree.h"
#include "os/whole_file.h"

#define PREFIX "troupe-"
#define NAME PREFIX "XXXXXX"
#define MARK ".made-by-troupe"
#define RUN ".run" /* a link to the run's folder, where hosts may share what it is in */

enum { PLACES = 4, LOOK_MS = 20, ENTER_TRIES = 50 };

/* The descriptor stays open for as long as the process lives. */
static void lock_and_mark(const char *path, const char *owner)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    int mark = fd < 0 ? -1 : openat(fd, MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mark >= 0) {
        dprintf(mark, "%s", owner);
        close(mark);
    }
    if (fd >= 0 && !locked)
        close(fd);
}

const char *trp_job_folder(void)
{
    struct stat st;
    const char *path = getenv("TROUPE_SCRATCH");
    return path && path[0] == '/' && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
                   st.st_uid == geteuid() && (st.st_mode & 0777) == 0700
               ? path
               : NULL;
}

/* Where they may be made, the first choice first; NULL: not there. */
static void find_places(const char *ret[PLACES])
{
    const char *all[PLACES] = {trp_job_folder(), "/tmp", getenv("TMPDIR"), "/var/tmp"};
    for (size_t i = 0; i < PLACES; i++)
        ret[i] = all[i] && all[i][0] == '/' ? all[i] : NULL;
}

int trp_private_folder(const char *owner, char ret_path[TRP_PRIVATE_FOLDER],
                       trp_error *err)
{
    const char *places[PLACES];
    find_places(places);
    for (size_t i = 0; i < PLACES; i++) {
        if (!places[i] || snprintf(ret_path, TRP_PRIVATE_FOLDER, "%s/" NAME,
                                   places[i]) >= TRP_PRIVATE_FOLDER)
            continue;
        if (mkdtemp(ret_path)) {
            lock_and_mark(ret_path, owner);
            return 0;
        }
    }
    ret_path[0] = '\0';
    return trp_error_set(err, TRP_ESYSTEM,
                         "cannot make a private folder in $TROUPE_SCRATCH, /tmp, "
                         "$TMPDIR or /var/tmp: %m");
}

/* Its mark goes last: when this process is killed before, another one can go on. So it
 * does where something cannot be removed now. */
bool trp_private_folder_remove_at(int at, const char *name, size_t *budget)
{
    bool rest = false;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, MARK) != 0)
            rest |= trp_tree_remove(dirfd(d), e->d_name, budget) != TRP_OK;
    }
    if (d)
        closedir(d);
    return !rest && trp_tree_remove(at, name, budget) == TRP_OK;
}

static bool remove_folder(int at, const char *name)
{
    size_t all = SIZE_MAX;
    return trp_private_folder_remove_at(at, name, &all);
}

bool trp_private_folder_remove(const char *path)
{
    return remove_folder(AT_FDCWD, path);
}

static bool may_be_ours(int at, const char *name)
{
    struct stat st;
    return strlen(name) == strlen(NAME) && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 0777) == 0700;
}

static bool is_made_for(int folder, const char *const *owners, size_t n)
{
    char text[TRP_PRIVATE_OWNER + 1];
    ssize_t size = trp_file_begin(folder, MARK, O_NOFOLLOW, text, sizeof text);
    for (size_t i = 0; size > 0 && i < n; i++) {
        if (strcmp(text, owners[i]) == 0)
            return true;
    }
    return false;
}

/* Its run goes on. */
static bool is_awaited(int folder)
{
    char run[PATH_MAX], lock[PATH_MAX + 16];
    ssize_t n = readlinkat(folder, RUN, run, sizeof run - 1);
    if (n <= 0)
        return false;
    run[n] = '\0';
    snprintf(lock, sizeof lock, "%s/state/lock", run);
    int fd = open(lock, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* Below our own control group, and where the run that made the folder had them. Whatever
 * the link says, only what bears the folder's name is touched there. */
static bool remove_groups(int folder, const char *name, bool kill)
{
    char prefix[NAME_MAX + 2], parent[TRP_CGROUP_PATH];
    snprintf(prefix, sizeof prefix, "%s-", name);
    bool gone = trp_cgroup_memory_sweep("", prefix, kill);
    ssize_t n = readlinkat(folder, TRP_CGROUP_LINK, parent, sizeof parent);
    if (n <= 0 || n >= (ssize_t)sizeof parent || parent[0] != '/')
        return gone;
    parent[n] = '\0';
    return trp_cgroup_memory_sweep_in(parent, prefix, kill) && gone;
}

void trp_private_folder_end_groups(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    remove_groups(fd, slash + 1, true);
    if (fd >= 0)
        close(fd);
}

/* True: it is in use, by one of the owners. */
static bool remove_unused(int at, const char *name, const char *const *owners, size_t n)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool marked = faccessat(fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    bool used = marked && flock(fd, LOCK_EX | LOCK_NB) < 0;
    bool theirs = marked && is_made_for(fd, owners, n);
    if (marked && !used && (theirs || !is_awaited(fd)) &&
        remove_groups(fd, name, false))
        remove_folder(at, name);
    bool awaited = used && theirs;
    close(fd);
    return awaited;
}

/* True: one of the owners uses one there. */
static bool sweep(const char *place, const char *const *owners, size_t n)
{
    bool awaited = false;
    DIR *d = opendir(place);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (may_be_ours(dirfd(d), entry->d_name) &&
            remove_unused(dirfd(d), entry->d_name, owners, n))
            awaited = true;
    }
    if (d)
        closedir(d);
    return awaited;
}

void trp_private_folders_sweep(const char *path)
{
    char place[TRP_PRIVATE_FOLDER];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return;
    snprintf(place, sizeof place, "%.*s", (int)(slash - path), path);
    sweep(place, NULL, 0);
}

bool trp_private_folders_tidy(const char *const *owners, size_t n, unsigned wait_ms)
{
    const char *places[PLACES];
    find_places(places);
    for (unsigned spent = 0;; spent += LOOK_MS) {
        bool awaited = false;
        for (size_t i = 0; i < PLACES; i++)
            awaited |= places[i] && sweep(places[i], owners, n);
        for (size_t i = 0; i < n; i++)
            awaited |= owners[i][0] == '/' && sweep(owners[i], owners, n);
        if (!awaited || spent >= wait_ms)
            return !awaited;
        usleep(LOOK_MS * 1000);
    }
}

void trp_private_folders_sweep_aside(const char *path)
{
    pid_t child = fork();
    if (child > 0)
        waitpid(child, NULL, 0);
    if (child != 0)
        return;
    close_range(0, ~0U, 0);
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    trp_private_folders_sweep(path);
    _exit(0);
}

/* ---- run files ---- */

static bool is_still(int folder, const char *path)
{
    struct stat here, there;
    return fstat(folder, &here) == 0 && lstat(path, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
           here.st_uid == geteuid() && (here.st_mode & 0777) == 0700;
}

/* A shared lock on the folder, made if need be; -1 with errno. Who sweeps may have it,
 * and removes it. */
static int enter(const char *path)
{
    for (int i = 0; i < ENTER_TRIES; i++) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -1;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return -1;
        if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0 && is_still(fd, path))
            return fd;
        if (fd >= 0)
            close(fd);
        usleep(LOOK_MS * 1000);
    }
    errno = EBUSY;
    return -1;
}

static void make_name(const uint8_t *key, char *name)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
                                 "RSTUVWXYZ-_";
    for (size_t i = 0; i < TRP_RUN_FILES_KEY; i++)
        name[sizeof PREFIX - 1 + i] = digits[key[i] & 63];
}

/* The link comes first: without the mark nobody removes it. */
static bool mark_run_files(int folder, const char *owner, const char *run_dir)
{
    char text[TRP_PRIVATE_OWNER];
    int n = snprintf(text, sizeof text, "%s", owner);
    if (symlinkat(run_dir, folder, RUN) < 0 && errno != EEXIST)
        return false;
    int fd = openat(folder, MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0)
        close(fd);
    return good;
}

static bool enter_in(const char *parent, const char *name, const char *owner,
                     const char *run_dir, struct trp_run_files *ret)
{
    int n = snprintf(ret->path, sizeof ret->path, "%s/%s", parent, name);
    ret->lock = n < (int)sizeof ret->path ? enter(ret->path) : -1;
    if (ret->lock >= 0 && mark_run_files(ret->lock, owner, run_dir))
        return true;
    int error = errno;
    if (ret->lock >= 0)
        close(ret->lock);
    *ret = (struct trp_run_files){.lock = -1};
    errno = error;
    return false;
}

int trp_run_files_enter(const char *parent, const uint8_t *key, const char *owner,
                        const char *run_dir, struct trp_run_files *ret, trp_error *err)
{
    const char *places[PLACES] = {parent};
    char name[] = NAME;
    make_name(key, name);
    if (!parent[0])
        find_places(places);
    for (size_t i = 0; i < PLACES; i++)
        if (places[i] && enter_in(places[i], name, owner, run_dir, ret))
            return 0;
    return trp_error_set(err, TRP_ESYSTEM, "cannot make a folder of the run in %s: %m",
                         parent[0] ? parent
                                   : "$TROUPE_SCRATCH, /tmp, $TMPDIR or /var/tmp");
}

/* Their owner: not the run's identity alone, which run files have. On its own host a
 * lock says whether a folder is used, wherever it lies. */
static void owner_in(const char *run_dir, char ret[TRP_PRIVATE_OWNER])
{
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    snprintf(ret, TRP_PRIVATE_OWNER, "process of %s on %s", trp_held_id(run_dir), host);
}

int trp_private_folder_in(const char *parent, const char *run_dir, char *ret_path,
                          size_t size)
{
    char path[TRP_RUN_FILES], name[] = NAME, owner[TRP_PRIVATE_OWNER];
    uint8_t key[TRP_RUN_FILES_KEY];
    owner_in(run_dir, owner);
    for (int made = -1, tries = 0; made < 0; tries++) {
        if (getrandom(key, sizeof key, 0) != sizeof key)
            return -1;
        make_name(key, name);
        int n = snprintf(path, sizeof path, "%s/%s", parent, name);
        if (n >= (int)sizeof path || n >= (int)size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        made = trp_held_mkdir(path, 0700);
        if (made < 0 && (errno != EEXIST || tries == ENTER_TRIES))
            return -1;
    }
    memcpy(ret_path, path, strlen(path) + 1);
    int fd = trp_held_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        mark_run_files(fd, owner, run_dir);
    return fd;
}

void trp_private_folders_sweep_in(const char *parent, const char *run_dir)
{
    char owner[TRP_PRIVATE_OWNER];
    const char *owners[] = {owner};
    size_t n = run_dir && *trp_held_id(run_dir) ? 1 : 0;
    if (n)
        owner_in(run_dir, owner);
    sweep(parent, owners, n);
}

/* The run's folder of that owner in `at`: private folders have no link to a run, or, where
 * they have, another owner. */
static bool is_run_files_of(int at, const char *name, const char *owner)
{
    struct stat st;
    int fd = may_be_ours(at, name)
                 ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    bool is = fd >= 0 && fstatat(fd, RUN, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISLNK(st.st_mode) && is_made_for(fd, &owner, 1);
    if (fd >= 0)
        close(fd);
    return is;
}

static bool find_in(const char *place, const char *owner, struct trp_run_files *ret)
{
    DIR *d = opendir(place);
    ret->lock = -1;
    for (struct dirent *entry; d && ret->lock < 0 && (entry = readdir(d));) {
        if (!is_run_files_of(dirfd(d), entry->d_name, owner))
            continue;
        int n = snprintf(ret->path, sizeof ret->path, "%s/%s", place, entry->d_name);
        int fd = n < (int)sizeof ret->path
                     ? open(ret->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
        if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0 && is_still(fd, ret->path))
            ret->lock = fd;
        else if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
    if (ret->lock < 0)
        ret->path[0] = '\0';
    return ret->lock >= 0;
}

int trp_run_files_find(const char *parent, const char *owner, struct trp_run_files *ret,
                       trp_error *err)
{
    const char *places[PLACES];
    find_places(places);
    if (parent[0] && find_in(parent, owner, ret))
        return 0;
    for (size_t i = 0; i < PLACES; i++)
        if (places[i] && find_in(places[i], owner, ret))
            return 0;
    return trp_error_set(err, TRP_ENOENT, "there are no files of this run here");
}

bool trp_run_files_leave(struct trp_run_files *f, bool over)
{
    if (!f->path[0])
        return false;
    close(f->lock);
    int fd = over ? open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    bool last = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still(fd, f->path);
    bool gone = last && remove_folder(AT_FDCWD, f->path);
    if (fd >= 0)
        close(fd);
    *f = (struct trp_run_files){.lock = -1};
    return gone;
}
