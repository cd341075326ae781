/*
 * The site file, read as a pipeline file is: tree, readers, verdict. A section has its
 * readers in site_resources.c, site_routes.c or site_sections.c; what concerns several
 * sections is asked when all are read, for they may stand in any order.
 *
 * The site and everything it points to live in one arena behind it.
 */
#include "conf/site.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/pipeline_load.h"
#include "conf/profile_section.h"
#include "conf/site_load.h"

#define SITE_FILE "/etc/troupe/site.yaml"

static TRP_YAML_READER(read_version)
{
    trp_yaml_version(y, value, "site", "site");
}

static TRP_YAML_READER(read_options)
{
    trp_site *s = context;
    s->options = trp_options_read(y, value, "slurm.", &s->noptions);
}

static TRP_YAML_READER(read_profiles)
{
    trp_site *s = context;
    s->profiles = trp_profile_sections_read(y, value, &s->nprofiles);
}

static const struct trp_yaml_key site_keys[] = {
    TRP_YAML_READ("site", read_version, .required = true),
    TRP_YAML_READ("resources", trp_site_read_resources),
    TRP_YAML_READ("memory", trp_site_read_memory),
    TRP_YAML_READ("route", trp_site_read_routes),
    TRP_YAML_READ("limits", trp_site_read_limits),
    TRP_YAML_READ("racks", trp_site_read_racks),
    TRP_YAML_INTO("scratch", word, trp_site, scratch),
    TRP_YAML_READ("options", read_options),
    TRP_YAML_READ("mpi", trp_site_read_mpi),
    TRP_YAML_READ("nodes", trp_site_read_nodes),
    TRP_YAML_READ("driver", trp_site_read_driver),
    TRP_YAML_READ("local", trp_site_read_local),
    TRP_YAML_READ("profiles", read_profiles),
};

/* ---- loading ---- */

static struct trp_site_loading *new_site(const char *file, trp_error *err)
{
    struct trp_site_loading *l = calloc(1, sizeof(*l));
    if (l) {
        l->site.file = trp_conf_arena_text(&l->arena, file, strlen(file));
        l->site.driver = (struct trp_site_driver){.cores = 1, .memory_mib = 1024};
    }
    if (l && l->site.file)
        return l;
    trp_site_free(l ? &l->site : NULL);
    trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    return NULL;
}

/* Puts what other sections mean as options in front of `options:`, which are set later
 * and win. */
static void join_options(trp_yaml *y, struct trp_site_loading *l)
{
    trp_site *s = &l->site;
    uint32_t n = l->nimplied + s->noptions;
    struct trp_pair *all = trp_yaml_alloc(y, n, sizeof(*all));
    if (!all)
        return;
    memcpy(all, l->implied, l->nimplied * sizeof(*all));
    if (s->noptions > 0)
        memcpy(all + l->nimplied, s->options, s->noptions * sizeof(*all));
    s->options = all;
    s->noptions = n;
}

static int finish_site(struct trp_site_loading *l, trp_yaml *y,
                       void (*tell)(void *context, const char *text), void *context,
                       trp_site **ret, trp_error *err)
{
    bool sound = trp_yaml_mapping(y, trp_yaml_root(y), "a site file", site_keys,
                                  TRP_YAML_COUNT(site_keys), l);
    join_options(y, l);
    if (!l->lacks_resources && (sound || l->site.nresources)) {
        trp_site_check_denied(y, &l->site);
        trp_site_check_routes(y, &l->site);
    }
    int code = trp_yaml_verdict_told(y, tell, context, err);
    if (code == 0) {
        trp_site_warn_shadowed(y, &l->site);
        code = trp_yaml_verdict(y, err);
    }
    trp_yaml_free(y);
    if (code < 0)
        trp_site_free(&l->site);
    else
        *ret = &l->site;
    return code;
}

static int read_site(const char *file, const char *text, size_t size,
                     void (*tell)(void *context, const char *text), void *context,
                     trp_site **ret, trp_error *err)
{
    trp_yaml *y;
    struct trp_site_loading *l = new_site(file, err);
    if (!l)
        return TRP_ENOMEM;
    int code = trp_yaml_open(l->site.file, text, size, &l->arena, &y, err);
    if (code < 0) {
        trp_site_free(&l->site);
        return code;
    }
    return finish_site(l, y, tell, context, ret, err);
}

int trp_site_parse(const char *file, const char *text, size_t size, trp_site **ret,
                   trp_error *err)
{
    return read_site(file, text, size, NULL, NULL, ret, err);
}

int trp_site_load(const char *path, trp_site **ret, trp_error *err)
{
    return trp_site_load_told(path, NULL, NULL, ret, err);
}

int trp_site_load_told(const char *path, void (*tell)(void *context, const char *text),
                       void *context, trp_site **ret, trp_error *err)
{
    const char *variable = getenv("TROUPE_SITE");
    if (!path && variable && *variable)
        path = variable;
    if (!path && access(SITE_FILE, F_OK) == 0)
        path = SITE_FILE;
    if (path)
        return read_site(path, NULL, 0, tell, context, ret, err);
    struct trp_site_loading *l = new_site("", err);
    if (!l)
        return TRP_ENOMEM;
    *ret = &l->site;
    return 0;
}

void trp_site_free(trp_site *s)
{
    struct trp_site_loading *l = (struct trp_site_loading *)s;
    if (!l)
        return;
    trp_conf_arena_free(&l->arena);
    free(l);
}

/* ---- using it ---- */

int trp_site_options(const trp_site *s, trp_options *o, trp_error *err)
{
    return trp_options_set_pairs(o, s->options, s->noptions, TRP_ORIGIN_SITE, s->file,
                                 err);
}

int trp_site_options_check(const trp_site *s, const trp_options *o, trp_error *err)
{
    static const char key[] = "alloc.max_executors";
    int64_t wanted = s->limits.executors ? trp_options_int(o, key) : 0;
    if (wanted <= s->limits.executors)
        return 0;
    return trp_error_set(
        err, TRP_EINVAL,
        "%s: %s %lld is above the site's limit of %u (%s:%u:%u); write "
        "at most that",
        trp_options_where(o, key), key, (long long)wanted, s->limits.executors, s->file,
        s->limits.executors_mark.line, s->limits.executors_mark.column);
}
