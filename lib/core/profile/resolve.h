/*
 * What a profile means once defaults are filled in; private to core/profile.
 *
 * The rules are the options and the default profile. The manager has them, asks once
 * for each profile, and never changes the profile afterwards.
 *
 *     struct trp_resolve_rules rules = {.defaults = &options, .base = default_profile};
 *     trp_resolve(&rules, p, &err);
 */
#ifndef TRP_CORE_PROFILE_RESOLVE_H
#define TRP_CORE_PROFILE_RESOLVE_H

#include "core/profile/manager.h"

struct trp_resolve_rules {
    const struct trp_profile_defaults *defaults;
    const struct trp_resource_profile *base; /* NULL: it is the default itself */
};

/* Fills in the second half of `p` from its first. TRP_EINVAL: impossible whatever the
 * cluster; TRP_ELIMIT: too many slots. After a failure that half is undefined. */
int trp_resolve(const struct trp_resolve_rules *rules, struct trp_resource_profile *p,
                trp_error *err);

/* As trp_profiles_waste, for a profile that is resolved. */
bool trp_resolve_waste(const struct trp_resolve_rules *rules,
                       const struct trp_resource_profile *p, char *buf, size_t size);

/* As trp_error_set; the text begins with the profile's name unless that is "". */
int trp_resolve_refuse(const char *profile, int code, trp_error *err, const char *fmt,
                       ...) __attribute__((format(printf, 4, 5)));

/* A value as written, or another where it is not written (-1). */
static inline int64_t trp_written_or(int64_t written, int64_t otherwise)
{
    return written >= 0 ? written : otherwise;
}

#endif
