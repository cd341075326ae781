/*
 * Profiles of the site as Slurm is asked for them: one for a person (site_shape.c), all
 * for cli_filter, job_submit and the SPANK plugin (site_shapes.c).
 */
#ifndef TRP_LAUNCHER_SITE_SHAPE_H
#define TRP_LAUNCHER_SITE_SHAPE_H

#include "conf/profile_section.h"
#include "conf/site_request.h"
#include "core/profile/manager.h"
#include "settings.h"

/* An executor of a profile of the site. */
struct trp_launcher_shape {
    trp_profiles *profiles;
    const struct trp_resource_profile *profile;
    struct trp_site_request request;
};

/* Fills *ret, which trp_launcher_shape_free frees in any case. TRP_EINVAL: the profile
 * is impossible; TRP_ENEVER: the site does not allow it; both without a place. */
int trp_launcher_shape(const struct trp_settings *s,
                       const struct trp_profile_section *section,
                       struct trp_launcher_shape *ret, trp_error *err);
void trp_launcher_shape_free(struct trp_launcher_shape *s);

/* All profiles and limits in the form of plugin/shapes.h: to stdout, or with `output`
 * to that file, which stays as it was until the new one is whole. */
int trp_launcher_shapes(const struct trp_settings *s, const char *output,
                        trp_error *err);

#endif
