/* Jobs that are not waited for at once, as a program sees them. */
#include "fake_driver.h"
#include "unit.h"

TRP_FUNCTION(add_arg);
int add_arg(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    int64_t more;
    (void)t;
    memcpy(&more, arg, sizeof(more));
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, NULL, 0, trp_get_i64(in, i) + more) < 0)
            return 1;
    return 0;
}

TRP_FUNCTION(refuses);
int refuses(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)in, (void)out, (void)arg;
    trp_task_error(t, "no good");
    return 3;
}

TRP_COMBINE(scaled_sum);
int scaled_sum(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
               const void *arg)
{
    int64_t x, y, scale;
    (void)na, (void)nb;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    memcpy(&scale, arg, sizeof(scale));
    return trp_emit_i64(out, NULL, 0, x + scale * y);
}

static int64_t number(trp_job *j)
{
    const void *result;
    size_t size;
    int64_t v;
    g_assert_cmpint(trp_job_wait(j, &result, &size), ==, 0);
    g_assert_cmpuint(size, ==, sizeof(v));
    memcpy(&v, result, sizeof(v));
    return v;
}

TEST("each action has its result, for as long as the job")
{
    trp_context *ctx = fake_init();
    int64_t arg = 100;
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 6, 3), add_arg, &arg, sizeof(arg));
    int64_t scale = 2;
    trp_job *sum = trp_reduce_async(d, scaled_sum, &scale, sizeof(scale), "p");
    scale = 1; /* what was given is copied */
    trp_job *same = trp_reduce_async(d, scaled_sum, &scale, sizeof(scale), NULL);
    scale = 99;
    trp_job *n = trp_count_async(d, NULL), *rows = trp_collect_async(d, NULL);
    trp_job *none =
        trp_reduce_async(trp_range(ctx, 0, 0, 2), scaled_sum, &scale, 8, NULL);
    trp_job *each = trp_foreach_async(d, add_arg, &arg, sizeof(arg), NULL);
    g_assert_cmpstr(fake.all[0].pool, ==, "p");
    g_assert_null(fake.all[1].pool);

    const void *result = &arg;
    size_t size = 9;
    g_assert_cmpint(trp_job_wait(each, &result, &size), ==, 0);
    g_assert_true(result == NULL && size == 0);
    result = &arg;
    g_assert_cmpint(trp_job_wait(none, &result, &size), ==, 0);
    g_assert_true(result == NULL && size == 0);
    g_assert_cmpint(trp_job_wait(rows, &result, &size), ==, 0);
    const trp_batch *b = result;
    g_assert_cmpuint(size, ==, 6);
    g_assert_cmpuint(b->count, ==, 6);
    g_assert_cmpint(trp_get_i64(b, 5), ==, 105);
    g_assert_cmpint(number(n), ==, 6);
    g_assert_cmpint(number(n), ==, 6); /* said again */
    g_assert_cmpint(number(same), ==, 615);
    /* (100 + 2·101) + 2·(102 + 2·103) + 2·(104 + 2·105) */
    g_assert_cmpint(number(sum), ==, 302 + 2 * 308 + 2 * 314);
    trp_job_free(sum);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a job is called by its action and its dataset")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 6, 3);
    trp_count_async(d, NULL);
    trp_collect_async(trp_named(d, "words"), NULL);
    g_assert_cmpstr(fake.all[0].name, ==, "count trp_range");
    g_assert_cmpstr(fake.all[1].name, ==, "collect words");
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("cancelling twice, waiting twice")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_named(trp_range(ctx, 0, 6, 3), "words");
    trp_job *a = trp_count_async(d, NULL), *b = trp_count_async(d, NULL);
    trp_job *c = trp_count_async(trp_range(ctx, 0, 6, 3), NULL);
    g_assert_cmpint(trp_job_cancel(a), ==, 0);
    g_assert_cmpint(trp_job_cancel(a), ==, 0);
    g_assert_cmpint(trp_job_wait(a, NULL, NULL), ==, TRP_ECANCELLED);
    g_assert_cmpint(trp_job_wait(a, NULL, NULL), ==, TRP_ECANCELLED);
    g_assert_cmpstr(trp_error_text(ctx), ==, "Job count words cancelled");
    g_assert_cmpint(trp_job_cancel(a), ==, 0);
    g_assert_cmpint(trp_cancel_stage(ctx, "words"), ==, 0);
    g_assert_cmpint(trp_job_wait(b, NULL, NULL), ==, TRP_ECANCELLED);
    g_assert_cmpint(trp_cancel_stage(ctx, "words"), ==, TRP_ENOENT);
    g_assert_cmpstr(trp_error_text(ctx), ==,
                    "trp_cancel_stage: no job needs a stage words any more");
    g_assert_cmpint(trp_job_cancel(NULL), ==, TRP_EINVAL);
    g_assert_cmpint(number(c), ==, 6);
    g_assert_cmpint(trp_job_cancel(c), ==, 0);
    g_assert_cmpint(number(c), ==, 6);
    g_assert_cmpint(trp_finalize(ctx), ==, 0); /* the program wanted it so */
}

TEST("a failure is said each time, and counts once")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 6, 3);
    trp_job *bad = trp_foreach_async(d, refuses, NULL, 0, NULL);
    trp_job *good = trp_count_async(trp_range(ctx, 0, 2, 1), NULL);
    const void *result = ctx;
    g_assert_cmpint(number(good), ==, 2);
    g_assert_cmpint(trp_job_wait(bad, &result, NULL), ==, TRP_EFAILED);
    g_assert_true(result == ctx);
    g_autofree char *first = g_strdup(trp_error_text(ctx));
    g_assert_nonnull(strstr(first, "last with exit status 3: no good"));
    trp_error_clear(ctx);
    g_assert_cmpint(trp_job_wait(bad, NULL, NULL), ==, TRP_EFAILED);
    g_assert_cmpstr(trp_error_text(ctx), ==, first);
    g_assert_cmpint(trp_finalize(ctx), ==, 0); /* cleared, and asked for again only */
}

TEST("what cannot be begun says why")
{
    trp_context *ctx = fake_init();
    g_assert_null(trp_count_async(trp_range(ctx, 0, 6, 0), NULL));
    g_assert_cmpint(trp_job_wait(NULL, NULL, NULL), ==, TRP_EINVAL);
    g_assert_null(trp_save_async(trp_range(ctx, 0, 6, 1), "", NULL));
    g_assert_null(trp_foreach_async(trp_range(ctx, 0, 6, 1), NULL, NULL, 0, NULL));
    trp_job_free(NULL);
    g_assert_cmpuint(fake.jobs, ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

/* Memory is the sanitizers' to look at. */
TEST("jobs that nobody waits for are freed")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 6, 3);
    trp_collect_async(d, NULL);
    trp_job_free(trp_collect_async(d, NULL));
    trp_job *j = trp_collect_async(d, NULL);
    g_assert_cmpint(trp_job_wait(j, NULL, NULL), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("jobs are looked at, and waited for with a limit and one of several")
{
    trp_context *ctx = fake_init();
    trp_job *j = trp_count_async(trp_range(ctx, 0, 6, 3), NULL);
    trp_job *jobs[] = {NULL, j};
    const void *n;
    g_assert_cmpint(trp_job_test(j), ==, 0);
    g_assert_cmpint(trp_job_wait_for(j, 0, &n, NULL), ==, TRP_ETIME);
    g_assert_cmpint(trp_job_wait_any_for(jobs, 2, 0), ==, TRP_ETIME);
    g_assert_cmpint(trp_job_wait_any(jobs, 2), ==, 1);
    g_assert_cmpint(trp_job_wait_for(j, 5, &n, NULL), ==, 0);
    g_assert_cmpuint(*(const uint64_t *)n, ==, 6);
    g_assert_cmpint(trp_job_test(j), ==, 1);
    g_assert_cmpint(trp_job_wait_any(jobs, 1), ==, TRP_EINVAL);
    assert_error(ctx, "there is no job");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}
