/*
 * Outputs: patterns made concrete, recorded and compared.
 *
 * A value is put in with its special characters escaped. A pattern that needs what a task
 * does not have matches nothing, nor does one of which an empty value leaves a part of the
 * path empty: "out/${item}" would otherwise name the folder out/ itself, and removing
 * leftovers would take what other tasks have made.
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
#include "driver/glob.h"
#include "driver/strings.h"

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

/* ---- patterns ---- */

bool trp_output_of_task(const char *pattern)
{
    return trp_template_names_task(pattern);
}

static bool append_text(char **to, const char *from, size_t n)
{
    size_t have = *to ? strlen(*to) : 0;
    char *s = realloc(*to, have + n + 1);
    if (!s)
        return false;
    memcpy(s + have, from, n);
    s[have + n] = '\0';
    *to = s;
    return true;
}

/* The value as a pattern of nothing else; malloc'ed. */
static char *literal(const struct trp_template_part *part)
{
    char *copy = strndup(part->text, part->size);
    char *escaped = copy ? trp_glob_escape(copy) : NULL;
    free(copy);
    return escaped;
}

/* Whether an empty value between them leaves a part of a path empty. */
static bool leaves_nothing(const char *before, const char *behind)
{
    size_t n = strlen(before);
    return (n == 0 || before[n - 1] == '/') &&
           (*behind == '\0' || *behind == '/' || *behind == '$');
}

char *trp_output_expand(const char *pattern, const struct trp_task_values *v,
                        bool *ret_none)
{
    struct trp_template_part part;
    char *made = NULL;
    bool good = append_text(&made, "", 0), none = false;
    while (good && !none && trp_template_next(&pattern, v, &part)) {
        char *value = part.value ? literal(&part) : NULL;
        none = part.missing ||
               (part.value && part.size == 0 && leaves_nothing(made, pattern));
        good = !part.value ? append_text(&made, part.text, part.size)
                           : value && append_text(&made, value, strlen(value));
        free(value);
    }
    *ret_none = none;
    if (good && !none)
        return made;
    free(made);
    return NULL;
}
