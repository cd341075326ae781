/*
 * Amounts: exact conversion of what people write to fixed point and back.
 *
 * strtod is not used: it rounds in base two and reads the locale's decimal point. A
 * decimal is added up digit by digit at its place, so any number of digits is exact and
 * what lies below 10^-12 is cut; a fraction is divided by hand, one digit after the
 * other, which needs no more than 64 bits for any numerator and denominator up to
 * 10^18. Cost: O(length of the text).
 *
 * A positive amount that would be cut to 0 is refused, because "a task takes nothing"
 * is never what was meant (and 1/0 slots is no number).
 *
 * Formatting prefers a short decimal, then a fraction with a small denominator or 1/k,
 * then all twelve digits; each of them parses to the same amount again.
 */
#include "core/base/amount.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    AMOUNT_DIGITS = 12, /* decimal places of TRP_ONE */
    TOP_PLACE = 18,     /* 10^18 is TRP_AMOUNT_MAX */
    SHORT_DIGITS = 4,   /* decimals that are preferred to a fraction */
    SMALL_DENOMINATOR = 100,
    UNIT_PARTS = 1000000, /* 1/k is exact up to this k */
};

enum reading {
    READ_OK,
    READ_MALFORMED,
    READ_TOO_LARGE,
    READ_TOO_SMALL,
};

static uint64_t ten_to(int64_t n)
{
    uint64_t value = 1;

    while (n-- > 0)
        value *= 10;
    return value;
}

static size_t count_digits(const char *s)
{
    size_t n = 0;

    while (s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

static const char *skip_blanks(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* "e-3" at *s, which is moved behind it. An exponent beyond a billion is one of a
 * billion: either way the number is too large or too small. */
static bool read_exponent(const char **s, int64_t *ret_exponent)
{
    const char *p = *s;
    bool negative = false;
    int64_t value = 0;

    *ret_exponent = 0;
    if (*p != 'e' && *p != 'E')
        return true;
    p++;
    if (*p == '+' || *p == '-')
        negative = *p++ == '-';
    size_t n = count_digits(p);
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (value < 1000000000)
            value = value * 10 + (p[i] - '0');
    *s = p + n;
    *ret_exponent = negative ? -value : value;
    return true;
}

/* "12", "0.25", ".5", "1e-3" at *s, which is moved behind it. */
static enum reading read_decimal(const char **s, uint64_t *ret_amount)
{
    const char *whole = *s, *fraction = whole;
    size_t nwhole = count_digits(whole), nfraction = 0;
    int64_t exponent;
    uint64_t amount = 0;
    bool positive = false;

    *s += nwhole;
    if (**s == '.') {
        fraction = ++*s;
        nfraction = count_digits(fraction);
        *s += nfraction;
    }
    if (nwhole + nfraction == 0 || !read_exponent(s, &exponent))
        return READ_MALFORMED;
    for (size_t i = 0; i < nwhole + nfraction; i++) {
        char c = i < nwhole ? whole[i] : fraction[i - nwhole];
        int64_t place = AMOUNT_DIGITS + (int64_t)nwhole - 1 - (int64_t)i + exponent;
        if (c == '0')
            continue;
        positive = true;
        if (place > TOP_PLACE)
            return READ_TOO_LARGE;
        if (place >= 0)
            amount += (uint64_t)(c - '0') * ten_to(place);
        if (amount > (uint64_t)TRP_AMOUNT_MAX)
            return READ_TOO_LARGE;
    }
    *ret_amount = amount;
    return positive && amount == 0 ? READ_TOO_SMALL : READ_OK;
}

/* `n` digits as a number; false above 10^18. */
static bool read_whole(const char *s, size_t n, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++) {
        value = value * 10 + (uint64_t)(s[i] - '0');
        if (value > ten_to(TOP_PLACE))
            return false;
    }
    *ret_value = value;
    return true;
}

/* "2/3" at *s, which is moved behind it. */
static enum reading read_fraction(const char **s, uint64_t *ret_amount)
{
    size_t nabove = count_digits(*s);
    const char *below = *s + nabove + 1;
    size_t nbelow = count_digits(below);
    uint64_t numerator, denominator;

    if (nabove == 0 || nbelow == 0)
        return READ_MALFORMED;
    if (!read_whole(*s, nabove, &numerator))
        return READ_TOO_LARGE;
    if (!read_whole(below, nbelow, &denominator))
        return READ_TOO_SMALL;
    if (denominator == 0)
        return READ_MALFORMED;

    uint64_t amount = numerator / denominator;
    uint64_t rest = numerator % denominator;
    if (amount > (uint64_t)(TRP_AMOUNT_MAX / TRP_ONE))
        return READ_TOO_LARGE;
    for (int i = 0; i < AMOUNT_DIGITS; i++) {
        rest *= 10;
        amount = amount * 10 + rest / denominator;
        rest %= denominator;
    }
    if (amount > (uint64_t)TRP_AMOUNT_MAX)
        return READ_TOO_LARGE;
    *s = below + nbelow;
    *ret_amount = amount;
    return amount == 0 && numerator > 0 ? READ_TOO_SMALL : READ_OK;
}

int trp_amount_parse(const char *text, trp_amount *ret_amount, trp_error *err)
{
    const char *s = skip_blanks(text);
    uint64_t amount = 0;
    enum reading reading;

    if (s[count_digits(s)] == '/')
        reading = read_fraction(&s, &amount);
    else
        reading = read_decimal(&s, &amount);
    if (reading == READ_OK && *skip_blanks(s))
        reading = READ_MALFORMED;

    switch (reading) {
    case READ_OK:
        *ret_amount = (trp_amount)amount;
        return TRP_OK;
    case READ_TOO_LARGE:
        return trp_error_set(err, TRP_EINVAL,
                             "amount %.60s is too large; the most is 1000000", text);
    case READ_TOO_SMALL:
        return trp_error_set(err, TRP_EINVAL,
                             "amount %.60s is too small; the least is 1e-12", text);
    case READ_MALFORMED:
        break;
    }
    return trp_error_set(err, TRP_EINVAL,
                         "'%.60s' is not an amount; write a whole number, a decimal "
                         "like 0.25 or a fraction like 1/3",
                         text);
}

int trp_amount_from_double(double value, trp_amount *ret_amount, trp_error *err)
{
    const double near = 1e-9;

    if (!(value >= 0)) /* NaN too */
        return trp_error_set(err, TRP_EINVAL,
                             "an amount is a number that is not negative");
    if (value > (double)TRP_AMOUNT_MAX / (double)TRP_ONE)
        return trp_error_set(err, TRP_EINVAL,
                             "the amount is too large; the most is 1000000");
    int64_t k = value * UNIT_PARTS > 0.5 ? (int64_t)(1 / value + 0.5) : 0;
    if (k >= 1 && k <= UNIT_PARTS) {
        double off = value - 1 / (double)k;
        if (off <= near && off >= -near) {
            *ret_amount = TRP_ONE / k;
            return TRP_OK;
        }
    }

    /* Rounded, not cut: 0.7 is a little less than 0.7 in base two. */
    int64_t whole = (int64_t)value;
    double fraction = (value - (double)whole) * (double)TRP_ONE;
    trp_amount amount = whole * TRP_ONE + (int64_t)(fraction + 0.5);
    if (amount == 0 && value > 0)
        return trp_error_set(err, TRP_EINVAL,
                             "the amount is too small; the least is 1e-12");
    *ret_amount = amount;
    return TRP_OK;
}

/* Finds n/d with n/d == `part` (below 1) when cut to fixed point. */
static bool find_fraction(trp_amount part, int64_t *ret_n, int64_t *ret_d)
{
    for (int64_t d = 2; d <= SMALL_DENOMINATOR; d++) {
        int64_t n = (part * d + TRP_ONE - 1) / TRP_ONE;
        if (n * TRP_ONE / d == part) {
            *ret_n = n;
            *ret_d = d;
            return true;
        }
    }
    *ret_n = 1;
    *ret_d = TRP_ONE / part;
    return *ret_d <= UNIT_PARTS && TRP_ONE / *ret_d == part;
}

char *trp_amount_format(trp_amount amount, char *buf, size_t size)
{
    int64_t whole = amount / TRP_ONE, part = amount % TRP_ONE;
    int digits = AMOUNT_DIGITS;
    int64_t n, d;

    if (part == 0) {
        snprintf(buf, size, "%" PRId64, whole);
        return buf;
    }
    if (part % (int64_t)ten_to(AMOUNT_DIGITS - SHORT_DIGITS) != 0 &&
        find_fraction(part, &n, &d)) {
        snprintf(buf, size, "%" PRId64 "/%" PRId64, whole * d + n, d);
        return buf;
    }
    while (part % 10 == 0) {
        part /= 10;
        digits--;
    }
    snprintf(buf, size, "%" PRId64 ".%0*" PRId64, whole, digits, part);
    return buf;
}

double trp_amount_to_double(trp_amount amount)
{
    return (double)amount / (double)TRP_ONE;
}
