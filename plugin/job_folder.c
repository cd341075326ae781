/*
 * Only root makes or renames entries of PARENT/jobs, so its names can be trusted and
 * nothing that root does by name can be diverted. A folder that is to go is first moved
 * to going (0700, root's), where no path leads to it any more; processes that still
 * have it open, of the same user's other jobs, cannot keep its name alive. Then it is
 * emptied with its owner's rights, and only the empty folder is removed by root. What
 * its owner could not have removed either (a folder of somebody else's that was put
 * there, a mount point) stays in going, where the admin finds it.
 *
 * Leftovers are swept by the next prolog, not by slurmd when it starts: whether a job
 * is still to come back to this node is known to slurmctld alone, which a slurmd that
 * starts may not reach and must not wait for; and it is the next job that needs the
 * room. A job that is only allocated has no process here, so that "no process" tells
 * nothing.
 *
 * Rejected: removing with root's rights along checked paths. Folders that others may
 * write to can be moved into a job's folder with all that is in them; no check of paths
 * sees that.
 */
#include "plugin/job_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/tree.h"
#include "plugin/as_user.h"

enum {
    FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    SWEEP_S = 5,
    SWEEP_EVERY_S = 900,
    ID = 16,     /* bytes of a job's id as text */
    MOUNTS = 16, /* over one folder */
};

/* ---- places that are root's ---- */

/* Nobody but root can put something else in the place of what is in it. */
static bool is_roots(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           (!(st.st_mode & 022) || (st.st_mode & S_ISVTX));
}

/* Opens the folder `name` of `at`, and makes it if `mode` is not 0; closes `at`. */
static int step_into(int at, const char *name, mode_t mode)
{
    int fd = openat(at, name, FOLDER);
    if (fd < 0 && errno == ENOENT && mode && mkdirat(at, name, 0700) == 0) {
        fd = openat(at, name, FOLDER);
        if (fd >= 0 && fchmod(fd, mode) != 0) {
            close(fd);
            fd = -1;
        }
    }
    int error = errno;
    close(at);
    errno = error;
    return fd;
}

/* Opens an absolute path part by part. */
static int open_place(const char *path, mode_t mode, trp_error *err)
{
    char part[NAME_MAX + 1];
    const char *at = path;
    int fd = path[0] == '/' ? open("/", FOLDER) : -1;
    if (path[0] != '/')
        return trp_error_set(err, TRP_EINVAL, "%s: want an absolute path", path);
    while (fd >= 0) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        if (!is_roots(fd)) {
            close(fd);
            return trp_error_set(err, TRP_EINVAL,
                                 "scratch: %.*s may be changed by others than root; "
                                 "want a folder of root's, chmod 755 or 1777",
                                 (int)(at > path ? at - path : 1), path);
        }
        if (n == 0)
            return fd;
        snprintf(part, sizeof part, "%.*s", n > NAME_MAX ? 0 : (int)n, at);
        if (!part[0] || strcmp(part, ".") == 0 || strcmp(part, "..") == 0) {
            close(fd);
            return trp_error_set(err, TRP_EINVAL, "scratch: %s: bad path", path);
        }
        at += n;
        fd = step_into(fd, part, mode);
    }
    if (errno == ENOENT)
        return trp_error_set(err, TRP_ENOENT, "there is no folder %s", path);
    bool link = errno == ELOOP || errno == ENOTDIR;
    return trp_error_set(err, link ? TRP_EINVAL : TRP_ESYSTEM, "scratch: %.*s: %s",
                         (int)(at - path), path,
                         link ? "is no folder, or a link to one; write where it leads"
                              : strerror(errno));
}

/* PATH/jobs, of which `path` ends in "/jobs" already when it comes from a record. */
static int open_jobs(const char *parent, mode_t mode, trp_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/jobs", parent) >= PATH_MAX)
        return trp_error_set(err, TRP_EINVAL, "scratch: the path is too long");
    int fd = open_place(parent, mode ? 0755 : 0, err);
    if (fd < 0)
        return fd;
    close(fd);
    return open_place(path, mode ? 0711 : 0, err);
}

static int open_going(int jobs)
{
    int at = fcntl(jobs, F_DUPFD_CLOEXEC, 0);
    return at < 0 ? -1 : step_into(at, "going", 0700);
}

/* ---- removal ---- */

/* 0: it is empty. */
static int empty_folder(void *context)
{
    size_t budget = SIZE_MAX;
    return trp_tree_empty(*(int *)context, &budget) == 0 ? 0 : 1;
}

/* Removes one that is in going; false: not all of it. */
static bool remove_going(int going, const char *name, time_t until)
{
    struct stat st;
    if (unlinkat(going, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    int folder = openat(going, name, FOLDER);
    time_t left = until - trp_clock_ms() / 1000;
    if (folder < 0)
        return false;
    if (fstat(folder, &st) == 0 && left > 0)
        trp_as_user(st.st_uid, st.st_gid, (unsigned)left, empty_folder, &folder);
    close(folder);
    return unlinkat(going, name, AT_REMOVEDIR) == 0;
}

/* Takes away what its owner has mounted over a job's folder: it is the owner's, and its
 * process goes with the job. False: something is there still. */
static bool uncover(int jobs, const char *name)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", jobs, name);
    while (n < MOUNTS && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        n++;
    return n < MOUNTS && (errno == EINVAL || errno == ENOENT);
}

/* Moves a job's folder to going. */
static int set_aside(int jobs, int going, const char *name, char ret_name[NAME_MAX])
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(ret_name, NAME_MAX, "%s.%lld.%09ld", name, (long long)t.tv_sec, t.tv_nsec);
    if (renameat(jobs, name, going, ret_name) == 0)
        return 0;
    return errno == EBUSY && uncover(jobs, name) ? renameat(jobs, name, going, ret_name)
                                                 : -1;
}

/* Removes the folder `name` of a job. */
static int remove_folder(int jobs, const char *name, time_t until, trp_error *err)
{
    char aside[NAME_MAX];
    if (unlinkat(jobs, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    int going = open_going(jobs);
    if (going < 0 || set_aside(jobs, going, name, aside) != 0) {
        int error = errno;
        if (going >= 0)
            close(going);
        return trp_error_set(err, TRP_ESYSTEM,
                             "cannot set the folder of job %s aside: %s", name,
                             strerror(error));
    }
    bool gone = remove_going(going, aside, until);
    close(going);
    return gone
               ? 0
               : trp_error_set(err, TRP_ESYSTEM,
                               "job %s: not all of its scratch folder could be removed "
                               "(a folder of another user's, a mount, or too much for "
                               "now); the rest is in jobs/going/%s",
                               name, aside);
}

/* The job is over, or gone. */
static int clean(int jobs, const char *name, const struct trp_node_job *job,
                 time_t until, trp_error *err)
{
    trp_strays_kill(job);
    trp_shared_memory_remove("/dev/shm", job->uid, job->gid);
    return remove_folder(jobs, name, until, err);
}

/* Whose folder it is: root has given it away when it made it. What is mounted over it
 * may say that it is anybody's, so that goes first. False: it cannot be told. */
static bool owner_of(int jobs, const char *name, uint32_t id, struct trp_node_job *ret)
{
    struct stat st;
    if (!uncover(jobs, name) || fstatat(jobs, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    ret->id = id;
    ret->uid = st.st_uid;
    ret->gid = st.st_gid;
    return true;
}

/* What is known of a job's folder without asking a file system that its owner may have
 * mounted there. */
static int look_at(int jobs, const char *name, struct statx *ret)
{
    return statx(jobs, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
                 STATX_TYPE | STATX_UID | STATX_GID, ret);
}

/* Held while one cleans up after others, so that what is theirs is looked at by nobody
 * else; -1. */
static int open_stamp(const char *records, trp_error *err)
{
    int at = open_place(records, 0755, err);
    int fd =
        at < 0 ? -1
               : openat(at, ".swept", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (at >= 0)
        close(at);
    return fd;
}

/* ---- a job's folder ---- */

/* Where a job's record leads; the records themselves are root's. */
static int read_record(const char *records, uint32_t id, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%u", records, id) >= PATH_MAX)
        return TRP_ENOENT;
    ssize_t n = readlink(path, ret_path, PATH_MAX - 1);
    if (n <= 0)
        return TRP_ENOENT;
    ret_path[n] = '\0';
    return 0;
}

/* One that is there is of an earlier start of this job, whose node died, unless it has
 * a record, or the job processes here: then slurmd has forgotten that this prolog was
 * called. */
static int make_folder(const char *records, int jobs, const struct trp_node_job *job,
                       trp_error *err)
{
    char name[ID], path[PATH_MAX];
    struct statx st;
    snprintf(name, sizeof name, "%u", job->id);
    bool there = look_at(jobs, name, &st) == 0 || errno != ENOENT;
    int stamp = there ? open_stamp(records, err) : -1;
    if (stamp >= 0 && flock(stamp, LOCK_EX) == 0) /* nobody sweeps it now */
        there = look_at(jobs, name, &st) == 0 || errno != ENOENT;
    int code = 0;
    bool kept = there && st.stx_uid == job->uid &&
                (read_record(records, job->id, path) == 0 || trp_strays_any(job));
    if (there && !kept)
        code = remove_folder(jobs, name, trp_clock_ms() / 1000 + SWEEP_S, err);
    if (stamp >= 0)
        close(stamp);
    if (kept)
        return 0;
    if (code < 0 && faccessat(jobs, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return TRP_ESYSTEM;
    if (mkdirat(jobs, name, 0700) != 0 ||
        fchownat(jobs, name, job->uid, job->gid, AT_SYMLINK_NOFOLLOW) != 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot make a folder for job %s: %m",
                             name);
    return 0;
}

static int make_record(const char *records, const char *parent,
                       const struct trp_node_job *job, trp_error *err)
{
    char name[ID], to[PATH_MAX];
    snprintf(name, sizeof name, "%u", job->id);
    snprintf(to, sizeof to, "%s/jobs/%u", parent, job->id);
    int at = open_place(records, 0755, err);
    if (at < 0)
        return at;
    int r = symlinkat(to, at, name);
    if (r != 0 && errno == EEXIST && unlinkat(at, name, 0) == 0)
        r = symlinkat(to, at, name);
    if (r != 0)
        trp_error_set(err, TRP_ESYSTEM, "cannot make %s/%s: %m", records, name);
    close(at);
    return r == 0 ? 0 : TRP_ESYSTEM;
}

int trp_scratch_make(const char *records, const char *parent,
                     const struct trp_node_job *job, trp_error *err)
{
    int jobs = open_jobs(parent, 0711, err);
    if (jobs < 0)
        return jobs;
    int r = make_folder(records, jobs, job, err);
    if (r == 0)
        r = make_record(records, parent, job, err);
    close(jobs);
    return r;
}

bool trp_scratch_has(const char *records, const struct trp_node_job *job)
{
    char path[PATH_MAX];
    return read_record(records, job->id, path) == 0;
}

int trp_scratch_find(const char *records, const struct trp_node_job *job,
                     char ret_path[PATH_MAX])
{
    struct stat st;
    int r = read_record(records, job->id, ret_path);
    if (r < 0)
        return r;
    return lstat(ret_path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == job->uid
               ? 0
               : TRP_ENOENT;
}

int trp_scratch_end(const char *records, const struct trp_node_job *job,
                    unsigned seconds, trp_error *err)
{
    char path[PATH_MAX], record[PATH_MAX];
    struct trp_node_job owner = *job;
    int r = read_record(records, job->id, path);
    if (r < 0)
        return r;
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return trp_error_set(err, TRP_EINVAL, "the record of job %u is not ours",
                             job->id);
    *slash = '\0';
    int jobs = open_place(path, 0, err);
    if (jobs == TRP_ENOENT)
        r = 0; /* its file system is not mounted any more, or the folder is gone */
    else if (jobs < 0)
        r = jobs;
    if (jobs >= 0) {
        /* Slurm does not always know whose job it was. */
        owner_of(jobs, slash + 1, job->id, &owner);
        r = clean(jobs, slash + 1, &owner, trp_clock_ms() / 1000 + seconds, err);
        close(jobs);
    }
    snprintf(record, sizeof record, "%s/%u", records, job->id);
    unlink(record);
    return r;
}

/* ---- leftovers ---- */

struct sweep {
    const char *records;
    int jobs;
    trp_job_here_fn *here;
    void *context;
    time_t until;
    int result;
    trp_error *err;
};

/* One at a time, and only when the last is some time ago; the stamp is in memory and
 * goes with the node. The descriptor that holds the lock, or -1. */
static int begin_sweep(const char *records, trp_error *err)
{
    struct stat st;
    int fd = open_stamp(records, err);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
        (st.st_size == 0 || labs(time(NULL) - st.st_mtime) >= SWEEP_EVERY_S) &&
        pwrite(fd, "\n", 1, 0) == 1)
        return fd;
    close(fd);
    return -1;
}

static void sweep_job(struct sweep *s, const char *name)
{
    char record[PATH_MAX], *end;
    struct trp_node_job job = {0};
    unsigned long id = strtoul(name, &end, 10);
    if (name[0] < '1' || name[0] > '9' || *end || id > UINT32_MAX ||
        s->here((uint32_t)id, s->context) ||
        !owner_of(s->jobs, name, (uint32_t)id, &job))
        return;
    int r = clean(s->jobs, name, &job, s->until, s->err);
    s->result = s->result ? s->result : r;
    if (snprintf(record, sizeof record, "%s/%s", s->records, name) < PATH_MAX)
        unlink(record);
}

static void sweep_going(struct sweep *s, const char *name)
{
    int going = open_going(s->jobs);
    if (going < 0)
        return;
    if (name[0] != '.')
        remove_going(going, name, s->until);
    close(going);
}

/* All entries of the folder `fd`, which is closed. */
static void each_entry(struct sweep *s, int fd, void (*f)(struct sweep *, const char *))
{
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && trp_clock_ms() / 1000 <= s->until && (e = readdir(d));)
        f(s, e->d_name);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

int trp_scratch_sweep(const char *records, const char *parent, trp_job_here_fn *here,
                      void *context, trp_error *err)
{
    int jobs = open_jobs(parent, 0, err);
    if (jobs < 0)
        return jobs == TRP_ENOENT ? 0 : jobs;
    struct sweep s = {.records = records,
                      .jobs = jobs,
                      .here = here,
                      .context = context,
                      .until = trp_clock_ms() / 1000 + SWEEP_S,
                      .err = err};
    int lock = begin_sweep(records, err);
    if (lock >= 0) {
        each_entry(&s, openat(jobs, ".", FOLDER), sweep_job);
        each_entry(&s, open_going(jobs), sweep_going);
        close(lock);
    }
    close(jobs);
    return s.result;
}
