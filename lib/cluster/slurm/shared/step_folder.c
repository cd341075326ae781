/*
 * The names of the folders of steps: those of one run alone.
 */
#include "cluster/slurm/shared/step_folder.h"

#include <stdio.h>

void trp_slurm_step_owner(const char *run_id, uint32_t executor,
                          char buf[TRP_PRIVATE_OWNER])
{
    snprintf(buf, TRP_PRIVATE_OWNER, "%s.%u", run_id, executor);
}
