/*
 * The contents of a plan, before they are printed. Used by plan_print.c only.
 */
#ifndef TRP_DRIVER_PLAN_MAKE_H
#define TRP_DRIVER_PLAN_MAKE_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/pool_section.h"
#include "conf/site.h"
#include "driver/backends.h"

struct trp_plan_profile {
    const char *name;
    const struct trp_resource_profile *made; /* NULL: impossible */
    uint32_t fits;                           /* executors at once */
    char *never;                             /* why not, or NULL */
};

struct trp_plan_stage {
    const struct trp_pipeline_stage *stage;
    const struct trp_plan_profile *profile; /* NULL: no profile of that name */
    bool known;                             /* how many tasks */
    uint32_t ntasks;
    char *waits, *never; /* or NULL */
};

struct trp_plan {
    const trp_pipeline *p;
    trp_profiles *profiles;
    struct trp_plan_profile *profile;
    uint32_t nprofiles, profiles_capacity;
    struct trp_plan_stage *stage;
    const struct trp_pool_list *pools; /* borrowed; set by plan_print.c */
    trp_error first; /* what is wrong, impossible ones first; code 0: nothing */
};

/* Fills *ret; what is wrong with the pipeline is in `first`, not in the code. */
int trp_plan_make(const trp_pipeline *p, const trp_options *o, const trp_site *site,
                  const struct trp_cluster_where *where, struct trp_plan *ret,
                  trp_error *err);
/* Its pool; NULL: it is in none, a gang. */
static inline const char *trp_plan_pool(const struct trp_plan_stage *v)
{
    const char *written = v->stage->spec.pool ? v->stage->spec.pool : TRP_POOL_DEFAULT;
    return v->stage->spec.ranks ? NULL : written;
}
void trp_plan_free(struct trp_plan *plan);

#endif
