/*
 * Which profile a stage gets: one, none, or a merged one. The conformance cases
 * profile-merge-takes-the-larger.yaml and profile-of-a-stage.yaml are carried over.
 */
#include "conf/options.h"
#include "profile_maker.h"
#include "unit.h"

static trp_profiles *merging_manager(void)
{
    struct trp_profile_defaults d;

    trp_options_profile_defaults(NULL, &d);
    d.merge_conflicts = true;
    return manager_of(&d);
}

/* profile-merge-takes-the-larger.yaml */
TEST("it takes the larger of each name")
{
    trp_profiles *m = merging_manager();
    trp_profile_id a = make_profile(m, "a", "cores 4 | cpus 1");
    trp_profile_id b = make_profile(m, "b", "cores 2 | cpus 2");
    trp_profile_id c = make_profile(m, "c", "cores 3 | cpus 2");
    const struct trp_resource_profile *v[] = {
        trp_profiles_get(m, a), trp_profiles_get(m, b), trp_profiles_get(m, c)};
    struct trp_profile_builder merged;
    trp_profile_id id, again;

    for (size_t n = 2; n <= 3; n++) {
        trp_profiles_merge(v, n, &merged);
        g_assert_cmpint(merged.executor.cores, ==, 4);
        g_assert_cmpint(merged.executor.memory_mib, ==, -1);
        g_assert_cmpint(merged.cpus, ==, 2);
        g_assert_cmpuint(merged.ncustom, ==, 0);
        g_assert_true(merged.has_executor);
    }
    g_assert_cmpint(trp_profiles_of_stage(m, (trp_profile_id[]){b, a}, 2, &id, NULL),
                    ==, 0);
    g_assert_cmpuint(id.n, ==, 4);
    const struct trp_resource_profile *p = trp_profiles_get(m, id);
    g_assert_cmpstr(p->name, ==, "a+b");
    g_assert_cmpint(p->executor.cores, ==, 4);
    g_assert_cmpint(p->cpus, ==, 2);
    /* The same content is known now, whatever the order. */
    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){c, a, b, a}, 4, &again, NULL), ==,
        0);
    g_assert_cmpuint(again.n, ==, id.n);
    g_assert_cmpuint(trp_profiles_count(m), ==, 5);
    trp_profiles_free(m);
}

TEST("it unites custom resources")
{
    trp_profiles *m = merging_manager();
    trp_profile_id a = make_profile(m, "a", "cores 4, memory 1g, gpu 2 | gpu 1/2");
    trp_profile_id b = make_profile(m, "b", "memory 3g, fpga 1, gpu 1 | fpga 1, gpu 1");
    trp_profile_id light = make_profile(m, "light", "cpus 1");
    trp_profile_id lighter = make_profile(m, "lighter", "");
    trp_profile_id id;

    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){a, b, light}, 3, &id, NULL), ==, 0);
    const struct trp_resource_profile *p = trp_profiles_get(m, id);
    g_assert_cmpint(p->executor.cores, ==, 4);
    g_assert_cmpint(p->executor.memory_mib, ==, 3072);
    g_assert_cmpint(p->cpus, ==, 1);
    g_assert_cmpuint(p->ncustom, ==, 2);
    g_assert_cmpint(trp_profile_custom(p, "gpu")->executor, ==, 2);
    g_assert_cmpint(trp_profile_custom(p, "gpu")->task, ==, TRP_ONE);
    g_assert_cmpint(trp_profile_custom(p, "fpga")->executor, ==, 1);
    g_assert_cmpuint(p->slots, ==, 1);
    g_assert_cmpstr(p->limiting, ==, "fpga");

    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){light, lighter}, 2, &id, NULL), ==,
        0);
    g_assert_true(trp_profiles_get(m, id)->task_only);
    g_assert_cmpuint(id.n, ==, light.n); /* equivalent to it */
    trp_profiles_free(m);
}

/* A part of 0.7 is legal in a task-only profile, but not in one with executors. */
TEST("the merged one is checked too")
{
    struct trp_profile_defaults d;
    trp_error err;

    trp_options_profile_defaults(NULL, &d);
    d.kind = TRP_MANAGER_STATIC;
    d.merge_conflicts = true;
    add_default_resource(&d, "gpu", 2, 0);
    trp_profiles *m = manager_of(&d);
    trp_profile_id a = make_profile(m, "a", "cores 2, gpu 1 | gpu 1/2");
    trp_profile_id b = make_profile(m, "b", "gpu 0.7");
    trp_profile_id id = {99};

    g_assert_cmpint(trp_profiles_of_stage(m, (trp_profile_id[]){a, b}, 2, &id, &err),
                    ==, TRP_EINVAL);
    assert_contains(err.text, "a+b");
    assert_contains(err.text, "gpu 0.7");
    g_assert_cmpuint(id.n, ==, 99);
    g_assert_cmpuint(trp_profiles_count(m), ==, 3);
    trp_profiles_free(m);
}

/* profile-of-a-stage.yaml */
TEST("a stage has one profile")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    trp_profile_id one = make_profile(m, "rp1", "cores 4 | cpus 1");
    trp_profile_id two = make_profile(m, "rp2", "cores 2 | cpus 2");
    trp_profile_id id = {99};
    trp_error err;

    g_assert_cmpint(trp_profiles_of_stage(m, NULL, 0, &id, NULL), ==, 0);
    g_assert_cmpuint(id.n, ==, 0);
    g_assert_cmpint(trp_profiles_of_stage(m, &one, 1, &id, NULL), ==, 0);
    g_assert_cmpuint(id.n, ==, one.n);
    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){one, one}, 2, &id, NULL), ==, 0);
    g_assert_cmpuint(id.n, ==, one.n);
    id.n = 99;
    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){one, one, two}, 3, &id, &err), ==,
        TRP_EINVAL);
    assert_contains(err.text, "Multiple ResourceProfiles specified in the RDDs");
    assert_contains(err.text, "rp1");
    assert_contains(err.text, "rp2");
    g_assert_cmpint(trp_profiles_of_stage(m, (trp_profile_id[]){{50}}, 1, &id, &err),
                    ==, TRP_EINVAL);
    assert_contains(err.text, "50");
    g_assert_cmpuint(id.n, ==, 99);
    trp_profiles_free(m);
}
