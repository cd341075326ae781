/*
 * Asking the cluster before a run: a backend without executors, which has a ledger of
 * the room and nothing that runs, and the limits that the engine keeps. So what is told
 * here is what the run would be told.
 *
 * A gang is asked for as a gang: its ranks need the task side of their profile only,
 * and need not fit into one executor.
 */
#include "driver/fit.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "cluster/cluster.h"
#include "core/limits.h"

struct trp_fit {
    uv_loop_t loop;
    trp_cluster *cluster;
    struct trp_engine_config config; /* for its limits */
};

int trp_fit_open(const trp_options *o, const trp_site *site,
                 const struct trp_cluster_where *where, trp_fit **ret, trp_error *err)
{
    static const struct trp_cluster_handler nobody;
    trp_fit *f = calloc(1, sizeof *f);
    if (!f || uv_loop_init(&f->loop) < 0) {
        free(f);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster's ledger");
    }
    trp_options_engine_config(o, &f->config);
    int r = trp_cluster_new(&f->loop, where, o, site, NULL, &nobody, &f->cluster, err);
    if (r < 0) {
        trp_fit_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

void trp_fit_close(trp_fit *f)
{
    if (!f)
        return;
    if (f->cluster)
        f->cluster->ops->close(f->cluster, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_loop_close(&f->loop);
    free(f);
}

uint32_t trp_fit_ask(trp_fit *f, const struct trp_resource_profile *p, uint32_t ranks,
                     trp_error *err)
{
    uint32_t n = f->cluster->ops->fit(f->cluster, p, ranks, err);
    uint32_t most = n ? trp_limits_most(&f->config, p, ranks, err) : 0;
    return n < most ? n : most;
}

static const struct trp_profile_section *
find_section(const struct trp_profile_section *v, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i].builder.name, name) == 0)
            return &v[i];
    return NULL;
}

const struct trp_profile_section *trp_fit_section(const trp_pipeline *p,
                                                  const trp_site *site,
                                                  const char *name,
                                                  const char **ret_file)
{
    const struct trp_profile_section *s = find_section(p->profiles, p->nprofiles, name);
    *ret_file = p->file;
    if (!s && strcmp(name, "default") == 0)
        return p->fallback;
    if (s || !site)
        return s;
    *ret_file = site->file;
    return find_section(site->profiles, site->nprofiles, name);
}

int trp_fit_stage(trp_fit *f, const trp_pipeline *p, const trp_site *site,
                  const struct trp_pipeline_stage *s,
                  const struct trp_resource_profile *profile, trp_error *err)
{
    const char *file;
    trp_error why;
    if (trp_fit_ask(f, profile, s->spec.ranks, &why) > 0)
        return 0;
    if (s->spec.ranks)
        return trp_error_set(err, TRP_ENEVER,
                             "%s:%u:%u: stage %s: %u ranks of profile "
                             "%s never fit here at once: %s",
                             trp_mark_file(p->file, s->mark), s->mark.line,
                             s->mark.column, s->name, s->spec.ranks, profile->name,
                             why.text);
    const struct trp_profile_section *section =
        trp_fit_section(p, site, profile->name, &file);
    struct trp_mark mark = section ? section->mark : s->mark;
    return trp_error_set(err, TRP_ENEVER, "%s:%u:%u: profile %s never fits here: %s",
                         trp_mark_file(section ? file : p->file, mark), mark.line,
                         mark.column, profile->name, why.text);
}
