/*
 * Limits over all profiles: what they hold, and how their room is divided.
 */
#include <glib.h>
#include <string.h>

#include "core/alloc/shares.h"
#include "unit.h"

TEST("limits count what an executor takes")
{
    struct trp_caps caps;
    struct trp_alloc_caps limits = {.memory_mib = 1000};
    struct trp_resource_profile p = {.cores = 2, .total_mib = 300};
    int64_t used[TRP_CAPS] = {0}, cost[TRP_CAPS];
    uint32_t at = 0;
    trp_caps_init(&caps, &(struct trp_alloc_caps){0}, UINT32_MAX);
    g_assert_cmpuint(trp_caps_left(&caps, used, cost, NULL), ==, UINT32_MAX);
    trp_caps_init(&caps, &limits, 9);
    trp_caps_cost(&caps, &p, cost);
    g_assert_cmpuint(trp_caps_left(&caps, used, cost, &at), ==, 3);
    g_assert_cmpstr(caps.name[at], ==, "memory");
    trp_caps_add(&caps, used, cost, 4);
    g_assert_cmpuint(trp_caps_left(&caps, used, cost, &at), ==, 0);
    trp_caps_add(&caps, used, cost, -2);
    g_assert_cmpuint(trp_caps_left(&caps, used, cost, &at), ==, 1);
}

/* Up to 12 executors, 20 cores, 2 gpus. */
static struct trp_caps three(void)
{
    struct trp_caps caps;
    struct trp_alloc_caps limits = {.cores = 20, .ncustom = 1};
    strcpy(limits.custom[0].name, "gpu");
    limits.custom[0].most = 2;
    trp_caps_init(&caps, &limits, 12);
    g_assert_cmpuint(caps.n, ==, 3);
    return caps;
}

static const int64_t small[] = {1, 1, 0}, large[] = {1, 8, 1};

static uint32_t share_of(const struct trp_share *v, uint32_t n, uint32_t profile)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].profile == profile)
            return v[i].share;
    g_assert_not_reached();
}

TEST("earlier stages have their room first")
{
    const struct trp_caps caps = three();
    struct trp_share v[] = {
        {.profile = 0, .cost = small, .order = 7,          .work = 100, .all = 100},
        {.profile = 1, .cost = large, .order = 3,          .work = 100, .all = 100},
        {.profile = 2, .cost = small, .order = UINT64_MAX, .work = 1,   .all = 1  },
    };
    trp_shares_divide(&caps, v, 3);
    g_assert_cmpuint(share_of(v, 3, 1), ==, 2); /* all gpus */
    g_assert_cmpuint(share_of(v, 3, 0), ==, 4); /* the cores that are left */
    g_assert_cmpuint(share_of(v, 3, 2), ==, 0);
}

TEST("what is kept comes after all work")
{
    const struct trp_caps caps = three();
    struct trp_share v[] = {
        {.profile = 0, .cost = small, .order = 1, .work = 2,  .all = 9 },
        {.profile = 1, .cost = small, .order = 2, .work = 10, .all = 10},
    };
    trp_shares_divide(&caps, v, 2);
    g_assert_cmpuint(share_of(v, 2, 0), ==, 2);
    g_assert_cmpuint(share_of(v, 2, 1), ==, 10);
    v[0].work = v[1].work = 3;
    v[0].all = v[1].all = 10;
    trp_shares_divide(&caps, v, 2);
    g_assert_cmpuint(share_of(v, 2, 0), ==, 9);
    g_assert_cmpuint(share_of(v, 2, 1), ==, 3);
}

TEST("a gang gets all or nothing")
{
    const struct trp_caps caps = three();
    struct trp_share v[] = {
        {.profile = 0, .cost = small, .order = 1,  .work = 8,               .least = 8, .all = 8},
        {.profile = 1,            .cost = small,              .order = 2, .work = 8, .least = 8,  .all = 8},
        {.profile = 2,    .cost = small,                 .order = 3,                 .work = 8,                        .all = 8      },
    };
    trp_shares_divide(&caps, v, 3);
    g_assert_cmpuint(share_of(v, 3, 0), ==, 8);
    g_assert_cmpuint(share_of(v, 3, 1), ==, 0);
    g_assert_cmpuint(share_of(v, 3, 2), ==, 4);
    /* What nobody else can use it may have: it goes when somebody can. */
    v[2].work = v[2].all = 1;
    trp_shares_divide(&caps, v, 3);
    g_assert_cmpuint(share_of(v, 3, 1), ==, 3);
    g_assert_cmpuint(share_of(v, 3, 2), ==, 1);
}

/* The first in order has its room whatever the others want, and the limits hold. */
TEST("limits hold, and the first always has its room")
{
    const struct trp_caps caps = three();
    for (uint32_t seed = 0; seed < 2000; seed++) {
        GRand *r = g_rand_new_with_seed(seed);
        struct trp_share v[6];
        int64_t used[TRP_CAPS] = {0}, none[TRP_CAPS] = {0};
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t work = (uint32_t)g_rand_int_range(r, 0, 15);
            v[i] =
                (struct trp_share){.profile = i,
                                   .cost = g_rand_boolean(r) ? small : large,
                                   .order = (uint64_t)g_rand_int_range(r, 0, 4),
                                   .work = work,
                                   .all = work + (uint32_t)g_rand_int_range(r, 0, 4)};
            uint32_t most = MIN(work, trp_caps_left(&caps, none, v[i].cost, NULL));
            v[i].least = most && g_rand_boolean(r) ? most : 0;
        }
        trp_shares_divide(&caps, v, 6);
        g_test_message("seed %u", seed);
        g_assert_cmpuint(v[0].share, >=,
                         MIN(v[0].work, trp_caps_left(&caps, none, v[0].cost, NULL)));
        for (uint32_t i = 0; i < 6; i++) {
            g_assert_cmpuint(v[i].share, <=, v[i].all);
            trp_caps_add(&caps, used, v[i].cost, v[i].share);
            g_assert_true(
                !i || v[i - 1].order < v[i].order ||
                (v[i - 1].order == v[i].order && v[i - 1].profile < v[i].profile));
        }
        for (uint32_t k = 0; k < caps.n; k++)
            g_assert_cmpint(used[k], <=, caps.most[k]);
        g_rand_free(r);
    }
}
