/*
 * How often Slurm may be called.
 */
#include <glib.h>

#include "cluster/slurm/accounts/budget.h"
#include "unit.h"

#define S INT64_C(1000000000)

/* Calls of `n` as early as allowed, from `now` on for `seconds`: how many calls. */
static int64_t spend(struct trp_slurm_budget *b, int64_t now, int64_t seconds,
                     uint64_t n)
{
    int64_t end = now + seconds * S, made = 0;
    while ((now = trp_slurm_budget_when(b, now, n)) < end) {
        trp_slurm_budget_take(b, now, n);
        made += (int64_t)n;
    }
    return made;
}

TEST("without a limit nothing waits")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_open(&b, 0);
    for (int64_t i = 0; i < 10000; i++) {
        g_assert_cmpint(trp_slurm_budget_when(&b, 7 * S, 3), ==, 7 * S);
        trp_slurm_budget_take(&b, 7 * S, 3);
    }
}

TEST("no minute has more than the limit")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_open(&b, 120);
    /* After a long silence, which earns no more than the bucket holds. */
    int64_t first = spend(&b, 1000 * S, 60, 3);
    g_assert_cmpint(first, <=, 120);
    g_assert_cmpint(first, >=, 114);
    int64_t later = spend(&b, 1060 * S, 600, 3);
    g_assert_cmpint(later, <=, 10 * 90 + 3);
    g_assert_cmpint(later, >=, 10 * 90 - 3);
}

TEST("a quarter of it may be spent at once")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_open(&b, 80); /* one a second */
    int64_t at = 5 * S, n = 0;
    while (trp_slurm_budget_when(&b, at, 2) == at) {
        trp_slurm_budget_take(&b, at, 2);
        n += 2;
    }
    g_assert_cmpint(n, ==, 20);
    g_assert_cmpint(trp_slurm_budget_when(&b, at, 2), ==, at + 2 * S);
}

TEST("more than the bucket holds waits until it is full")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_open(&b, 4); /* it holds one */
    g_assert_cmpint(trp_slurm_budget_when(&b, 9 * S, 3), ==, 9 * S);
    trp_slurm_budget_take(&b, 9 * S, 3);
    g_assert_cmpint(trp_slurm_budget_when(&b, 9 * S, 3), ==, 69 * S);
}

TEST("what cannot wait is paid back")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_open(&b, 80); /* one a second; the bucket holds 20 */
    trp_slurm_budget_take(&b, 0, 60);
    g_assert_cmpint(trp_slurm_budget_when(&b, 0, 20), ==, 60 * S);
}

TEST("it keeps below the limit of the site")
{
    struct trp_slurm_budget b;
    trp_slurm_budget_share(&b, 30, 500); /* Slurm's own defaults */
    g_assert_cmpint(spend(&b, 1000 * S, 1, 3), ==, 15);
    int64_t later = spend(&b, 1001 * S, 600, 3);
    g_assert_cmpint(later, <=, 900 + 3);
    g_assert_cmpint(later, >=, 900 - 3);
    /* More than half a bucket is had when that is full. */
    trp_slurm_budget_share(&b, 2, 1000);
    g_assert_cmpint(trp_slurm_budget_when(&b, 9 * S, 3), ==, 9 * S);
}

TEST("pauses grow until a call goes well")
{
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct trp_slurm_budget b;
    int64_t now = 3 * S;
    trp_slurm_budget_open(&b, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(pauses); i++) {
        trp_slurm_budget_refused(&b, now);
        trp_slurm_budget_refused(&b, now + S / 2); /* the same pause */
        g_assert_cmpint(trp_slurm_budget_when(&b, now, 3), ==, now + pauses[i] * S);
        now += pauses[i] * S;
        g_assert_cmpint(trp_slurm_budget_when(&b, now, 3), ==, now);
    }
    trp_slurm_budget_accepted(&b);
    trp_slurm_budget_refused(&b, now);
    g_assert_cmpint(trp_slurm_budget_when(&b, now, 3), ==, now + S);
}
