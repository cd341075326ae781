/*
 * What `troupe check` knows of a cluster: what slurmctld answers, and what the files
 * beside this host's slurm.conf say, which Slurm's commands here read for themselves.
 *
 *     struct trp_slurm_facts f = {0};
 *     if (trp_slurm_facts_ask(helper, &f, &err) == 0)
 *         trp_slurm_facts_look(&f, getenv("SLURM_CONF"));
 *     n = trp_slurm_check(site, options, &f, &findings, &err);     // check.h
 *     trp_slurm_facts_free(&f);
 *
 * Strings are never NULL once asked, "" when there is nothing; they live as long as the
 * facts.
 */
#ifndef TRP_CLUSTER_SLURM_CHECK_FACTS_H
#define TRP_CLUSTER_SLURM_CHECK_FACTS_H

#include "cluster/slurm/helper/helper.h"
#include "cluster/slurm/helper/node_offers.h"
#include "conf/arena.h"

#define TRP_SLURM_PLUGIN "spank_troupe.so"
#define TRP_SLURM_PLUGIN_SITE "/etc/troupe/site.yaml"

struct trp_slurm_licence {
    const char *name;
    uint32_t total;
};

enum trp_slurm_seen {
    TRP_SLURM_UNSEEN,  /* it cannot be told; `why` says why */
    TRP_SLURM_MISSING, /* it is not there */
    TRP_SLURM_THERE,
};

struct trp_slurm_file {
    enum trp_slurm_seen seen;
    const char *path; /* or where it was looked for */
    const char *why;
};

/* Our line of plugstack.conf, and the plugin. */
struct trp_slurm_plugin {
    struct trp_slurm_file line; /* path: FILE:LINE, or plugstack.conf */
    int64_t changed;            /* its file here, in seconds since 1970; 0: not known */
    bool required;
    const char *site;             /* of its site=, or the usual one */
    struct trp_slurm_file file;   /* the .so */
    uint32_t built;               /* for that Slurm, 0xMMmmuu; 0: it does not say */
    struct trp_slurm_file shapes; /* what `troupe site-shape --all` made of the site */
    bool shapes_are_old;          /* the site file is newer */
};

struct trp_slurm_facts {
    struct trp_conf_arena arena;
    struct trp_slurm_offers offers;
    struct trp_slurm_licence *licences;
    uint32_t nlicences, licences_cap;
    const char *cluster;
    const char *version;             /* of slurmctld: "22.05.8" */
    const char *built;               /* what troupe-slurm was built for, the same */
    const char *file;                /* slurm.conf, as slurmctld calls it */
    const char *plugstack, *plugins; /* PlugStackConfig, PluginDir */
    const char *auth, *cli_filter, *topology, *task, *gres; /* …Type and the like */
    bool memory_is_handed_out;                              /* SelectTypeParameters */
    const char *ram, *devices; /* ConstrainRAMSpace, ConstrainDevices: yes, no; "":
                                * slurmctld does not read cgroup.conf */
    uint32_t racks;            /* leaf switches */

    /* Of this host: */
    struct trp_slurm_plugin plugin;
    struct trp_slurm_file filter; /* cli_filter.lua */
    bool filter_is_ours;          /* it speaks of Troupe */
    const char *scratch_in; /* the folder above the site's scratch: that others than
                             * root can write in; NULL: there is none here */
    bool no_scontrol;       /* in PATH, which tells of racks */
    const char *munge;      /* "": it answers; else why not; NULL: not asked */
    const char *mpis;       /* "Open MPI 4.1.4, MPICH 4.0.2"; "": none */
    const char *mpi_types;  /* what srun --mpi= can be, "none pmix"; "": not known */
};

/* Fills what Slurm tells. TRP_ESYSTEM: it does not answer. */
int trp_slurm_facts_ask(trp_slurm_helper *h, struct trp_slurm_facts *ret,
                        trp_error *err);
/* Fills what is of this host, but `no_scontrol`, `munge`, the two of MPI and
 * `scratch_in`. `conf` is the slurm.conf that commands here use, NULL: the one that
 * slurmctld names. TRP_ENOMEM. */
int trp_slurm_facts_look(struct trp_slurm_facts *f, const char *conf, trp_error *err);
/* Fills scratch_in for a scratch folder `path`, which need not be there. TRP_ENOMEM. */
int trp_slurm_facts_scratch(struct trp_slurm_facts *f, const char *path,
                            trp_error *err);
void trp_slurm_facts_free(struct trp_slurm_facts *f);

/* A copy that lives as long as they do. */
const char *trp_slurm_facts_text(struct trp_slurm_facts *f, const char *text);
/* facts_plugin.c: the line of plugstack.conf `path` that names our plugin, by Slurm's
 * rules: comments, include with patterns. */
void trp_slurm_facts_plugstack(struct trp_slurm_facts *f, const char *path);
/* For which Slurm the plugin `path` was built: 0xMMmmuu; 0: it is no such file, or
 * does not say. Nothing of it is run. */
uint32_t trp_slurm_plugin_version(const char *path);

#endif
