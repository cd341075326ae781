/*
 * The site file (contract.md, "Site mapping"): what an admin says about this cluster.
 * Looked for at --site, $TROUPE_SITE, /etc/troupe/site.yaml, in this order; none is
 * fine.
 *
 * Parsed whole with the checks of a pipeline file (FILE:LINE:COL). What only a Slurm
 * cluster needs (route, limits, options `slurm.*`, …) is checked for its form and not
 * kept yet. `memory:` is kept as the options that it stands for, in front of
 * `options:`, which win.
 */
#ifndef TRP_CONF_SITE_H
#define TRP_CONF_SITE_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "core/profile/books.h"

struct trp_site_resource {
    char *name; /* profile's resource: gpu */
    char *env;  /* variable that names the devices to a task, or NULL */
};

typedef struct trp_site {
    char *file; /* "" when there is no site file */
    struct trp_site_resource *resources;
    uint32_t nresources;
    struct trp_resource_addresses *local;
    uint32_t nlocal; /* `local:` devices */
    struct trp_pair *options;
    uint32_t noptions;
    struct trp_profile_section *profiles;
    uint32_t nprofiles;
    char *scratch; /* NULL: the run decides */
} trp_site;

/* `path` NULL: look in the places above. An explicit path or $TROUPE_SITE that does not
 * exist is TRP_EINVAL. Without any file an empty site is returned; `gpu` always maps to
 * CUDA_VISIBLE_DEVICES unless the file says otherwise. */
int trp_site_load(const char *path, trp_site **ret, trp_error *err);
/* The same from memory; `file` is for messages. */
int trp_site_parse(const char *file, const char *text, size_t size, trp_site **ret,
                   trp_error *err);
void trp_site_free(trp_site *s);
int trp_site_options(const trp_site *s, trp_options *o, trp_error *err);
/* The variable for a resource, or NULL. */
const char *trp_site_variable(const trp_site *s, const char *resource);

#endif
