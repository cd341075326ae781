/*
 * Amounts and errors: what people write is kept exactly, and what is wrong is said.
 */
#include "core/base/amount.h"
#include "unit.h"

#include <glib.h>
#include <math.h>
#include <string.h>

static void assert_parses(const char *text, trp_amount wanted)
{
    trp_error err = {0};
    trp_amount got = -1;

    if (trp_amount_parse(text, &got, &err) != 0)
        g_error("'%s': wanted %" G_GINT64_FORMAT ", got error: %s", text, wanted,
                err.text);
    if (got != wanted)
        g_error("'%s': wanted %" G_GINT64_FORMAT ", got %" G_GINT64_FORMAT, text,
                wanted, got);
}

static void assert_refused(const char *text, const char *because)
{
    trp_error err = {0};
    trp_amount got = -7;
    int rc = trp_amount_parse(text, &got, &err);

    if (rc != TRP_EINVAL || !strstr(err.text, because))
        g_error("'%s': wanted a refusal with '%s', got %d '%s'", text, because, rc,
                err.text);
    g_assert_cmpint(err.code, ==, TRP_EINVAL);
    g_assert_cmpint(got, ==, -7);
    g_assert_cmpint(trp_amount_parse(text, &got, NULL), ==, TRP_EINVAL);
}

TEST("what is written is taken exactly")
{
    assert_parses("2", 2 * TRP_ONE);
    assert_parses("0", 0);
    assert_parses("0.0", 0);
    assert_parses("1.0", TRP_ONE);
    assert_parses("007", 7 * TRP_ONE);
    assert_parses("0.25", TRP_ONE / 4);
    assert_parses(".5", TRP_ONE / 2);
    assert_parses("5.", 5 * TRP_ONE);
    assert_parses("1.5", TRP_ONE / 2 * 3);
    assert_parses(" \t0.1 ", TRP_ONE / 10);
    assert_parses("1/3", INT64_C(333333333333));
    assert_parses("2/3", INT64_C(666666666666));
    assert_parses("4/2", 2 * TRP_ONE);
    assert_parses("0/5", 0);
    assert_parses("1e-3", TRP_ONE / 1000);
    assert_parses("1E+2", 100 * TRP_ONE);
    assert_parses("25e-2", TRP_ONE / 4);
    assert_parses("0.000001e6", TRP_ONE);
    assert_parses("1e-12", 1);
    assert_parses("1000000", TRP_AMOUNT_MAX);
    assert_parses("1e6", TRP_AMOUNT_MAX);
    assert_parses("1000000000000000000/1000000000000", TRP_AMOUNT_MAX);
    assert_parses("0e999999999999999999", 0);
}

TEST("digits below 1e-12 are cut")
{
    assert_parses("0.3333333333339", INT64_C(333333333333));
    assert_parses("0.99999999999999999999", TRP_ONE - 1);
    assert_parses("0.70000000000000000000000000000000000000000000001",
                  INT64_C(700000000000));
}

TEST("what is no amount is refused")
{
    assert_refused("", "not an amount");
    assert_refused(" ", "not an amount");
    assert_refused(".", "not an amount");
    assert_refused("-1", "not an amount");
    assert_refused("+1", "not an amount");
    assert_refused("nan", "not an amount");
    assert_refused("inf", "not an amount");
    assert_refused("0x10", "not an amount");
    assert_refused("1,5", "not an amount");
    assert_refused("1 2", "not an amount");
    assert_refused("1/", "not an amount");
    assert_refused("/3", "not an amount");
    assert_refused("1/0", "not an amount");
    assert_refused("1/2/3", "not an amount");
    assert_refused("1/-3", "not an amount");
    assert_refused("0.5/2", "not an amount");
    assert_refused("1e", "not an amount");
    assert_refused("1e+", "not an amount");
    assert_refused("2g", "not an amount");
    assert_refused("1000001", "too large");
    assert_refused("1000000.000000000001", "too large");
    assert_refused("2000001/2", "too large");
    assert_refused("9e18", "too large");
    assert_refused("1e999999999999999999", "too large");
    assert_refused("99999999999999999999999999999999", "too large");
    assert_refused("99999999999999999999999999999999/3", "too large");
    assert_refused("1e-13", "too small");
    assert_refused("1e-999999999999999999", "too small");
    assert_refused("1/99999999999999999999999999", "too small");
}

/* Decision 1: for every k up to a million, k parts of 1/k fill a unit and one does not
 * fit any more. */
TEST("1 over k fits exactly k times")
{
    for (int64_t k = 1; k <= 1000000; k++) {
        trp_amount part = TRP_ONE / k;
        if (trp_amount_per_unit(part) != k)
            g_error("1/%" G_GINT64_FORMAT
                    ": wanted as many parts, got %" G_GINT64_FORMAT,
                    k, trp_amount_per_unit(part));
    }
    for (int k = 1; k <= 5000; k++) {
        char text[32];
        g_snprintf(text, sizeof(text), "1/%d", k);
        assert_parses(text, TRP_ONE / k);
    }
}

TEST("a double near 1 over k is 1 over k")
{
    for (int k = 1; k <= 1000000; k++) {
        trp_amount got = 0;
        g_assert_cmpint(trp_amount_from_double(1.0 / k, &got, NULL), ==, 0);
        if (trp_amount_per_unit(got) != k)
            g_error("1.0/%d: wanted as many parts, got %" G_GINT64_FORMAT, k,
                    trp_amount_per_unit(got));
    }
}

TEST("parts and whole units are counted")
{
    trp_amount a = 0;

    static const struct {
        const char *text;
        int64_t per_unit;
    } parts[] = {
        {"0.3",   3  },
        {"0.33",  3  },
        {"0.1",   10 },
        {"0.7",   1  },
        {"0.5",   2  },
        {"1",     1  },
        {"1/3",   3  },
        {"0.2",   5  },
        {"1/93",  93 },
        {"1/99",  99 },
        {"1/105", 105},
        {"0.51",  1  },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_assert_cmpint(trp_amount_parse(parts[i].text, &a, NULL), ==, 0);
        g_assert_cmpint(trp_amount_per_unit(a), ==, parts[i].per_unit);
    }
    g_assert_cmpint(trp_amount_units(3 * TRP_ONE), ==, 3);
    g_assert_cmpint(trp_amount_units(TRP_ONE + 1), ==, 2);
    g_assert_cmpint(trp_amount_units(TRP_ONE / 2), ==, 1);
    g_assert_cmpint(trp_amount_units(0), ==, 0);
    g_assert_cmpint(trp_amount_units(TRP_AMOUNT_MAX), ==, 1000000);
}

static void assert_double(double value, trp_amount wanted)
{
    trp_amount got = -1;

    g_assert_cmpint(trp_amount_from_double(value, &got, NULL), ==, 0);
    if (got != wanted)
        g_error("%.17g: wanted %" G_GINT64_FORMAT ", got %" G_GINT64_FORMAT, value,
                wanted, got);
}

TEST("doubles are taken to the nearest")
{
    trp_error err;
    trp_amount got = -7;

    assert_double(0, 0);
    assert_double(0.25, TRP_ONE / 4);
    assert_double(0.7, INT64_C(700000000000));
    assert_double(0.3, INT64_C(300000000000));
    assert_double(0.50002, INT64_C(500020000000));
    assert_double(1, TRP_ONE);
    assert_double(1.5, TRP_ONE / 2 * 3);
    assert_double(3, 3 * TRP_ONE);
    assert_double(1e6, TRP_AMOUNT_MAX);
    assert_double(0.333333333, TRP_ONE / 3); /* within 1e-9 of a third */
    assert_double(0.33333334, INT64_C(333333340000));
    assert_double(0.9999999999, TRP_ONE);
    assert_double(1.0000000001, TRP_ONE);

    const double wrong[] = {NAN, INFINITY, -INFINITY, -0.5, 1000001, 1e300, 1e-13};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        if (trp_amount_from_double(wrong[i], &got, &err) != TRP_EINVAL)
            g_error("%g: wanted a refusal", wrong[i]);
        g_assert_cmpstr(err.text, !=, "");
        g_assert_cmpint(got, ==, -7);
    }
    g_assert_cmpfloat(trp_amount_to_double(TRP_ONE / 4), ==, 0.25);
    g_assert_cmpfloat(trp_amount_to_double(TRP_AMOUNT_MAX), ==, 1e6);
}

static void assert_format(trp_amount amount, const char *wanted)
{
    char buf[32];

    g_assert_cmpstr(trp_amount_format(amount, buf, sizeof(buf)), ==, wanted);
}

TEST("amounts read well")
{
    assert_format(0, "0");
    assert_format(2 * TRP_ONE, "2");
    assert_format(TRP_ONE / 4, "0.25");
    assert_format(TRP_ONE / 2 * 3, "1.5");
    assert_format(TRP_ONE / 3, "1/3");
    assert_format(TRP_ONE * 2 / 3, "2/3");
    assert_format(TRP_ONE / 999983, "1/999983");
    assert_format(INT64_C(1333333333333), "4/3");
    assert_format(INT64_C(199980000000), "0.19998");
    assert_format(INT64_C(123456789012), "0.123456789012");
    assert_format(1, "0.000000000001");
    assert_format(TRP_AMOUNT_MAX, "1000000");
    assert_format(TRP_AMOUNT_MAX - 1, "999999.999999999999");
}

static void assert_round_trip(trp_amount amount)
{
    char buf[32];

    assert_parses(trp_amount_format(amount, buf, sizeof(buf)), amount);
}

TEST("what is formatted parses to the same")
{
    for (int i = 0; i < 20000; i++) {
        int64_t whole = i % 3 == 0 ? g_test_rand_int_range(0, 1000000) : 0;
        int64_t part = ((int64_t)g_test_rand_int_range(0, 1000000) * 1000000) +
                       g_test_rand_int_range(0, 1000000);
        int64_t d = g_test_rand_int_range(1, 1000000);
        assert_round_trip(whole * TRP_ONE + part);
        assert_round_trip(TRP_ONE / d);
        assert_round_trip(whole * TRP_ONE + d % 97 * TRP_ONE / 97);
    }
}

TEST("a text is one printable line")
{
    trp_error err = {0};

    g_assert_cmpint(trp_error_set(&err, TRP_ENEVER, "gpu %d of %d", 3, 2), ==,
                    TRP_ENEVER);
    g_assert_cmpint(err.code, ==, TRP_ENEVER);
    g_assert_cmpstr(err.text, ==, "gpu 3 of 2");
    trp_error_set(&err, TRP_ENEVER, "stage %s: %s", "train", err.text);
    g_assert_cmpstr(err.text, ==, "stage train: gpu 3 of 2");
    g_assert_cmpint(trp_error_set(NULL, TRP_ELIMIT, "x"), ==, TRP_ELIMIT);

    trp_error_set(&err, TRP_EINVAL,
                  "a\nb\tc\x7f grün €\U0001F600 \xff\xc3) \xed\xa0\x80");
    g_assert_cmpstr(err.text, ==, "a?b?c? grün €\U0001F600 \?\?) \?\?\?");
    trp_error_set(&err, TRP_EINVAL, "cut \xe2\x82");
    g_assert_cmpstr(err.text, ==, "cut ??");
}

TEST("a long text is cut at a character")
{
    trp_error err;
    char text[4 * TRP_ERROR_TEXT];

    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', 3);
        for (size_t i = 0; i < TRP_ERROR_TEXT; i++)
            memcpy(text + shift + 3 * i, "€", sizeof("€"));
        trp_error_set(&err, TRP_EINVAL, "%s", text);
        g_assert_cmpuint(strlen(err.text), <, TRP_ERROR_TEXT);
        g_assert_cmpuint(strlen(err.text), >, TRP_ERROR_TEXT - 8);
        g_assert_true(g_str_has_suffix(err.text, "€..."));
        g_assert_true(g_utf8_validate(err.text, -1, NULL));
    }
}

TEST("codes have words and exit statuses")
{
    static const struct {
        int code;
        int status;
    } wanted[] = {
        {TRP_OK,         0  },
        {TRP_EINVAL,     2  },
        {TRP_ENOMEM,     4  },
        {TRP_EWAIT,      4  },
        {TRP_ENEVER,     3  },
        {TRP_EEXIST,     2  },
        {TRP_ENOENT,     2  },
        {TRP_ELIMIT,     2  },
        {TRP_ESYSTEM,    4  },
        {TRP_EPROTO,     4  },
        {TRP_ECANCELLED, 130},
        {TRP_EFAILED,    1  },
        {TRP_ESTATE,     4  },
        {TRP_ETIME,      75 },
        {-99,            4  },
        {7,              0  },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++)
        g_assert_cmpint(trp_error_exit_status(wanted[i].code), ==, wanted[i].status);
}
