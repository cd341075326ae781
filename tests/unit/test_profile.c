/*
 * One profile: single requests, memory, comparison, the line for a person.
 */
#include "profile_maker.h"
#include "unit.h"

static void assert_task(const char *resource, const char *amount, int wanted,
                        const char *text)
{
    struct trp_profile_builder b, before;
    trp_error err = {0};
    trp_amount a = 0;

    trp_profile_builder_init(&b, "p");
    before = b;
    g_assert_cmpint(trp_amount_parse(amount, &a, NULL), ==, 0);
    int rc = trp_profile_builder_task(&b, resource, a, &err);
    if (rc != wanted)
        g_error("%s %s: wanted %d, got %d '%s'", resource, amount, wanted, rc,
                err.text);
    if (wanted < 0) {
        assert_contains(err.text, text);
        g_assert_cmpmem(&b, sizeof(b), &before, sizeof(before));
    }
}

TEST("a task takes a part of one or whole units")
{
    assert_task("gpu", "0.1", 0, NULL);
    assert_task("gpu", "0.33", 0, NULL);
    assert_task("gpu", "0.5", 0, NULL);
    assert_task("gpu", "0.7", 0, NULL);
    assert_task("gpu", "1", 0, NULL);
    assert_task("gpu", "4", 0, NULL);
    assert_task("gpu", "0", 0, NULL);
    assert_task("gpu", "1/3", 0, NULL);
    assert_task("gpu", "1.5", TRP_EINVAL,
                "task resource gpu: 1.5 is neither a whole number nor at most 1");
    assert_task("gpu", "4/3", TRP_EINVAL, "gpu: 4/3 is neither");
    assert_task("cpus", "2", 0, NULL);
    assert_task("cpus", "0", 0, NULL);
    assert_task("cpus", "0.5", TRP_EINVAL, "cpus: 0.5 is not whole");
    assert_task("cpus", "1.5", TRP_EINVAL, "cpus: 1.5 is not whole");
}

static void assert_name(const char *name, int wanted)
{
    struct trp_profile_builder b;
    trp_error err = {0};

    trp_profile_builder_init(&b, "");
    int task = trp_profile_builder_task(&b, name, TRP_ONE, &err);
    int executor = trp_profile_builder_executor(&b, name, 1, &err);
    if (task != wanted || executor != wanted)
        g_error("'%s': wanted %d, got %d and %d", name, wanted, task, executor);
}

TEST("resource names are checked")
{
    char longest[TRP_RESOURCE_NAME_MAX], longer[TRP_RESOURCE_NAME_MAX + 1];

    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_name("gpu", 0);
    assert_name("_x", 0);
    assert_name("a100-80g.x_1", 0);
    assert_name(longest, 0);
    assert_name(longer, TRP_EINVAL);
    assert_name("", TRP_EINVAL);
    assert_name("1gpu", TRP_EINVAL);
    assert_name("-gpu", TRP_EINVAL);
    assert_name("g pu", TRP_EINVAL);
    assert_name("gpu\n", TRP_EINVAL);
    assert_name("gpü", TRP_EINVAL);
}

TEST("each side has its own built-ins and limits")
{
    struct trp_profile_builder b;
    trp_error err;

    trp_profile_builder_init(&b, "p");
    g_assert_cmpint(trp_profile_builder_executor(&b, "cpus", 2, &err), ==, TRP_EINVAL);
    assert_contains(err.text, "cores");
    g_assert_cmpint(trp_profile_builder_task(&b, "cores", TRP_ONE, &err), ==,
                    TRP_EINVAL);
    assert_contains(err.text, "cpus");
    g_assert_cmpint(trp_profile_builder_task(&b, "memory", TRP_ONE, &err), ==,
                    TRP_EINVAL);
    g_assert_cmpint(trp_profile_builder_executor(&b, "gpu", -1, &err), ==, TRP_EINVAL);
    assert_contains(err.text, "gpu: -1");
    g_assert_cmpint(trp_profile_builder_task(&b, "gpu", -1, &err), ==, TRP_EINVAL);
    g_assert_cmpint(
        trp_profile_builder_executor(&b, "gpu", TRP_EXECUTOR_AMOUNT_MAX + 1, &err), ==,
        TRP_ELIMIT);
    g_assert_cmpint(trp_profile_builder_task(&b, "gpu", TRP_AMOUNT_MAX + TRP_ONE, &err),
                    ==, TRP_ELIMIT);
    g_assert_false(b.has_executor);
    g_assert_false(b.has_task);
    g_assert_cmpuint(b.ncustom, ==, 0);
}

TEST("the last request for a name wins")
{
    struct trp_profile_builder b;

    trp_profile_builder_init(&b, "p");
    g_assert_cmpint(trp_profile_builder_executor(&b, "cores", 2, NULL), ==, 0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "cores", 3, NULL), ==, 0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "gpu", 5, NULL), ==, 0);
    g_assert_cmpint(trp_profile_builder_task(&b, "gpu", TRP_ONE, NULL), ==, 0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "gpu", 1, NULL), ==, 0);
    g_assert_cmpint(trp_profile_builder_task(&b, "gpu", TRP_ONE / 4, NULL), ==, 0);
    g_assert_cmpint(b.executor.cores, ==, 3);
    g_assert_cmpuint(b.ncustom, ==, 1);
    g_assert_cmpint(b.custom[0].executor, ==, 1);
    g_assert_cmpint(b.custom[0].task, ==, TRP_ONE / 4);
}

TEST("custom resources are ordered and limited")
{
    struct trp_profile_builder b;
    trp_error err;
    char name[8];

    trp_profile_builder_init(&b, "p");
    for (int i = TRP_PROFILE_RESOURCES - 1; i >= 0; i--) {
        g_snprintf(name, sizeof(name), "r%02d", i);
        g_assert_cmpint(trp_profile_builder_executor(&b, name, 1, NULL), ==, 0);
    }
    g_assert_cmpint(trp_profile_builder_executor(&b, "one.more", 1, &err), ==,
                    TRP_ELIMIT);
    assert_contains(err.text, "one.more");
    g_assert_cmpint(trp_profile_builder_task(&b, "one.more", TRP_ONE, &err), ==,
                    TRP_ELIMIT);
    g_assert_cmpint(trp_profile_builder_task(&b, "r07", TRP_ONE, &err), ==, 0);
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++) {
        g_snprintf(name, sizeof(name), "r%02d", i);
        g_assert_cmpstr(b.custom[i].name, ==, name);
    }
}

TEST("a long name is cut")
{
    struct trp_profile_builder b;
    char name[200];

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    trp_profile_builder_init(&b, name);
    g_assert_cmpuint(strlen(b.name), ==, TRP_PROFILE_NAME_MAX);
}

TEST("memory is counted in MiB")
{
    static const struct {
        const char *text;
        int64_t mib;
    } fine[] = {
        {"256",               256                    },
        {"4g",                4096                   },
        {"4G",                4096                   },
        {"4gb",               4096                   },
        {"4GiB",              4096                   },
        {"2000m",             2000                   },
        {"2000MB",            2000                   },
        {"512000k",           500                    },
        {"1025k",             1                      },
        {"1k",                1                      },
        {"0",                 0                      },
        {"0k",                0                      },
        {"1t",                1048576                },
        {"007",               7                      },
        {"1000000000000",     TRP_EXECUTOR_AMOUNT_MAX},
        {"1024000000000000k", TRP_EXECUTOR_AMOUNT_MAX},
    };
    static const char *const wrong[] = {
        "",
        "g",
        "-1",
        "+1",
        "1.5g",

        "4x",
        "4gg",
        "4gi",
        "4b",
        " 4g",
        "4g ",
        "0x4",
        "1000000000001",
        "1e3",
        "4gibs",
        "976562501g",
        "99999999999999999999999999999",
        "1024000000000001k",
    };
    int64_t mib;

    for (gsize i = 0; i < G_N_ELEMENTS(fine); i++) {
        trp_error err = {0};
        mib = -1;
        if (trp_memory_parse(fine[i].text, &mib, &err) != 0 || mib != fine[i].mib)
            g_error("'%s': wanted %" G_GINT64_FORMAT ", got %" G_GINT64_FORMAT " %s",
                    fine[i].text, fine[i].mib, mib, err.text);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        trp_error err = {0};
        mib = -7;
        if (trp_memory_parse(wrong[i], &mib, &err) != TRP_EINVAL || mib != -7)
            g_error("'%s': wanted a refusal, got %" G_GINT64_FORMAT, wrong[i], mib);
        assert_contains(err.text, wrong[i]);
    }
}

TEST("memory reads well")
{
    char buf[32];

    g_assert_cmpstr(trp_memory_format(512, buf, sizeof(buf)), ==, "512 MiB");
    g_assert_cmpstr(trp_memory_format(4096, buf, sizeof(buf)), ==, "4 GiB");
    g_assert_cmpstr(trp_memory_format(4097, buf, sizeof(buf)), ==, "4097 MiB");
    struct trp_memory_pair m = trp_memory_pair(4096, 8192);
    g_assert_cmpstr(m.a, ==, "4 GiB");
    g_assert_cmpstr(m.b, ==, "8 GiB");
    m = trp_memory_pair(4096, 530); /* one message, one unit */
    g_assert_cmpstr(m.a, ==, "4096 MiB");
    g_assert_cmpstr(m.b, ==, "530 MiB");
    g_assert_cmpstr(trp_memory_format(0, buf, sizeof(buf)), ==, "0 MiB");
}

static const struct trp_resource_profile *made(trp_profiles *m, const char *text)
{
    return trp_profiles_get(m, make_profile(m, "", text));
}

TEST("executors are the same by what they have")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    const struct trp_resource_profile *a = made(m, "cores 1, gpu 2 | gpu 1");

    g_assert_true(trp_profile_same_executor(a, made(m, "cores 1, gpu 2 | gpu 1/4")));
    g_assert_true(trp_profile_same_executor(a, made(m, "memory 1g, gpu 2 | gpu 1")));
    g_assert_false(trp_profile_same_executor(a, made(m, "memory 2g, gpu 2 | gpu 1")));
    g_assert_false(trp_profile_same_executor(a, made(m, "pyspark.memory 1, gpu 2 |")));
    g_assert_false(trp_profile_same_executor(a, made(m, "cores 1, gpu 3 | gpu 1")));
    g_assert_false(trp_profile_same_executor(a, made(m, "cores 1, gpu 2, x 1 | ")));
    g_assert_false(trp_profile_same_executor(made(m, "cores 1, gpu 2, x 1 | "), a));
    g_assert_false(trp_profile_same_executor(a, made(m, "cores 1 | ")));
    g_assert_true(trp_profile_same_executor(made(m, "cpus 1"), made(m, "cores 1 |")));
    g_assert_true(trp_profile_same_executor(made(m, "gpu 0 |"), made(m, "cores 1 |")));
    trp_profiles_free(m);
}

TEST("a larger executor covers a smaller wish")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    const struct trp_resource_profile *have =
        made(m, "cores 4, memory 4g, gpu 2 | gpu 1");

    g_assert_true(trp_profile_covers(have, have));
    g_assert_true(trp_profile_covers(have, made(m, "cores 2, gpu 1 | gpu 1/2")));
    g_assert_true(trp_profile_covers(have, made(m, "cores 4, memory 4g | cpus 4")));
    g_assert_true(trp_profile_covers(have, made(m, "cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "cores 5 | cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "memory 5g | cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "memoryOverhead 2g | cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "offHeap 1g | cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "pyspark.memory 4g | cpus 1")));
    g_assert_false(trp_profile_covers(have, made(m, "gpu 3 | gpu 1")));
    g_assert_false(trp_profile_covers(have, made(m, "fpga 1 | cpus 1")));
    trp_profiles_free(m);
}

/* What a task may use for what it shuffles and keeps. */
TEST("a task has its share of offHeap, or of what is memory")
{
    const uint64_t mib = 1 << 20;
    struct trp_resource_profile p = {.memory_mib = 1000, .slots = 4};
    g_assert_cmpuint(trp_profile_task_memory(&p, 0.6), ==, 150 * mib);
    g_assert_cmpuint(trp_profile_task_memory(&p, 0.25), ==, 62 * mib + mib / 2);
    p.offheap_mib = 100; /* set: that alone */
    g_assert_cmpuint(trp_profile_task_memory(&p, 0.25), ==, 25 * mib);
    p.slots = 0; /* not known yet */
    g_assert_cmpuint(trp_profile_task_memory(&p, 0.25), ==, 100 * mib);
}
