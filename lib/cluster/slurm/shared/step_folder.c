/*
 * The names of the folders of steps: those of one run alone.
 */
#include "cluster/slurm/shared/step_folder.h"

#include <stdio.h>

#include "core/base/ids.h"

void trp_slurm_step_owner(const char *run_id, uint32_t executor,
                          char buf[TRP_PRIVATE_OWNER])
{
    if (executor == TRP_NONE)
        snprintf(buf, TRP_PRIVATE_OWNER, "%s", run_id);
    else
        snprintf(buf, TRP_PRIVATE_OWNER, "%s.%u", run_id, executor);
}
