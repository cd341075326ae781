/* What tasks printed, from files and from streams of stages. */
#include "events/task_logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "core/base/array.h"
#include "core/base/ids.h"

struct found {
    struct trp_task_log *v;
    uint32_t n, capacity;
};

/* ---- names ---- */

/* A number without a sign at *at, moving it; false: there is none. */
static bool take_number(const char **at, uint32_t *ret)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    unsigned long n = strtoul(*at, &end, 10);
    *at = end;
    *ret = (uint32_t)n;
    return n < TRP_NONE;
}

bool trp_task_log_address(const char *text, bool file, struct trp_task_log *ret)
{
    *ret = (struct trp_task_log){
        .stage_attempt = file ? 0 : TRP_NONE, .number = TRP_NONE, .rank = TRP_NONE};
    const char *at = text;
    if (!take_number(&at, &ret->task))
        return false;
    if (strncmp(at, ".s", 2) == 0 && (at += 2) &&
        !take_number(&at, &ret->stage_attempt))
        return false;
    uint32_t *const parts[] = {&ret->number, &ret->rank};
    for (int i = 0; i < 2 && at[0] == '.' && at[1] >= '0' && at[1] <= '9'; i++) {
        at++;
        if (!take_number(&at, parts[i]))
            return false;
    }
    ret->err = strcmp(at, ".err") == 0;
    if (file)
        return ret->number != TRP_NONE && (ret->err || strcmp(at, ".out") == 0);
    return *at == '\0';
}

void trp_task_log_name(const struct trp_task_log *l, char *buf, size_t size)
{
    char attempt[16] = "", rank[16] = "";
    if (l->stage_attempt)
        snprintf(attempt, sizeof attempt, ".s%u", l->stage_attempt);
    if (l->rank != TRP_NONE)
        snprintf(rank, sizeof rank, ".%u", l->rank);
    snprintf(buf, size, "%u%s.%u%s.%s", l->task, attempt, l->number, rank,
             l->err ? "err" : "out");
}

/* ---- finding ---- */

static int by_address(const void *a, const void *b)
{
    const struct trp_task_log *x = a, *y = b;
    const uint32_t u[] = {x->task, x->stage_attempt, x->number,
                          x->rank, x->err,           !x->framed};
    const uint32_t w[] = {y->task, y->stage_attempt, y->number,
                          y->rank, y->err,           !y->framed};
    for (size_t i = 0; i < sizeof u / sizeof *u; i++)
        if (u[i] != w[i])
            return u[i] < w[i] ? -1 : 1;
    return 0;
}

static bool add_log(struct found *f, const struct trp_task_log *l, const char *dir,
                    const char *name)
{
    char *path;
    if (!TRP_ARRAY_GROW(f->v, f->n, f->capacity) ||
        asprintf(&path, "%s/%s", dir, name) < 0)
        return false;
    f->v[f->n] = *l;
    f->v[f->n++].path = path;
    return true;
}

static bool add_file(struct found *f, const char *dir, const char *name,
                     struct trp_task_log *l)
{
    struct stat st;
    if (!add_log(f, l, dir, name))
        return false;
    if (stat(f->v[f->n - 1].path, &st) == 0)
        f->v[f->n - 1].size = (uint64_t)st.st_size;
    return true;
}

/* The frames of an index; a last line that a crash has cut off is left out. */
static bool add_frames(struct found *f, const char *dir, const char *index)
{
    char path[4400], line[256], name[64], stream[300];
    snprintf(path, sizeof path, "%s/%s", dir, index);
    snprintf(stream, sizeof stream, "%.*szst", (int)(strlen(index) - strlen("index")),
             index);
    FILE *in = fopen(path, "re");
    bool good = true;
    while (in && good && fgets(line, sizeof line, in)) {
        struct trp_task_log l;
        uint64_t offset, bytes, size;
        if (!strchr(line, '\n') ||
            sscanf(line, "%63s %" SCNu64 " %" SCNu64 " %" SCNu64, name, &offset, &bytes,
                   &size) != 4 ||
            !trp_task_log_address(name, true, &l))
            continue;
        l.framed = true;
        l.offset = offset;
        l.bytes = bytes;
        l.size = size;
        good = add_log(f, &l, dir, stream);
    }
    if (in)
        fclose(in);
    return good;
}

static bool is_index(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "stream.", 7) == 0 && n > 13 && n < 200 &&
           strcmp(name + n - 6, ".index") == 0;
}

/* Of one that is in both forms the frame stays: its file was about to be removed. */
static void drop_twice(struct found *f)
{
    uint32_t kept = 0;
    char a[64] = "", b[64];
    for (uint32_t i = 0; i < f->n; i++) {
        trp_task_log_name(&f->v[i], b, sizeof b);
        if (i > 0 && strcmp(a, b) == 0) {
            free(f->v[i].path);
            continue;
        }
        strcpy(a, b);
        f->v[kept++] = f->v[i];
    }
    f->n = kept;
}

int trp_task_logs_find(const char *dir, struct trp_task_log **ret, uint32_t *ret_n,
                       trp_error *err)
{
    struct found f = {0};
    DIR *d = opendir(dir);
    *ret = NULL;
    *ret_n = 0;
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return trp_error_set(err, TRP_ESYSTEM, "cannot read %.600s: %s", dir,
                             strerror(errno));
    bool good = true;
    for (struct dirent *e; good && (e = readdir(d));) {
        struct trp_task_log l;
        if (trp_task_log_address(e->d_name, true, &l))
            good = add_file(&f, dir, e->d_name, &l);
        else if (is_index(e->d_name))
            good = add_frames(&f, dir, e->d_name);
    }
    closedir(d);
    if (!good) {
        trp_task_logs_free(f.v, f.n);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the logs in %.600s",
                             dir);
    }
    if (f.n > 1)
        qsort(f.v, f.n, sizeof *f.v, by_address);
    drop_twice(&f);
    *ret = f.v;
    *ret_n = f.n;
    return 0;
}

void trp_task_logs_free(struct trp_task_log *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(v[i].path);
    free(v);
}

/* Links are followed to files, which executors have elsewhere, but to no folder. */
static bool any_below(int parent, const char *name, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool any = false;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && !any && (e = readdir(d));) {
        struct stat s;
        if (*e->d_name == '.' || strcmp(e->d_name, TRP_TASK_LOG_NAMES) == 0 ||
            fstatat(dirfd(d), e->d_name, &s, 0) < 0)
            continue;
        any = S_ISREG(s.st_mode) ? s.st_size > 0
                                 : S_ISDIR(s.st_mode) && depth &&
                                       any_below(dirfd(d), e->d_name, depth - 1);
    }
    if (d)
        closedir(d);
    return any;
}

bool trp_logs_any(const char *dir)
{
    return any_below(AT_FDCWD, dir, 1);
}

/* ---- reading ---- */

static int cannot_read(const struct trp_task_log *l, const char *why, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot read %.600s: %s", l->path, why);
}

static int copy_file(const struct trp_task_log *l, FILE *in, uint64_t from, FILE *out,
                     uint64_t *ret_end, trp_error *err)
{
    char buffer[1 << 16];
    size_t n;
    if (fseeko(in, (off_t)from, SEEK_SET) != 0)
        return cannot_read(l, strerror(errno), err);
    while ((n = fread(buffer, 1, sizeof buffer, in)) > 0) {
        fwrite(buffer, 1, n, out);
        from += n;
    }
    *ret_end = from;
    return ferror(in) ? cannot_read(l, strerror(errno), err) : 0;
}

static int copy_frame(const struct trp_task_log *l, FILE *in, uint64_t from, FILE *out,
                      uint64_t *ret_end, trp_error *err)
{
    if (l->bytes > SIZE_MAX / 2 || l->size > SIZE_MAX / 2 ||
        fseeko(in, (off_t)l->offset, SEEK_SET) != 0)
        return cannot_read(l, "its index is wrong", err);
    char *frame = malloc(l->bytes + 1), *text = malloc(l->size + 1);
    int r = 0;
    if (!frame || !text)
        r = trp_error_set(err, TRP_ENOMEM, "out of memory for %.600s", l->path);
    else if (fread(frame, 1, l->bytes, in) != l->bytes ||
             ZSTD_decompress(text, l->size, frame, l->bytes) != l->size)
        r = cannot_read(l, "it is damaged", err);
    else if (from < l->size)
        fwrite(text + from, 1, l->size - from, out);
    *ret_end = l->size;
    free(frame);
    free(text);
    return r;
}

int trp_task_log_copy(const struct trp_task_log *l, uint64_t from, FILE *out,
                      uint64_t *ret_end, trp_error *err)
{
    uint64_t end = from;
    FILE *in = fopen(l->path, "re");
    if (!in)
        return cannot_read(l, strerror(errno), err);
    int r = l->framed ? copy_frame(l, in, from, out, &end, err)
                      : copy_file(l, in, from, out, &end, err);
    fclose(in);
    if (r == 0 && ret_end)
        *ret_end = end;
    return r;
}
