/*
 * What plans say of Slurm (conf/site_request.h). Used by plan_print.c only.
 */
#ifndef TRP_DRIVER_PLAN_SLURM_H
#define TRP_DRIVER_PLAN_SLURM_H

#include <jansson.h>

#include "conf/site.h"

/* An executor of the profile, or a gang of `ranks` > 0 ranks, as options of sbatch, or
 * "never: …". malloc'ed; NULL: out of memory. */
char *trp_plan_slurm_text(const struct trp_site *site,
                          const struct trp_resource_profile *p, uint32_t ranks);
/* The same as keys of `object`: "slurm", an object of options or null, and
 * "slurm_never", text or null. */
void trp_plan_slurm_json(const struct trp_site *site,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         json_t *object);

#endif
