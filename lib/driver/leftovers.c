/*
 * Removal of leftovers, by descriptors.
 *
 * Where a match lies is found out once, by realpath; then its folder is opened from the
 * working folder on, part by part and through no link, so that it is the folder that
 * was judged although somebody swaps one meanwhile. Below it, too, nothing is followed.
 *
 * Each file and folder is judged by its own ctime, taken before anything in it is
 * removed: a folder that is older than the run may hold files that are not. Its mtime
 * would not do, which anybody may set.
 */
#include "driver/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/glob.h"
#include "os/strings.h"

static void stays(struct trp_leftovers *l, const char *path, const char *why)
{
    if (l->stay++ > 0)
        return;
    snprintf(l->first, sizeof l->first, "%s", path);
    snprintf(l->why, sizeof l->why, "%s", why);
}

static bool is_ours(const struct trp_leftovers *l, const struct stat *st)
{
    return (int64_t)st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec >=
           l->since_ns;
}

static void remove_at(struct trp_leftovers *l, int folder, const char *name,
                      const char *path, int depth);

/* What is in the folder `name`. */
static void remove_inside(struct trp_leftovers *l, int folder, const char *name,
                          const char *path, int depth)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    if (!dir) /* an empty one can be removed all the same */
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        char *below = NULL;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            asprintf(&below, "%s/%s", path, e->d_name) < 0)
            continue;
        remove_at(l, fd, e->d_name, below, depth + 1);
        free(below);
    }
    closedir(dir);
}

static void remove_at(struct trp_leftovers *l, int folder, const char *name,
                      const char *path, int depth)
{
    struct stat st;
    uint32_t stay = l->stay;
    if (depth > TRP_GLOB_DEPTH || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    bool is_folder = S_ISDIR(st.st_mode);
    if (is_folder)
        remove_inside(l, folder, name, path, depth);
    if (!is_ours(l, &st))
        stays(l, path, "it is older than the run");
    else if (l->stay == stay &&
             unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0) != 0 &&
             errno != ENOENT)
        stays(l, path, strerror(errno));
}

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

/* Whether the folder `path` is `other` or holds it. Both exist. */
static bool holds(const char *path, const char *other)
{
    char a[PATH_MAX], b[PATH_MAX];
    return realpath(path, a) && realpath(other, b) && part_below(a, b);
}

/* `full` is `path` in the working folder, without a slash at its end; changed. */
static void remove_match(struct trp_leftovers *l, const char *path, char *full)
{
    char base[PATH_MAX], place[PATH_MAX];
    char *slash = strrchr(full, '/');
    const char *name = slash ? slash + 1 : "", *part;
    if (holds(full, l->base) || holds(full, l->run_dir)) {
        stays(l, path, "the working folder or the run's is in it");
        return;
    }
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        stays(l, path, "it has no name of its own");
        return;
    }
    *slash = '\0';
    if (!realpath(l->base, base) || !realpath(slash == full ? "/" : full, place))
        return;
    part = part_below(base, place);
    if (!part) {
        stays(l, path, "it lies outside the working folder");
        return;
    }
    int fd = open_below(base, part);
    if (fd < 0)
        return;
    remove_at(l, fd, name, path, 0);
    close(fd);
}

void trp_leftovers_remove(struct trp_leftovers *l, const char *pattern,
                          const char *keep)
{
    char **files;
    size_t n;
    if (trp_glob(l->base, pattern, &files, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (keep && strcmp(files[i], keep) == 0)
            continue;
        char *full = trp_path_join(l->base, files[i]);
        for (size_t k = full ? strlen(full) : 0; k > 1 && full[k - 1] == '/'; k--)
            full[k - 1] = '\0'; /* "link/" is the folder, "link" the link */
        if (full)
            remove_match(l, files[i], full);
        free(full);
    }
    trp_glob_free(files, n);
}
