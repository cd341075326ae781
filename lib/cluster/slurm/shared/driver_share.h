/*
 * What the driver takes of its job's memory: its own share (driver.memory), and what one
 * srun takes beside it, by which each executor is started. One account for driver, `check`
 * and `submit`.
 */
#ifndef TRP_CLUSTER_SLURM_SHARED_DRIVER_SHARE_H
#define TRP_CLUSTER_SLURM_SHARED_DRIVER_SHARE_H

#include "core/base/error.h"

enum { TRP_SLURM_SRUN_MIB = 16 };

/* TRP_ENEVER: `what`, as "node1", has less. */
static inline int trp_slurm_driver_fits(int64_t own_mib, int64_t srun_mib,
                                        const char *what, int64_t memory_mib,
                                        trp_error *err)
{
    const int64_t takes = own_mib + srun_mib;
    if (takes <= memory_mib)
        return 0;
    return trp_error_set(err, TRP_ENEVER,
                         "the driver takes %lld MiB (driver.memory %lld MiB, and %lld "
                         "MiB for an srun), %s has %lld MiB",
                         (long long)takes, (long long)own_mib, (long long)srun_mib,
                         what, (long long)memory_mib);
}

#endif
