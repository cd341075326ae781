/*
 * Speculation: durations, thresholds, the judgement on a running attempt.
 */
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/options.h"
#include "core/sched/speculation.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

static struct trp_speculation_config make_config(void)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.speculation.enabled = true;
    return c.speculation;
}

static trp_speculation *make(uint32_t n, int64_t duration, uint64_t records)
{
    trp_speculation *s = trp_speculation_new();
    for (uint32_t i = 0; i < n; i++)
        g_assert_cmpint(trp_speculation_succeeded(s, duration, records), ==, 0);
    return s;
}

static struct trp_speculation_facts launched(int64_t at, double rate)
{
    return (struct trp_speculation_facts){at, rate, TRP_SPECULATION_NEVER};
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

TEST("the median is the upper one")
{
    for (uint32_t seed = 1; seed <= 30; seed++) {
        GRand *rand = g_rand_new_with_seed(seed);
        trp_speculation *s = trp_speculation_new();
        int64_t v[150];
        g_assert_cmpint(trp_speculation_median(s), ==, 0);
        for (int n = 1; n <= 150; n++) {
            int64_t x = g_rand_int_range(rand, 0, seed < 10 ? 5 : 1 << 30);
            x = seed % 3 == 1 ? n : seed % 3 == 2 ? 1000 - n : x;
            v[n - 1] = x;
            g_assert_cmpint(trp_speculation_succeeded(s, x, 0), ==, 0);
            qsort(v, n, sizeof *v, compare);
            g_assert_cmpint(trp_speculation_median(s), ==, v[n / 2]);
        }
        trp_speculation_free(s);
        g_rand_free(rand);
    }
    trp_speculation *s = make(1, -5, 0);
    g_assert_cmpint(trp_speculation_median(s), ==, 0);
    trp_speculation_free(s);
    trp_speculation_free(NULL);
}

TEST("a quantile must be done first")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_gate gate;
    static const struct {
        double quantile;
        uint32_t ntasks, least;
    } cases[] = {
        {0.9,  10,  9},
        {0.9,  9,   8},
        {0.75, 4,   3},
        {0.75, 5,   3},
        {0.1,  5,   1},
        {0,    100, 1},
        {1,    7,   7},
        {0.5,  3,   1},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct trp_speculation_set set = {.ntasks = cases[i].ntasks, .slots = 1000};
        trp_speculation *s = make(cases[i].least - 1, S, 0);
        c.quantile = cases[i].quantile;
        g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
        trp_speculation_succeeded(s, S, 0);
        g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
        g_assert_true(gate.by_median);
        g_assert_cmpint(gate.threshold_ns, ==, 3 * S);
        trp_speculation_free(s);
    }
}

TEST("some sets are never looked at")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_gate gate;
    trp_speculation *s = make(5, S, 0);
    struct trp_speculation_set set = {.ntasks = 5, .slots = 1};
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    set.barrier = true;
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    set = (struct trp_speculation_set){.ntasks = 5, .slots = 1, .zombie = true};
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    set = (struct trp_speculation_set){.ntasks = 1, .slots = 1};
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    c.duration_threshold_ns = 0;
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    c.duration_threshold_ns = 1;
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    c.enabled = false;
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    trp_speculation_free(s);
}

TEST("slow is strictly above the threshold")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_set set = {.ntasks = 4, .slots = 1};
    struct trp_speculation_gate gate;
    c.efficiency = false;
    trp_speculation *s = make(4, 10 * MS, 0);
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    g_assert_cmpint(gate.threshold_ns, ==, 100 * MS); /* at least that */
    struct trp_speculation_facts facts = launched(S, 0);
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, S + 100 * MS));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, S + 100 * MS + 1));
    c.multiplier = 1.5;
    c.min_runtime_ns = 0;
    trp_speculation_gate(&c, s, &set, &gate);
    g_assert_cmpint(gate.threshold_ns, ==, 15 * MS);
    trp_speculation_free(s);
    s = make(4, 3, 0);
    trp_speculation_gate(&c, s, &set, &gate);
    g_assert_cmpint(gate.threshold_ns, ==, 4); /* of 4.5 */
    facts = launched(0, 0);
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 4));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, 5));
    trp_speculation_free(s);
    s = make(4, INT64_MAX, 0);
    trp_speculation_gate(&c, s, &set, &gate);
    g_assert_cmpint(gate.threshold_ns, ==, INT64_MAX);
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, INT64_MAX));
    trp_speculation_free(s);
}

TEST("a duration is for sets of one executor")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_set set = {.ntasks = 2, .slots = 2};
    struct trp_speculation_gate gate;
    struct trp_speculation_facts facts = launched(0, 0);
    trp_speculation *s = make(0, 0, 0);
    c.quantile = 1;
    c.duration_threshold_ns = 3600 * S;
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    g_assert_false(gate.by_median);
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 3600 * S));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, 3600 * S + 1));
    facts.rate = 1e9; /* efficiency is not asked */
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, 3600 * S + 1));
    set.ntasks = 3; /* more than one executor has room for */
    g_assert_false(trp_speculation_gate(&c, s, &set, &gate));
    trp_speculation_succeeded(s, S, 0);
    set.ntasks = 2;
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    g_assert_false(gate.by_median);
    trp_speculation_succeeded(s, S, 0);
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    g_assert_true(gate.by_median); /* once the quantile is there */
    trp_speculation_free(s);
}

TEST("slow ones must be inefficient")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_set set = {.ntasks = 5, .slots = 5};
    struct trp_speculation_gate gate;
    trp_speculation *s = make(3, 10 * S, 10000);
    c.quantile = 0.6;
    c.multiplier = 1;
    c.min_runtime_ns = 15 * S;
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    struct trp_speculation_facts slow =
        launched(0, trp_speculation_rate(14000, 20 * S));
    struct trp_speculation_facts fair =
        launched(0, trp_speculation_rate(16000, 20 * S));
    struct trp_speculation_facts silent = launched(0, 0);
    g_assert_true(trp_speculation_judge(&c, s, &gate, &slow, 20 * S));
    g_assert_false(trp_speculation_judge(&c, s, &gate, &fair, 20 * S));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &silent, 20 * S));
    g_assert_false(trp_speculation_judge(&c, s, &gate, &slow, 15 * S));
    g_assert_false(trp_speculation_judge(&c, s, &gate, &fair, 30 * S));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &fair, 30 * S + 1));
    c.efficiency = false;
    g_assert_true(trp_speculation_judge(&c, s, &gate, &fair, 20 * S));
    trp_speculation_free(s);
}

TEST("without records the long run tells")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_set set = {.ntasks = 3, .slots = 1};
    struct trp_speculation_gate gate;
    struct trp_speculation_facts facts = launched(0, 0);
    trp_speculation *s = make(3, S, 0);
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    /* Nobody has read anything: the average has no bound, all rates are lower. */
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 3 * S));
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, 3 * S + 1));
    g_assert_cmpfloat(trp_speculation_rate(0, S), ==, 0);
    g_assert_cmpfloat(trp_speculation_rate(5, 0), ==, 0);
    g_assert_cmpfloat(trp_speculation_rate(5, -1), ==, 0);
    g_assert_cmpfloat(trp_speculation_rate(5, S / 2), ==, 10);
    trp_speculation_free(s);
}

TEST("tasks leave a decommissioned executor")
{
    struct trp_speculation_config c = make_config();
    struct trp_speculation_set set = {.ntasks = 3, .slots = 3};
    struct trp_speculation_gate gate;
    struct trp_speculation_facts facts = launched(8 * S, 0);
    trp_speculation *s = make(3, 10 * S, 0);
    g_assert_true(trp_speculation_gate(&c, s, &set, &gate));
    facts.decommissioned_ns = 9 * S;
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 10 * S)); /* unset */
    c.kill_interval_ns = 9 * S;
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 10 * S)); /* in time */
    c.kill_interval_ns = 9 * S - 1;
    g_assert_true(trp_speculation_judge(&c, s, &gate, &facts, 10 * S));
    facts.decommissioned_ns = TRP_SPECULATION_NEVER;
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 10 * S));
    facts.decommissioned_ns = 9 * S;
    gate.by_median = false;
    g_assert_false(trp_speculation_judge(&c, s, &gate, &facts, 10 * S));
    trp_speculation_free(s);
}
