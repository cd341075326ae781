/*
 * The site file (contract.md, "Site mapping"; troupe-site(5)): what an admin says about
 * this cluster. Looked for at --site, $TROUPE_SITE, /etc/troupe/site.yaml, in this
 * order; none is fine.
 *
 * Parsed whole with the checks of a pipeline file (FILE:LINE:COL). `memory:` and
 * `limits: {executors}` are kept as the options that they stand for, in front of
 * `options:`, which win. What is not wrong but has no effect, such as a rule that no
 * request reaches, is a warning.
 *
 * What a profile becomes by it: conf/site_request.h. Racks: conf/racks.h.
 */
#ifndef TRP_CONF_SITE_H
#define TRP_CONF_SITE_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "core/profile/ledger.h"
#include "os/linked_mpi.h"

enum {
    TRP_SITE_WORD_MAX = 128, /* bytes of what is handed to Slurm as one word */
    TRP_SITE_ROUTES = 256,
    TRP_SITE_RESOURCES = 256,
};

/* What Slurm is asked for in place of a profile's resource. */
enum trp_site_kind {
    TRP_SITE_UNMAPPED, /* only `env` is known */
    TRP_SITE_GRES,
    TRP_SITE_LICENSE,
    TRP_SITE_CONSTRAINT,
};

struct trp_site_resource {
    char *name;              /* profile's resource: a100 */
    char *env;               /* variable that names the devices to a task, or NULL */
    enum trp_site_kind kind; /* what it says */
    char *target;            /* "gpu:a100", a licence, a feature; NULL: unmapped */
    bool countable;          /* false: asked for once, whatever the amount */
    struct trp_mark mark;    /* of its name */
};

/* `least` and `most` hold both. */
struct trp_site_condition {
    char *subject; /* "cores", "memory" (MiB, all of it), or a resource */
    int64_t least, most;
    struct trp_mark mark; /* of the comparison */
};

struct trp_site_route {
    struct trp_site_condition *when; /* all must hold */
    uint32_t nwhen;
    char *partition, *qos, *account, *constraint, *reservation; /* or NULL */
    struct trp_mark mark, partition_mark, constraint_mark;
};

/* A courtesy to users; Slurm's own limits are the barrier. */
struct trp_site_limits {
    uint32_t executors, jobs; /* 0: none */
    bool no_jobs;             /* `jobs: 0`: no additional ones */
    struct trp_mark executors_mark;
    int64_t time_ns; /* of a job; 0: none */
    char **deny;     /* resources */
    uint32_t ndeny;
    struct trp_mark deny_mark;
};

enum trp_site_racks {
    TRP_SITE_RACKS_NONE,
    TRP_SITE_RACKS_SLURM,
    TRP_SITE_RACKS_FILE,
    TRP_SITE_RACKS_PATTERN,
};

/* What `troupe submit` asks for the driver's own job. */
struct trp_site_driver {
    uint32_t cores;            /* 1 */
    int64_t memory_mib;        /* 1024 */
    int64_t time_ns;           /* 0: Slurm's default */
    char *account, *partition; /* or NULL */
    struct trp_mark mark, time_mark, partition_mark;
};

struct trp_site_warning {
    struct trp_mark mark;
    char *text;
};

struct trp_site_script {   /* executor.resource.R.discoveryScript */
    char *resource, *path; /* absolute */
};

typedef struct trp_site {
    char *file; /* "" when there is no site file */
    struct trp_site_resource *resources;
    uint32_t nresources;
    struct trp_site_route *routes; /* first match wins */
    uint32_t nroutes;
    struct trp_mark routes_mark;
    struct trp_site_limits limits;
    enum trp_site_racks racks;
    char *racks_text; /* path, absolute or beside the file; or pattern */
    struct trp_mark racks_mark;
    struct trp_resource_addresses *local;
    uint32_t nlocal;                                       /* `local:` devices */
    struct trp_site_script scripts[TRP_PROFILE_RESOURCES]; /* of the options */
    uint32_t nscripts;
    struct trp_pair *options;
    uint32_t noptions;
    struct trp_profile_section *profiles;
    uint32_t nprofiles;
    char *scratch;  /* NULL: the run decides */
    char *mpi;      /* srun --mpi=… of a gang; NULL: what Slurm has */
    bool exclusive; /* `nodes: exclusive`: additional jobs take whole nodes */
    struct trp_site_driver driver;
    struct trp_site_warning *warnings;
    uint32_t nwarnings;
} trp_site;

/* `path` NULL: look in the places above. An explicit path or $TROUPE_SITE that does not
 * exist is TRP_EINVAL. Without any file an empty site is returned; `gpu` always maps to
 * gres:gpu and CUDA_VISIBLE_DEVICES unless the file says otherwise. */
int trp_site_load(const char *path, trp_site **ret, trp_error *err);
/* The same for who can tell several errors of the file, up to 20: all but the last are
 * told, which is in `err`. `tell` may be NULL. */
int trp_site_load_told(const char *path, void (*tell)(void *context, const char *text),
                       void *context, trp_site **ret, trp_error *err);
/* The same from memory; `file` is for messages. `text` NULL: that of the file. */
int trp_site_parse(const char *file, const char *text, size_t size, trp_site **ret,
                   trp_error *err);
void trp_site_free(trp_site *s);
int trp_site_options(const trp_site *s, trp_options *o, trp_error *err);
/* Are the options, when all are set, within the site's limits? TRP_EINVAL, beginning
 * with where the option was set. */
int trp_site_options_check(const trp_site *s, const trp_options *o, trp_error *err);
/* Takes the discovery scripts over from the options, when all are set; a relative path
 * is below `cwd` (NULL: the working folder). TRP_ENOMEM. */
int trp_site_take_scripts(trp_site *s, const trp_options *o, const char *cwd,
                          trp_error *err);
/* The one of a resource, or NULL. `s` may be NULL. */
const char *trp_site_script(const trp_site *s, const char *resource);
/* Is the script all that is known of the resource? Then Slurm is not asked for it. */
bool trp_site_is_scripted(const trp_site *s, const char *resource);
/* The variable for a resource, or NULL. `s` may be NULL: no site file. */
const char *trp_site_variable(const trp_site *s, const char *resource);
/* The entry of a resource, or NULL. Without a file (`s` may be NULL) there is one for
 * gpu. */
const struct trp_site_resource *trp_site_resource(const trp_site *s, const char *name);
/* Is it under `limits: deny`? */
bool trp_site_denies(const trp_site *s, const char *name);

#endif
