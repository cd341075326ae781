/* Which failure a program ends with: the first that was not made good. */
#include "fake_driver.h"
#include "unit.h"

TRP_FUNCTION(fails_until);
int fails_until(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)in, (void)out, (void)arg;
    return fake.jobs > 1 ? 0 : 9;
}

/* Profile `odd`, impossible or not. */
static int build(trp_context *ctx, gboolean fine)
{
    trp_profile *p;
    int rc = trp_profile_new(ctx, "odd", &p);
    if (rc < 0)
        return rc;
    trp_profile_task_text(p, "cpus", fine ? "1" : "1/3");
    return trp_profile_build(p);
}

TEST("a profile's error is made good by a later build under its name")
{
    trp_context *ctx = fake_init();
    g_assert_cmpint(build(ctx, FALSE), ==, TRP_EINVAL);
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
    g_assert_cmpint(fake.end_status, ==, 2);

    ctx = fake_init();
    g_assert_cmpint(build(ctx, FALSE), ==, TRP_EINVAL);
    g_assert_cmpint(build(ctx, FALSE), ==, TRP_EINVAL);
    g_assert_cmpint(build(ctx, TRUE), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);

    ctx = fake_init();
    g_assert_cmpint(build(ctx, TRUE), ==, 0);
    g_assert_cmpint(build(ctx, TRUE), ==, TRP_EINVAL); /* the name is taken */
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

TEST("an action's error is made good by a success on its dataset")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_range(ctx, 0, 4, 2),
                *bad = trp_transform(d, fails_until, NULL, 0);
    g_assert_cmpint(trp_foreach(bad, fails_until, NULL, 0), ==, TRP_EFAILED);
    g_assert_cmpint(trp_count(d, &n), ==, 0); /* another dataset */
    g_assert_cmpint(trp_context_status(ctx), ==, 1);
    g_assert_cmpint(trp_foreach(bad, fails_until, NULL, 0), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("the first error that is left is the exit status")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_range(ctx, 0, 4, 2),
                *bad = trp_transform(d, fails_until, NULL, 0);
    g_assert_cmpint(trp_count(bad, &n), ==, TRP_EFAILED);
    g_assert_cmpint(build(ctx, FALSE), ==, TRP_EINVAL);
    g_assert_cmpint(trp_context_status(ctx), ==, 1);
    g_assert_cmpint(trp_foreach(bad, fails_until, NULL, 0), ==, 0);
    g_assert_cmpint(trp_context_status(ctx), ==, 2);
    g_assert_null(trp_range(ctx, 0, 4, 0)); /* nothing makes that good … */
    g_assert_cmpint(build(ctx, TRUE), ==, 0);
    g_assert_cmpint(trp_context_status(ctx), ==, 2);
    trp_error_clear(ctx); /* … but this */
    g_assert_null(trp_text_files(ctx, "/nowhere/*", 1));
    g_assert_cmpint(trp_context_status(ctx), ==, 2);
    trp_error_clear(ctx);
    g_assert_cmpstr(trp_error_text(ctx), ==, "");
    g_assert_cmpint(trp_context_status(ctx), ==, 0);
    g_assert_cmpint(trp_count(NULL, &n), ==, TRP_EINVAL);
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

TEST("what ends the run from outside is stronger")
{
    trp_context *ctx = fake_init();
    g_assert_cmpint(build(ctx, FALSE), ==, TRP_EINVAL);
    fake.stopped = TRP_ETIME;
    g_assert_cmpint(trp_finalize(ctx), ==, 75);
}
