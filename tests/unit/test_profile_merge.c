/*
 * What is said when a stage cannot have a profile. Which one it gets is said by the
 * scenarios of layer profile.
 */
#include "conf/options.h"
#include "profile_maker.h"
#include "unit.h"

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

TEST("two profiles are refused by their names")
{
    trp_profiles *m = make_manager(TRP_MANAGER_ELASTIC);
    trp_profile_id one = make_profile(m, "rp1", "cores 4 | cpus 1");
    trp_profile_id two = make_profile(m, "rp2", "cores 2 | cpus 2");
    trp_profile_id id = {99};
    trp_error err;

    g_assert_cmpint(
        trp_profiles_of_stage(m, (trp_profile_id[]){one, one, two}, 3, &id, &err), ==,
        TRP_EINVAL);
    assert_contains(err.text, "one stage has several profiles, ");
    assert_contains(err.text, "rp1");
    assert_contains(err.text, "rp2");
    g_assert_cmpint(trp_profiles_of_stage(m, (trp_profile_id[]){{50}}, 1, &id, &err),
                    ==, TRP_EINVAL);
    assert_contains(err.text, "50");
    g_assert_cmpuint(id.n, ==, 99);
    trp_profiles_free(m);
}
