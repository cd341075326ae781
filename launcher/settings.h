/*
 * What `run`, `plan`, `config` and `topo` settle before they do anything: site file,
 * pipeline, and options from all their places.
 */
#ifndef TRP_LAUNCHER_SETTINGS_H
#define TRP_LAUNCHER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"
#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/pool_section.h"
#include "conf/site.h"
#include "driver/backends.h"

enum { TRP_SETTINGS_WORDS = 4096 }; /* --set, --param and --force at most, each */

/* What the command line said; strings are borrowed from argv. */
struct trp_settings_request {
    const char *site;     /* --site, or NULL */
    const char *pipeline; /* file, or NULL */
    const char *shown;    /* its name in messages; NULL: as `pipeline` */
    const char *cwd;      /* what that name is relative to; NULL: the working folder */
    bool stored;          /* it is the copy in a run folder, with what it includes */
    const char *sets[TRP_SETTINGS_WORDS];
    uint32_t nsets; /* --set KEY=VALUE */
    const char *params[TRP_SETTINGS_WORDS];
    uint32_t nparams; /* --param K=V */
    bool local;
    uint32_t cores; /* --local=N; 0: what is there */
};

struct trp_included_text { /* of a file that the pipeline includes */
    char *text;
    size_t size;
};

struct trp_settings {
    trp_site *site;
    trp_options *options;
    trp_pipeline *pipeline;                /* NULL: none */
    struct trp_pipeline_listener listener; /* its own: says warnings on stderr */
    struct trp_pool_list pools;            /* by trp_settings_pools */
    char *text;                            /* its bytes, as read */
    size_t text_size;
    struct trp_included_text *included; /* in the order in which they were read */
    uint32_t nincluded, included_capacity;
};

/* The options that make a request, for tables of options (args.h) … */
enum {
    TRP_SETTING_SITE = 1000,
    TRP_SETTING_SET,
    TRP_SETTING_PARAM,
    TRP_SETTING_LOCAL,
};
/* clang-format off */
#define TRP_SETTINGS_SITE {"site", TRP_ARG_VALUE, TRP_SETTING_SITE, "FILE", "site file", NULL}
#define TRP_SETTINGS_SET {"set", TRP_ARG_VALUE, TRP_SETTING_SET, "KEY=VALUE", "set an option (see troupe config)", NULL}
#define TRP_SETTINGS_PARAM {"param", TRP_ARG_VALUE, TRP_SETTING_PARAM, "K=V", "value of a param of the pipeline", NULL}
#define TRP_SETTINGS_LOCAL {"local", TRP_ARG_OPTIONAL, TRP_SETTING_LOCAL, "CORES", "on this machine, with so many cores", NULL}
/* clang-format on */

/* … and taking one of them. 0; TRP_EINVAL, TRP_ELIMIT; or `what`: it is another one. */
int trp_settings_take(struct trp_settings_request *q, int what, const char *value,
                      trp_error *err);
/* Adds `value` to a list of words; TRP_ELIMIT. */
int trp_settings_word(const char **list, uint32_t *n, const char *option,
                      const char *value, trp_error *err);

/* Where executors come from: with --local this machine, else the Slurm job that we are
 * in, when it runs and is ours. `ret` borrows nothing but its paths, which are
 * malloc'ed: free with trp_settings_where_free. TRP_ESYSTEM: there is a job, but Slurm
 * cannot be asked. */
int trp_settings_where(const struct trp_settings_request *q,
                       const struct trp_settings *s, struct trp_cluster_where *ret,
                       trp_error *err);
/* For who plans and is in no job: what the jobs of a batch system could have, when there is
 * one here that answers, in `partition` or (NULL) in any; why it does not is said on
 * stderr with `tells`. */
void trp_settings_outside(const struct trp_settings_request *q, const char *partition,
                          bool tells, struct trp_cluster_where *where);
void trp_settings_where_free(struct trp_cluster_where *w);
/* Says on stderr what it means to be a step of that job, which srun has started.
 * TRP_EINVAL: it has started several. */
int trp_settings_step(const struct trp_cluster_where *w, trp_error *err);

/* Everything of it, in order of strength; free with trp_settings_free in any case. */
int trp_settings_load(const struct trp_settings_request *q, struct trp_settings *ret,
                      trp_error *err);
/* The pools of the pipeline; a relative file of theirs is below the working folder. */
int trp_settings_pools(struct trp_settings *s, trp_error *err);
/* Prints on stderr which options were set that do nothing in a run, and what the pipeline
 * most likely does not mean. */
void trp_settings_missing(const struct trp_settings *s);
/* The same, and the site file's warnings. */
void trp_settings_warn(const struct trp_settings *s);
void trp_settings_free(struct trp_settings *s);

#endif
