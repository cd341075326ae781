/* Datasets that are kept: what is there is not computed again, what is not there is, and
 * results are the same. */
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "os/tree.h"
#include "unit.h"

static uint32_t calls; /* of `counted`, which runs in this process */

TRP_FUNCTION(counted);
int counted(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    calls++;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, NULL, 0, trp_get_i64(in, i) * 2) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(passed);
int passed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, NULL, 0, trp_get_i64(in, i)) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t key = trp_get_i64(in, i) % 5;
        if (trp_emit_i64(out, &key, sizeof(key), 1) < 0)
            return -1;
    }
    return 0;
}

/* Fails the first time, with half of its records out. */
TRP_FUNCTION(fails_once);
int fails_once(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        if (i == in->count / 2 && trp_task_attempt(t) == 0)
            return 7;
        if (trp_emit_i64(out, NULL, 0, trp_get_i64(in, i)) < 0)
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

TEST("what is kept is computed once")
{
    for (unsigned level = TRP_MEMORY_ONLY; level <= TRP_MEMORY_AND_DISK; level++) {
        trp_context *ctx = fake_init();
        trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
        trp_rows *rows;
        d = trp_persist(d, (enum trp_storage)level);
        calls = 0;
        assert_count(d, 100);
        assert_count(d, 100);
        g_assert_cmpint(trp_collect(trp_transform(d, passed, NULL, 0), &rows), ==, 0);
        const trp_batch *b = trp_rows_batch(rows);
        g_assert_cmpuint(b->count, ==, 100);
        for (size_t i = 0; i < b->count; i++)
            g_assert_cmpint(trp_get_i64(b, i), ==, 2 * (int64_t)i);
        g_assert_cmpuint(calls, ==, 4);
        g_assert_cmpuint(fake.misses, ==, 4);
        g_assert_cmpuint(fake.hits, ==, 8);
        g_assert_cmpint(trp_finalize(ctx), ==, 0);
    }
}

TEST("jobs share it")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
    d = trp_persist(d, TRP_MEMORY_ONLY);
    calls = 0;
    assert_count(trp_reduce_by_key(trp_transform(d, keyed, NULL, 0), TRP_SUM_I64, 3),
                 5);
    assert_count(trp_distinct(d, 2), 100);
    assert_count(trp_coalesce(d, 3), 100);
    assert_count(trp_union(d, d), 200);
    g_assert_cmpuint(calls, ==, 4);
    /* told once, between what reads it and what it reads */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fake.ndatasets; i++)
        kept += fake.datasets[i].kept;
    g_assert_cmpuint(kept, ==, 1);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("behind a shuffle and above another kept one")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
    trp_dataset *below = trp_persist(d, TRP_MEMORY_ONLY);
    d = trp_reduce_by_key(trp_transform(below, keyed, NULL, 0), TRP_COUNT, 3);
    trp_dataset *above = trp_persist(d, TRP_MEMORY_ONLY);
    calls = 0;
    assert_count(above, 5);
    g_assert_cmpuint(fake.misses, ==, 4 + 3);
    assert_count(above, 5);
    g_assert_cmpuint(fake.hits, ==, 3);
    assert_count(trp_persist(trp_transform(above, passed, NULL, 0), TRP_DISK_ONLY), 5);
    g_assert_cmpuint(fake.hits, ==, 6);
    assert_count(below, 100);
    g_assert_cmpuint(fake.hits, ==, 10);
    g_assert_cmpuint(calls, ==, 4);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("of a failed attempt nothing is kept")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 2), fails_once, NULL, 0);
    d = trp_persist(d, TRP_MEMORY_ONLY);
    assert_count(d, 100);
    assert_count(d, 100);
    g_assert_cmpuint(fake.misses, ==, 4);
    g_assert_cmpuint(fake.hits, ==, 2);
    /* what failed above it is whole all the same */
    d = trp_persist(trp_range(ctx, 0, 100, 2), TRP_MEMORY_ONLY);
    assert_count(trp_transform(d, fails_once, NULL, 0), 100);
    assert_count(d, 100);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("what has no room is computed again")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 1000, 10), counted, NULL, 0);
    d = trp_persist(d, TRP_MEMORY_ONLY);
    fake_pool(3000); /* three partitions of 800 bytes */
    calls = 0;
    assert_count(d, 1000);
    g_assert_cmpuint(calls, ==, 10);
    assert_count(d, 1000);
    g_assert_cmpuint(calls, ==, 17);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("unpersisted it is computed for each action")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
    trp_dataset *plain = d;
    uint64_t memory, disk;
    d = trp_named(trp_persist(d, TRP_MEMORY_ONLY), "kept");
    calls = 0;
    assert_count(d, 100);
    g_assert_cmpint(trp_unpersist(d), ==, 0);
    g_assert_cmpint(trp_unpersist(d), ==, 0);
    trp_block_store_used(fake.blocks, &memory, &disk);
    g_assert_cmpuint(memory, ==, 0);
    assert_count(d, 100);
    assert_count(d, 100);
    g_assert_cmpuint(calls, ==, 12);
    trp_block_store_used(fake.blocks, &memory, &disk);
    g_assert_cmpuint(memory, ==, 0);
    /* kept once more, it is another one */
    d = trp_persist(d, TRP_MEMORY_ONLY);
    assert_count(d, 100);
    assert_count(d, 100);
    g_assert_cmpuint(calls, ==, 16);
    /* never computed */
    g_assert_cmpint(trp_unpersist(trp_persist(plain, TRP_DISK_ONLY)), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("what a barrier stage computes is not kept")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_barrier(trp_range(ctx, 0, 100, 4));
    d = trp_persist(trp_transform(d, counted, NULL, 0), TRP_MEMORY_ONLY);
    calls = 0;
    assert_count(d, 100);
    assert_count(d, 100);
    g_assert_cmpuint(calls, ==, 8);
    /* what it reads may be */
    d = trp_persist(trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0),
                    TRP_MEMORY_ONLY);
    d = trp_barrier(trp_transform(d, passed, NULL, 0));
    assert_count(d, 100);
    assert_count(d, 100);
    g_assert_cmpuint(calls, ==, 12);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("preferred hosts stay where they were named")
{
    const char *const below[] = {"a", "b"}, *const above[] = {"c", "d"};
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_prefer(trp_range(ctx, 0, 100, 2), below);
    d = trp_persist(d, TRP_MEMORY_ONLY);
    assert_count(d, 100);
    g_assert_cmpstr(fake.places, ==, "");
    g_assert_cmpstr(fake.datasets[0].places, ==, "a|b|");
    g_assert_true(fake.datasets[0].kept);
    assert_count(trp_prefer(d, above), 100);
    g_assert_cmpstr(fake.places, ==, "c|d|");
    assert_count(trp_coalesce(d, 1), 100); /* the kept one's own */
    g_assert_cmpstr(fake.places, ==, "");
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

static const char *reads_of(trp_dataset *d, uint64_t want)
{
    assert_count(d, want);
    return fake.datasets[fake.ndatasets - 1].reads;
}

/* Tasks are told to go where what they read is kept, however it is put together. */
TEST("kept ones are found beside each other and in runs")
{
    trp_context *ctx = fake_init();
    trp_dataset *a = trp_transform(trp_range(ctx, 0, 40, 4), counted, NULL, 0);
    trp_dataset *b = trp_transform(trp_range(ctx, 0, 30, 3), counted, NULL, 0);
    a = trp_persist(a, TRP_MEMORY_ONLY); /* dataset 0 */
    g_assert_cmpstr(reads_of(trp_transform(a, passed, NULL, 0), 40), ==, "0 from 0; ");
    g_assert_cmpstr(reads_of(trp_union(b, a), 70), ==, "0 from 3; ");
    g_assert_cmpstr(reads_of(trp_union(a, a), 80), ==, "0 from 0; 0 from 4; ");
    g_assert_cmpstr(reads_of(trp_coalesce(a, 3), 40), ==, "0 from 0: 0 1 2 4; ");
    b = trp_persist(b, TRP_MEMORY_ONLY);
    trp_dataset *both = trp_union(a, b);
    uint32_t id = fake.ndatasets;
    g_autofree char *want = g_strdup_printf("0 from 0: 0 3 4; %u from 1: 0 3; ", id);
    g_assert_cmpstr(reads_of(trp_coalesce(both, 2), 70), ==, want);
    both = trp_coalesce(trp_union(trp_union(b, a), b), 4);
    g_autofree char *three = g_strdup_printf("%u from 0: 0 2 3; 0 from 1: 0 2 4; "
                                             "%u from 3: 0 3; ",
                                             id, id);
    g_assert_cmpstr(reads_of(both, 100), ==, three);
    g_autofree char *again = g_strdup_printf("%u from 0: 0 3; 0 from 0: 0 2 4; "
                                             "%u from 1: 0 3; ",
                                             id, id);
    g_assert_cmpstr(reads_of(trp_coalesce(both, 2), 100), ==, again);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- checkpoints ---- */

static char *new_folder(char **ret_tmp)
{
    *ret_tmp = g_dir_make_tmp("checkpoint-XXXXXX", NULL);
    return g_build_filename(*ret_tmp, "c", NULL);
}

static void remove_folder(char *tmp)
{
    size_t budget = SIZE_MAX;
    g_assert_cmpint(trp_tree_remove(AT_FDCWD, tmp, &budget), ==, 0);
    g_free(tmp);
}

TEST("a checkpoint is written once and read from then on")
{
    trp_context *ctx = fake_init();
    char *tmp;
    g_autofree char *folder = new_folder(&tmp);
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
    trp_rows *rows;
    d = trp_checkpoint(d, folder);
    calls = 0;
    g_assert_cmpuint(trp_partition_count(d), ==, 4);
    assert_count(d, 100);
    assert_count(trp_reduce_by_key(trp_transform(d, keyed, NULL, 0), TRP_COUNT, 3), 5);
    assert_count(trp_coalesce(trp_union(d, d), 3), 200);
    g_assert_cmpint(trp_collect(trp_transform(d, passed, NULL, 0), &rows), ==, 0);
    for (size_t i = 0; i < 100; i++)
        g_assert_cmpint(trp_get_i64(trp_rows_batch(rows), i), ==, 2 * (int64_t)i);
    g_assert_cmpuint(calls, ==, 4);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
    remove_folder(tmp);
}

TEST("behind shuffles and checkpoints")
{
    trp_context *ctx = fake_init();
    char *tmp, *tmp2;
    g_autofree char *a = new_folder(&tmp), *b = new_folder(&tmp2);
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 4), counted, NULL, 0);
    d = trp_checkpoint(trp_distinct(trp_checkpoint(d, a), 3), b);
    d = trp_persist(trp_transform(d, keyed, NULL, 0), TRP_MEMORY_ONLY);
    calls = 0;
    assert_count(trp_distinct(d, 2), 5);
    assert_count(d, 100);
    g_assert_cmpuint(calls, ==, 4);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
    remove_folder(tmp);
    remove_folder(tmp2);
}

TEST("a task that failed leaves no part")
{
    trp_context *ctx = fake_init();
    char *tmp;
    g_autofree char *folder = new_folder(&tmp);
    g_autofree char *part = g_build_filename(folder, "part-00001", NULL);
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 2), fails_once, NULL, 0);
    uint64_t n;
    d = trp_checkpoint(d, folder);
    assert_count(d, 100);
    assert_count(d, 100);
    /* there is nothing else that it could be made of */
    g_assert_cmpint(truncate(part, 40), ==, 0);
    g_assert_cmpint(trp_count(d, &n), <, 0);
    assert_error(ctx, "part-00001 is damaged");
    g_assert_cmpint(unlink(part), ==, 0);
    g_assert_cmpint(trp_count(d, &n), <, 0);
    assert_error(ctx, "part-00001: No such file or directory");
    trp_error_clear(ctx);
    trp_finalize(ctx);
    remove_folder(tmp);
}

TEST("a folder is for one checkpoint")
{
    trp_context *ctx = fake_init();
    char *tmp;
    g_autofree char *folder = new_folder(&tmp);
    g_autofree char *below = g_build_filename(folder, "checkpoint", "x", NULL);
    trp_dataset *d = trp_range(ctx, 0, 100, 2);
    g_assert_nonnull(trp_checkpoint(d, folder));
    g_assert_null(trp_checkpoint(d, folder));
    assert_error(ctx, "is not an empty folder");
    g_assert_null(trp_checkpoint(d, below));
    assert_error(ctx, "cannot use the folder");
    g_assert_null(trp_checkpoint(d, ""));
    g_assert_null(trp_checkpoint(NULL, folder));
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
    remove_folder(tmp);
}

TEST("wrong calls are told")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 100, 4);
    g_assert_null(trp_persist(d, (enum trp_storage)4));
    assert_error(ctx, "trp_persist: 4 is no level");
    g_assert_null(trp_persist(NULL, TRP_MEMORY_ONLY));
    g_assert_cmpint(trp_unpersist(d), ==, TRP_EINVAL);
    assert_error(ctx, "trp_unpersist: give what trp_persist returned");
    g_assert_cmpint(
        trp_unpersist(trp_transform(trp_persist(d, TRP_DISK_ONLY), counted, NULL, 0)),
        ==, TRP_EINVAL);
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}
