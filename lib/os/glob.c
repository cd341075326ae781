/*
 * Patterns, matched by one walk over the tree.
 *
 * A pattern is split at its slashes. The parts before the first special one are joined
 * into a prefix that is never listed. From there on the walk carries, for each folder,
 * the *set of positions* in the pattern that its path has reached (bit i: the parts
 * before i matched this path), as when a regular expression is run without going back.
 * So a folder is listed once however many `**` a pattern has, where trying each length
 * of each `**` in turn would list it once for every way to reach it. Cost: entries of
 * the folders walked × parts of the pattern.
 *
 * Positions only rise but for `**`, which stays where it is and never follows a
 * symbolic link: so a loop of links ends. A folder's names are read whole and the
 * folder closed before the walk goes down, so one descriptor is enough at any depth.
 *
 * nftw and glob(3) were not used: the first lists what no part can match, the second
 * has no `**`.
 */
#include "os/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "os/strings.h"

struct part {
    char *text;         /* without its escapes when literal */
    bool literal, deep; /* deep: `**` */
};

struct walk {
    const char *base;
    struct part part[TRP_GLOB_PARTS];
    unsigned nparts;
    bool folders_only; /* the pattern ends in a slash */
    struct trp_strings found;
    trp_error *err;
};

/* A folder that is to be walked into. */
struct below {
    char *path;
    uint64_t reached;
};

struct pending {
    struct below *v;
    uint32_t n, capacity;
};

static uint64_t bit(unsigned i)
{
    return UINT64_C(1) << i;
}

/* ---- the pattern ---- */

static bool special(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '*' || text[i] == '?' || text[i] == '[')
            return true;
    }
    return false;
}

/* Copies `n` bytes without the escapes. */
static char *unescaped(const char *text, size_t n)
{
    char *s = malloc(n + 1), *to = s;
    if (!s)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\' && i + 1 < n)
            i++;
        *to++ = text[i];
    }
    *to = '\0';
    return s;
}

static int out_of_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory while matching a pattern");
}

static int add_part(struct walk *w, const char *text, size_t n)
{
    struct part *last = w->nparts ? &w->part[w->nparts - 1] : NULL;
    struct part p = {.literal = !special(text, n)};
    p.deep = n == 2 && memcmp(text, "**", 2) == 0;
    if (p.deep && last && last->deep)
        return 0; /* two in a row say no more than one */
    if (w->nparts == TRP_GLOB_PARTS)
        return trp_error_set(
            w->err, TRP_ELIMIT,
            "a pattern may have %d parts from its first special one on",
            TRP_GLOB_PARTS);
    p.text = p.literal ? unescaped(text, n) : strndup(text, n);
    if (!p.text)
        return out_of_memory(w->err);
    w->part[w->nparts++] = p;
    return 0;
}

/* Splits the pattern into *ret_prefix (malloc'ed, "" or ending in a slash) and parts.
 */
static int split(struct walk *w, const char *pattern, char **ret_prefix)
{
    const char *first = pattern, *at = pattern;
    for (;;) { /* finds the part with which the parts begin */
        size_t n = strcspn(at, "/");
        if (n && (special(at, n) || at[n + strspn(at + n, "/")] == '\0')) {
            first = at;
            break;
        }
        if (at[n] == '\0') {
            first = at;
            break;
        }
        at += n + 1;
    }
    for (at = first; *at && !w->folders_only;) {
        size_t n = strcspn(at, "/");
        int r = n ? add_part(w, at, n) : 0;
        if (r < 0)
            return r;
        at += n;
        w->folders_only = *at && at[strspn(at, "/")] == '\0';
        at += strspn(at, "/");
    }
    *ret_prefix = unescaped(pattern, (size_t)(first - pattern));
    return *ret_prefix ? 0 : out_of_memory(w->err);
}

/* ---- the walk ---- */

static char *on_disk(const struct walk *w, const char *path)
{
    return trp_path_join(w->base, *path ? path : ".");
}

/* Stats `path` as the pattern spells it; 0, or -1 when it is not there. */
static int stat_path(const struct walk *w, const char *path, bool follow,
                     struct stat *ret)
{
    char *full = on_disk(w, path);
    int r = full ? fstatat(AT_FDCWD, full, ret, follow ? 0 : AT_SYMLINK_NOFOLLOW) : -1;
    free(full);
    return r;
}

static bool is_folder(const struct walk *w, const char *path, bool follow)
{
    struct stat st;
    return stat_path(w, path, follow, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Positions that are reached without going down: `**` may stand for no folder. */
static uint64_t closure(const struct walk *w, uint64_t reached)
{
    for (unsigned i = 0; i + 1 < w->nparts; i++)
        if ((reached & bit(i)) && w->part[i].deep)
            reached |= bit(i + 1);
    return reached;
}

static int found(struct walk *w, const char *path)
{
    if (w->folders_only && !is_folder(w, path, true))
        return 0;
    if (w->found.n == TRP_GLOB_RESULTS)
        return trp_error_set(w->err, TRP_ELIMIT, "a pattern may match %d files",
                             TRP_GLOB_RESULTS);
    int r = w->folders_only ? trp_strings_format(&w->found, "%s/", path)
                            : trp_strings_add(&w->found, path);
    return r < 0 ? out_of_memory(w->err) : 0;
}

static int later(struct walk *w, struct pending *p, const char *path, uint64_t reached)
{
    char *copy = TRP_ARRAY_GROW(p->v, p->n, p->capacity) ? strdup(path) : NULL;
    if (!copy)
        return out_of_memory(w->err);
    p->v[p->n++] = (struct below){.path = copy, .reached = reached};
    return 0;
}

/* One entry of a folder that was reached at `reached`: is it a result, is it to be
 * walked into? `path` is the entry's, `type` its d_type. */
static int visit_path(struct walk *w, uint64_t reached, const char *path,
                      const char *name, unsigned char type, struct pending *pending)
{
    bool hit = false;
    uint64_t next = 0, through = 0; /* through: by `**`, which follows no link */
    for (unsigned i = 0; i < w->nparts; i++) {
        const struct part *p = &w->part[i];
        bool last = i + 1 == w->nparts;
        if (!(reached & bit(i)))
            continue;
        if (p->deep && name[0] != '.') {
            through |= bit(i);
            hit |= (last && (w->folders_only || type != DT_DIR));
        } else if (!p->deep && (p->literal ? strcmp(p->text, name) == 0
                                           : fnmatch(p->text, name, FNM_PERIOD) == 0)) {
            hit |= last;
            next |= last ? 0 : bit(i + 1);
        }
    }
    int r = hit ? found(w, path) : 0;
    if (r == 0 && type == DT_LNK && next && is_folder(w, path, true))
        r = later(w, pending, path, next);
    else if (r == 0 && type == DT_DIR && (next | through))
        r = later(w, pending, path, next | through);
    return r;
}

static unsigned char type_of(const struct walk *w, const char *path, unsigned char type)
{
    struct stat st;
    if (type != DT_UNKNOWN || stat_path(w, path, false, &st) < 0)
        return type;
    return S_ISDIR(st.st_mode) ? DT_DIR : S_ISLNK(st.st_mode) ? DT_LNK : DT_REG;
}

/* What is below the folder `folder` (as the pattern spells it, with its slash). */
static char *entry_path(const char *folder, const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    char *path = malloc(a + b + 1);
    if (path) {
        memcpy(path, folder, a);
        memcpy(path + a, name, b + 1);
    }
    return path;
}

/* Opens a folder for listing. *ret NULL with 0: it is no folder, or not there. */
static int open_folder(struct walk *w, const char *folder, DIR **ret)
{
    char *full = on_disk(w, folder);
    if (!full)
        return out_of_memory(w->err);
    int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret = fd < 0 ? NULL : fdopendir(fd);
    int failed = errno;
    free(full);
    if (*ret || (fd < 0 && (failed == ENOENT || failed == ENOTDIR)))
        return 0;
    if (fd >= 0)
        close(fd);
    return trp_error_set(w->err, TRP_ESYSTEM, "the folder %.300s cannot be read: %s",
                         folder, strerror(failed));
}

static int list_folder(struct walk *w, const char *folder, uint64_t reached,
                       struct pending *pending)
{
    DIR *dir = NULL;
    int r = open_folder(w, folder, &dir);
    if (r < 0 || !dir)
        return r;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *path = entry_path(folder, e->d_name);
        if (path)
            r = visit_path(w, reached, path, e->d_name, type_of(w, path, e->d_type),
                           pending);
        else
            r = out_of_memory(w->err);
        free(path);
    }
    closedir(dir);
    return r;
}

/* Literal parts need no listing; "." and ".." are never listed. `all` of them, or the
 * dots only because the folder is listed for other parts anyway. */
static int step_literals(struct walk *w, const char *folder, uint64_t reached, bool all,
                         struct pending *pending)
{
    struct stat st;
    int r = 0;
    for (unsigned i = 0; i < w->nparts && r == 0; i++) {
        const char *text = w->part[i].text;
        if (!(reached & bit(i)) || !w->part[i].literal)
            continue;
        if (!all && strcmp(text, ".") != 0 && strcmp(text, "..") != 0)
            continue;
        char *path = entry_path(folder, text);
        if (!path)
            return out_of_memory(w->err);
        if (i + 1 < w->nparts)
            r = is_folder(w, path, true) ? later(w, pending, path, bit(i + 1)) : 0;
        else
            r = stat_path(w, path, false, &st) == 0 ? found(w, path) : 0;
        free(path);
    }
    return r;
}

static int walk_folder(struct walk *w, const char *folder, uint64_t reached,
                       unsigned depth)
{
    struct pending pending = {0};
    bool list = false;
    reached = closure(w, reached);
    for (unsigned i = 0; i < w->nparts; i++)
        list = list || ((reached & bit(i)) && !w->part[i].literal);
    int r = step_literals(w, folder, reached, !list, &pending);
    if (r == 0 && list)
        r = list_folder(w, folder, reached, &pending);
    if (r == 0 && pending.n && depth == TRP_GLOB_DEPTH)
        r = trp_error_set(w->err, TRP_ELIMIT, "folders are more than %d deep",
                          TRP_GLOB_DEPTH);
    for (size_t i = 0; i < pending.n; i++) {
        char *below = r == 0 ? entry_path(pending.v[i].path, "/") : NULL;
        if (below)
            r = walk_folder(w, below, pending.v[i].reached, depth + 1);
        else if (r == 0)
            r = out_of_memory(w->err);
        free(below);
        free(pending.v[i].path);
    }
    free(pending.v);
    return r;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts, and drops what was reached in two ways. */
static void sort_unique(struct trp_strings *s)
{
    size_t n = 0;
    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, compare);
    for (size_t i = 0; i < s->n; i++) {
        if (n && strcmp(s->v[n - 1], s->v[i]) == 0)
            free(s->v[i]);
        else
            s->v[n++] = s->v[i];
    }
    s->n = n;
}

int trp_glob(const char *base, const char *pattern, char ***ret, size_t *ret_n,
             trp_error *err)
{
    struct walk w = {.base = base, .err = err};
    char *prefix = NULL;
    struct stat st;
    int r = split(&w, pattern, &prefix);
    if (r == 0 && w.nparts)
        r = walk_folder(&w, prefix, bit(0), 0);
    else if (r == 0 && *prefix && stat_path(&w, prefix, true, &st) == 0) /* "/" */
        r = trp_strings_add(&w.found, prefix) < 0 ? out_of_memory(err) : 0;
    for (unsigned i = 0; i < w.nparts; i++)
        free(w.part[i].text);
    free(prefix);
    if (r < 0) {
        trp_strings_free(&w.found);
        return r;
    }
    sort_unique(&w.found);
    *ret = w.found.v;
    *ret_n = w.found.n;
    return 0;
}

void trp_glob_free(char **v, size_t n)
{
    struct trp_strings s = {.v = v, .n = n};
    trp_strings_free(&s);
}

char *trp_glob_literal(const char *pattern)
{
    size_t n = strlen(pattern);
    return special(pattern, n) ? NULL : unescaped(pattern, n);
}

char *trp_glob_escape(const char *text)
{
    char *s = malloc(2 * strlen(text) + 1), *to = s;
    if (!s)
        return NULL;
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            *to++ = '\\';
        *to++ = *text;
    }
    *to = '\0';
    return s;
}

bool trp_glob_any(const char *base, const char *pattern)
{
    char **files;
    size_t n;
    struct stat st;
    bool any = false;
    if (trp_glob(base, pattern, &files, &n, NULL) < 0)
        return false;
    for (size_t i = 0; i < n && !any; i++)
        any = stat_path(&(struct walk){.base = base}, files[i], true, &st) == 0;
    trp_glob_free(files, n);
    return any;
}
