/* trp_partitions, and what stands on it: trp_take, trp_top; keys in what a program gives,
 * and files of values of one width. */
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"
#include "unit.h"

static int states; /* begun, and not ended yet; in this process */

struct sum {
    int64_t n, sum;
};

TRP_BEGIN(sum_begin);
int sum_begin(trp_task *t, void **state, trp_writer *out, const void *arg)
{
    (void)t, (void)out, (void)arg;
    *state = calloc(1, sizeof(struct sum));
    states++;
    return 0;
}

TRP_BATCH(sum_batch);
int sum_batch(trp_task *t, void *state, const trp_batch *in, trp_writer *out,
              const void *arg)
{
    struct sum *s = state;
    (void)out;
    for (size_t i = 0; i < in->count; i++) {
        s->n++;
        s->sum += trp_get_i64(in, i);
        if (arg && s->n > *(const int64_t *)arg) {
            trp_task_error(t, "too many");
            return -1;
        }
    }
    return 0;
}

TRP_END(sum_end);
int sum_end(trp_task *t, void *state, trp_writer *out, const void *arg)
{
    struct sum s = *(struct sum *)state;
    (void)t, (void)arg;
    free(state);
    states--;
    return out ? trp_emit(out, NULL, 0, &s, sizeof(s)) : 0;
}

static trp_dataset *summed(trp_dataset *d)
{
    return trp_partitions(d, sum_begin, sum_batch, sum_end, NULL, 0);
}

static void assert_sums(trp_dataset *d, const struct sum *want, size_t n)
{
    const trp_batch *b = collected(d);
    g_assert_cmpuint(b->count, ==, n);
    for (size_t i = 0; i < n; i++) {
        struct sum s;
        memcpy(&s, trp_value(b, i, NULL), sizeof(s));
        g_assert_cmpint(s.n, ==, want[i].n);
        g_assert_cmpint(s.sum, ==, want[i].sum);
    }
    g_assert_cmpint(states, ==, 0);
}

TEST("a state is of a partition, also of an empty one and of many batches")
{
    trp_context *ctx = fake_init();
    const struct sum want[] = {
        {10000, 49995000 },
        {10000, 149995000},
        {1,     5        },
        {0,     0        }
    };
    trp_dataset *d = trp_union(trp_range(ctx, 0, 20000, 2), trp_range(ctx, 5, 6, 1));
    assert_sums(summed(trp_union(d, trp_range(ctx, 0, 0, 1))), want, 4);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("above a coalesced dataset it is of all members, below it of each")
{
    trp_context *ctx = fake_init();
    const struct sum whole[] =
        {
            {4, 6 },
            {4, 22}
    },
                     each[] = {{2, 1}, {2, 5}, {2, 9}, {2, 13}};
    trp_dataset *d = trp_range(ctx, 0, 8, 4);
    assert_sums(summed(trp_coalesce(d, 2)), whole, 2);
    assert_sums(trp_coalesce(summed(d), 2), each, 4);
    d = trp_coalesce(trp_coalesce(d, 4), 2);
    assert_sums(summed(d), whole, 2);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a state of an attempt that fails is ended, with no writer")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    int64_t most = 3;
    trp_dataset *d = trp_partitions(trp_range(ctx, 0, 8, 1), sum_begin, sum_batch,
                                    sum_end, &most, sizeof(most));
    g_assert_cmpint(trp_count(d, &n), <, 0);
    assert_error(ctx, "too many");
    g_assert_cmpint(states, ==, 0);
    g_assert_null(trp_partitions(d, NULL, NULL, NULL, NULL, 0));
    assert_error(ctx, "write TRP_BATCH(name)");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- trp_take, trp_top ---- */

static uint32_t called; /* of `passed` */

TRP_FUNCTION(passed);
int passed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    called++;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i), key = -v;
        if (trp_emit_i64(out, &key, sizeof(key), v) < 0)
            return -1;
    }
    return 0;
}

static void assert_numbers(const trp_rows *r, const char *want)
{
    const trp_batch *b = trp_rows_batch(r);
    g_autoptr(GString) s = g_string_new("");
    for (size_t i = 0; i < b->count; i++)
        g_string_append_printf(s, "%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT " ",
                               trp_get_key_i64(b, i), trp_get_i64(b, i));
    g_assert_cmpstr(s->str, ==, want);
}

TEST("the first records are taken from as few partitions as have them")
{
    trp_context *ctx = fake_init();
    trp_rows *r;
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100000, 10), passed, NULL, 0);
    called = 0;
    g_assert_cmpint(trp_take(d, 3, &r), ==, 0);
    assert_numbers(r, "0:0 -1:1 -2:2 ");
    g_assert_cmpuint(called, ==, 1); /* the first batch of the first partition */
    trp_rows_free(r);
    d = trp_transform(trp_range(ctx, 0, 5, 10), passed, NULL, 0);
    g_assert_cmpint(trp_take(d, 2, &r), ==, 0);
    assert_numbers(r, "0:0 -1:1 ");
    trp_rows_free(r);
    g_assert_cmpint(trp_take(d, 99, &r), ==, 0);
    assert_numbers(r, "0:0 -1:1 -2:2 -3:3 -4:4 ");
    trp_rows_free(r);
    g_assert_cmpint(trp_take(d, 0, &r), ==, 0);
    assert_numbers(r, "");
    /* behind a wide operation, and from what is kept in part by it */
    d = trp_persist(trp_sort_by_key(d, TRP_I64, 3), TRP_MEMORY_ONLY);
    g_assert_cmpint(trp_take(d, 2, &r), ==, 0);
    assert_numbers(r, "-4:4 -3:3 ");
    g_assert_cmpint(trp_take(trp_union(d, trp_coalesce(d, 1)), 7, &r), ==, 0);
    assert_numbers(r, "-4:4 -3:3 -2:2 -1:1 0:0 -4:4 -3:3 ");
    g_assert_cmpint(trp_take(NULL, 1, &r), <, 0);
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TRP_COMPARE(by_last_digit);
int by_last_digit(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    int64_t x = trp_as_i64(a, na) % 10, y = trp_as_i64(b, nb) % 10;
    g_assert_null(arg);
    return (x > y) - (x < y);
}

TEST("the greatest are found, and of equal ones the first")
{
    trp_context *ctx = fake_init();
    trp_rows *r;
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100, 7), passed, NULL, 0);
    g_assert_cmpint(trp_top(d, 4, by_last_digit, &r), ==, 0);
    assert_numbers(r, "-9:9 -19:19 -29:29 -39:39 ");
    g_assert_cmpint(trp_top(d, 12, by_last_digit, &r), ==, 0);
    assert_numbers(r, "-9:9 -19:19 -29:29 -39:39 -49:49 -59:59 -69:69 -79:79 -89:89 "
                      "-99:99 -8:8 -18:18 ");
    g_assert_cmpint(trp_top(d, 1000, by_last_digit, &r), ==, 0);
    g_assert_cmpuint(trp_rows_batch(r)->count, ==, 100);
    g_assert_cmpint(trp_top(d, 0, by_last_digit, &r), ==, 0);
    assert_numbers(r, "");
    g_assert_cmpint(trp_top(d, 1, NULL, &r), ==, TRP_EINVAL);
    assert_error(ctx, "write TRP_COMPARE(name)");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- sources ---- */

TEST("what a program gives may have keys")
{
    trp_context *ctx = fake_init();
    const uint64_t keys[] = {0, 1, 3, 3}, values[] = {1, 1, 2, 5};
    for (uint32_t partitions = 1; partitions < 5; partitions++) {
        const trp_batch *b =
            collected(trp_pairs(ctx, "abb", keys, "-xyyy", values, 3, partitions));
        size_t n, nk;
        g_assert_cmpuint(b->count, ==, 3);
        const void *key = trp_key(b, 1, &nk), *value = trp_value(b, 1, &n);
        g_assert_cmpmem(key, nk, "bb", 2);
        g_assert_cmpmem(value, n, "x", 1);
        trp_key(b, 2, &nk);
        value = trp_value(b, 2, &n);
        g_assert_cmpuint(nk, ==, 0);
        g_assert_cmpmem(value, n, "yyy", 3);
    }
    g_assert_null(trp_pairs(ctx, NULL, NULL, "-xyyy", values, 3, 1));
    assert_error(ctx, "trp_pairs: no keys or offsets given");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("values of one width come back as they were written")
{
    trp_context *ctx = fake_init();
    g_autofree char *folder = g_strdup_printf("%s/written", fake.folder);
    g_autofree char *pattern = g_strdup_printf("%s/part-*", folder);
    g_autofree char *odd = g_strdup_printf("%s/part-odd", folder);
    trp_dataset *d = trp_range(ctx, 0, 10000, 3);
    g_assert_cmpint(trp_save_binary(d, folder), ==, 0);
    for (uint32_t partitions = 1; partitions < 90; partitions += 22) {
        const trp_batch *b = collected(trp_binary_files(ctx, pattern, 8, partitions));
        g_assert_cmpuint(b->count, ==, 10000);
        g_assert_cmpuint(b->value_width, ==, 8);
        for (size_t i = 0; i < b->count; i++)
            g_assert_cmpint(trp_get_i64(b, i), ==, (int64_t)i);
    }
    d = trp_sort_by_key(
        trp_transform(trp_binary_files(ctx, pattern, 8, 4), passed, NULL, 0), TRP_I64,
        3);
    g_assert_cmpint(trp_get_i64(collected(d), 0), ==, 9999);
    g_assert_null(trp_binary_files(ctx, pattern, 0, 1));
    g_assert_true(g_file_set_contents(odd, "12345", 5, NULL));
    g_assert_null(trp_binary_files(ctx, pattern, 8, 1));
    assert_error(ctx, "has 5 bytes, which is no multiple of 8");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}
