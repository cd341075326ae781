/*
 * A file a stage: its name is the stage's, which has no ':' and cannot be "." or "..".
 * Rejected: a file a path, which stages that read the same list would share. They may read it
 * at different times, and each is to have what it had.
 *
 * What is made since the run went on is told by the time of change of its inode, which
 * neither a copy nor a tool that sets times can put back, against that of a file which
 * `troupe` writes in the run folder at each start: not by this machine's clock.
 */
#include "driver/kept_lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/time.h"
#include "os/held.h"
#include "os/whole_file.h"

enum { PATH_SIZE = 4500 };

/* "" or ":new" behind it. */
static void path_of(const struct trp_kept_lists *k, const struct trp_pipeline_stage *s,
                    int part, const char *behind, char path[PATH_SIZE])
{
    if (part < 0)
        snprintf(path, PATH_SIZE, "%s/state/lists/%s%s", k->run_dir, s->name, behind);
    else
        snprintf(path, PATH_SIZE, "%s/state/lists/%s:%d%s", k->run_dir, s->name, part,
                 behind);
}

static int64_t time_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * TRP_SECOND + t->tv_nsec;
}

void trp_kept_lists_since(struct trp_kept_lists *k, const char *name)
{
    struct stat st;
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/state/%s", k->run_dir, name);
    k->since_ns = trp_held_stat(path, &st) < 0 ? INT64_MAX : time_of(&st.st_ctim);
}

/* ---- taking ---- */

bool trp_kept_lists_new(const struct trp_kept_lists *k, const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 && time_of(&st.st_ctim) >= k->since_ns;
}

/* Whether a stage before it may have made anything since. */
static bool may_be_new(const struct trp_kept_lists *k,
                       const struct trp_pipeline_stage *s)
{
    return k->began && s->nafter;
}

static char *take(const struct trp_kept_lists *k, const struct trp_pipeline_stage *s,
                  int part, size_t *ret_size)
{
    char path[PATH_SIZE], *data = NULL;
    path_of(k, s, part, "", path);
    return trp_held_read(path, TRP_KEPT_LIST_MAX, &data, ret_size) == 0 ? data : NULL;
}

char *trp_kept_list_take(const struct trp_kept_lists *k,
                         const struct trp_pipeline_stage *s, int part, const char *file,
                         size_t *ret_size)
{
    bool takes = k && k->takes && !(may_be_new(k, s) && trp_kept_lists_new(k, file));
    takes = takes || (k && k->gone && k->gone(k->gone_context, file));
    return takes ? take(k, s, part, ret_size) : NULL;
}

char *trp_kept_names_gone(const struct trp_kept_lists *k,
                          const struct trp_pipeline_stage *s, int part,
                          size_t *ret_size)
{
    return k && k->gone ? take(k, s, part, ret_size) : NULL;
}

char *trp_kept_names_take(const struct trp_kept_lists *k,
                          const struct trp_pipeline_stage *s, int part,
                          size_t *ret_size, bool *ret_now)
{
    *ret_now = k && may_be_new(k, s);
    return k && k->takes ? take(k, s, part, ret_size) : NULL;
}

/* ---- keeping ---- */

static void tell(const struct trp_kept_lists *k, const struct trp_pipeline_stage *s,
                 const char *why)
{
    char line[400];
    snprintf(line, sizeof line,
             "stage %s: what it works on is not kept, --as-it-was will take what is "
             "there then: %s",
             s->name, why);
    if (k->say)
        k->say(k->say_context, line);
}

void trp_kept_list_put(const struct trp_kept_lists *k,
                       const struct trp_pipeline_stage *s, int part, const void *data,
                       size_t size)
{
    char path[PATH_SIZE], why[128];
    if (!k || !k->keeps)
        return;
    path_of(k, s, part, "", path);
    if (size > TRP_KEPT_LIST_MAX) {
        trp_held_unlink(path, 0);
        snprintf(why, sizeof why, "it has more than %d MiB", TRP_KEPT_LIST_MAX >> 20);
        tell(k, s, why);
        return;
    }
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s/state/lists", k->run_dir);
    int r = trp_held_mkdir(folder, 0700) < 0 && errno != EEXIST ? -1 : 0;
    path_of(k, s, part, ":new", path);
    if (r == 0)
        r = trp_held_write(path, data, size, false);
    if (r < 0) {
        snprintf(why, sizeof why, "%m");
        path_of(k, s, part, "", path);
        trp_held_unlink(path, 0);
        tell(k, s, why);
    }
}

void trp_kept_lists_settle(const struct trp_kept_lists *k,
                           const struct trp_pipeline_stage *s, bool known)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    if (!k || !k->keeps)
        return;
    for (int part = -1; part < (int)s->nparts; part++) {
        path_of(k, s, part, ":new", from);
        path_of(k, s, part, "", to);
        if (known)
            trp_held_rename(from,
                            to); /* none: it has no list, or was taken from there */
        else
            trp_held_unlink(from, 0);
    }
}
