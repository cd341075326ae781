/*
 * Removal of leftovers, by descriptors.
 *
 * Where a file lies is found out once, by realpath of its folder; then that is opened from the
 * working folder on, part by part and through no link, so that it is the folder that was
 * judged although somebody swaps one meanwhile.
 *
 * A file is what it was when its number, size and times are. Of a folder the number is
 * enough, since it changes with what goes from it; it goes only when it is empty.
 */
#include "driver/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/strings.h"

/* The part of `path` below the folder `base`, both real paths; NULL: it is not there.
 */
static const char *part_below(const char *base, const char *path)
{
    size_t n = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (strncmp(path, base, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path[n] ? path + n + 1 : path + n;
}

/* Opens the folder `part` of the folder `base`, through no link; -1: it is no more. */
static int open_below(const char *base, const char *part)
{
    char name[NAME_MAX + 1];
    int fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && *part) {
        size_t n = strcspn(part, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, part);
        int next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
        part += n + (part[n] == '/');
    }
    return fd;
}

/* The folder that a path is in, opened, and its name in there; -1: it is not to be touched,
 * or gone, as *ret_why says ("" : gone). */
static int open_place(const struct trp_leftovers *l, const char *path, char *ret_name,
                      size_t size, const char **ret_why)
{
    char base[PATH_MAX], place[PATH_MAX], run[PATH_MAX];
    char *full = trp_path_join(l->base, path);
    for (size_t k = full ? strlen(full) : 0; k > 1 && full[k - 1] == '/'; k--)
        full[k - 1] = '\0'; /* "link/" is the folder, "link" the link */
    char *slash = full ? strrchr(full, '/') : NULL;
    const char *name = slash ? slash + 1 : "";
    int fd = -1;
    *ret_why = "";
    snprintf(ret_name, size, "%s", name);
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        *ret_why = "it has no name of its own";
    } else if (*slash = '\0',
               realpath(l->base, base) && realpath(slash == full ? "/" : full, place)) {
        const char *part = part_below(base, place);
        if (!part)
            *ret_why = "it lies outside the working folder";
        else if (realpath(l->run_dir, run) && part_below(run, place))
            *ret_why = "it is in the run's folder";
        else
            fd = open_below(base, part);
    }
    free(full);
    return fd;
}

/* A link that leads to nothing any more is nobody's file. */
static bool is_as_recorded(const struct trp_leftovers *l, const struct trp_output *o)
{
    struct trp_output now;
    return !trp_output_measure(l->base, o->path, true, &now) ||
           (now.size == o->size && now.mtime_ns == o->mtime_ns);
}

static void remove_one(struct trp_leftovers *l, const struct trp_output *o)
{
    char name[NAME_MAX + 1];
    const char *why;
    struct trp_output now = {0};
    int fd = open_place(l, o->path, name, sizeof name, &why);
    if (fd < 0) {
        if (*why)
            trp_leftovers_stays(l, o->path, why);
        return;
    }
    bool folder = o->size < 0;
    if (!trp_output_measure_at(fd, name, &now)) { /* it is gone */
        close(fd);
        return;
    }
    folder = folder && (!l->recorded || now.size < 0); /* or a link to one */
    if (l->recorded ? !is_as_recorded(l, o)
        : folder    ? now.size >= 0 || now.ino != o->ino
                    : !trp_output_is_same(&now, o))
        trp_leftovers_stays(l, o->path, "it has changed since");
    else if (unlinkat(fd, name, folder ? AT_REMOVEDIR : 0) == 0)
        l->removed += !folder;
    else if (errno != ENOENT && !(folder && (errno == ENOTEMPTY || errno == EEXIST)))
        trp_leftovers_stays(l, o->path, strerror(errno));
    close(fd);
}

void trp_leftovers_remove(struct trp_leftovers *l, const struct trp_outputs *files)
{
    for (uint32_t i = files->n; i-- > 0;)
        remove_one(l, &files->v[i]);
}

void trp_leftovers_stays(struct trp_leftovers *l, const char *path, const char *why)
{
    char name[NAME_MAX + 1];
    const char *of_place;
    if (l->stay++ > 0)
        return;
    int fd = open_place(l, path, name, sizeof name, &of_place);
    if (fd >= 0)
        close(fd);
    snprintf(l->first, sizeof l->first, "%s", path);
    snprintf(l->why, sizeof l->why, "%s", *of_place ? of_place : why);
}

void trp_leftovers_set_writable(const struct trp_leftovers *l, const char *path,
                                bool writable)
{
    char name[NAME_MAX + 1];
    const char *why;
    struct stat st;
    int fd = open_place(l, path, name, sizeof name, &why);
    if (fd < 0)
        return;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
        mode_t all = S_IWUSR | S_IWGRP | S_IWOTH, had = st.st_mode & 07777;
        mode_t mode = writable ? had | S_IWUSR : had & ~all;
        if (mode != had)
            (void)!fchmodat(fd, name, mode, 0);
    }
    close(fd);
}
