/*
 * The profile manager: a default section, slots, impossible profiles, limits, waste. What
 * Spark says of profiles is said by the scenarios of layer profile.
 */
#include "conf/options.h"
#include "profile_maker.h"
#include "unit.h"

static void assert_slots(trp_profiles *m, const char *text, uint32_t slots,
                         const char *limiting)
{
    const struct trp_resource_profile *p =
        trp_profiles_get(m, make_profile(m, "p", text));

    if (p->slots != slots || strcmp(p->limiting, limiting) != 0)
        g_error("%s: wanted %u by %s, got %u by %s", text, slots, limiting, p->slots,
                p->limiting);
}

/* Refused with this code and all of these words; no id is used. */
static void assert_refused(trp_profiles *m, const char *text, int code,
                           const char *const *words)
{
    struct trp_profile_builder b;
    trp_error err = {0};
    trp_profile_id id = {4711};
    uint32_t before = trp_profiles_count(m);
    int rc = make_builder(&b, "bad", text, &err);

    if (rc == 0)
        rc = trp_profiles_add(m, &b, &id, &err);
    if (rc != code)
        g_error("%s: wanted %d, got %d '%s'", text, code, rc, err.text);
    for (; *words; words++)
        assert_contains(err.text, *words);
    g_assert_cmpint(err.code, ==, code);
    g_assert_cmpuint(id.n, ==, 4711);
    g_assert_cmpuint(trp_profiles_count(m), ==, before);
}

#define REFUSED(m, text, ...)                                                          \
    assert_refused(m, text, TRP_EINVAL, (const char *const[]){__VA_ARGS__, NULL})

TEST("what is not there is not found")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    const struct trp_resource_profile *p = trp_profiles_get(m, (trp_profile_id){0});
    trp_profile_id none = {77}, deflt = {0};

    g_assert_true(trp_profiles_by_name(m, "default") == p);
    g_assert_cmpint(p->executor.pyspark_mib, ==, -1);
    g_assert_cmpint(p->total_mib, ==, 1024 + 102);
    g_assert_null(trp_profiles_by_name(m, "nosuch"));
    g_assert_null(trp_profiles_get(m, (trp_profile_id){1}));
    g_assert_null(trp_profiles_get(m, (trp_profile_id){TRP_NONE}));
    g_assert_cmpint(trp_profiles_supported(m, none, NULL), ==, TRP_EINVAL);
    g_assert_false(trp_profiles_may_run(m, none, deflt));
    g_assert_false(trp_profiles_may_run(m, deflt, none));
    g_assert_false(trp_profiles_may_run(m, none, none));
    trp_profiles_free(m);
    trp_profiles_free(NULL);
}

TEST("a default section is above options")
{
    struct trp_profile_defaults d;
    struct trp_profile_builder b;
    trp_profiles *m;

    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 2;
    add_default_resource(&d, "gpu", 1, TRP_ONE);
    g_assert_cmpint(make_builder(&b, "x", "cores 8, fpga 2 | cpus 2, gpu 1/4", NULL),
                    ==, 0);
    g_assert_cmpint(trp_profiles_new(&d, &b, &m, NULL), ==, 0);
    const struct trp_resource_profile *p = trp_profiles_get(m, (trp_profile_id){0});
    g_assert_cmpstr(p->name, ==, "default");
    g_assert_cmpint(p->executor.cores, ==, 8);
    g_assert_cmpint(p->executor.memory_mib, ==, 1024);
    g_assert_cmpint(p->cpus, ==, 2);
    g_assert_cmpint(trp_profile_custom(p, "gpu")->executor, ==, 1);
    g_assert_cmpint(trp_profile_custom(p, "gpu")->task, ==, TRP_ONE / 4);
    g_assert_cmpint(trp_profile_custom(p, "fpga")->executor, ==, 2);
    g_assert_cmpuint(p->slots, ==, 4);
    trp_profiles_free(m);

    /* Only a task side: still a full profile. */
    g_assert_cmpint(make_builder(&b, "x", "cpus 2", NULL), ==, 0);
    g_assert_cmpint(trp_profiles_new(&d, &b, &m, NULL), ==, 0);
    p = trp_profiles_get(m, (trp_profile_id){0});
    g_assert_false(p->task_only);
    g_assert_cmpint(p->task_cpus, ==, 2);
    trp_profiles_free(m);
}

static void assert_bad_default(const struct trp_profile_defaults *d, int code,
                               const char *word)
{
    trp_profiles *m = NULL;
    trp_error err = {0};
    int rc = trp_profiles_new(d, NULL, &m, &err);

    if (rc != code)
        g_error("wanted %d with '%s', got %d '%s'", code, word, rc, err.text);
    assert_contains(err.text, word);
    g_assert_null(m);
}

TEST("an impossible default is refused")
{
    struct trp_profile_defaults fine, d;

    trp_options_profile_defaults(NULL, &fine);
    d = fine;
    d.task_cpus = 2;
    assert_bad_default(&d, TRP_EINVAL, "task cpus 2 above executor cores 1");
    d.task_cpus = 0;
    assert_bad_default(&d, TRP_EINVAL, "task cpus 0");
    d.task_cpus = -1;
    assert_bad_default(&d, TRP_EINVAL, "task cpus -1");
    d = fine;
    add_default_resource(&d, "gpu", 0, TRP_ONE);
    assert_bad_default(&d, TRP_EINVAL, "gpu");
    d = fine;
    add_default_resource(&d, "gpu", 1, TRP_ONE / 10 * 7);
    assert_bad_default(&d, TRP_EINVAL, "gpu 0.7");
    d = fine;
    d.memory_mib = 0;
    assert_bad_default(&d, TRP_EINVAL, "memory 0");
    d = fine;
    d.overhead_factor = -0.1;
    assert_bad_default(&d, TRP_EINVAL, "executor.memoryOverheadFactor");
    d = fine;
    d.overhead_min_mib = -1;
    assert_bad_default(&d, TRP_EINVAL, "executor.minMemoryOverhead");
    d = fine;
    d.nresources = TRP_PROFILE_RESOURCES + 1;
    assert_bad_default(&d, TRP_ELIMIT, "custom resources");
}

TEST("built-ins are inherited, custom are not")
{
    struct trp_profile_defaults d;

    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 6;
    d.memory_mib = 2048;
    d.offheap_mib = 100;
    d.task_cpus = 2;
    add_default_resource(&d, "gpu", 2, TRP_ONE);
    trp_profiles *m = manager_of(&d);
    const struct trp_resource_profile *p =
        trp_profiles_get(m, make_profile(m, "p", "memory 10g |"));

    g_assert_cmpint(p->cores, ==, 6);
    g_assert_cmpint(p->task_cpus, ==, 2);
    g_assert_cmpint(p->memory_mib, ==, 10240);
    g_assert_cmpint(p->overhead_mib, ==, 1024);
    g_assert_cmpint(p->offheap_mib, ==, 100);
    g_assert_cmpint(p->total_mib, ==, 10240 + 1024 + 100);
    g_assert_cmpint(p->executor.cores, ==, -1);
    g_assert_null(trp_profile_custom(p, "gpu")); /* never inherited */
    g_assert_cmpuint(p->slots, ==, 3);
    p = trp_profiles_get(m, make_profile(m, "q", "memory 9999, memoryOverhead 1 |"));
    g_assert_cmpint(p->overhead_mib, ==, 1);
    p = trp_profiles_get(m, make_profile(m, "r", "memory 9999 |"));
    g_assert_cmpint(p->overhead_mib, ==, 999); /* rounded down */
    trp_profiles_free(m);

    d.overhead_mib = 777;
    d.pyspark_mib = 10;
    m = manager_of(&d);
    p = trp_profiles_get(m, make_profile(m, "p", "memory 10g |"));
    g_assert_cmpint(p->overhead_mib, ==, 777);
    g_assert_cmpint(p->total_mib, ==, 10240 + 777 + 100 + 10);
    p = trp_profiles_get(m, make_profile(m, "light", "cpus 3"));
    g_assert_true(p->task_only);
    g_assert_cmpint(p->cores, ==, 6);
    g_assert_cmpuint(p->slots, ==, 2);
    g_assert_cmpint(p->total_mib, ==, 2048 + 777 + 100 + 10);
    trp_profiles_free(m);
}

/* More of section 2 than profile-slots.yaml says. */
TEST("slots are what the scarcest allows")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);

    assert_slots(m, "cores 64, gpu 1 | gpu 0.3", 3, "gpu");
    assert_slots(m, "cores 64, gpu 2 | gpu 0.3", 6, "gpu");
    assert_slots(m, "cores 64, gpu 1 | gpu 0.33", 3, "gpu");
    assert_slots(m, "cores 64, gpu 1 | gpu 1/3", 3, "gpu");
    assert_slots(m, "cores 64, gpu 7 | gpu 3", 2, "gpu");
    assert_slots(m, "cores 64, a 4, b 4 | a 1, b 1", 4, "a"); /* the earlier name */
    assert_slots(m, "cores 64, a 4, b 3 | a 1, b 1", 3, "b");
    assert_slots(m, "cores 64, gpu 1 | gpu 0", 64, "cpus");
    assert_slots(m, "cores 7 | cpus 2", 3, "cpus");
    assert_slots(m, "cores 4, gpu 1000000000 | gpu 1e-12", 4, "cpus");
    trp_profiles_free(m);
}

TEST("1 over k gives k slots")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    char text[64];

    for (int k = 2; k <= 5000; k++) {
        g_snprintf(text, sizeof(text), "cores 1000000, gpu 1 | gpu 1/%d", k);
        assert_slots(m, text, (uint32_t)k, "gpu");
    }
    for (int k = 2; k <= 2000; k += 37) {
        g_snprintf(text, sizeof(text), "cores 1000000, gpu 8 | gpu 1/%d", k);
        assert_slots(m, text, 8 * (uint32_t)k, "gpu");
    }
    trp_profiles_free(m);
}

/* The words of refusals; what is refused is said by scenarios, too. */
TEST("impossible profiles name what and why")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);

    REFUSED(m, "cores 2, gpu 1 | cpus 1, gpu 2", "bad",
            "task gpu 2 above executor gpu 1");
    REFUSED(m, "cores 2 | cpus 1, fpga 1",
            "no executor resource for task resource fpga");
    REFUSED(m, "cores 2 | cpus 1, fpga 1, gpu 1/2", "fpga 1, gpu 0.5");
    REFUSED(m, "cores 2 | cpus 4", "task cpus 4 above executor cores 2");
    REFUSED(m, "cores 2 | cpus 0", "task cpus 0");
    REFUSED(m, "cores 0 | cpus 1", "executor cores 0");
    REFUSED(m, "gpu 0 | gpu 1/2", "task gpu 0.5 above executor gpu 0");
    REFUSED(m, "memory 0 | cpus 1", "memory 0");
    REFUSED(m, "cores 4, gpu 2 | cpus 1, gpu 0.7", "gpu 0.7", "0.5");
    REFUSED(m, "cores 4, gpu 2 | cpus 1, gpu 0.500000000001", "gpu 0.500000000001");
    REFUSED(m, "gpu 1.5", "gpu", "1.5");
    REFUSED(m, "gpu 1", "gpu 1", "task-only");
    REFUSED(m, "cpus 1, gpu 0", "gpu 0");
    assert_slots(m, "cores 4, gpu 2 | cpus 1, gpu 0.5", 4, "cpus");
    g_assert_cmpuint(trp_profiles_count(m), ==, 2);
    assert_refused(m, "cores 1000000000000 | cpus 1", TRP_ELIMIT,
                   (const char *const[]){"1048576", NULL});
    assert_refused(m, "a 200, b 200 | a 200, b 56", TRP_ELIMIT,
                   (const char *const[]){"256", "255", NULL});
    assert_slots(m, "cores 9, a 200, b 200 | a 200, b 55", 1, "a");
    trp_profiles_free(m);
}

TEST("ids are dense and pointers stay")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    const struct trp_resource_profile *first =
        trp_profiles_get(m, make_profile(m, "a", "cores 3 |"));

    REFUSED(m, "cores 1 | cpus 2", "cpus");
    for (uint32_t n = 2; n < 300; n++)
        g_assert_cmpuint(make_profile(m, "a", "cores 3 |").n, ==, n);
    g_assert_true(trp_profiles_get(m, (trp_profile_id){1}) == first);
    g_assert_true(trp_profiles_by_name(m, "a") == first);
    g_assert_true(trp_profiles_equivalent(
                      m, trp_profiles_get(m, (trp_profile_id){250})) == first);
    trp_profiles_free(m);
}

TEST("a run has sixteen custom resources")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    char text[32];

    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++) {
        g_snprintf(text, sizeof(text), "r%d 1 | r%d 1", i, i);
        make_profile(m, "p", text);
    }
    make_profile(m, "p", "r0 1, r15 2 | r15 1");
    assert_refused(m, "r0 1, other 1 |", TRP_ELIMIT,
                   (const char *const[]){"other", "16", NULL});
    trp_profiles_free(m);
}

TEST("a run has a limit on profiles")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);

    for (uint32_t n = 1; n < TRP_PROFILES_MAX; n++)
        make_profile(m, "", "");
    assert_refused(m, "", TRP_ELIMIT, (const char *const[]){"profiles", NULL});
    trp_profiles_free(m);
}

static void assert_waste(trp_profiles *m, const char *text, const char *wanted)
{
    char buf[256];
    bool waste = trp_profiles_waste(m, make_profile(m, "p", text), buf, sizeof(buf));

    g_assert_cmpstr(buf, ==, wanted);
    g_assert_cmpint(waste, ==, wanted[0] != '\0');
}

TEST("waste is told")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    char buf[8] = "x";

    assert_waste(m, "cores 30, gpu 2 | gpu 1/2",
                 "gpu limits an executor to 4 tasks: cores 30 would take 30");
    assert_waste(m, "cores 10, gpu 1 | cpus 2, gpu 0.1",
                 "cpus limits an executor to 5 tasks: gpu 1 would take 10");
    assert_waste(m, "cores 30, a 8, b 1 | a 1, b 1",
                 "b limits an executor to 1 task: cores 30 would take 30, a 8 would "
                 "take 8");
    assert_waste(m, "cores 2, gpu 2 | gpu 1", "");
    assert_waste(m, "cores 2, gpu 2 | cpus 1", "");
    assert_waste(m, "cpus 1", "");
    g_assert_false(trp_profiles_waste(m, (trp_profile_id){99}, buf, sizeof(buf)));
    g_assert_cmpstr(buf, ==, "");
    trp_profiles_free(m);
}

TEST("a task-only profile grows executors that nobody sized")
{
    for (int configured = 0; configured < 2; configured++) {
        struct trp_profile_defaults d;
        struct trp_profile_builder b;
        trp_profiles *m;
        trp_profile_id id;
        trp_error err = {0};
        trp_options_profile_defaults(NULL, &d);
        d.cores_configured = configured;
        g_assert_cmpint(trp_profiles_new(&d, NULL, &m, &err), ==, 0);
        trp_profile_builder_init(&b, "light");
        g_assert_cmpint(trp_profile_builder_task(&b, "cpus", 2 * TRP_ONE, &err), ==, 0);
        int rc = trp_profiles_add(m, &b, &id, &err);
        g_assert_cmpint(rc, ==, configured ? TRP_EINVAL : 0);
        if (rc == 0) {
            g_assert_cmpint(trp_profiles_get(m, id)->cores, ==, 2);
            g_assert_cmpuint(trp_profiles_get(m, id)->slots, ==, 1);
        }
        trp_profiles_free(m);
    }
}
