/*
 * Exact amounts of a resource that a task asks for: fractions (0.25, 1/3) and wholes.
 *
 * An amount is a 64-bit fixed-point number with TRP_ONE = 10^12 as 1. What is written
 * is converted by truncation, so that 1/k fits exactly k times in one unit for every k
 * up to 10^6: k * floor(ONE/k) <= ONE < (k+1) * floor(ONE/k). Floating point would lose
 * a slot for some k (semantics, difference 1).
 *
 *     trp_amount a;
 *     trp_amount_parse("1/3", &a, &err);
 *     trp_amount_per_unit(a) == 3
 */
#ifndef TRP_CORE_BASE_AMOUNT_H
#define TRP_CORE_BASE_AMOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef int64_t trp_amount;

#define TRP_ONE INT64_C(1000000000000)
#define TRP_AMOUNT_MAX (INT64_C(1000000) * TRP_ONE) /* a million units */

/* Parses "2", "0.25", ".5", "1/3", "1e-3" (blanks around allowed). TRP_EINVAL for
 * anything else, negative, NaN, a denominator of 0, or more than TRP_AMOUNT_MAX. */
int trp_amount_parse(const char *text, trp_amount *ret_amount, trp_error *err);

/* From a double; a value within 1e-9 of 1/k (k whole, 1..10^6) is taken as 1/k.
 * TRP_EINVAL for NaN, infinity, negative or too large. */
int trp_amount_from_double(double value, trp_amount *ret_amount, trp_error *err);

/* Writes "2", "0.25", "1/3" into buf (size >= 32 is always enough); returns buf. */
char *trp_amount_format(trp_amount amount, char *buf, size_t size);

double trp_amount_to_double(trp_amount amount);

static inline int trp_amount_is_whole(trp_amount a)
{
    return a % TRP_ONE == 0;
}

/* How often an amount in (0, 1] fits into one unit: floor(1/a), exactly. */
static inline int64_t trp_amount_per_unit(trp_amount a)
{
    return TRP_ONE / a;
}

/* Whole units an amount above 1 takes: ceil(a). */
static inline int64_t trp_amount_units(trp_amount a)
{
    return (a + TRP_ONE - 1) / TRP_ONE;
}

#endif
