/* How fast tasks end, and how long the others will take. */
#include <glib.h>

#include "events/bar.h"
#include "events/pace.h"
#include "unit.h"

TEST("nothing is told before a task has ended")
{
    trp_pace *p = trp_pace_new();
    g_assert_cmpfloat(trp_pace_rate(p, 1, 5000, 1000, 0), <, 0);
    g_assert_cmpfloat(trp_pace_rate(p, 1, 90000, 1000, 0), <, 0);
    g_assert_cmpint(trp_pace_left(-1, 7), ==, -1);
    g_assert_cmpint(trp_pace_left(0, 7), ==, -1);
    g_assert_cmpint(trp_pace_left(-1, 0), ==, 0);
    g_assert_cmpint(trp_pace_left(1e-300, 7), ==, -1);
    trp_pace_free(p);
}

TEST("who has just come is told the mean")
{
    trp_pace *p = trp_pace_new();
    double rate = trp_pace_rate(p, 1, 101000, 1000, 50);
    g_assert_cmpfloat_with_epsilon(rate, 0.5, 1e-9);
    g_assert_cmpint(trp_pace_left(rate, 20), ==, 40000);
    g_assert_cmpfloat(trp_pace_rate(p, 2, 101000, 0, 50), <, 0);
    trp_pace_free(p);
}

TEST("then the last minute counts")
{
    trp_pace *p = trp_pace_new();
    int64_t now = 1000000;
    double rate = 0;
    /* 1,000 tasks in the first 1,000 s, then 3 a second, looked at every half second. */
    for (int i = 0; i <= 400; i++, now += 500)
        rate = trp_pace_rate(p, 1, now, 1, 1000 + (uint64_t)i * 3 / 2);
    g_assert_cmpfloat_with_epsilon(rate, 3, 0.1);
    trp_pace_free(p);
}

TEST("long tasks that end in bursts are told by the mean")
{
    trp_pace *p = trp_pace_new();
    double rate = 0;
    /* 4 tasks every 10 minutes. */
    for (int64_t now = 1200000; now <= 1290000; now += 1000)
        rate = trp_pace_rate(p, 1, now, 1, 8);
    g_assert_cmpfloat_with_epsilon(rate, 8 / 1290.0, 1e-4);
    trp_pace_free(p);
}

TEST("one that stands still is told")
{
    trp_pace *p = trp_pace_new();
    double rate = 0;
    /* 1,000 tasks in 100 s, then none. */
    for (int64_t now = 100000; now <= 170000; now += 1000)
        rate = trp_pace_rate(p, 1, now, 1, 1000);
    g_assert_cmpfloat(rate, ==, 0);
    g_assert_cmpint(trp_pace_left(rate, 1), ==, -1);
    trp_pace_free(p);
}

TEST("a count that falls begins anew")
{
    trp_pace *p = trp_pace_new();
    double rate = 0;
    for (int64_t now = 100000; now <= 130000; now += 1000)
        rate = trp_pace_rate(p, 1, now, 1, 1000);
    rate = trp_pace_rate(p, 1, 131000, 121000, 5);
    g_assert_cmpfloat_with_epsilon(rate, 0.5, 1e-9);
    trp_pace_forget(p, 1);
    trp_pace_forget(p, 1);
    rate = trp_pace_rate(p, 1, 132000, 122000, 20);
    g_assert_cmpfloat_with_epsilon(rate, 2, 1e-9);
    trp_pace_free(p);
}

TEST("bars fill by eighths or by columns")
{
    char buf[TRP_BAR_SIZE(4)];
    g_assert_cmpint(trp_bar(false, 1, 2, 4, buf), ==, 4);
    g_assert_cmpstr(buf, ==, "##..");
    trp_bar(false, 9, 2, 4, buf);
    g_assert_cmpstr(buf, ==, "####");
    trp_bar(false, 0, 0, 4, buf);
    g_assert_cmpstr(buf, ==, "....");
    trp_bar(true, 3, 8, 4, buf);
    g_assert_cmpstr(buf, ==, "█▌  ");
    g_assert_cmpint(trp_bar(true, 1, 1, 4, buf), ==, 12);
    g_assert_cmpint(trp_bar(true, 1, 1, 0, buf), ==, 0);
    g_assert_cmpstr(buf, ==, "");
}
