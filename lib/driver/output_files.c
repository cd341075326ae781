/*
 * Outputs: patterns made concrete, recorded and compared.
 *
 * $TROUPE_TASK is read as a shell reads it, so $TROUPE_TASKS is another name. An item
 * is put in with its special characters escaped. A pattern that needs an item of a task
 * without one matches nothing: "out/$TROUPE_ITEM" would otherwise name the folder out/
 * itself, and removing leftovers would take what other tasks have made.
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

/* ---- what is there ----------------------------------------------------------------
 */

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

bool trp_outputs_unchanged(const struct trp_outputs *o, const char *base)
{
    struct trp_output now;
    for (size_t i = 0; i < o->n; i++)
        if (measure(base, o->v[i].path, &now) < 0 || now.size != o->v[i].size ||
            now.mtime_ns != o->v[i].mtime_ns)
            return false;
    return true;
}

/* ---- patterns ---------------------------------------------------------------------
 */

static bool identifier(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (c >= '0' && c <= '9');
}

/* The bytes of "$NAME" or "${NAME}" at `at`, or 0 when something else is there. */
static size_t variable(const char *at, const char *name)
{
    size_t n = strlen(name);
    if (at[0] != '$')
        return 0;
    if (at[1] == '{')
        return strncmp(at + 2, name, n) == 0 && at[2 + n] == '}' ? n + 3 : 0;
    return strncmp(at + 1, name, n) == 0 && !identifier(at[1 + n]) ? n + 1 : 0;
}

bool trp_output_of_task(const char *pattern)
{
    for (const char *at = pattern; *at; at++) {
        if (variable(at, "TROUPE_TASK") || variable(at, "TROUPE_ITEM"))
            return true;
        at += at[0] == '\\' && at[1];
    }
    return false;
}

static bool append(char **to, const char *from, size_t n)
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

char *trp_output_expand(const char *pattern, uint32_t task, const struct trp_text *item,
                        bool *ret_none)
{
    char number[16], *made = NULL;
    char *literal = item && item->size ? trp_glob_escape(item->data) : NULL;
    bool good = append(&made, "", 0), none = false;
    snprintf(number, sizeof number, "%u", task);
    for (const char *at = pattern; *at && good && !none;) {
        size_t n = variable(at, "TROUPE_TASK"), m = variable(at, "TROUPE_ITEM");
        size_t plain = at[0] == '\\' && at[1] ? 2 : 1;
        if (n)
            good = append(&made, number, strlen(number));
        else if (m && literal)
            good = append(&made, literal, strlen(literal));
        else if (m)
            none = !item || !item->size;
        else
            good = append(&made, at, plain);
        good = good && !(m && !literal && !none); /* no memory to escape it */
        at += n ? n : m ? m : plain;
    }
    free(literal);
    *ret_none = none;
    if (good && !none)
        return made;
    free(made);
    return NULL;
}
