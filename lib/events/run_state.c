/*
 * state/run.json and the list of runs. The file is read by jansson and written by hand
 * (json_text.h: jansson refuses names that are no UTF-8). It is replaced as a whole, so
 * a reader sees the old or the new one; on a full disk the old one stays.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "events/json_text.h"
#include "events/run_folder.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/whole_file.h"

enum { STATE_FILE_MAX = 1 << 20, COMMAND_MAX = 4096 };

void trp_run_view_clear(struct trp_run_view *v)
{
    free(v->name);
    free(v->app);
    free(v->status);
    free(v->host);
    *v = (struct trp_run_view){0};
}

static char *text_of(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return strdup(s ? s : "");
}

static int64_t int_of(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

/* TRP_ENOENT: there is none, or it is not one of ours. Strings are new. */
static int read_state(const char *run_dir, struct trp_run_view *ret)
{
    char file[PATH_MAX];
    struct stat st;
    if (snprintf(file, sizeof file, "%s/state/run.json", run_dir) >= PATH_MAX ||
        trp_held_stat(file, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size > STATE_FILE_MAX)
        return TRP_ENOENT;
    FILE *in = trp_held_fopen(file, "r");
    json_t *j = in ? json_loadf(in, 0, NULL) : NULL;
    if (in)
        fclose(in);
    if (!json_is_object(j) || !json_is_string(json_object_get(j, "status"))) {
        json_decref(j);
        return TRP_ENOENT;
    }
    *ret = (struct trp_run_view){.name = text_of(j, "run"),
                                 .app = text_of(j, "name"),
                                 .status = text_of(j, "status"),
                                 .host = text_of(j, "host"),
                                 .started_ms = int_of(j, "started"),
                                 .ended_ms = int_of(j, "ended"),
                                 .exit_status = (int)int_of(j, "exit"),
                                 .pid = (int)int_of(j, "pid")};
    json_decref(j);
    if (ret->name && ret->app && ret->status && ret->host)
        return 0;
    trp_run_view_clear(ret);
    return TRP_ENOMEM;
}

/* ---- writing ---- */

/* The command line of this process, words apart by blanks; "" unknown. */
static size_t command_line(char *buf, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, size);
    if (fd >= 0)
        close(fd);
    while (n > 0 && buf[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] == '\0')
            buf[i] = ' ';
    return n > 0 ? (size_t)n : 0;
}

static void state_text(struct trp_buf *b, const struct trp_run_view *v)
{
    char command[COMMAND_MAX];
    TRP_JSON(b, "{\"run\":");
    trp_json_text(b, v->name);
    TRP_JSON_TEXT(b, "name", v->app);
    TRP_JSON_INT(b, "started", v->started_ms);
    TRP_JSON_INT(b, "ended", v->ended_ms);
    TRP_JSON_TEXT(b, "status", v->status);
    TRP_JSON_INT(b, "exit", v->exit_status);
    TRP_JSON_INT(b, "pid", v->pid);
    TRP_JSON_TEXT(b, "host", v->host);
    TRP_JSON(b, ",\"command\":");
    trp_json_string(b, command, command_line(command, sizeof command));
    TRP_JSON(b, "}\n");
}

int trp_run_folder_state(trp_run_folder *f, const char *app_name, const char *status,
                         int exit_status, trp_error *err)
{
    char file[PATH_MAX], name[128], app[256], word[32], host[256] = "";
    snprintf(file, sizeof file, "%s/state/run.json", f->path);
    snprintf(name, sizeof name, "%s", f->name);
    snprintf(app, sizeof app, "%s", app_name);
    snprintf(word, sizeof word, "%s", status);
    gethostname(host, sizeof host - 1);
    struct trp_run_view v = {.name = name,
                             .app = app,
                             .status = word,
                             .host = host,
                             .started_ms = trp_clock_wall_ns() / 1000000,
                             .exit_status = exit_status,
                             .pid = (int)getpid()};
    struct trp_run_view before = {0};
    if (strcmp(status, "running") != 0) {
        v.ended_ms = v.started_ms;
        if (read_state(f->path, &before) == 0) {
            v.started_ms = before.started_ms;
            v.pid = before.pid;
        }
        trp_run_view_clear(&before);
    }
    struct trp_buf b = {0};
    state_text(&b, &v);
    int code = 0;
    if (b.failed)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (trp_held_write(file, b.data, b.size, false) < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "cannot write %s: %m", file);
    trp_buf_free(&b);
    return code;
}

/* ---- the list ---- */

/* It says that it runs, but its lock is free, and its driver gone. */
static bool died(const char *run_dir)
{
    char file[PATH_MAX + 64];
    snprintf(file, sizeof file, "%s/state/lock", run_dir);
    int fd = trp_held_open(file, O_RDONLY, 0);
    if (fd < 0)
        return errno == ENOENT;
    bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    return is_free && !trp_run_folder_is_driven(run_dir);
}

bool trp_run_folder_view(const char *run_dir, struct trp_run_view *ret)
{
    if (read_state(run_dir, ret) < 0)
        return false;
    /* The folder's own name counts: it may have been renamed. */
    bool dead = strcmp(ret->status, "running") == 0 && died(run_dir);
    char *name = strdup(strrchr(run_dir, '/') + 1),
         *status = dead ? strdup("died") : NULL;
    if (!name || (dead && !status)) {
        free(name);
        free(status);
        trp_run_view_clear(ret);
        return false;
    }
    free(ret->name);
    ret->name = name;
    if (dead) {
        free(ret->status);
        ret->status = status;
    }
    return true;
}

bool trp_run_is_here(const struct trp_run_view *v)
{
    char host[256] = "";
    return gethostname(host, sizeof host - 1) == 0 && strcmp(host, v->host) == 0;
}

/* One entry of RUNS; false: no run. */
static bool view_of(const char *runs, const char *entry, struct trp_run_view *ret)
{
    char path[PATH_MAX];
    return entry[0] != '.' &&
           snprintf(path, sizeof path, "%s/%s", runs, entry) < PATH_MAX - 64 &&
           trp_run_folder_view(path, ret);
}

static int newest_first(const void *a, const void *b)
{
    const struct trp_run_view *x = a, *y = b;
    if (x->started_ms != y->started_ms)
        return x->started_ms < y->started_ms ? 1 : -1;
    return strcmp(y->name, x->name);
}

static int open_runs(const char *runs, DIR **ret, trp_error *err)
{
    int code = trp_held_folder(runs, NULL, err);
    if (code < 0)
        return code;
    int fd = trp_held_open(runs, O_RDONLY | O_DIRECTORY, 0);
    *ret = fd < 0 ? NULL : fdopendir(fd);
    if (*ret)
        return 0;
    code = trp_error_set(err, TRP_ESYSTEM, "cannot read %s: %m", runs);
    if (fd >= 0)
        close(fd);
    trp_held_leave(runs);
    return code;
}

int trp_run_folder_list(const char *runs, struct trp_run_view **ret, uint32_t *ret_n,
                        trp_error *err)
{
    DIR *d;
    struct trp_run_view *v = NULL, one;
    uint32_t n = 0, capacity = 0;
    *ret = NULL;
    *ret_n = 0;
    int code = open_runs(runs, &d, err);
    if (code < 0)
        return code == TRP_ENOENT ? 0 : code;
    for (const struct dirent *e; code == 0 && (e = readdir(d));) {
        if (!view_of(runs, e->d_name, &one))
            continue;
        if (TRP_ARRAY_GROW(v, n, capacity)) {
            v[n++] = one;
            continue;
        }
        trp_run_view_clear(&one);
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    closedir(d);
    trp_held_leave(runs);
    if (code < 0) {
        trp_run_folder_list_free(v, n);
        return code;
    }
    if (n > 0)
        qsort(v, n, sizeof *v, newest_first);
    *ret = v;
    *ret_n = n;
    return 0;
}

/* Of a link in RUNS/.history, which leads to ../RUN/events.jsonl: RUN. */
static bool read_run_of(int folder, const char *link, char *buf, size_t size)
{
    ssize_t n = readlinkat(folder, link, buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
    char *end = strncmp(buf, "../", 3) == 0 ? strchr(buf + 3, '/') : NULL;
    if (!end)
        return false;
    *end = '\0';
    memmove(buf, buf + 3, strlen(buf + 3) + 1);
    return true;
}

char *trp_run_folder_other(const trp_run_folder *f, const char *app)
{
    char path[PATH_MAX], name[PATH_MAX], *ret = NULL;
    if (snprintf(path, sizeof path, "%s/.history", f->runs) >= (int)sizeof path)
        return NULL;
    int fd = trp_held_open(path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    for (const struct dirent *e; d && !ret && (e = readdir(d));) {
        const char *end = strrchr(e->d_name, '.');
        struct trp_run_view v;
        if (!end || strcmp(end, ".inprogress") != 0 ||
            !read_run_of(fd, e->d_name, name, sizeof name) ||
            strcmp(name, f->name) == 0 || !view_of(f->runs, name, &v))
            continue;
        if (strcmp(v.status, "running") == 0 && strcmp(v.app, app) == 0)
            ret = strdup(v.name);
        trp_run_view_clear(&v);
    }
    if (d)
        closedir(d);
    return ret;
}

void trp_run_folder_list_free(struct trp_run_view *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        trp_run_view_clear(&v[i]);
    free(v);
}
