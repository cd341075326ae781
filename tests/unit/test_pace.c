/* How fast tasks end, and how long the others will take. */
#include <glib.h>

#include "events/bar.h"
#include "events/pace.h"

static void nothing_is_told_before_a_task_has_ended(void)
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

static void who_has_just_come_is_told_the_mean(void)
{
    trp_pace *p = trp_pace_new();
    double rate = trp_pace_rate(p, 1, 101000, 1000, 50);
    g_assert_cmpfloat_with_epsilon(rate, 0.5, 1e-9);
    g_assert_cmpint(trp_pace_left(rate, 20), ==, 40000);
    g_assert_cmpfloat(trp_pace_rate(p, 2, 101000, 0, 50), <, 0);
    trp_pace_free(p);
}

static void then_the_last_minute_counts(void)
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

static void long_tasks_that_end_in_bursts_are_told_by_the_mean(void)
{
    trp_pace *p = trp_pace_new();
    double rate = 0;
    /* 4 tasks every 10 minutes. */
    for (int64_t now = 1200000; now <= 1290000; now += 1000)
        rate = trp_pace_rate(p, 1, now, 1, 8);
    g_assert_cmpfloat_with_epsilon(rate, 8 / 1290.0, 1e-4);
    trp_pace_free(p);
}

static void one_that_stands_still_is_told(void)
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

static void a_count_that_falls_begins_anew(void)
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

static void bars_fill_by_eighths_or_by_columns(void)
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define TEST(f) g_test_add_func("/pace/" #f, f)
    TEST(nothing_is_told_before_a_task_has_ended);
    TEST(who_has_just_come_is_told_the_mean);
    TEST(then_the_last_minute_counts);
    TEST(long_tasks_that_end_in_bursts_are_told_by_the_mean);
    TEST(one_that_stands_still_is_told);
    TEST(a_count_that_falls_begins_anew);
    TEST(bars_fill_by_eighths_or_by_columns);
    return g_test_run();
}
