/*
 * Checks of one option; private to lib/conf. No place is in their errors.
 */
#ifndef TRP_CONF_OPTION_VALUE_H
#define TRP_CONF_OPTION_VALUE_H

#include "conf/options.h"
#include "core/base/time.h"

/* What a time without a unit counts in. */

/* 0, or TRP_EINVAL: unknown key, bad value, out of bounds. */
int trp_option_check(const char *key, const char *value, trp_error *err);
/* A value against its option's type, bounds and choices; the key is not in the text. */
int trp_option_value_check(const struct trp_option *t, const char *value,
                           trp_error *err);

/* A value that was checked: a whole number (a bool, the index of a word, ns, MiB, parts
 * of TRP_ONE), or for NUMBER a decimal one. What is not set, or a word for a TIME,
 * changes neither. */
void trp_option_value_read(const struct trp_option *t, const char *value,
                           int64_t *whole, double *number);
/* Is such a number within the bounds? */
bool trp_option_is_within(const struct trp_option *t, double v);

#endif
