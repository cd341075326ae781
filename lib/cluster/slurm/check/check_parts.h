/*
 * What the two halves of the check share: check_settings.c looks at how Slurm is set up,
 * check_site.c at the site file.
 */
#ifndef TRP_CLUSTER_SLURM_CHECK_CHECK_PARTS_H
#define TRP_CLUSTER_SLURM_CHECK_CHECK_PARTS_H

#include "cluster/slurm/check/check.h"

struct trp_slurm_checking {
    const trp_site *site;
    const trp_options *options;
    bool trial;
    const char *file; /* the site file; "": there is none */
    const struct trp_slurm_facts *f;
    struct trp_slurm_findings *to;
    const char *about; /* what is looked at now */
    uint32_t told;     /* findings when it was begun */
};

/* A finding about what is looked at; `where` and `todo` are copied. */
void trp_slurm_tell(struct trp_slurm_checking *c, enum trp_slurm_severity severity,
                    const char *where, const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* What follows is about that … */
void trp_slurm_about(struct trp_slurm_checking *c, const char *about);
/* … and if nothing was told of it, it is fine. */
void trp_slurm_is_fine(struct trp_slurm_checking *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* All that the site file says. */
void trp_slurm_check_site(struct trp_slurm_checking *c);

#endif
