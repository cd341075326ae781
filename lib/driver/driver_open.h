/*
 * Opening a driver for a pipeline, whose options, site and profiles are there already.
 */
#ifndef TRP_DRIVER_DRIVER_OPEN_H
#define TRP_DRIVER_DRIVER_OPEN_H

#include "conf/pool_section.h"
#include "driver/driver.h"
#include "driver/run_spec.h"

/* Connects the control socket and makes an elastic driver. All is borrowed until
 * trp_driver_end. */
int trp_driver_open_spec(const struct trp_run_spec *spec, const trp_options *options,
                         const struct trp_site *site, trp_profiles *profiles,
                         const struct trp_pool_list *pools, trp_driver **ret_driver,
                         trp_error *err);

#endif
