/*
 * What targets are made of; private to targets.c (what they should be) and
 * targets_counts.c (what happens to stages and tasks).
 */
#ifndef TRP_CORE_ALLOC_TARGETS_STATE_H
#define TRP_CORE_ALLOC_TARGETS_STATE_H

#include <assert.h>

#include "core/alloc/targets.h"
#include "core/base/bits.h"
#include "core/base/ids.h"

struct trp_targets_stage {
    uint32_t profile;
    uint32_t ntasks, running;
    struct trp_bits started, copies; /* task numbers; copies that wait */
    bool used, done, at_once, unschedulable;
    uint32_t next_free;
};

struct trp_targets_profile {
    bool known, in_use;
    bool one_host;
    uint32_t spread; /* executors there are to be for the sake of copies */
    uint32_t slots;
    uint32_t target, to_add;
    uint32_t registered, leaving;
    uint32_t stages, unschedulable;
    uint64_t pending, copies, running;
    uint64_t at_once; /* of pending and running: those of gangs */
    int64_t deadline; /* INT64_MAX: not set */
    uint32_t before;  /* the target before the last tick or step */
    bool stepped;     /* it grew by the series, not for a gang */
};

struct trp_targets {
    struct trp_targets_config config;
    struct trp_targets_profile *profiles; /* by number */
    uint32_t nprofiles, profiles_cap;
    struct trp_targets_stage *stages; /* by handle */
    uint32_t nstages, stages_cap, free;
    int64_t last_tick;
    bool initializing, changed; /* a count did, since the last tick */
};

static inline struct trp_targets_profile *trp_targets_profile_of(const trp_targets *t,
                                                                 uint32_t profile)
{
    assert(profile < t->nprofiles && t->profiles[profile].known);
    return &t->profiles[profile];
}

/* targets.c: its first stage is there; the initial target holds. */
void trp_targets_begin_use(trp_targets *t, struct trp_targets_profile *p);

#endif
