/*
 * Three calls of troupe-slurm, each of them bounded: the first finds out whether
 * slurmctld answers at all. A file that cannot be read is not taken for one that is
 * missing.
 */
#include "cluster/slurm/check/facts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "os/whole_file.h"

enum { LIMIT_MS = 30000, FILTER_MAX = 1 << 20 };

struct asking {
    struct trp_slurm_facts *f;
    char rack[TRP_SLURM_NAME]; /* the last one told */
};

const char *trp_slurm_facts_text(struct trp_slurm_facts *f, const char *text)
{
    return trp_conf_arena_text(&f->arena, text, strlen(text));
}

/* ---- what Slurm tells ---- */

static bool take_conf(struct trp_slurm_facts *f, const struct trp_slurm_line *l)
{
    const struct {
        const char **to, *key;
    } texts[] = {
        {&f->cluster,    "cluster"   },
        {&f->version,    "version"   },
        {&f->built,      "built"     },
        {&f->file,       "file"      },
        {&f->plugstack,  "plugstack" },
        {&f->plugins,    "plugins"   },
        {&f->auth,       "auth"      },
        {&f->cli_filter, "cli_filter"},
        {&f->topology,   "topology"  },
        {&f->task,       "task"      },
        {&f->gres,       "gres"      },
    };
    f->memory_is_handed_out = trp_slurm_line_number(l, "memory");
    f->ram = f->devices = "";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i].to = trp_slurm_facts_text(f, trp_slurm_line_text(l, texts[i].key));
        if (!*texts[i].to)
            return false;
    }
    return true;
}

static bool take_cgroup(struct trp_slurm_facts *f, const struct trp_slurm_line *l)
{
    const char *key = trp_slurm_line_text(l, "key");
    const char **to = strcmp(key, "ConstrainRAMSpace") == 0  ? &f->ram
                      : strcmp(key, "ConstrainDevices") == 0 ? &f->devices
                                                             : NULL;
    if (to)
        *to = trp_slurm_facts_text(f, trp_slurm_line_text(l, "value"));
    return !to || *to;
}

static bool take_licence(struct trp_slurm_facts *f, const struct trp_slurm_line *l)
{
    if (!TRP_ARRAY_GROW(f->licences, f->nlicences, f->licences_cap))
        return false;
    struct trp_slurm_licence *v = &f->licences[f->nlicences];
    v->name = trp_slurm_facts_text(f, trp_slurm_line_text(l, "name"));
    v->total = (uint32_t)trp_slurm_line_number(l, "total");
    f->nlicences += v->name != NULL;
    return v->name;
}

/* Hosts come switch by switch. */
static void take_host(struct asking *a, const struct trp_slurm_line *l)
{
    const char *rack = trp_slurm_line_text(l, "rack");
    if (strcmp(rack, a->rack) == 0)
        return;
    snprintf(a->rack, sizeof a->rack, "%s", rack);
    a->f->racks++;
}

static int on_fact(void *context, const struct trp_slurm_line *l, trp_error *err)
{
    struct asking *a = context;
    bool kept = true;
    if (strcmp(l->word, "conf") == 0)
        kept = take_conf(a->f, l);
    else if (strcmp(l->word, "cgroup") == 0)
        kept = take_cgroup(a->f, l);
    else if (strcmp(l->word, "licence") == 0)
        kept = take_licence(a->f, l);
    else if (strcmp(l->word, "host") == 0)
        take_host(a, l);
    else
        return trp_slurm_offers_add(&a->f->offers, l, err);
    return kept ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster");
}

int trp_slurm_facts_ask(trp_slurm_helper *h, struct trp_slurm_facts *ret,
                        trp_error *err)
{
    static const char *const calls[] = {"conf", "nodes", "racks"};
    struct asking a = {.f = ret};
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof calls / sizeof *calls; i++)
        code = trp_slurm_helper_ask(h, calls[i], on_fact, &a, LIMIT_MS, err);
    if (code == 0 && !ret->version)
        code = trp_error_set(err, TRP_ESYSTEM, "Slurm does not say what it is");
    return code;
}

/* ---- what this host has ---- */

/* `name` in the folder of `file`, or in a folder of that list. */
static const char *path_in(struct trp_slurm_facts *f, const char *folder, size_t n,
                           const char *name)
{
    char *path = trp_conf_arena_alloc(&f->arena, n + strlen(name) + 2, 1);
    if (path)
        sprintf(path, "%.*s/%s", (int)n, folder, name);
    return path;
}

static void look_at(struct trp_slurm_facts *f, struct trp_slurm_file *file,
                    const char *path)
{
    file->path = path;
    file->why = "";
    file->seen = TRP_SLURM_THERE;
    if (access(path, R_OK) == 0)
        return;
    file->seen = errno == ENOENT ? TRP_SLURM_MISSING : TRP_SLURM_UNSEEN;
    file->why = trp_slurm_facts_text(f, strerror(errno));
}

/* Where Slurm would take it from: the first folder of PluginDir that has it. */
static int look_at_plugin(struct trp_slurm_facts *f)
{
    struct trp_slurm_plugin *p = &f->plugin;
    const char *name = p->file.path, *at = f->plugins;
    if (*name == '/') {
        look_at(f, &p->file, name);
    } else {
        do {
            size_t n = strcspn(at, ":");
            const char *path = path_in(f, at, n, name);
            if (!path)
                return TRP_ENOMEM;
            look_at(f, &p->file, path);
            at += n + (at[n] == ':');
        } while (*at && p->file.seen != TRP_SLURM_THERE);
    }
    if (p->file.seen == TRP_SLURM_THERE)
        p->built = trp_slurm_plugin_version(p->file.path);
    return p->file.why ? 0 : TRP_ENOMEM;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec
               ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
               : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* They are beside the site file where plugstack.conf says nothing else. */
static int look_at_shapes(struct trp_slurm_facts *f)
{
    struct trp_slurm_plugin *p = &f->plugin;
    const char *slash = strrchr(p->site, '/');
    struct stat site, shapes;
    if (!p->shapes.path)
        p->shapes.path =
            path_in(f, p->site, slash ? (size_t)(slash - p->site) : 0, "shapes");
    if (!p->shapes.path)
        return TRP_ENOMEM;
    look_at(f, &p->shapes, p->shapes.path);
    p->shapes_are_old = stat(p->shapes.path, &shapes) == 0 &&
                        stat(p->site, &site) == 0 && is_newer(&site, &shapes);
    return p->shapes.why ? 0 : TRP_ENOMEM;
}

/* Whether a file has the word, in any case. */
static bool has_word(const char *path, const char *word)
{
    char *text = NULL;
    size_t size;
    bool has =
        trp_held_read(path, FILTER_MAX, &text, &size) == 0 && strcasestr(text, word);
    free(text);
    return has;
}

static int look_beside(struct trp_slurm_facts *f, const char *conf)
{
    const char *slash = strrchr(conf, '/');
    size_t n = slash ? (size_t)(slash - conf) : 0;
    const char *filter = path_in(f, conf, n, "cli_filter.lua");
    const char *stack =
        *f->plugstack ? f->plugstack : path_in(f, conf, n, "plugstack.conf");
    if (!filter || !stack)
        return TRP_ENOMEM;
    look_at(f, &f->filter, filter);
    if (f->filter.seen == TRP_SLURM_THERE)
        f->filter_is_ours = has_word(filter, "troupe");
    trp_slurm_facts_plugstack(f, stack);
    if (!f->filter.why || !f->plugin.line.why || !f->plugin.site)
        return TRP_ENOMEM;
    if (f->plugin.line.seen != TRP_SLURM_THERE)
        return 0;
    int code = look_at_plugin(f);
    return code < 0 ? code : look_at_shapes(f);
}

int trp_slurm_facts_look(struct trp_slurm_facts *f, const char *conf, trp_error *err)
{
    struct trp_slurm_file here;
    conf = conf && *conf ? conf : f->file;
    look_at(f, &here, conf);
    int code = TRP_ENOMEM;
    if (here.seen == TRP_SLURM_THERE) {
        code = look_beside(f, conf);
    } else if (here.why) {
        here.seen = TRP_SLURM_UNSEEN;
        f->filter = f->plugin.line = here;
        code = 0;
    }
    return code < 0 ? trp_error_set(err, code, "out of memory for the cluster") : 0;
}

int trp_slurm_facts_scratch(struct trp_slurm_facts *f, const char *path, trp_error *err)
{
    struct stat st;
    char above[PATH_MAX];
    f->scratch_in = NULL;
    for (const char *slash = strchr(path, '/'); slash && slash[1] && !f->scratch_in;
         slash = strchr(slash + 1, '/')) {
        snprintf(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path),
                 path);
        if (stat(above, &st) != 0)
            return 0;
        if (st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)))
            continue;
        f->scratch_in = trp_conf_arena_text(&f->arena, above, strlen(above));
        if (!f->scratch_in)
            return trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster");
    }
    return 0;
}

void trp_slurm_facts_free(struct trp_slurm_facts *f)
{
    trp_slurm_offers_free(&f->offers);
    trp_conf_arena_free(&f->arena);
    free(f->licences);
    memset(f, 0, sizeof *f);
}
