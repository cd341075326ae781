/*
 * The backend of this machine.
 */
#ifndef TRP_CLUSTER_LOCAL_LOCAL_H
#define TRP_CLUSTER_LOCAL_LOCAL_H

#include "cluster/cluster.h"

/* This machine (lib/cluster/local). Cores: `cores` when > 0 (may be more than there
 * are), else what hwloc and the cgroup limits allow; with `share` they are shared with
 * other runs of this user, where none are pretended. Memory: what the machine and
 * cgroups allow. Devices: the site's `local:`, and what its discovery scripts say, each
 * run once an executor; `site` may be NULL. Copies what it needs;
 * `command` may be NULL when only `fit` and `topology` are wanted (plan, topo). */
int trp_cluster_local_new(uv_loop_t *loop, uint32_t cores, bool share,
                          const trp_site *site,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err);

#endif
