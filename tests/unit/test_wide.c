/* Wide operations in this process (fake_driver.h), held against plain loops. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_driver.h"
#include "unit.h"

enum { NUMBERS = 20000, KEYS = 700 };

/* Number n: its key is "k<n % KEYS>" … */
TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v;
        char key[32];
        memcpy(&v, trp_value(in, i, NULL), sizeof(v));
        int n = snprintf(key, sizeof(key), "k%lld", (long long)(v % KEYS));
        if (trp_emit(out, key, (size_t)n, &v, sizeof(v)) < 0)
            return -1;
    }
    return 0;
}

/* … the same as doubles, a third of each … */
TRP_FUNCTION(thirds);
int thirds(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v;
        size_t n;
        memcpy(&v, trp_value(in, i, NULL), sizeof(v));
        double third = (double)v / 3;
        const void *key = trp_key(in, i, &n);
        if (trp_emit(out, key, n, &third, sizeof(third)) < 0)
            return -1;
    }
    return 0;
}

/* … and "x" for all of them. */
TRP_FUNCTION(one_key);
int one_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit(out, "x", 1, trp_value(in, i, NULL), 8) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(few);
int few(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int32_t keep = trp_get_i64(in, i) < 5;
        if (trp_emit(out, NULL, 0, &keep, sizeof(keep)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(narrow_value);
int narrow_value(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    return in->count ? trp_emit(out, "k", 1, "1234567", 7) : 0;
}

/* What was collected: the value of each key, which come once; -1: it did not come. */
static void values_of(trp_dataset *d, int64_t ret[KEYS])
{
    trp_rows *rows;
    if (trp_collect(d, &rows) < 0)
        g_error("%s", trp_error_text(d->context));
    const trp_batch *b = trp_rows_batch(rows);
    for (size_t i = 0; i < KEYS; i++)
        ret[i] = -1;
    for (size_t i = 0; i < b->count; i++) {
        char key[32] = "";
        size_t n, nv;
        const void *k = trp_key(b, i, &n);
        g_assert_cmpuint(n, <, sizeof(key));
        memcpy(key, k, n);
        int at = atoi(key + 1);
        g_assert_cmpint(ret[at], ==, -1);
        memcpy(&ret[at], trp_value(b, i, &nv), 8);
        g_assert_cmpuint(nv, ==, 8);
    }
    trp_rows_free(rows);
}

TEST("each sum is that of a loop")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, NUMBERS, 9), keyed, NULL, 0);
    int64_t sum[KEYS], least[KEYS], most[KEYS], count[KEYS];
    values_of(trp_reduce_by_key(d, TRP_SUM_I64, 5), sum);
    values_of(trp_reduce_by_key(d, TRP_MIN_I64, 1), least);
    values_of(trp_reduce_by_key(d, TRP_MAX_I64, 1000), most);
    values_of(trp_reduce_by_key(d, TRP_COUNT, 5), count);
    for (int64_t k = 0; k < KEYS; k++) {
        int64_t want = 0, n = 0, last = 0;
        for (int64_t v = k; v < NUMBERS; v += KEYS) {
            want += v;
            last = v;
            n++;
        }
        g_assert_cmpint(sum[k], ==, want);
        g_assert_cmpint(least[k], ==, k);
        g_assert_cmpint(most[k], ==, last);
        g_assert_cmpint(count[k], ==, n);
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("sums of doubles")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 1, NUMBERS, 4), keyed, NULL, 0);
    d = trp_transform(d, thirds, NULL, 0);
    static const enum trp_sum sums[] = {TRP_SUM_F64, TRP_MIN_F64, TRP_MAX_F64};
    for (size_t i = 0; i < 3; i++) {
        int64_t got[KEYS];
        values_of(trp_reduce_by_key(d, sums[i], 3), got);
        for (int64_t k = 0; k < KEYS; k++) {
            double sum = 0, least = 1e300, most = 0, value;
            for (int64_t v = k ? k : KEYS; v < NUMBERS; v += KEYS) {
                sum += (double)v / 3;
                least = least < (double)v / 3 ? least : (double)v / 3;
                most = (double)v / 3;
            }
            memcpy(&value, &got[k], 8);
            double want = i == 0 ? sum : i == 1 ? least : most;
            g_assert_cmpfloat_with_epsilon(value, want, want * 1e-12);
        }
    }
    trp_finalize(ctx);
}

/* Files of map task `map` of a dataset, in fake.folder. */
static uint32_t files_of(uint32_t dataset, uint32_t map, char *ret_path, size_t size)
{
    char start[64];
    uint32_t n = 0;
    DIR *dir = opendir(fake.folder);
    g_assert_nonnull(dir);
    snprintf(start, sizeof(start), "%u-%u-", dataset, map);
    for (struct dirent *e; (e = readdir(dir));)
        if (strncmp(e->d_name, start, strlen(start)) == 0) {
            snprintf(ret_path, size, "%s/%s", fake.folder, e->d_name);
            n++;
        }
    closedir(dir);
    return n;
}

TEST("outputs are shared and made again when lost")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, NUMBERS, 9), keyed, NULL, 0);
    trp_dataset *sums = trp_reduce_by_key(d, TRP_SUM_I64, 5);
    int64_t want[KEYS], got[KEYS];
    uint64_t n;
    char path[4096];
    values_of(sums, want);
    g_assert_cmpuint(fake.attempts, ==, 9 + 5);
    g_assert_cmpint(trp_count(sums, &n), ==, 0);
    g_assert_cmpuint(n, ==, KEYS);
    g_assert_cmpuint(fake.attempts, ==, 9 + 5 + 5);
    values_of(sums, got);
    g_assert_cmpuint(fake.ndatasets, ==, 4); /* the side, collect, count, collect */
    g_assert_cmpuint(files_of(0, 3, path, sizeof(path)), ==, 1);
    g_assert_cmpint(unlink(path), ==, 0);
    values_of(sums, got);
    g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
    g_assert_cmpuint(fake.maps_again, ==, 1);
    g_assert_cmpuint(files_of(0, 5, path, sizeof(path)), ==, 1);
    g_assert_cmpint(truncate(path, 100), ==, 0);
    values_of(sums, got);
    g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
    g_assert_cmpuint(fake.maps_again, ==, 2);
    for (uint32_t map = 0; map < 9; map++) { /* all that are gone are told at once */
        g_assert_cmpuint(files_of(0, map, path, sizeof(path)), >=, 1);
        while (files_of(0, map, path, sizeof(path)))
            g_assert_cmpint(unlink(path), ==, 0);
    }
    values_of(sums, got);
    g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
    g_assert_cmpuint(fake.maps_again, ==, 2 + 9);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("wide on wide and unions")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, NUMBERS, 3), keyed, NULL, 0);
    trp_dataset *a = trp_reduce_by_key(d, TRP_COUNT, 4);
    trp_dataset *b =
        trp_reduce_by_key(trp_transform(a, one_key, NULL, 0), TRP_SUM_I64, 2);
    trp_rows *rows;
    int64_t all;
    g_assert_cmpint(trp_collect(b, &rows), ==, 0);
    g_assert_cmpuint(trp_rows_batch(rows)->count, ==, 1);
    memcpy(&all, trp_value(trp_rows_batch(rows), 0, NULL), 8);
    g_assert_cmpint(all, ==, NUMBERS);
    /* a twice and its source once more, in one stage and behind one shuffle */
    trp_dataset *u = trp_union(a, trp_union(trp_reduce_by_key(d, TRP_COUNT, 7), a));
    uint64_t n;
    g_assert_cmpuint(trp_partition_count(u), ==, 4 + 7 + 4);
    g_assert_cmpint(trp_count(u, &n), ==, 0);
    g_assert_cmpuint(n, ==, UINT64_C(3) * KEYS);
    int64_t got[KEYS];
    values_of(trp_reduce_by_key(u, TRP_SUM_I64, 3), got);
    for (int64_t k = 0; k < KEYS; k++)
        g_assert_cmpint(got[k], ==, (NUMBERS - k + KEYS - 1) / KEYS * 3);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("no records and one key")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_transform(trp_range(ctx, 5, 5, 3), keyed, NULL, 0);
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_SUM_I64, 8), &n), ==, 0);
    g_assert_cmpuint(n, ==, 0);
    d = trp_transform(trp_range(ctx, 0, NUMBERS, 3), one_key, NULL, 0);
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_SUM_I64, 8), &n), ==, 0);
    g_assert_cmpuint(n, ==, 1);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("mistakes are told")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_range(ctx, 0, 10, 2);
    g_assert_null(trp_reduce_by_key(NULL, TRP_SUM_I64, 1));
    g_assert_null(trp_reduce_by_key(d, (enum trp_sum)99, 1));
    assert_error(ctx, "trp_reduce_by_key: no sum 99");
    g_assert_null(trp_reduce_by_key(d, TRP_SUM_I64, 0));
    assert_error(ctx, "trp_reduce_by_key: 0 partitions");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_SUM_I64, 1), &n), <, 0);
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_COUNT, 1), &n), <, 0);
    assert_error(ctx, "trp_reduce_by_key: a record has no key");
    d = trp_transform(d, narrow_value, NULL, 0);
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_SUM_I64, 1), &n), <, 0);
    assert_error(ctx, "a value has 7 bytes; there must be 8");
    g_assert_cmpint(trp_count(trp_reduce_by_key(d, TRP_COUNT, 1), &n), ==, 0);
    g_assert_cmpuint(n, ==, 1);
    trp_finalize(ctx);
}

/* Each side in the profile of its own chain. */
TEST("profiles stop at wide nodes")
{
    trp_context *ctx = fake_init();
    trp_profile *p, *q;
    uint64_t n;
    trp_profile_new(ctx, "p", &p);
    trp_profile_executor(p, "cores", 2);
    g_assert_cmpint(trp_profile_build(p), ==, 0);
    trp_profile_new(ctx, "q", &q);
    trp_profile_executor(q, "cores", 3);
    g_assert_cmpint(trp_profile_build(q), ==, 0);
    trp_dataset *d = trp_with_resources(trp_range(ctx, 0, 10, 2), p);
    d = trp_reduce_by_key(trp_transform(d, keyed, NULL, 0), TRP_SUM_I64, 3);
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, 0);
    g_assert_cmpint(trp_count(trp_with_resources(d, q), &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, q->id.n);
    g_assert_cmpuint(fake.datasets[0].profile.n, ==, p->id.n);
    g_assert_cmpstr(fake.datasets[0].name, ==, "trp_reduce_by_key trp_range → keyed");
    g_assert_cmpstr(fake.datasets[1].name, ==, "count trp_reduce_by_key");
    trp_finalize(ctx);
}

TEST("names and shapes in one line")
{
    trp_context *ctx = fake_init();
    trp_profile *p;
    uint64_t n;
    g_assert_cmpint(
        trp_profile_from(ctx, "p", " cores=2 memory=1g gpu=2  / gpu=1/2 cpus=1 ", &p),
        ==, 0);
    const struct trp_resource_profile *r = trp_profiles_get(ctx->profiles, p->id);
    g_assert_cmpint(r->cores, ==, 2);
    g_assert_cmpint(r->memory_mib, ==, 1024);
    g_assert_cmpuint(r->slots, ==, 2);
    static const char *const bad[] = {"cores", "=2", "cores=", "cores=2 /gpu",
                                      "cores=x"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmpint(trp_profile_from(ctx, "q", bad[i], &p), ==, TRP_EINVAL);
    g_assert_cmpint(trp_profile_from(ctx, "q", "cores=2 / gpu=1", &p), ==, TRP_EINVAL);
    g_assert_cmpint(trp_profile_from(ctx, "q", "/ cpus=1", &p), ==, 0);
    trp_dataset *d =
        trp_named(trp_transform(trp_range(ctx, 0, 9, 2), keyed, NULL, 0), "k");
    d = trp_named(trp_reduce_by_key(d, TRP_SUM_I64, 2), "früher");
    d = trp_with_resources(trp_named(trp_filter(d, few, NULL, 0), "später"), p);
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpstr(fake.datasets[0].name, ==, "k");
    g_assert_cmpstr(fake.datasets[1].name, ==, "später");
    g_assert_null(trp_named(d, ""));
    g_assert_null(trp_named(d, "a\nb"));
    g_assert_null(trp_named(d, "\xff"));
    g_assert_null(trp_named(d, NULL));
    trp_finalize(ctx);
}

/* A lineage of many wide nodes takes no stack. */
TEST("a long lineage")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 10, 1), keyed, NULL, 0);
    for (int i = 0; i < 1000; i++)
        d = trp_reduce_by_key(d, TRP_SUM_I64, 1);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 10);
    trp_finalize(ctx);
}
