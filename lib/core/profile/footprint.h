/*
 * What a node must have for an executor of a profile, or for the ranks of a gang: the
 * one place that says so, for this machine, for Slurm and for the simulator.
 *
 * A rank has a slot of the profile: its task's cpus and devices, and its part of the
 * executor's memory. What several share is taken once for all of them: `share` ranks
 * share a device of which a task takes a fraction, and as many ranks as an executor has
 * slots share its memory.
 */
#ifndef TRP_CORE_PROFILE_FOOTPRINT_H
#define TRP_CORE_PROFILE_FOOTPRINT_H

#include "core/profile/profile.h"

struct trp_profile_amount {
    int64_t n;
    int64_t share; /* so many units have n together; 1 for executors */
};

struct trp_profile_footprint {
    int64_t cores; /* of a unit: an executor, or a rank */
    struct trp_profile_amount memory_mib;
    struct trp_profile_amount custom[TRP_PROFILE_RESOURCES]; /* as the profile's; n 0:
                                                              * none is needed */
};

struct trp_profile_footprint trp_profile_footprint(const struct trp_resource_profile *p,
                                                   bool rank);

/* What `units` of them have together, rounded up. */
static inline int64_t trp_profile_amount_of(struct trp_profile_amount a, uint64_t units)
{
    return ((int64_t)units * a.n + a.share - 1) / a.share;
}

/* "4 cores, 2 GiB, gpu 1": what an executor of the profile has, or with `ranks` above 0
 * what so many ranks of a gang take together. Returns buf. */
char *trp_profile_text(const struct trp_resource_profile *p, uint32_t ranks, char *buf,
                       size_t size);

/* "1 core, 512 MiB, gpu 0.5": what one task on an executor takes. Returns buf. */
char *trp_profile_text_of_task(const struct trp_resource_profile *p, char *buf,
                               size_t size);

#endif
