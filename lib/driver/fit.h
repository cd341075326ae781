/*
 * Whether the stages of a pipeline can ever run here, asked before anything
 * starts. Used by `troupe plan` and by the driver.
 */
#ifndef TRP_DRIVER_FIT_H
#define TRP_DRIVER_FIT_H

#include <stdint.h>

#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/site.h"
#include "driver/backends.h"

typedef struct trp_fit trp_fit;

/* The cluster as a run would find it, within the limits that the options set. `site`
 * may be NULL. */
int trp_fit_open(const trp_options *o, const trp_site *site,
                 const struct trp_cluster_where *where, trp_fit **ret, trp_error *err);
void trp_fit_close(trp_fit *f);

/* How many executors of a profile (ranks 0), or gangs of `ranks` ranks, fit at once; 0
 * with `err` filled (TRP_ENEVER): never one. */
uint32_t trp_fit_ask(trp_fit *f, const struct trp_resource_profile *p, uint32_t ranks,
                     trp_error *err);

/* The section of the profile that stage `s` names and the file it is in; NULL: it is
 * the default profile and written nowhere, or there is none of that name. */
const struct trp_profile_section *trp_fit_section(const trp_pipeline *p,
                                                  const trp_site *site,
                                                  const char *name,
                                                  const char **ret_file);

/* 0, or TRP_ENEVER with "FILE:LINE:COL: …": no executor of stage `s`, or no gang of it,
 * ever has room here. */
int trp_fit_stage(trp_fit *f, const trp_pipeline *p, const trp_site *site,
                  const struct trp_pipeline_stage *s,
                  const struct trp_resource_profile *profile, trp_error *err);

#endif
