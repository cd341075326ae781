#include "os/spin.h"
#include "unit.h"

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

TEST("what comes soon is polled for")
{
    struct trp_spin s = {0};
    g_assert_cmpint(polls(&s, 1000, TRP_SPIN_NS / 2), ==, 1000);
}

TEST("what takes long is polled for less and less")
{
    struct trp_spin s = {0};
    for (int skip = TRP_SPIN_LEAST; skip < TRP_SPIN_MOST; skip *= 2)
        g_assert_cmpint(polls(&s, 1 + skip, LONG_NS), ==, 1);
    g_assert_cmpint(polls(&s, 10 * (1 + TRP_SPIN_MOST), LONG_NS), ==, 10);
}

TEST("a poll that pays is followed by others")
{
    struct trp_spin s = {0};
    polls(&s, 1 + 2 + 1, LONG_NS);
    g_assert_cmpint(polls(&s, 4, 1000), ==, 0);
    g_assert_cmpint(polls(&s, 100, 1000), ==, 100);
    g_assert_cmpint(polls(&s, 1 + 2, LONG_NS), ==, 1);
}
