/*
 * Limits over all profiles (semantics, difference 4): how many executors, cores, MiB of
 * memory and units of custom resources all executors together may have.
 *
 * Each limit that is set is one number; what an executor of a profile takes of each is
 * its *cost*, a vector of the same length. So every question is a division for each
 * limit, whoever counts: executors that are there (wanted.c) or targets (targets.c).
 *
 *     struct trp_caps caps;
 *     trp_caps_init(&caps, &config->caps, config->alloc_max_executors);
 *     int64_t used[TRP_CAPS] = {0}, cost[TRP_CAPS];
 *     trp_caps_cost(&caps, profile, cost);
 *     n = trp_caps_left(&caps, used, cost);    // executors that still fit
 *     trp_caps_add(&caps, used, cost, n);      // they are there now
 */
#ifndef TRP_CORE_ALLOC_CAPS_H
#define TRP_CORE_ALLOC_CAPS_H

#include "core/engine.h"

enum { TRP_CAPS = TRP_PROFILE_RESOURCES + 3 };

struct trp_caps {
    uint32_t n; /* limits that are set */
    int64_t most[TRP_CAPS];
    char name[TRP_CAPS][TRP_RESOURCE_NAME_MAX]; /* "executors", "cores", "gpu", … */
};

/* `executors`: UINT32_MAX is no limit. */
void trp_caps_init(struct trp_caps *caps, const struct trp_alloc_caps *limits,
                   uint32_t executors);
/* What one executor of the shape of `p` takes: caps->n numbers. */
void trp_caps_cost(const struct trp_caps *caps, const struct trp_resource_profile *p,
                   int64_t *ret_cost);
/* How many executors of that cost still fit; UINT32_MAX: no limit stands in the way.
 * The limit that allows the least is in *ret_short (its index; may be NULL). */
uint32_t trp_caps_left(const struct trp_caps *caps, const int64_t *used,
                       const int64_t *cost, uint32_t *ret_short);
/* `by` executors more, or less, are there. */
void trp_caps_add(const struct trp_caps *caps, int64_t *used, const int64_t *cost,
                  int64_t by);

#endif
