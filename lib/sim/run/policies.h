/* How a run would be taken to a cluster: what whole.h lists, as settings of a run. */
#ifndef TRP_SIM_RUN_POLICIES_H
#define TRP_SIM_RUN_POLICIES_H

#include "conf/site.h"
#include "sim/run/virtual_run.h"

struct trp_policy {
    const char *name;
    bool largest; /* the driver's job has the nodes of the largest stage; no others */
    bool stage_jobs;   /* each stage is a job of its own */
    bool ahead;        /* stages are looked ahead to, as they say */
    bool as_options;   /* ahead and release of executors as the options say, else … */
    bool release_idle; /* … so */
};

/* In the order of the comparison, ended by a NULL name. */
extern const struct trp_policy trp_policies[];
/* NULL: there is none of that name. */
const struct trp_policy *trp_policy_find(const char *name);
/* As the options say. */
extern const struct trp_policy trp_policy_options;

/* What a policy makes of a run. */
struct trp_policy_run {
    trp_profiles *profiles;
    trp_profile_id *ids;
    uint32_t inside[TRP_SIM_GROUPS];
};

/* Fills `ret` and the settings of `config` that depend on the policy; `config` has
 * pipeline, ntasks, cluster and engine. */
int trp_policy_apply(const struct trp_policy *policy, const trp_options *options,
                     const trp_site *site, struct trp_virtual_run_config *config,
                     struct trp_policy_run *ret, trp_error *err);
void trp_policy_run_free(struct trp_policy_run *r);

#endif
