/*
 * A run's folder: making, locking, opening, its state.
 *
 * mkdir decides who owns a name, so two runs of the same second never share a folder.
 * Files that others may read at any time (run.json, the link `last`) are made under a
 * name of their own and renamed, so nobody sees half of one. The lock is an flock: it
 * ends with the process, whatever ends it. Some parallel file systems have none; then a
 * run goes on without, and only "died" and "still running" cannot be told.
 *
 * A folder that cannot be completed is removed again.
 */
#include "events/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "events/run_state.h"

enum {
    NAME_MAX_CHARS = 64,
    APP_CHARS = 40, /* of an application's name in a folder's name */
    SAME_NAMES = 100,
    LONG_PATH = PATH_MAX + 64, /* a run's path and what lies in it */
    LOCK_TRIES = 4, /* `troupe ls` holds a lock for an instant to see whether it can */
};

#define RUNS "troupe-runs"
#define RESERVED "submitted" /* a file in a folder that waits for its run */

static int failed(trp_error *err, const char *what, const char *path)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s %s: %s", what, path,
                         strerror(errno));
}

static bool name_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '_' || (!first && (c == '.' || c == '-'));
}

static int check_name(const char *name, trp_error *err)
{
    size_t n = strlen(name);
    bool good = n > 0 && n <= NAME_MAX_CHARS && strcmp(name, "last") != 0;
    for (size_t i = 0; good && i < n; i++)
        good = name_char(name[i], i == 0);
    return good ? 0
                : trp_error_set(err, TRP_EINVAL,
                                "run name \"%.80s\": letters, digits, \"_\", \".\" and "
                                "\"-\" (not in front), at most %d; not \"last\"",
                                name, NAME_MAX_CHARS);
}

void trp_run_name_clean(const char *app, char *buf, size_t size)
{
    size_t n = 0;
    for (; n + 1 < size && n < APP_CHARS && app[n]; n++)
        buf[n] = name_char(app[n], n == 0) ? app[n] : n == 0 ? '_' : '-';
    buf[n] = '\0';
    if (n == 0)
        snprintf(buf, size, "run");
}

/* APP-YYYYMMDDTHHMMSS-PID */
static void make_name(const char *app, char *buf, size_t size)
{
    char clean[APP_CHARS + 1], stamp[32];
    trp_run_name_clean(app, clean, sizeof clean);
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &tm);
    snprintf(buf, size, "%s-%s-%d", clean, stamp, (int)getpid());
}

/* Holds the lock for as long as the descriptor is open. TRP_ESTATE: somebody has it. */
static int lock_run(const char *path, int *ret_fd, trp_error *err)
{
    char file[LONG_PATH];
    snprintf(file, sizeof file, "%s/state/lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(err, "make", file);
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || trp_run_state_no_locks(errno)) {
            *ret_fd = fd;
            return 0;
        }
        if (errno != EWOULDBLOCK)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    int code = errno == EWOULDBLOCK
                   ? trp_error_set(err, TRP_ESTATE, "%s is still running", path)
                   : failed(err, "lock", file);
    close(fd);
    return code;
}

/* BASE/troupe-runs/last → name, at once. */
static int link_last(const char *base, const char *name, trp_error *err)
{
    char last[PATH_MAX], fresh[PATH_MAX];
    snprintf(last, sizeof last, "%s/" RUNS "/last", base);
    snprintf(fresh, sizeof fresh, "%s/" RUNS "/.last.%.80s", base, name);
    unlink(fresh);
    if (symlink(name, fresh) < 0)
        return failed(err, "make", last);
    if (rename(fresh, last) < 0) {
        int code = failed(err, "replace", last);
        unlink(fresh);
        return code;
    }
    return 0;
}

/* ---- making -------------------------------------------------------------------------
 */

static int make_dir(const char *path, trp_error *err)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    return errno == EEXIST ? TRP_EEXIST : failed(err, "make the folder", path);
}

/* Was the folder made for a run to come? Only one run can remove the file. */
static bool take_reserved(const char *path)
{
    char file[LONG_PATH];
    snprintf(file, sizeof file, "%s/" RESERVED, path);
    return unlink(file) == 0;
}

/* BASE/troupe-runs, then the run's own folder; its path in `path`, its name in `name`.
 */
static int make_run_dir(const char *base, const char *app, const char *run_name,
                        char *name, char *path, trp_error *err)
{
    snprintf(path, PATH_MAX, "%s/" RUNS, base);
    int code = make_dir(path, err);
    if (code < 0 && code != TRP_EEXIST)
        return code;
    char made[NAME_MAX];
    make_name(app, made, sizeof made);
    for (int i = 1; i <= SAME_NAMES; i++) {
        if (run_name)
            snprintf(name, NAME_MAX, "%s", run_name);
        else if (i == 1)
            snprintf(name, NAME_MAX, "%.*s", NAME_MAX - 16, made);
        else
            snprintf(name, NAME_MAX, "%.*s.%d", NAME_MAX - 16, made, i);
        if (snprintf(path, PATH_MAX, "%s/" RUNS "/%s", base, name) >= PATH_MAX - 64)
            return trp_error_set(err, TRP_ELIMIT, "the path of %s is too long", base);
        code = make_dir(path, err);
        if (code == TRP_EEXIST && run_name && take_reserved(path))
            code = 0;
        if (code != TRP_EEXIST || run_name)
            break;
    }
    return code == TRP_EEXIST ? trp_error_set(err, TRP_EEXIST,
                                              RUNS "/%s is there already: use --resume "
                                                   "%s or another name",
                                              name, name)
                              : code;
}

static int make_inside(const char *path, trp_error *err)
{
    static const char *const dirs[] = {"logs", "state"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char dir[LONG_PATH];
        snprintf(dir, sizeof dir, "%s/%s", path, dirs[i]);
        if (mkdir(dir, 0700) < 0)
            return failed(err, "make the folder", dir);
    }
    return 0;
}

static void unmake(const char *path)
{
    static const char *const inside[] = {"/state/lock", "/state", "/logs", ""};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        char p[LONG_PATH];
        snprintf(p, sizeof p, "%s%s", path, inside[i]);
        remove(p);
    }
}

static int fill(struct trp_run_folder *f, const char *name, const char *path,
                const char *shown)
{
    f->name = strdup(name);
    f->path = strdup(path);
    f->shown = strdup(shown);
    return f->name && f->path && f->shown ? 0 : TRP_ENOMEM;
}

int trp_run_folder_new(const char *base, const char *app, const char *run_name,
                       trp_run_folder **ret, trp_error *err)
{
    char name[NAME_MAX], path[PATH_MAX], shown[NAME_MAX + 16];
    if (run_name) {
        int bad = check_name(run_name, err);
        if (bad < 0)
            return bad;
    }
    int code = make_run_dir(base, app, run_name, name, path, err);
    if (code < 0)
        return code;
    snprintf(shown, sizeof shown, RUNS "/%s", name);
    struct trp_run_folder *f = calloc(1, sizeof *f);
    if (f)
        f->lock_fd = -1;
    if (!f || fill(f, name, path, shown) < 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (code == 0)
        code = make_inside(path, err);
    if (code == 0)
        code = lock_run(path, &f->lock_fd, err);
    if (code == 0)
        code = link_last(base, name, err);
    if (code < 0) {
        trp_run_folder_free(f);
        unmake(path);
        return code;
    }
    *ret = f;
    return 0;
}

int trp_run_folder_reserve(const char *base, const char *app, const char *run_name,
                           char **ret_name, trp_error *err)
{
    char name[NAME_MAX], path[PATH_MAX], file[LONG_PATH];
    int code = run_name ? check_name(run_name, err) : 0;
    if (code < 0)
        return code;
    snprintf(path, sizeof path, "%s/" RUNS "/%s/" RESERVED, base,
             run_name ? run_name : "");
    if (run_name && access(path, F_OK) == 0)
        return trp_error_set(err, TRP_EEXIST,
                             RUNS "/%s waits for a job already; use another name, or "
                                  "remove it when that job is gone",
                             run_name);
    code = make_run_dir(base, app, run_name, name, path, err);
    if (code < 0)
        return code;
    snprintf(file, sizeof file, "%s/" RESERVED, path);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    *ret_name = fd < 0 ? NULL : strdup(name);
    if (*ret_name)
        return 0;
    code = failed(err, "make", file);
    unlink(file);
    rmdir(path);
    return code;
}

void trp_run_folder_unreserve(const char *base, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" RUNS "/%s", base, name);
    if (take_reserved(path))
        rmdir(path);
    snprintf(path, sizeof path, "%s/" RUNS, base);
    rmdir(path); /* when it was the first */
}

/* ---- opening ------------------------------------------------------------------------
 */

static bool is_run(const char *path)
{
    char state[PATH_MAX];
    struct stat st;
    return snprintf(state, sizeof state, "%s/state/run.json", path) < PATH_MAX &&
           stat(state, &st) == 0 && S_ISREG(st.st_mode);
}

/* The real path of the run that is meant: a name below troupe-runs, else a path. */
static bool find_run(const char *base, const char *run, char *path)
{
    char try[PATH_MAX];
    if (!strchr(run, '/') &&
        snprintf(try, sizeof try, "%s/" RUNS "/%s", base, run) < PATH_MAX &&
        realpath(try, path) && is_run(path))
        return true;
    int n = run[0] == '/' ? snprintf(try, sizeof try, "%s", run)
                          : snprintf(try, sizeof try, "%s/%s", base, run);
    return n < PATH_MAX && realpath(try, path) && is_run(path);
}

static int find_or_say(const char *base, const char *run, char *path, trp_error *err)
{
    if (run[0] && find_run(base, run, path))
        return 0;
    return trp_error_set(err, TRP_EINVAL,
                         "%.200s is no run: neither below " RUNS
                         " nor a run's folder (no state/run.json); see troupe ls",
                         run);
}

int trp_run_folder_find(const char *base, const char *run, char **ret_path,
                        trp_error *err)
{
    char path[PATH_MAX];
    int code = find_or_say(base, run, path, err);
    if (code < 0)
        return code;
    *ret_path = strdup(path);
    return *ret_path ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

int trp_run_folder_open(const char *base, const char *run, trp_run_folder **ret,
                        trp_error *err)
{
    char path[PATH_MAX], below[LONG_PATH], shown[LONG_PATH];
    int missing = find_or_say(base, run, path, err);
    if (missing < 0)
        return missing;
    const char *name = strrchr(path, '/') + 1;
    snprintf(below, sizeof below, "%s/" RUNS, base);
    char real[PATH_MAX];
    size_t dir = (size_t)(name - path) - 1;
    bool ours =
        realpath(below, real) && strlen(real) == dir && memcmp(real, path, dir) == 0;
    snprintf(shown, sizeof shown, "%s%s", ours ? RUNS "/" : "", ours ? name : path);

    struct trp_run_folder *f = calloc(1, sizeof *f);
    if (!f)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    f->lock_fd = -1;
    int code = fill(f, name, path, shown);
    if (code < 0)
        trp_error_set(err, code, "out of memory");
    if (code == 0)
        code = lock_run(path, &f->lock_fd, err);
    if (code == TRP_ESTATE)
        trp_error_set(err, code, "run %s is still running", shown);
    if (code == 0 && ours)
        code = link_last(base, name, err); /* it is the newest again */
    if (code < 0) {
        trp_run_folder_free(f);
        return code;
    }
    *ret = f;
    return 0;
}

void trp_run_folder_free(trp_run_folder *f)
{
    if (!f)
        return;
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    free(f->name);
    free(f->path);
    free(f->shown);
    free(f);
}

void trp_run_folder_pid(const char *run_dir, int pid, const char *what)
{
    char file[PATH_MAX], line[256];
    snprintf(file, sizeof file, "%s/state/pids", run_dir);
    int n = snprintf(line, sizeof line - 1, "%d %s", pid, what);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    for (int i = 0; i < n; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[n++] = '\n';
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    ssize_t w;
    do
        w = write(fd, line, (size_t)n);
    while (w < 0 && errno == EINTR);
    close(fd);
}

int trp_run_folder_has_room(const char *run_dir, trp_error *err)
{
    static const char some[1 << 16];
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/state/room.%d", run_dir, (int)getpid());
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n = -1;
    if (fd >= 0) {
        errno = 0;
        n = write(fd, some, sizeof some);
        if (n >= 0 && (size_t)n < sizeof some)
            errno = ENOSPC;
        if (n == (ssize_t)sizeof some && fsync(fd) < 0) /* quotas of other machines */
            n = -1;
    }
    int why = errno;
    if (fd >= 0) {
        close(fd);
        unlink(file);
    }
    return n == (ssize_t)sizeof some
               ? 0
               : trp_error_set(err, TRP_ESYSTEM, "cannot write below %s: %s", run_dir,
                               strerror(why));
}
