/*
 * What is written, read by the option's type. Bounds are texts of the same type, so
 * each type is read by one function, and compared as the number it stands for: a double
 * holds every bound and every value near one exactly enough (times up to 3·10^18 ns
 * lose some hundred ns).
 */
#include "conf/option_value.h"

#include <assert.h>
#include <string.h>

#include "conf/scalars.h"
#include "conf/wording.h"
#include "core/base/amount.h"

/* Which of the words it is; -1: none. */
static int choice_of(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (int i = 0; n > 0 && *choices; i++) {
        size_t word = strcspn(choices, "|");
        if (word == n && !memcmp(choices, value, n))
            return i;
        choices += word + (choices[word] == '|');
    }
    return -1;
}

static int not_a(const char *value, const char *wanted, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL, "\"%s\" is not %s; write %s",
                         trp_show(value).text, wanted, wanted);
}

/* A whole number, or for NUMBER a decimal one; the other is 0. */
static int read_value(const struct trp_option *t, const char *value, int64_t *ret_whole,
                      double *ret_number, trp_error *err)
{
    bool truth = false;
    int code = 0;
    *ret_whole = 0;
    *ret_number = 0;
    switch (t->type) {
    case TRP_OPTION_BOOL:
        if (!trp_bool_parse(value, &truth))
            code = not_a(value, "true or false", err);
        *ret_whole = truth;
        break;
    case TRP_OPTION_INT:
        if (!trp_whole_parse(value, ret_whole))
            code = not_a(value, "a whole number", err);
        break;
    case TRP_OPTION_NUMBER:
        if (!trp_number_parse(value, ret_number))
            code = not_a(value, "a decimal number", err);
        break;
    case TRP_OPTION_TIME:
        code = trp_time_parse(value, TRP_MS, ret_whole, err);
        if (code < 0 && t->choices)
            code = trp_error_set(err, TRP_EINVAL,
                                 "\"%s\" is neither %s nor a time; write one of them",
                                 trp_show(value).text, t->choices);
        break;
    case TRP_OPTION_MEMORY:
        code = trp_memory_parse(value, ret_whole, err);
        break;
    case TRP_OPTION_AMOUNT:
        code = trp_amount_parse(value, ret_whole, err);
        if (code == 0 && *ret_whole > TRP_ONE && !trp_amount_is_whole(*ret_whole))
            code = trp_error_set(err, TRP_EINVAL,
                                 "%s is neither a whole number nor at most 1; write "
                                 "one of them",
                                 trp_show(value).text);
        break;
    case TRP_OPTION_CHOICE:
        *ret_whole = choice_of(t->choices, value);
        if (*ret_whole < 0)
            code =
                trp_error_set(err, TRP_EINVAL, "\"%s\" is none of its words; write %s",
                              trp_show(value).text, t->choices);
        break;
    case TRP_OPTION_TEXT:
        break;
    }
    return code;
}

static bool is_word_for_time(const struct trp_option *t, const char *value)
{
    return t->type == TRP_OPTION_TIME && t->choices &&
           choice_of(t->choices, value) >= 0;
}

/* -1: below its least value, or not a number; 1: above its most; else 0. */
static int outside(const struct trp_option *t, double v)
{
    int64_t whole;
    double number;
    if (t->min && read_value(t, t->min, &whole, &number, NULL) == 0 &&
        !(v >= (double)whole + number))
        return -1;
    if (t->max && read_value(t, t->max, &whole, &number, NULL) == 0 &&
        v > (double)whole + number)
        return 1;
    return 0;
}

bool trp_option_is_within(const struct trp_option *t, double v)
{
    return outside(t, v) == 0;
}

int trp_option_value_check(const struct trp_option *t, const char *value,
                           trp_error *err)
{
    int64_t whole;
    double number;
    if (is_word_for_time(t, value))
        return 0;
    int code = read_value(t, value, &whole, &number, err);
    if (code < 0)
        return code;
    int side = outside(t, (double)whole + number);
    if (side < 0)
        return trp_error_set(err, TRP_EINVAL, "%s is too small; write at least %s",
                             trp_show(value).text, t->min);
    if (side > 0)
        return trp_error_set(err, TRP_EINVAL, "%s is too large; write at most %s",
                             trp_show(value).text, t->max);
    return 0;
}

void trp_option_value_read(const struct trp_option *t, const char *value,
                           int64_t *whole, double *number)
{
    if (!*value || is_word_for_time(t, value))
        return;
    int code = read_value(t, value, whole, number, NULL);
    assert(code == 0);
}

/* ---- values, which were checked when they were set ---- */

int64_t trp_options_int(const trp_options *o, const char *key)
{
    int64_t v = 0;
    bool whole = trp_whole_parse(trp_options_text(o, key), &v);
    assert(whole);
    return v;
}

int64_t trp_options_time_ns(const trp_options *o, const char *key)
{
    int64_t v = 0;
    int code = trp_time_parse(trp_options_text(o, key), TRP_MS, &v, NULL);
    assert(code == 0);
    return v;
}

int64_t trp_options_memory_mib(const trp_options *o, const char *key)
{
    int64_t v = 0;
    const char *text = trp_options_text(o, key);
    if (!*text)
        return -1;
    int code = trp_memory_parse(text, &v, NULL);
    assert(code == 0);
    return v;
}

double trp_options_number(const trp_options *o, const char *key)
{
    double v = 0;
    bool number = trp_number_parse(trp_options_text(o, key), &v);
    assert(number);
    return v;
}

bool trp_options_bool(const trp_options *o, const char *key)
{
    bool v = false;
    bool truth = trp_bool_parse(trp_options_text(o, key), &v);
    assert(truth);
    return v;
}
