/*
 * Lists of files.
 *
 * A folder is read by a walk that holds no descriptor while it goes down: its names are put
 * behind the list, and those that are folders are read in their turn. So a list is its own
 * queue. A link to a folder inside of a folder is not gone into, since it may lead back. What
 * a folder holds is sorted, since a file system lists it in an order of its own.
 *
 * Where links are followed, a link's own number and time of change count with those of what
 * it leads to: that it was made anew is a change.
 */
#include "os/output_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "os/glob.h"
#include "os/strings.h"

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void fill(const struct stat *st, struct trp_output *ret)
{
    bool folder = S_ISDIR(st->st_mode);
    ret->size = folder ? -1 : (int64_t)st->st_size;
    ret->mtime_ns = folder ? 0 : ns_of(st->st_mtim);
    ret->ino = st->st_ino;
    ret->ctime_ns = ns_of(st->st_ctim);
}

bool trp_output_measure_at(int folder, const char *name, struct trp_output *ret)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    fill(&st, ret);
    return true;
}

static bool look(const char *base, const char *path, bool follow,
                 struct trp_output *ret, bool *ret_link)
{
    struct stat own, st;
    char *full = trp_path_join(base, path);
    bool there = full && lstat(full, &own) == 0;
    bool link = there && S_ISLNK(own.st_mode);
    st = own;
    if (there && link && follow)
        there = stat(full, &st) == 0;
    free(full);
    if (!there)
        return false;
    *ret_link = link;
    fill(&st, ret);
    if (link && follow) {
        ret->ino = ret->ino * 31 + own.st_ino;
        if (ns_of(own.st_ctim) > ret->ctime_ns)
            ret->ctime_ns = ns_of(own.st_ctim);
    }
    return true;
}

bool trp_output_measure(const char *base, const char *path, bool follow,
                        struct trp_output *ret)
{
    bool link;
    return look(base, path, follow, ret, &link);
}

bool trp_output_is_same(const struct trp_output *a, const struct trp_output *b)
{
    return a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

int trp_outputs_append(struct trp_outputs *o, const struct trp_output *take_one)
{
    if (!TRP_ARRAY_GROW(o->v, o->n, o->capacity)) {
        free(take_one->path);
        return TRP_ENOMEM;
    }
    o->v[o->n++] = *take_one;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct trp_output *)a)->path,
                  ((const struct trp_output *)b)->path);
}

/* Appends what is in the folder `path`, not below that. */
static int read_folder(struct trp_outputs *o, const char *base, const char *path,
                       bool follow, uint32_t first)
{
    char *full = trp_path_join(base, path);
    int fd = full ? open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = full ? 0 : TRP_ENOMEM;
    if (!dir && fd >= 0)
        close(fd);
    free(full);
    for (struct dirent *e; dir && r == 0 && (e = readdir(dir));) {
        struct trp_output one = {0};
        bool link = false;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (o->n - first > TRP_FOLDER_ENTRIES + 1)
            break;
        one.path = trp_path_join(path, e->d_name);
        if (!one.path)
            r = TRP_ENOMEM;
        else if (!look(base, one.path, follow, &one, &link) || (link && one.size < 0))
            free(one.path);
        else
            r = trp_outputs_append(o, &one);
    }
    if (dir)
        closedir(dir);
    return r;
}

/* Appends what is in the folder that is the last entry. */
static int add_contents(struct trp_outputs *o, const char *base, bool follow)
{
    uint32_t first = o->n - 1;
    int r = 0;
    for (uint32_t i = first; i < o->n && r == 0; i++)
        if (o->v[i].size < 0)
            r = read_folder(o, base, o->v[i].path, follow, first);
    if (r < 0)
        return r;
    if (o->n - first <= TRP_FOLDER_ENTRIES + 1) {
        qsort(&o->v[first], o->n - first, sizeof *o->v, by_path);
        return 0;
    }
    while (o->n > first + 1)
        free(o->v[--o->n].path);
    if (!o->large)
        o->large = o->v[first].path;
    return 0;
}

/* Owns the path. */
static int add(struct trp_outputs *o, const char *base, char *take_path, bool follow)
{
    struct trp_output one = {.path = take_path};
    if (!trp_output_measure(base, take_path, follow, &one)) {
        free(take_path);
        return 0;
    }
    int r = trp_outputs_append(o, &one);
    return r == 0 && one.size < 0 ? add_contents(o, base, follow) : r;
}

int trp_outputs_add(struct trp_outputs *o, const char *base, const char *path,
                    bool follow)
{
    char *copy = strdup(path);
    return copy ? add(o, base, copy, follow) : TRP_ENOMEM;
}

int trp_outputs_match(struct trp_outputs *o, const char *base, const char *pattern,
                      bool follow, trp_error *err)
{
    char **files;
    size_t n;
    int r = trp_glob(base, pattern, &files, &n, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = add(o, base, files[i], follow);
        files[i] = NULL; /* it is the list's, or freed */
    }
    trp_glob_free(files, n);
    return r < 0 ? trp_error_set(err, r, "out of memory for a task's outputs") : 0;
}

void trp_outputs_free(struct trp_outputs *o)
{
    for (size_t i = 0; i < o->n; i++)
        free(o->v[i].path);
    free(o->v);
    *o = (struct trp_outputs){0};
}

void trp_outputs_sort(struct trp_outputs *o)
{
    if (o->n)
        qsort(o->v, o->n, sizeof *o->v, by_path);
}

const struct trp_output *trp_outputs_find(const struct trp_outputs *o, const char *path)
{
    const struct trp_output key = {.path = (char *)(uintptr_t)path};
    return o->n ? bsearch(&key, o->v, o->n, sizeof *o->v, by_path) : NULL;
}
