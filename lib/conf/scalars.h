/*
 * Values as people write them in files and options; the same in every locale.
 */
#ifndef TRP_CONF_SCALARS_H
#define TRP_CONF_SCALARS_H

#include <stdbool.h>
#include <stdint.h>

/* "-12": a whole decimal number. Too large ones become INT64_MAX or INT64_MIN, so that
 * a check against bounds refuses them. False: not a whole number. */
bool trp_whole_parse(const char *text, int64_t *ret);
/* "0.10", "12", ".5": no sign, no exponent. False: not such a number. */
bool trp_number_parse(const char *text, double *ret);
/* "true", "True", "TRUE", "false", … False: neither. */
bool trp_bool_parse(const char *text, bool *ret);
/* Whether people mean no by it: false, no, off, n, f, none, null and ~ in any case, a number
 * that is 0, and nothing. */
bool trp_means_no(const char *text);

#endif
