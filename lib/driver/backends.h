/*
 * Which cluster a run uses: the one place that knows all backends (cluster/cluster.h).
 */
#ifndef TRP_DRIVER_BACKENDS_H
#define TRP_DRIVER_BACKENDS_H

#include "cluster/backend.h"

/* All batch systems; the last one is NULL. */
extern const struct trp_backend *const trp_backends[];
/* The one of that name; NULL: there is none, or no name. */
const struct trp_backend *trp_backend_of(const char *name);

/* The cluster of `where`, with what options and site (may be NULL) say of it. */
int trp_cluster_new(uv_loop_t *loop, const struct trp_cluster_where *where,
                    const trp_options *options, const trp_site *site,
                    const struct trp_executor_command *command,
                    const struct trp_cluster_handler *handler,
                    trp_cluster **ret_cluster, trp_error *err);

#endif
