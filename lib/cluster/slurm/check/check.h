/*
 * Whether a site file and a cluster go together: the findings of `troupe check`. Pure:
 * it looks at what facts.h has collected and asks nobody.
 *
 * An error is what does not work; a warning is what works, but worse than it could, or
 * cannot be told; fine is said of each thing that was looked at and has neither.
 */
#ifndef TRP_CLUSTER_SLURM_CHECK_CHECK_H
#define TRP_CLUSTER_SLURM_CHECK_CHECK_H

#include "cluster/slurm/check/facts.h"
#include "conf/options.h"

enum trp_slurm_severity { TRP_SLURM_FINE, TRP_SLURM_WARNING, TRP_SLURM_ERROR };

struct trp_slurm_finding {
    enum trp_slurm_severity severity;
    const char *about; /* one of: site partition gres licence feature route profile
                        * driver memory devices munge plugin shapes cli_filter
                        * topology version */
    const char *where; /* "FILE:LINE:COL", a file, or "" */
    const char *text;  /* what is so */
    const char *todo;  /* what to do; "" when it is fine */
};

struct trp_slurm_findings {
    struct trp_conf_arena arena;
    struct trp_slurm_finding *v;
    uint32_t n, cap, errors, warnings;
    bool full; /* out of memory */
};

struct trp_slurm_checked {
    const trp_site *site;
    const trp_options *options; /* the site's are in them */
    bool trial;                 /* the site file is not the one that users get */
    const char *file;           /* its whole path; "": there is none */
};

/* Free the findings in any case. TRP_ENOMEM. */
int trp_slurm_check(const struct trp_slurm_checked *it, const struct trp_slurm_facts *f,
                    struct trp_slurm_findings *ret, trp_error *err);
void trp_slurm_findings_free(struct trp_slurm_findings *v);

#endif
