/*
 * Numbers are read by hand: strtod and strtol would take leading blanks, "0x10", "inf"
 * and the locale's comma. A time is exact down to the nanosecond: whole part and
 * billionths are kept apart and multiplied as integers.
 */
#include "conf/scalars.h"

#include <string.h>
#include <strings.h>

#include "conf/options.h"
#include "conf/wording.h"

#define BILLION INT64_C(1000000000)
#define LONGEST_DAYS INT64_C(36500) /* leaves room for now + time in 64 bits */
#define DAY_NS (INT64_C(86400) * BILLION)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool trp_whole_parse(const char *text, int64_t *ret)
{
    bool negative = *text == '-';
    const char *p = text + (negative || *text == '+');
    if (!is_digit(*p))
        return false;
    int64_t v = 0;
    bool overflow = false;
    for (; is_digit(*p); p++) {
        overflow = overflow || __builtin_mul_overflow(v, 10, &v) ||
                   __builtin_add_overflow(v, *p - '0', &v);
    }
    if (*p)
        return false;
    if (overflow)
        v = INT64_MAX;
    *ret = !negative ? v : overflow ? INT64_MIN : -v;
    return true;
}

/* Reads "12.345" at *text as 12 and 345000000 billionths; *text then stands behind it.
 * Digits beyond the ninth do not count. False: no number, or 10^15 and more. */
static bool read_decimal(const char **text, int64_t *ret_whole, int64_t *ret_billionths)
{
    const char *p = *text;
    int64_t whole = 0, fraction = 0, unit = BILLION;
    bool any = false;
    for (; is_digit(*p); p++, any = true) {
        whole = whole * 10 + (*p - '0');
        if (whole >= INT64_C(1000000000000000))
            return false;
    }
    if (*p == '.') {
        for (p++; is_digit(*p); p++, any = true) {
            unit /= 10;
            fraction += (*p - '0') * unit;
        }
    }
    *text = p;
    *ret_whole = whole;
    *ret_billionths = fraction;
    return any;
}

bool trp_number_parse(const char *text, double *ret)
{
    int64_t whole, billionths;
    if (!read_decimal(&text, &whole, &billionths) || *text)
        return false;
    *ret = (double)whole + (double)billionths / (double)BILLION;
    return true;
}

bool trp_bool_parse(const char *text, bool *ret)
{
    static const char *const words[] = {"false", "False", "FALSE",
                                        "true",  "True",  "TRUE"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!strcmp(text, words[i])) {
            *ret = i >= 3;
            return true;
        }
    }
    return false;
}

bool trp_means_no(const char *text)
{
    static const char *const words[] = {"",  "false", "no",   "off", "n",
                                        "f", "none",  "null", "~"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i]))
            return true;
    const char *p = text + (*text == '-' || *text == '+');
    size_t base = p[0] == '0' && p[1] && strchr("xXoObB", p[1]) ? 2 : 0;
    size_t digits = strspn(p + base, "0."), exponent = 0;
    if (digits > 0 && !base && (p[digits] == 'e' || p[digits] == 'E')) {
        const char *e = p + digits + 1;
        e += *e == '-' || *e == '+';
        exponent = strspn(e, "0123456789") ? (size_t)(e - p) - digits : 0;
        exponent += exponent ? strspn(e, "0123456789") : 0;
    }
    return memchr(p + base, '0', digits) && !p[base + digits + exponent];
}

int trp_time_parse(const char *text, int64_t bare_ns, int64_t *ret_ns, trp_error *err)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"us", 1000          },
        {"ms", BILLION / 1000},
        {"s",  BILLION       },
        {"m",  60 * BILLION  },
        {"h",  3600 * BILLION},
        {"d",  DAY_NS        },
    };
    const char *p = text;
    int64_t whole, billionths, unit = 0;
    bool number = read_decimal(&p, &whole, &billionths);
    if (number && !*p)
        unit = bare_ns;
    for (size_t i = 0; number && i < sizeof(units) / sizeof(units[0]); i++) {
        if (!strcmp(p, units[i].name))
            unit = units[i].ns;
    }
    if (unit <= 0) {
        return trp_error_set(err, TRP_EINVAL,
                             "\"%s\" is not a time; write a number and a unit of us, "
                             "ms, s, m, h, d, such as 30s",
                             trp_show(text).text);
    }
    /* Both factors of the second product are below 10^14: 128 bits are ample. */
    __int128 ns = (__int128)whole * unit + (__int128)billionths * unit / BILLION;
    if (ns > LONGEST_DAYS * DAY_NS) {
        return trp_error_set(err, TRP_EINVAL,
                             "%s is too long a time; write at most 36500d",
                             trp_show(text).text);
    }
    *ret_ns = (int64_t)ns;
    return 0;
}
