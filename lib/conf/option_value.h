/*
 * Checks of one option; private to lib/conf. No place is in their errors.
 */
#ifndef TRP_CONF_OPTION_VALUE_H
#define TRP_CONF_OPTION_VALUE_H

#include "conf/options.h"

/* 0, or TRP_EINVAL: unknown key, bad value, out of bounds. */
int trp_option_check(const char *key, const char *value, trp_error *err);
/* A value against its option's type, bounds and choices; the key is not in the text. */
int trp_option_value_check(const struct trp_option *t, const char *value,
                           trp_error *err);

#endif
