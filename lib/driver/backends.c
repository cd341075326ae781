/*
 * The backends: another one is a line in the list.
 */
#include "driver/backends.h"

#include <string.h>

#include "cluster/local/local.h"
#include "cluster/slurm/slurm_backend.h"

const struct trp_backend *const trp_backends[] = {&trp_slurm_backend, NULL};

const struct trp_backend *trp_backend_of(const char *name)
{
    for (size_t i = 0; name && trp_backends[i]; i++)
        if (strcmp(trp_backends[i]->name, name) == 0)
            return trp_backends[i];
    return NULL;
}

int trp_cluster_new(uv_loop_t *loop, const struct trp_cluster_where *where,
                    const trp_options *options, const trp_site *site,
                    const struct trp_executor_command *command,
                    const struct trp_cluster_handler *handler,
                    trp_cluster **ret_cluster, trp_error *err)
{
    if (where->batch)
        return where->batch->make(loop, where, options, site, command, handler,
                                  ret_cluster, err);
    return trp_cluster_local_new(loop, where->local_cores, where->share_cores, site,
                                 command, handler, ret_cluster, err);
}
