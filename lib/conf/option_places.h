/*
 * Options from all places but the command line (options.h), weakest first: site file,
 * the user's own file, pipeline, environment.
 *
 * The user's file is `troupe/options.yaml` in $XDG_CONFIG_HOME, or in ~/.config: a
 * mapping of options' names to values, as `options:` of a pipeline has them. It may be
 * missing.
 */
#ifndef TRP_CONF_OPTION_PLACES_H
#define TRP_CONF_OPTION_PLACES_H

#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/site.h"

/* `p` may be NULL. TRP_EINVAL: a file that cannot be read, an unknown key, a bad value,
 * with its place. */
int trp_options_from_places(trp_options *o, const trp_site *s, const trp_pipeline *p,
                            trp_error *err);

#endif
