/*
 * Outputs: recorded and compared.
 *
 * A folder that matches is recorded as being there and no more: its time changes with
 * each file that others put into it.
 */
#include "driver/output_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/array.h"
#include "os/glob.h"
#include "os/strings.h"

/* ---- what is there ---- */

/* What lstat says; -1: not there. */
static int measure(const char *base, const char *path, struct trp_output *ret)
{
    struct stat st;
    char *full = trp_path_join(base, path);
    int r = full ? lstat(full, &st) : -1;
    free(full);
    if (r < 0)
        return -1;
    bool folder = S_ISDIR(st.st_mode);
    int64_t ns = (int64_t)st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    ret->size = folder ? -1 : (int64_t)st.st_size;
    ret->mtime_ns = folder ? 0 : ns;
    return 0;
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

int trp_outputs_match(struct trp_outputs *o, const char *base, const char *pattern,
                      trp_error *err)
{
    struct trp_output one;
    char **files;
    size_t n;
    int r = trp_glob(base, pattern, &files, &n, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (measure(base, files[i], &one) < 0)
            continue;
        one.path = files[i];
        files[i] = NULL; /* the list owns it now */
        r = trp_outputs_append(o, &one);
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

const char *trp_outputs_changed(const struct trp_outputs *o, const char *base)
{
    struct trp_output now;
    for (size_t i = 0; i < o->n; i++)
        if (measure(base, o->v[i].path, &now) < 0 || now.size != o->v[i].size ||
            now.mtime_ns != o->v[i].mtime_ns)
            return o->v[i].path;
    return NULL;
}
