/*
 * A run's folder: making, locking, opening, its state.
 *
 * mkdir decides who owns a name, so two runs of the same second never share a folder.
 * Files that others may read at any time (run.json, the link `last`) are made under a
 * name of their own and renamed, so nobody sees half of one. The lock is an flock: it
 * ends with the process, whatever ends it. Some parallel file systems have none; then a
 * run goes on without, and only "died" and "still running" cannot be told.
 *
 * The folder of runs and a run's are held (os/held.h): what is in them is opened
 * below their descriptors.
 *
 * A folder that cannot be completed is removed again. One that is left all the same,
 * since the process was killed or the disk too full even for that, is used again by a
 * run of its name.
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

#include "os/held.h"

enum {
    NAME_MAX_CHARS = 64,
    APP_CHARS = 40, /* of an application's name in a folder's name */
    SAME_NAMES = 100,
    LONG_PATH = PATH_MAX + 64, /* a run's path and what lies in it */
    LOCK_TRIES = 4, /* `troupe ls` holds a lock for an instant to see whether it can */
    DRIVER_MS = 10000, /* for the driver of an earlier start to be gone */
    LOOK_MS = 50,
};

#define RESERVED "submitted" /* a file in a folder that waits for its run */

static int failed(trp_error *err, const char *what, const char *path)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s %s: %m", what, path);
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

/* An flock that failed with this errno: the file system has no locks. */
static bool has_no_locks(int code)
{
    return code == ENOSYS || code == EOPNOTSUPP || code == ENOLCK;
}

/* Holds the lock for as long as the descriptor is open. TRP_ESTATE: somebody has it. */
static int lock_run(const char *path, int *ret_fd, trp_error *err)
{
    char file[LONG_PATH];
    snprintf(file, sizeof file, "%s/state/lock", path);
    int fd = trp_held_open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return failed(err, "make", file);
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || has_no_locks(errno)) {
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

/* A lock on the whole file. */
static const struct flock driver_lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

static int open_driver_lock(const char *path, int flags, char file[LONG_PATH])
{
    snprintf(file, LONG_PATH, "%s/state/driver.lock", path);
    return trp_held_open(file, flags, 0600);
}

/* The lock of the run's driver: kept until this process ends, or only had once. */
static int lock_driver(const char *path, bool keeps, trp_error *err)
{
    char file[LONG_PATH];
    int fd = open_driver_lock(path, O_RDWR | O_CREAT, file);
    if (fd < 0)
        return failed(err, "make", file);
    struct flock whole = driver_lock;
    bool is_ours, is_held = true;
    for (int ms = 0;; ms += LOOK_MS) {
        is_ours = fcntl(fd, F_SETLK, &whole) == 0 || has_no_locks(errno);
        is_held = !is_ours && (errno == EAGAIN || errno == EACCES);
        if (!is_held || ms >= DRIVER_MS)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    if (is_ours && keeps)
        return 0;
    int code = is_ours   ? 0
               : is_held ? trp_error_set(err, TRP_ESTATE,
                                         "run %s is still ending: its driver, which is "
                                         "in state/pids, has not gone yet; try again",
                                         trp_run_shown(path))
                         : failed(err, "lock", file);
    close(fd);
    return code;
}

int trp_run_folder_drives(const char *run_dir, trp_error *err)
{
    return lock_driver(run_dir, true, err);
}

bool trp_run_folder_is_driven(const char *run_dir)
{
    char file[LONG_PATH];
    int fd = open_driver_lock(run_dir, O_RDONLY, file);
    struct flock whole = driver_lock;
    bool is = fd >= 0 && fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    if (fd >= 0)
        close(fd);
    return is;
}

/* This process belongs to a task of a run that lies in `runs`, too. */
static bool is_in_task(const char *runs)
{
    const char *outer = getenv("TROUPE_RUN");
    char path[LONG_PATH];
    struct stat st;
    if (!outer || !getenv("TROUPE_TASK") || check_name(outer, NULL) < 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", runs, outer);
    return trp_held_stat(path, &st) == 0;
}

/* RUNS/last → name, at once. The run around a task stays the newest. */
static int link_last(const char *runs, const char *name, trp_error *err)
{
    char last[LONG_PATH], fresh[LONG_PATH + NAME_MAX_CHARS];
    if (is_in_task(runs))
        return 0;
    snprintf(last, sizeof last, "%s/last", runs);
    snprintf(fresh, sizeof fresh, "%s/.last.%.80s", runs, name);
    trp_held_unlink(fresh, 0);
    if (trp_held_symlink(name, fresh) < 0)
        return failed(err, "make", last);
    if (trp_held_rename(fresh, last) < 0) {
        int code = failed(err, "replace", last);
        trp_held_unlink(fresh, 0);
        return code;
    }
    return 0;
}

/* ---- the folder of runs ---- */

int trp_runs_dir(const char *given, char **ret, trp_error *err)
{
    const char *dir = given ? given : getenv("TROUPE_RUNS");
    char *cwd = NULL;
    if (!dir || (!given && !*dir))
        dir = TRP_RUNS;
    if (!*dir)
        return trp_error_set(err, TRP_EINVAL, "--runs-dir: the name of a folder");
    if (dir[0] != '/' && !(cwd = getcwd(NULL, 0)))
        return trp_error_set(err, TRP_ESYSTEM, "no working folder: %m");
    while (strncmp(dir, "./", 2) == 0)
        dir += 2 + strspn(dir + 2, "/");
    int n = asprintf(ret, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", dir);
    free(cwd);
    if (n < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    while (n > 1 && (*ret)[n - 1] == '/') /* behind a slash a link would be followed */
        (*ret)[--n] = '\0';
    if (n < PATH_MAX - 2 * NAME_MAX_CHARS)
        return 0;
    free(*ret);
    return trp_error_set(err, TRP_ELIMIT, "the path of %.80s is too long", dir);
}

static const char *reader = ".";

void trp_run_read_in(const char *folder)
{
    reader = folder;
}

/* Of an absolute path the first `n` bytes. */
static bool is_of_reader(const char *path, size_t n)
{
    struct stat here, there;
    char folder[PATH_MAX];
    if (n >= sizeof folder)
        return false;
    snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    return stat(reader, &here) == 0 && stat(*folder ? folder : "/", &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

const char *trp_run_shown(const char *run_dir)
{
    size_t n = strlen(TRP_RUNS);
    const char *name = strrchr(run_dir, '/');
    const char *runs = name - n;
    bool usual = name && (size_t)(name - run_dir) > n && runs[-1] == '/' &&
                 strncmp(runs, TRP_RUNS, n) == 0 &&
                 is_of_reader(run_dir, (size_t)(runs - 1 - run_dir));
    return usual ? runs : run_dir;
}

const char *trp_run_called(const char *run_dir)
{
    const char *shown = trp_run_shown(run_dir);
    return shown == run_dir ? run_dir : strrchr(shown, '/') + 1;
}

/* ---- making ---- */

static int make_dir(const char *path, trp_error *err)
{
    if (trp_held_mkdir(path, 0700) == 0)
        return 0;
    return errno == EEXIST ? TRP_EEXIST : failed(err, "make the folder", path);
}

static bool has(const char *path, const char *file)
{
    char full[LONG_PATH];
    struct stat st;
    snprintf(full, sizeof full, "%s/%s", path, file);
    return trp_held_stat(full, &st) == 0 && S_ISREG(st.st_mode);
}

/* Was the folder made for a run to come? Only one run can remove the file. */
static bool take_reserved(const char *path)
{
    char file[LONG_PATH];
    snprintf(file, sizeof file, "%s/" RESERVED, path);
    return trp_held_unlink(file, 0) == 0;
}

/* What a run works from is written last of all, before anything is started. */
static bool began(const char *path)
{
    return has(path, "state/run_spec.json") || has(path, "events.jsonl");
}

static int taken(const char *path, trp_error *err)
{
    return trp_error_set(err, TRP_EEXIST,
                         "%s is there already: use --resume %s or another name",
                         trp_run_shown(path), strrchr(path, '/') + 1);
}

/* A folder of that name that is there: 0 when it was made for a run that did not begin,
 * since the disk was full, say. */
static int use_again(const char *path, trp_error *err)
{
    struct stat st;
    bool is_folder = trp_held_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return take_reserved(path) || (is_folder && !has(path, RESERVED) && !began(path))
               ? 0
               : taken(path, err);
}

/* Holds RUNS, which is made when it is not there. */
static int hold_runs(const char *runs, trp_error *err)
{
    int code = make_dir(runs, err);
    return code < 0 && code != TRP_EEXIST ? code : trp_held_folder(runs, NULL, err);
}

/* The run's own folder below RUNS; its path in `path`, its name in `name`. 1: it was
 * there. */
static int make_run_dir(const char *runs, const char *app, const char *run_name,
                        char *name, char *path, trp_error *err)
{
    char made[NAME_MAX];
    int code = TRP_EEXIST;
    make_name(app, made, sizeof made);
    for (int i = 1; i <= SAME_NAMES && code == TRP_EEXIST; i++) {
        if (run_name)
            snprintf(name, NAME_MAX, "%s", run_name);
        else if (i == 1)
            snprintf(name, NAME_MAX, "%.*s", NAME_MAX - 16, made);
        else
            snprintf(name, NAME_MAX, "%.*s.%d", NAME_MAX - 16, made, i);
        if (snprintf(path, PATH_MAX, "%s/%s", runs, name) >= PATH_MAX - 64)
            return trp_error_set(err, TRP_ELIMIT, "the path of %s is too long", runs);
        code = make_dir(path, err);
        if (code == TRP_EEXIST && run_name)
            return use_again(path, err) < 0 ? TRP_EEXIST : 1;
    }
    return code == TRP_EEXIST
               ? trp_error_set(err, code, "%s is there already", trp_run_shown(path))
               : code;
}

static int make_inside(const char *path, trp_error *err)
{
    static const char *const dirs[] = {"logs", "state"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char dir[LONG_PATH];
        snprintf(dir, sizeof dir, "%s/%s", path, dirs[i]);
        int code = make_dir(dir, err);
        if (code < 0 && code != TRP_EEXIST)
            return code;
    }
    return 0;
}

/* What was begun there goes; what somebody else has put there stays. */
static void unmake(const char *path)
{
    static const char *const inside[] = {"state/id", "state/id.new", "state/lock",
                                         "state/run.json"};
    static const char *const dirs[] = {"/state", "/logs", ""};
    char p[LONG_PATH];
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(p, sizeof p, "%s/%s", path, inside[i]);
        trp_held_unlink(p, 0);
    }
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(p, sizeof p, "%s%s", path, dirs[i]);
        trp_held_unlink(p, AT_REMOVEDIR);
    }
}

static trp_run_folder *new_folder(const char *runs, const char *name, const char *path,
                                  trp_error *err)
{
    struct trp_run_folder *f = calloc(1, sizeof *f);
    if (f) {
        f->lock_fd = -1;
        f->runs = strdup(runs);
        f->name = strdup(name);
        f->path = strdup(path);
        f->shown = strdup(trp_run_shown(path));
    }
    if (f && f->runs && f->name && f->path && f->shown)
        return f;
    trp_run_folder_free(f);
    trp_error_set(err, TRP_ENOMEM, "out of memory");
    return NULL;
}

/* Two may have found a folder that did not begin: the lock is one's. */
static int fill(trp_run_folder *f, const char *app, bool was_there, trp_error *err)
{
    int code = make_inside(f->path, err);
    if (code == 0)
        code = lock_run(f->path, &f->lock_fd, err);
    if (code == TRP_ESTATE || (code == 0 && was_there && began(f->path)))
        return taken(f->path, err);
    if (code == 0)
        code = trp_held_identify(f->path, err);
    if (code == 0)
        code = trp_run_folder_state(f, app, "running", 0, err);
    return code == 0 ? link_last(f->runs, f->name, err) : code;
}

int trp_run_folder_new(const char *runs, const char *app, const char *run_name,
                       trp_run_folder **ret, trp_error *err)
{
    char name[NAME_MAX], path[PATH_MAX];
    int code = run_name ? check_name(run_name, err) : 0;
    if (code == 0)
        code = hold_runs(runs, err);
    if (code < 0)
        return code;
    int there = make_run_dir(runs, app, run_name, name, path, err);
    code = there < 0 ? there : trp_held_folder(path, NULL, err);
    if (code < 0) {
        trp_held_leave(runs);
        return code;
    }
    struct trp_run_folder *f = new_folder(runs, name, path, err);
    if (!f)
        return TRP_ENOMEM;
    code = fill(f, app, there == 1, err);
    if (code < 0) {
        if (there == 0 && code != TRP_EEXIST)
            unmake(path);
        trp_run_folder_free(f);
        return code;
    }
    *ret = f;
    return 0;
}

int trp_run_folder_reserve(const char *runs, const char *app, const char *run_name,
                           char **ret_name, trp_error *err)
{
    char name[NAME_MAX], path[PATH_MAX], file[LONG_PATH];
    int code = run_name ? check_name(run_name, err) : 0;
    if (code == 0)
        code = hold_runs(runs, err);
    if (code < 0)
        return code;
    snprintf(path, sizeof path, "%s/%s", runs, run_name ? run_name : "");
    if (run_name && has(path, RESERVED))
        return trp_error_set(err, TRP_EEXIST,
                             "%s waits for a job already; use another name, or remove "
                             "it when that job is gone",
                             trp_run_shown(path));
    code = make_run_dir(runs, app, run_name, name, path, err);
    if (code < 0)
        return code;
    snprintf(file, sizeof file, "%s/" RESERVED, path);
    int fd = trp_held_open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        close(fd);
    *ret_name = fd < 0 ? NULL : strdup(name);
    if (*ret_name)
        return 0;
    code = failed(err, "make", file);
    trp_held_unlink(file, 0);
    trp_held_unlink(path, AT_REMOVEDIR);
    return code;
}

void trp_run_folder_unreserve(const char *runs, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", runs, name);
    if (take_reserved(path))
        trp_held_unlink(path, AT_REMOVEDIR);
    trp_held_unlink(runs, AT_REMOVEDIR); /* when it was the first */
}

/* ---- opening ---- */

/* Of a name below RUNS, which is held: only `last` may be a link, to another name. */
static int find_below(const char *runs, const char *run, char *path, trp_error *err)
{
    char to[NAME_MAX_CHARS + 2];
    ssize_t n = -1;
    snprintf(path, PATH_MAX, "%s/%.80s", runs, run);
    if (strcmp(run, "last") == 0)
        n = trp_held_readlink(path, to, sizeof to - 1);
    if (n > 0) {
        to[n] = '\0';
        if (check_name(to, NULL) < 0)
            return TRP_ENOENT;
        snprintf(path, PATH_MAX, "%s/%s", runs, to);
    }
    return trp_held_folder(path, NULL, err);
}

/* By a path that the user wrote, whose links count. */
static int find_path(const char *run, char *path, trp_error *err)
{
    char state[LONG_PATH];
    if (!realpath(run, path))
        return errno == EACCES
                   ? trp_error_set(err, TRP_ESYSTEM,
                                   "%.200s cannot be reached: %s; only the user whose "
                                   "run it is may ask",
                                   run, strerror(errno))
                   : TRP_ENOENT;
    snprintf(state, sizeof state, "%s/state/run.json", path);
    if (access(state, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return TRP_ENOENT;
    return trp_held_folder(path, NULL, err);
}

/* A name below RUNS, else a path. */
static int find_run(const char *runs, int runs_held, const char *run, char *path,
                    trp_error *err)
{
    bool is_name = strcmp(run, "last") == 0 || check_name(run, NULL) == 0;
    int code = runs_held;
    if (code == 0 && is_name)
        code = find_below(runs, run, path, err);
    if (is_name && code != TRP_ENOENT)
        return code;
    return *run ? find_path(run, path, err) : TRP_ENOENT;
}

/* Holds the run that is meant, and RUNS where that can be. */
static int find_or_say(const char *runs, const char *run, char *path, trp_error *err)
{
    int held = trp_held_folder(runs, NULL, err);
    int code = find_run(runs, held, run, path, err);
    if (code == 0 && has(path, "state/run.json"))
        return 0;
    if (code == 0)
        trp_held_leave(path);
    if (held == 0)
        trp_held_leave(runs);
    if (code < 0 && code != TRP_ENOENT)
        return code;
    return trp_error_set(err, TRP_EINVAL,
                         "%.200s is no run: neither below %.600s nor a run's folder "
                         "(no state/run.json); see troupe ls",
                         run, runs);
}

int trp_run_folder_find(const char *runs, const char *run, char **ret_path,
                        trp_error *err)
{
    char path[PATH_MAX];
    int code = find_or_say(runs, run, path, err);
    if (code < 0)
        return code;
    *ret_path = strdup(path);
    return *ret_path ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Does it lie in RUNS? */
static bool is_below(const char *path, const char *runs)
{
    size_t n = strlen(runs);
    return strncmp(path, runs, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

int trp_run_folder_open(const char *runs, const char *run, trp_run_folder **ret,
                        trp_error *err)
{
    char path[PATH_MAX];
    int code = find_or_say(runs, run, path, err);
    if (code < 0)
        return code;
    struct trp_run_folder *f = new_folder(runs, strrchr(path, '/') + 1, path, err);
    if (!f)
        return TRP_ENOMEM;
    code = lock_run(path, &f->lock_fd, err);
    if (code == TRP_ESTATE)
        code = trp_error_set(err, TRP_EINVAL, "run %s is still running", f->shown);
    if (code == 0)
        code = lock_driver(path, false, err);
    if (code == 0)
        code = trp_held_identify(path, err);
    if (code < 0) {
        trp_run_folder_free(f);
        return code;
    }
    *ret = f;
    return 0;
}

int trp_run_folder_newest(const trp_run_folder *f, trp_error *err)
{
    return is_below(f->path, f->runs) ? link_last(f->runs, f->name, err) : 0;
}

void trp_run_folder_free(trp_run_folder *f)
{
    if (!f)
        return;
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    if (f->path)
        trp_held_leave(f->path);
    if (f->runs)
        trp_held_leave(f->runs);
    free(f->runs);
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
    int fd = trp_held_open(file, O_WRONLY | O_APPEND | O_CREAT, 0600);
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
    int fd = trp_held_open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
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
        trp_held_unlink(file, 0);
    }
    return n == (ssize_t)sizeof some
               ? 0
               : trp_error_set(err, TRP_ESYSTEM, "cannot write below %s: %s", run_dir,
                               strerror(why));
}
