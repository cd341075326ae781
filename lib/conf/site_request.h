/*
 * What an executor, or a gang, of a profile becomes for Slurm by the site file. Pure:
 * it asks neither Slurm nor the disk, so the same answer serves `troupe plan`,
 * `submit`, `site-shape` and the Slurm backend.
 *
 * An executor is one Slurm task on one node with all of the executor's cores, devices
 * and memory; the memory is one figure, memory + overhead + offHeap (+ pyspark.memory
 * where written), for Slurm enforces one limit. A *gang* of N ranks is N Slurm tasks,
 * each with a slot of the profile: its task's cpus and devices and its share of the
 * memory. Slurm counts GPUs by the task, other GRES only by the node: a gang with
 * another GRES, or with a GPU shared by several ranks beside another, is asked for on
 * one node.
 *
 *     struct trp_site_request r;
 *     struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
 *     if (trp_site_request_make(site, profile, 0, &r, &err) < 0) …
 *     n = trp_site_request_options(&r, TRP_SITE_FOR_STEP, v);   // cpus-per-task 4, …
 */
#ifndef TRP_CONF_SITE_REQUEST_H
#define TRP_CONF_SITE_REQUEST_H

#include "conf/site.h"
#include "core/profile/profile.h"

enum {
    TRP_SITE_REQUEST_OPTIONS = 24,
    TRP_SITE_REQUEST_NUMBER = 24,
    TRP_SITE_REQUEST_LIST = TRP_PROFILE_RESOURCES * (TRP_SITE_WORD_MAX + 24),
};

/* Of a GRES or a licence. */
struct trp_site_amount {
    const char *name; /* "gpu:a100", "matlab"; the site's */
    int64_t count;    /* of the executor; of a gang all ranks together */
    int64_t each;     /* of one rank, rounded up */
    int64_t sharing;  /* ranks that share one; 1: none do */
};

/* A plain value; names are borrowed from the site. */
struct trp_site_request {
    uint32_t ranks;     /* 0: an executor */
    bool one_node;      /* the gang must be on one node */
    int64_t cpus;       /* of the executor, or of one rank */
    int64_t memory_mib; /* the same */
    struct trp_site_amount gres[TRP_PROFILE_RESOURCES];
    uint32_t ngres;
    struct trp_site_amount licenses[TRP_PROFILE_RESOURCES];
    uint32_t nlicenses;                     /* Slurm counts them by the job */
    char constraint[TRP_SITE_REQUEST_LIST]; /* "" none; "a&b" */
    const struct trp_site_route *route;     /* NULL: the site has no rules */
    const char *partition, *qos, *account, *reservation; /* or NULL */
    int64_t time_ns; /* the most a job may ask for; 0: any */
    bool exclusive;  /* its job takes whole nodes */
    /* Texts of the options. */
    char gres_text[TRP_SITE_REQUEST_LIST], licenses_text[TRP_SITE_REQUEST_LIST];
    char ranks_text[TRP_SITE_REQUEST_NUMBER], cpus_text[TRP_SITE_REQUEST_NUMBER];
    char memory_text[TRP_SITE_REQUEST_NUMBER], gpus_text[TRP_SITE_REQUEST_LIST];
    char sharing_text[TRP_SITE_REQUEST_NUMBER];
};

/* Fills *ret. TRP_ENEVER, with the place in the site file where there is one: a
 * resource is denied, or not mapped; no route takes it. */
int trp_site_request_make(const trp_site *s, const struct trp_resource_profile *p,
                          uint32_t ranks, struct trp_site_request *ret, trp_error *err);

enum trp_site_for {
    TRP_SITE_FOR_STEP,  /* srun inside a job */
    TRP_SITE_FOR_JOB,   /* sbatch, salloc: also where it goes; no time, which is up to
                         * who asks */
    TRP_SITE_FOR_SHAPE, /* a user's own job of that shape: as a job, but how many tasks
                         * and nodes, and whether it shares them, is up to the user */
};

/* A long option of srun, sbatch and salloc without its dashes; the value is "" for a
 * flag. Borrowed from the request. */
struct trp_site_option {
    const char *key, *value;
};
/* Returns how many; never more than TRP_SITE_REQUEST_OPTIONS. */
uint32_t trp_site_request_options(const struct trp_site_request *r,
                                  enum trp_site_for what,
                                  struct trp_site_option *ret_options);

/* "--cpus-per-task=4 --mem=2432M" into `buf`, cut when it does not fit; returns buf. */
char *trp_site_request_text(const struct trp_site_request *r, enum trp_site_for what,
                            char *buf, size_t size);

/* A time as Slurm's options take it: whole minutes, rounded up: "90", at least "1". */
char *trp_slurm_minutes(int64_t ns, char *buf, size_t size);

#endif
