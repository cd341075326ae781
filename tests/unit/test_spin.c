#include "os/spin.h"

#include <glib.h>

static const int64_t LONG_NS = INT64_C(2) * TRP_SPIN_NS;

/* A wait for what comes after `takes_ns`, looked at every microsecond: was any of it
 * polled? */
static bool wait_for(struct trp_spin *s, int64_t takes_ns)
{
    bool polled = false;
    for (int64_t ns = 0; ns < takes_ns && trp_spin_on(s, ns); ns += 1000)
        polled = true;
    trp_spin_came(s);
    return polled;
}

static int polls(struct trp_spin *s, int waits, int64_t takes_ns)
{
    int n = 0;
    for (int i = 0; i < waits; i++)
        n += wait_for(s, takes_ns);
    return n;
}

static void test_what_comes_soon_is_polled_for(void)
{
    struct trp_spin s = {0};
    g_assert_cmpint(polls(&s, 1000, TRP_SPIN_NS / 2), ==, 1000);
}

static void test_what_takes_long_is_polled_for_less_and_less(void)
{
    struct trp_spin s = {0};
    for (int skip = TRP_SPIN_LEAST; skip < TRP_SPIN_MOST; skip *= 2)
        g_assert_cmpint(polls(&s, 1 + skip, LONG_NS), ==, 1);
    g_assert_cmpint(polls(&s, 10 * (1 + TRP_SPIN_MOST), LONG_NS), ==, 10);
}

static void test_a_poll_that_pays_is_followed_by_others(void)
{
    struct trp_spin s = {0};
    polls(&s, 1 + 2 + 1, LONG_NS);
    g_assert_cmpint(polls(&s, 4, 1000), ==, 0);
    g_assert_cmpint(polls(&s, 100, 1000), ==, 100);
    g_assert_cmpint(polls(&s, 1 + 2, LONG_NS), ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spin/what_comes_soon_is_polled_for",
                    test_what_comes_soon_is_polled_for);
    g_test_add_func("/spin/what_takes_long_is_polled_for_less_and_less",
                    test_what_takes_long_is_polled_for_less_and_less);
    g_test_add_func("/spin/a_poll_that_pays_is_followed_by_others",
                    test_a_poll_that_pays_is_followed_by_others);
    return g_test_run();
}
