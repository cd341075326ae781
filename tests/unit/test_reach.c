/* What goes when the program lets go of a dataset, and what stays. */
#include <string.h>

#include "api/lineage.h"
#include "fake_driver.h"
#include "unit.h"

static uint32_t calls; /* of `keyed`, which runs in this process */

TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    calls++;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i), key = v % 7;
        if (trp_emit_i64(out, &key, sizeof(key), v) < 0)
            return -1;
    }
    return 0;
}

static void assert_count(trp_dataset *d, uint64_t want)
{
    uint64_t n;
    if (trp_count(d, &n) < 0)
        g_error("%s", trp_error_text(trp_context_current()));
    g_assert_cmpuint(n, ==, want);
}

static uint32_t nodes(const trp_context *ctx)
{
    uint32_t n = 0;
    for (const trp_dataset *d = ctx->datasets; d; d = d->next)
        n++;
    return n;
}

/* Datasets of the driver that it was not told to free. */
static uint32_t there(void)
{
    return fake.ndatasets - fake.freed;
}

static trp_dataset *on(trp_dataset *made, trp_dataset *of)
{
    trp_dataset_free(of);
    return made;
}

TEST("what a dataset alone needed goes with it")
{
    trp_context *ctx = fake_init();
    trp_dataset *base = trp_range(ctx, 0, 100, 4);
    trp_dataset *sums =
        trp_reduce_by_key(trp_transform(base, keyed, NULL, 0), TRP_SUM_I64, 3);
    calls = 0;
    assert_count(sums, 7);
    g_assert_cmpuint(there(), ==, 2); /* the side and the action */
    trp_dataset_free(sums);
    g_assert_cmpuint(there(), ==, 0);
    g_assert_cmpuint(nodes(ctx), ==, 2);
    assert_count(base, 100);
    trp_dataset_free(NULL);
    g_assert_cmpuint(calls, ==, 4);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("what was used otherwise, too, stays until it is freed itself")
{
    trp_context *ctx = fake_init();
    trp_dataset *sums = trp_reduce_by_key(
        trp_transform(trp_range(ctx, 0, 100, 4), keyed, NULL, 0), TRP_SUM_I64, 3);
    trp_dataset *a = trp_union(sums, sums), *b = trp_distinct(sums, 2);
    calls = 0;
    assert_count(a, 14);
    trp_dataset_free(a);
    assert_count(b, 7);
    trp_dataset_free(b);
    assert_count(sums, 7);
    g_assert_cmpuint(calls, ==, 4);
    trp_dataset_free(sums);
    g_assert_cmpuint(there(), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a handle on the way to what was freed is valid, and computed again")
{
    trp_context *ctx = fake_init();
    trp_dataset *sums = trp_reduce_by_key(
        trp_transform(trp_range(ctx, 0, 100, 4), keyed, NULL, 0), TRP_SUM_I64, 3);
    calls = 0;
    trp_dataset *a = trp_distinct(sums, 2);
    assert_count(a, 7);
    trp_dataset_free(a);
    g_assert_cmpuint(there(), ==, 0);
    a = trp_distinct(sums, 2); /* the second time: from now on it is held */
    assert_count(a, 7);
    trp_dataset_free(a);
    assert_count(sums, 7);
    g_assert_cmpuint(calls, ==, 8);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("what is kept stays until it is unpersisted or freed")
{
    uint64_t memory, disk;
    for (int how = 0; how < 2; how++) {
        trp_context *ctx = fake_init();
        trp_dataset *kept = trp_persist(
            trp_transform(trp_range(ctx, 0, 100, 4), keyed, NULL, 0), TRP_MEMORY_ONLY);
        trp_dataset *a = trp_reduce_by_key(kept, TRP_SUM_I64, 2);
        calls = 0;
        assert_count(a, 7);
        trp_dataset_free(a);
        assert_count(kept, 100);
        g_assert_cmpuint(calls, ==, 4);
        if (how == 0)
            trp_dataset_free(kept);
        else
            g_assert_cmpint(trp_unpersist(kept), ==, 0);
        trp_block_store_used(fake.blocks, &memory, &disk);
        g_assert_cmpuint(memory, ==, 0);
        g_assert_cmpint(trp_finalize(ctx), ==, 0);
    }
}

TEST("rounds leave nothing behind when each handle is freed")
{
    trp_context *ctx = fake_init();
    trp_dataset *links = trp_persist(
        trp_transform(trp_range(ctx, 0, 50, 2), keyed, NULL, 0), TRP_MEMORY_ONLY);
    trp_dataset *ranks = trp_reduce_by_key(links, TRP_SUM_I64, 2);
    uint32_t nodes_then = 0, there_then = 0;
    for (int i = 0; i < 100; i++) {
        trp_dataset *joined = trp_join(links, ranks, TRP_INNER, 2);
        trp_dataset *next = on(trp_distinct(joined, 2), joined);
        next = on(trp_transform(next, keyed, NULL, 0), next);
        next = on(trp_reduce_by_key(next, TRP_COUNT, 2), next);
        next = on(trp_named(next, "ranks"), next);
        next = on(trp_persist(next, TRP_MEMORY_ONLY), next);
        if (i % 5 == 4) {
            g_autofree char *folder = g_strdup_printf("%s/%d", fake.folder, i);
            next = on(trp_checkpoint(next, folder), next);
        }
        uint64_t n;
        g_assert_cmpint(trp_count(next, &n), ==, 0);
        trp_dataset_free(ranks);
        ranks = next;
        if (i == 4) {
            nodes_then = nodes(ctx);
            there_then = there();
        }
    }
    g_assert_cmpuint(nodes(ctx), ==, nodes_then);
    g_assert_cmpuint(there(), ==, there_then);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a checkpoint that is written frees what lies above it")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 100, 4);
    uint64_t n;
    for (int i = 0; i < 3; i++) { /* each is asked for, as loops do */
        d = trp_reduce_by_key(trp_transform(d, keyed, NULL, 0), TRP_SUM_I64, 3);
        g_assert_cmpint(trp_count(d, &n), ==, 0);
    }
    g_assert_cmpuint(there(), ==, 6);
    g_autofree char *folder = g_strdup_printf("%s/written", fake.folder);
    trp_dataset *c = trp_checkpoint(d, folder);
    g_assert_cmpint(trp_count(c, &n), ==, 0);
    g_assert_cmpuint(there(), ==, 1);         /* the action on it */
    g_assert_cmpint(trp_count(d, &n), ==, 0); /* if it is asked for all the same */
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a job that is not over keeps what it computes")
{
    trp_context *ctx = fake_init();
    trp_dataset *sums = trp_reduce_by_key(
        trp_transform(trp_range(ctx, 0, 100, 4), keyed, NULL, 0), TRP_SUM_I64, 3);
    trp_job *j = trp_count_async(sums, NULL);
    const void *n;
    trp_dataset_free(sums);
    g_assert_cmpuint(there(), ==, 2);
    g_assert_cmpint(trp_job_wait(j, &n, NULL), ==, 0);
    g_assert_cmpuint(*(const uint64_t *)n, ==, 7);
    trp_job_free(j);
    trp_dataset_free(trp_range(ctx, 0, 1, 1));
    g_assert_cmpuint(there(), ==, 0);
    g_assert_cmpuint(nodes(ctx), ==, 2);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("hosts and names of a dataset outlive it in what was made of it")
{
    static const char *const hosts[] = {"a", "b"};
    trp_context *ctx = fake_init();
    trp_profile *p;
    trp_dataset *d = trp_prefer(trp_range(ctx, 0, 10, 2), hosts), *named;
    g_assert_cmpint(trp_profile_from(ctx, "p", "cores=1", &p), ==, 0);
    named = trp_named(d, "numbers");
    d = on(trp_with_resources(trp_with_resources(named, p), p), named);
    assert_count(d, 10);
    g_assert_cmpstr(fake.places, ==, "a|b|");
    g_assert_cmpstr(fake.datasets[fake.dataset].name, ==, "numbers");
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("what failed on a dataset counts though it was freed")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 10, 2);
    uint64_t n;
    fake.end_status = 0;
    g_assert_cmpint(trp_save(d, ""), <, 0);
    trp_dataset_free(d);
    g_assert_cmpint(trp_count(trp_range(ctx, 0, 10, 2), &n), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), !=, 0);
}
