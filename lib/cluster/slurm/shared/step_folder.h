/*
 * The folder of an executor's step on its node: made by the step (step_main.c), removed
 * by it, or by another one that is sent for it (tidy.h).
 */
#ifndef TRP_CLUSTER_SLURM_SHARED_STEP_FOLDER_H
#define TRP_CLUSTER_SLURM_SHARED_STEP_FOLDER_H

#include <stdint.h>

#include "os/private_folder.h"

/* Who owns it (os/private_folder.h), in a run with that identity; executor TRP_NONE:
 * the folder that all of them share there (executor/files.c). */
void trp_slurm_step_owner(const char *run_id, uint32_t executor,
                          char buf[TRP_PRIVATE_OWNER]);

#endif
