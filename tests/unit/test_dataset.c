/* Datasets and actions, end to end in this process (fake_driver.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_driver.h"
#include "unit.h"

/* ---- functions that tasks run ---- */

TRP_FUNCTION(add_number);
int add_number(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    int64_t more;
    memcpy(&more, arg, sizeof(more));
    g_assert_cmpuint(in->value_width, ==, 8);
    g_assert_null(in->value_offsets);
    const int64_t *v = (const int64_t *)(const void *)in->values;
    g_assert_cmpuint((uintptr_t)v % 8, ==, 0);
    for (size_t i = 0; i < in->count; i++) {
        int64_t sum = v[i] + more;
        if (trp_emit(out, NULL, 0, &sum, sizeof(sum)) < 0)
            return -1;
    }
    return 0;
}

/* Each number n becomes n % 4 words "n", with the parity as key. */
TRP_FUNCTION(words);
int words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    g_assert_null(arg);
    for (size_t i = 0; i < in->count; i++) {
        int64_t v;
        memcpy(&v, trp_value(in, i, NULL), sizeof(v));
        char text[32];
        int n = snprintf(text, sizeof(text), "%lld", (long long)v);
        for (int64_t k = 0; k < v % 4; k++)
            if (trp_emit(out, v % 2 ? "odd" : "even", v % 2 ? 3 : 4, text, (size_t)n) <
                0)
                return -1;
    }
    return 0;
}

TRP_FUNCTION(is_even);
int is_even(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v;
        memcpy(&v, trp_value(in, i, NULL), sizeof(v));
        int32_t keep = v % 2 == 0;
        trp_emit(out, NULL, 0, &keep, sizeof(keep));
    }
    return 0;
}

TRP_FUNCTION(has_odd_key);
int has_odd_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        int32_t keep = memcmp(trp_key(in, i, &n), "odd", 3) == 0;
        trp_emit(out, NULL, 0, &keep, sizeof(keep));
    }
    return 0;
}

TRP_FUNCTION(nothing);
int nothing(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)in;
    (void)out;
    (void)arg;
    return 0;
}

/* Fails with a text on the attempts before the one in `arg`. */
TRP_FUNCTION(fails_first);
int fails_first(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    uint32_t until;
    memcpy(&until, arg, sizeof(until));
    for (size_t i = 0; i < in->count; i++)
        trp_emit(out, NULL, 0, trp_value(in, i, NULL), 8);
    if (trp_task_attempt(t) >= until)
        return 0;
    trp_task_error(t, "no luck in\nattempt %u", trp_task_attempt(t));
    return 37;
}

TRP_FUNCTION(mixed_keys);
int mixed_keys(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)in;
    (void)arg;
    trp_emit(out, "k", 1, "v", 1);
    trp_emit(out, NULL, 0, "v", 1); /* fails; we do not look */
    return 0;
}

TRP_FUNCTION(resources);
int resources(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)in;
    (void)arg;
    const char *a[4] = {NULL};
    g_assert_cmpuint(trp_task_resource(t, "gpu", a, 4), ==, 2);
    g_assert_cmpstr(a[0], ==, "0");
    g_assert_cmpstr(a[1], ==, "11");
    g_assert_cmpuint(trp_task_resource(t, "fpga", a, 0), ==, 1);
    g_assert_cmpuint(trp_task_resource(t, "fpga", a, 4), ==, 1);
    g_assert_cmpstr(a[0], ==, "left");
    g_assert_cmpuint(trp_task_resource(t, "gp", a, 4), ==, 0);
    g_assert_cmpuint(trp_task_resource(t, "none", a, 4), ==, 0);
    g_assert_cmpstr(trp_task_host(t), ==, "here");
    g_assert_cmpuint(trp_task_cpus(t), ==, 1);
    g_assert_false(trp_task_killed(t));
    return trp_emit(out, NULL, 0, "seen", 4);
}

TRP_COMBINE(sum);
int sum(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    (void)arg;
    int64_t x, y;
    g_assert_cmpuint(na, ==, 8);
    g_assert_cmpuint(nb, ==, 8);
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    x += y;
    return trp_emit(out, NULL, 0, &x, 8);
}

TRP_COMBINE(join);
int join(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
         const void *arg)
{
    g_autofree char *text =
        g_strdup_printf("%.*s%s%.*s", (int)na, (const char *)a, (const char *)arg,
                        (int)nb, (const char *)b);
    return trp_emit(out, NULL, 0, text, strlen(text));
}

TRP_COMBINE(silent);
int silent(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
           const void *arg)
{
    (void)a;
    (void)na;
    (void)b;
    (void)nb;
    (void)out;
    (void)arg;
    return 0;
}

/* ---- helpers ---- */

/* "1,2,3" of int64 rows, or of text rows with keys "k=v,…". */
static char *rows_text(trp_dataset *d)
{
    trp_rows *r;
    if (trp_collect(d, &r) < 0)
        return NULL;
    const trp_batch *b = trp_rows_batch(r);
    GString *s = g_string_new("");
    for (size_t i = 0; i < b->count; i++) {
        size_t n, nk;
        const char *v = trp_value(b, i, &n), *k = trp_key(b, i, &nk);
        if (i)
            g_string_append_c(s, ',');
        if (k)
            g_string_append_printf(s, "%.*s=", (int)nk, k);
        int64_t number;
        if (b->value_width == 8) {
            memcpy(&number, v, 8);
            g_string_append_printf(s, "%lld", (long long)number);
        } else {
            g_string_append_len(s, v, (gssize)n);
        }
    }
    trp_rows_free(r);
    return g_string_free(s, FALSE);
}

static void assert_rows(trp_dataset *d, const char *want)
{
    g_autofree char *got = rows_text(d);
    g_assert_cmpstr(got, ==, want);
}

/* ---- sources ---- */

TEST("a range comes in order however it is cut")
{
    trp_context *ctx = fake_init();
    for (uint32_t parts = 1; parts < 12; parts++)
        assert_rows(trp_range(ctx, -3, 4, parts), "-3,-2,-1,0,1,2,3");
    assert_rows(trp_range(ctx, 5, 5, 3), "");
    assert_rows(trp_range(ctx, 5, 1, 3), "");
    g_assert_null(trp_range(ctx, 0, 5, 0));
    assert_error(ctx, "0 partitions");
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

TEST("a range of all int64 is cut without overflow")
{
    int64_t first, expected = INT64_MIN;
    uint64_t n, all = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        trp_range_part(INT64_MIN, INT64_MAX, 1000, i, &first, &n);
        g_assert_cmpint(first, ==, expected);
        expected = (int64_t)((uint64_t)first + n);
        all += n;
    }
    g_assert_cmpuint(all, ==, UINT64_MAX);
    trp_context *ctx = fake_init();
    assert_rows(trp_range(ctx, INT64_MAX - 2, INT64_MAX, 1),
                "9223372036854775805,9223372036854775806");
    trp_finalize(ctx);
}

TEST("arrays come aligned and in order")
{
    trp_context *ctx = fake_init();
    int64_t v[10000], one = 1;
    for (int i = 0; i < 10000; i++)
        v[i] = i;
    for (uint32_t parts = 1; parts < 20; parts += 3) {
        trp_dataset *d = trp_array(ctx, v, 10000, 8, parts);
        void *value;
        size_t size;
        d = trp_map(d, add_number, &one, sizeof(one));
        g_assert_cmpint(trp_reduce(d, sum, NULL, 0, &value, &size), ==, 0);
        g_assert_cmpuint(size, ==, 8);
        g_assert_cmpint(*(int64_t *)value, ==, 10000LL * 10001 / 2);
        free(value);
    }
    assert_rows(trp_array(ctx, "abcdefghi", 3, 3, 2), "abc,def,ghi");
    assert_rows(trp_array(ctx, NULL, 0, 3, 2), "");
    g_assert_null(trp_array(ctx, v, 10, 0, 1));
    g_assert_null(trp_array(ctx, v, SIZE_MAX / 4, 8, 1));
    trp_finalize(ctx);
}

TEST("records of any size, empty ones too, come in order")
{
    trp_context *ctx = fake_init();
    uint64_t offsets[] = {2, 5, 5, 6, 12};
    for (uint32_t parts = 1; parts < 9; parts++)
        assert_rows(trp_records(ctx, "--abcXsixsix", offsets, 4, parts),
                    "abc,,X,sixsix");
    uint64_t backwards[] = {4, 2};
    g_assert_null(trp_records(ctx, "abcdef", backwards, 1, 1));
    assert_error(ctx, "record 0");
    assert_rows(trp_records(ctx, NULL, NULL, 0, 2), "");
    trp_finalize(ctx);
}

TEST("an input too large for a launch is refused")
{
    trp_context *ctx = fake_init();
    uint32_t width = TRP_INPUT_MAX / 2 + 8;
    g_autofree uint8_t *v = g_malloc0((size_t)width * 2);
    g_assert_null(trp_array(ctx, v, 2, width, 1));
    assert_error(ctx, "use more partitions");
    g_assert_nonnull(trp_array(ctx, v, 2, width, 2));
    trp_finalize(ctx);
}

/* ---- chains ---- */

TEST("a chain of the most functions works and one more is refused")
{
    trp_context *ctx = fake_init();
    int64_t one = 1;
    trp_dataset *d = trp_range(ctx, 0, 20000, 3);
    for (int i = 0; i < TRP_STEPS_MAX - 1; i++)
        d = trp_map(d, add_number, &one, sizeof(one));
    g_assert_nonnull(d);
    void *value;
    size_t size;
    g_assert_cmpint(trp_reduce(d, sum, NULL, 0, &value, &size), ==, 0);
    g_assert_cmpint(*(int64_t *)value, ==,
                    20000LL * 19999 / 2 + 20000LL * (TRP_STEPS_MAX - 1));
    free(value);
    g_assert_cmpint(trp_foreach(d, nothing, NULL, 0), ==, 0);
    g_assert_null(trp_map(d, add_number, &one, sizeof(one)));
    assert_error(ctx, "functions in one chain");
    trp_finalize(ctx);
}

TEST("a function may emit any number of records with keys")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 100000, 3), words, NULL, 0);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 150000);
    g_assert_cmpint(trp_count(trp_filter(d, has_odd_key, NULL, 0), &n), ==, 0);
    g_assert_cmpuint(n, ==, 100000);
    assert_rows(trp_transform(trp_range(ctx, 0, 7, 2), words, NULL, 0),
                "odd=1,even=2,even=2,odd=3,odd=3,odd=3,odd=5,even=6,even=6");
    trp_finalize(ctx);
}

TEST("a filter keeps records with their keys")
{
    trp_context *ctx = fake_init();
    trp_dataset *r = trp_range(ctx, 0, 10, 3);
    assert_rows(trp_filter(r, is_even, NULL, 0), "0,2,4,6,8");
    trp_dataset *w = trp_transform(r, words, NULL, 0);
    assert_rows(trp_filter(w, has_odd_key, NULL, 0),
                "odd=1,odd=3,odd=3,odd=3,odd=5,odd=7,odd=7,odd=7,odd=9");
    uint64_t n;
    g_assert_cmpint(trp_count(trp_filter(r, words, NULL, 0), &n), ==, TRP_EFAILED);
    assert_error(ctx, "one int32 for each");
    g_assert_cmpint(trp_count(trp_filter(r, nothing, NULL, 0), &n), ==, TRP_EFAILED);
    assert_error(ctx, "one int32 for each");
    g_assert_cmpint(trp_finalize(ctx), ==, 1);
}

TEST("a map must emit one record for each")
{
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_map(trp_range(ctx, 0, 9000, 2), words, NULL, 0);
    g_assert_cmpint(trp_count(d, &n), ==, TRP_EFAILED);
    assert_error(ctx, "trp_map: words emitted 6144 records for 4096");
    trp_finalize(ctx);
}

TEST("a union has all partitions of both in order")
{
    trp_context *ctx = fake_init();
    int64_t ten = 10;
    trp_dataset *a = trp_range(ctx, 0, 3, 2), *b = trp_range(ctx, 5, 7, 1);
    trp_dataset *c = trp_map(a, add_number, &ten, sizeof(ten));
    trp_dataset *all = trp_union(trp_union(a, b), trp_union(c, a));
    g_assert_cmpuint(trp_partition_count(all), ==, 7);
    assert_rows(all, "0,1,2,5,6,10,11,12,0,1,2");
    assert_rows(trp_map(all, add_number, &ten, sizeof(ten)),
                "10,11,12,15,16,20,21,22,10,11,12");
    trp_dataset *mixed =
        trp_union(trp_transform(a, words, NULL, 0), trp_array(ctx, "xy", 2, 1, 1));
    assert_rows(mixed, "odd=1,even=2,even=2,=x,=y");
    trp_finalize(ctx);
}

TEST("doubling a union doubles no description")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 2, 1);
    for (int i = 0; i < 12; i++)
        d = trp_union(d, d);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 2 << 12);
    g_assert_cmpuint(fake.body_size, <, 400);
    for (int i = 12; i < 24; i++)
        d = trp_union(d, d);
    g_assert_cmpuint(trp_partition_count(d), ==, TRP_PARTITIONS_MAX);
    g_assert_null(trp_union(d, d));
    assert_error(ctx, "trp_union");
    trp_finalize(ctx);
}

TEST("a fold of thousands of unions works")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 1, 1);
    for (int i = 1; i < 2000; i++)
        d = trp_union(d, trp_range(ctx, i, i + 1, 1));
    void *value;
    size_t size;
    g_assert_cmpint(trp_reduce(d, sum, NULL, 0, &value, &size), ==, 0);
    g_assert_cmpint(*(int64_t *)value, ==, 2000LL * 1999 / 2);
    free(value);
    trp_finalize(ctx);
}

/* ---- actions ---- */

TEST("a reduction keeps the order of partitions")
{
    trp_context *ctx = fake_init();
    void *value;
    size_t size;
    uint64_t offsets[] = {0, 1, 2, 4, 5, 5, 6};
    for (uint32_t parts = 1; parts < 10; parts++) {
        trp_dataset *d = trp_records(ctx, "abccde", offsets, 6, parts);
        g_assert_cmpint(trp_reduce(d, join, "-", 2, &value, &size), ==, 0);
        g_assert_cmpmem(value, size, "a-b-cc-d--e", 11);
        free(value);
    }
    trp_dataset *empty = trp_records(ctx, "", offsets, 1, 1);
    (void)empty;
    g_assert_cmpint(trp_reduce(trp_range(ctx, 0, 0, 4), join, "-", 2, &value, &size),
                    ==, 0);
    g_assert_null(value);
    g_assert_cmpuint(size, ==, 0);
    uint64_t none[] = {0, 0};
    g_assert_cmpint(
        trp_reduce(trp_records(ctx, "", none, 1, 3), join, "-", 2, &value, &size), ==,
        0);
    g_assert_nonnull(value); /* one empty value is not no value */
    g_assert_cmpuint(size, ==, 0);
    free(value);
    g_assert_cmpint(trp_reduce(trp_range(ctx, 0, 3, 1), silent, NULL, 0, &value, &size),
                    ==, TRP_EFAILED);
    assert_error(ctx, "exactly one value");
    g_assert_cmpint(trp_reduce(trp_range(ctx, 0, 3, 3), silent, NULL, 0, &value, &size),
                    ==, TRP_EFAILED);
    assert_error(ctx, "on the driver");
    trp_finalize(ctx);
}

TEST("a retried or doubled success counts once")
{
    trp_context *ctx = fake_init();
    uint32_t until = 2;
    trp_dataset *d =
        trp_transform(trp_range(ctx, 0, 6, 3), fails_first, &until, sizeof(until));
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 6);
    g_assert_cmpuint(fake.attempts, ==, 9);
    assert_rows(d, "0,1,2,3,4,5");
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a failed action says stage, task, times, code and text")
{
    trp_context *ctx = fake_init();
    uint32_t until = 99;
    trp_dataset *d =
        trp_transform(trp_range(ctx, 0, 6, 3), fails_first, &until, sizeof(until));
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, TRP_EFAILED);
    g_assert_cmpstr(trp_error_text(ctx), ==,
                    "stage count trp_range → fails_first: task 0 failed 4 times, last "
                    "with exit status 37: no luck in attempt 3");
    g_assert_cmpint(
        trp_count(trp_transform(trp_range(ctx, 0, 1, 1), mixed_keys, NULL, 0), &n), ==,
        TRP_EFAILED);
    assert_error(ctx, "some records have a key");
    g_assert_cmpint(trp_finalize(ctx), ==, 1);
    g_assert_cmpint(fake.end_status, ==, 1);
}

TEST("an error in a chain is told by its action")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_text_files(ctx, "/nowhere/*.txt", 3);
    d = trp_map(trp_filter(d, is_even, NULL, 0), words, NULL, 0);
    g_assert_null(trp_union(d, trp_range(ctx, 0, 1, 1)));
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, TRP_ENOENT);
    assert_error(ctx, "no file matches /nowhere/*.txt");
    g_assert_cmpuint(trp_partition_count(d), ==, 0);
    g_assert_null(trp_transform(trp_range(ctx, 0, 1, 1), (trp_function)NULL, NULL, 0));
    assert_error(ctx, "TRP_FUNCTION");
    g_assert_cmpint(trp_finalize(ctx), !=, 0);
}

TEST("a million partitions are counted")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 1000000, 1000000);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 1000000);
    g_assert_cmpint(trp_foreach(d, nothing, NULL, 0), ==, 0);
    trp_finalize(ctx);
}

TEST("a saved part is whole and its folder new")
{
    trp_context *ctx = fake_init();
    g_autofree char *top = g_dir_make_tmp("troupe-save-XXXXXX", NULL);
    g_autofree char *dir = g_build_filename(top, "out", NULL);
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 4, 3), words, NULL, 0);
    g_assert_cmpint(trp_save(d, dir), ==, 0);
    static const char *const want[] = {"", "odd\t1\n",
                                       "even\t2\neven\t2\nodd\t3\nodd\t3\nodd\t3\n"};
    for (int i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("part-%05d", i);
        g_autofree char *path = g_build_filename(dir, name, NULL);
        g_autofree char *text = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_assert_cmpstr(text, ==, want[i]);
        unlink(path);
    }
    g_assert_cmpint(rmdir(dir), ==, 0); /* nothing else was left */
    g_assert_cmpint(mkdir(dir, 0700), ==, 0);
    g_assert_cmpint(trp_save(d, dir), ==, TRP_EEXIST);
    assert_error(ctx, "not there yet");
    rmdir(dir);
    uint32_t until = 99;
    trp_dataset *bad =
        trp_transform(trp_range(ctx, 0, 2, 1), fails_first, &until, sizeof(until));
    g_assert_cmpint(trp_save(bad, dir), ==, TRP_EFAILED);
    g_assert_cmpint(rmdir(dir), ==, 0);
    rmdir(top);
    trp_finalize(ctx);
}

TEST("a task sees the addresses it was given")
{
    trp_context *ctx = fake_init();
    fake.resources = "gpu=0,11\nfpga=left\n";
    assert_rows(trp_transform(trp_range(ctx, 0, 1, 1), resources, NULL, 0), "seen");
    trp_finalize(ctx);
}

/* ---- profiles ---- */

static trp_profile *build(trp_context *ctx, const char *name, int64_t cores)
{
    trp_profile *p;
    g_assert_cmpint(trp_profile_new(ctx, name, &p), ==, 0);
    g_assert_cmpint(trp_profile_executor(p, "cores", cores), ==, 0);
    g_assert_cmpint(trp_profile_executor_text(p, "memory", "1g"), ==, 0);
    g_assert_cmpint(trp_profile_task(p, "cpus", 1), ==, 0);
    g_assert_cmpint(trp_profile_build(p), ==, 0);
    return p;
}

TEST("one profile anywhere in the chain is the stage's")
{
    trp_context *ctx = fake_init();
    trp_profile *p = build(ctx, "small", 1), *q = build(ctx, "large", 4);
    g_assert_cmpuint(fake.profiles, ==, 2);
    trp_dataset *d = trp_range(ctx, 0, 4, 2);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, 0);
    trp_dataset *dp = trp_filter(trp_with_resources(d, p), is_even, NULL, 0);
    g_assert_cmpint(trp_count(dp, &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, p->id.n);
    g_assert_cmpint(trp_count(trp_union(d, trp_with_resources(dp, p)), &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, p->id.n);
    g_assert_cmpint(trp_count(trp_with_resources(dp, q), &n), ==, TRP_EINVAL);
    assert_error(ctx, "one stage has several profiles");
    g_assert_cmpint(trp_count(trp_union(dp, trp_with_resources(d, q)), &n), ==,
                    TRP_EINVAL);
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

TEST("of several profiles on one dataset the last counts")
{
    static const char *hosts[] = {"a", "b"};
    trp_context *ctx = fake_init();
    trp_profile *p = build(ctx, "small", 1), *q = build(ctx, "large", 4);
    trp_dataset *d = trp_range(ctx, 0, 4, 2);
    trp_dataset *dp = trp_with_resources(d, p), *dq = trp_with_resources(dp, q);
    uint64_t n;
    g_assert_cmpint(trp_count(dq, &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, q->id.n);
    g_assert_cmpint(trp_count(dp, &n), ==, 0); /* handles do not change */
    g_assert_cmpuint(fake.profile.n, ==, p->id.n);
    g_assert_cmpint(trp_count(trp_with_resources(dq, p), &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, p->id.n);
    trp_dataset *marked = trp_barrier(trp_prefer(trp_barrier(dp), hosts));
    g_assert_cmpint(trp_count(trp_with_resources(marked, q), &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, q->id.n);
    g_assert_cmpint(trp_count(marked, &n), ==, 0);
    g_assert_cmpuint(fake.profile.n, ==, p->id.n);
    /* Two datasets of one stage. */
    g_assert_cmpint(trp_count(trp_union(dp, dq), &n), ==, TRP_EINVAL);
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

TEST("a refused request fails the building of its profile")
{
    trp_context *ctx = fake_init();
    trp_profile *p;
    g_assert_cmpint(trp_profile_new(ctx, "bad name", &p), ==, TRP_EINVAL);
    g_assert_cmpint(trp_profile_new(ctx, "p", &p), ==, 0);
    g_assert_null(trp_with_resources(trp_range(ctx, 0, 1, 1), p));
    assert_error(ctx, "was not built");
    g_assert_cmpint(trp_profile_executor_text(p, "memory", "lots"), ==, TRP_EINVAL);
    g_assert_cmpint(trp_profile_executor_text(p, "gpu", "2"), ==, 0);
    g_assert_cmpint(trp_profile_executor_text(p, "gpu", "2x"), ==, TRP_EINVAL);
    assert_error(ctx, "'2x' is no whole number");
    g_assert_cmpint(trp_profile_build(p), ==, TRP_EINVAL); /* the first refusal */
    assert_error(ctx, "lots");
    g_assert_null(trp_with_resources(trp_range(ctx, 0, 1, 1), p));
    assert_error(ctx, "lots");
    g_assert_cmpint(trp_profile_from(ctx, "typo", "cores / cpus=1", &p), ==,
                    TRP_EINVAL);
    g_assert_null(trp_with_resources(trp_range(ctx, 0, 1, 1), p));
    assert_error(ctx, "'cores' is no RESOURCE=AMOUNT");
    static const char *const slips[][2] = {
        {"core=1 / cpus=1",
         "profile slip0: \"core\" in executor; did you mean \"cores\"?"                       },
        {"mem=1g",             "\"mem\" in executor; did you mean \"memory\"?"                },
        {"cores=1 / gpus=1",   "\"gpus\" in task; did you mean \"gpu\"?"                      },
        {"cpu=1",              "\"cpu\" in executor; an executor has cores, a task takes cpus"},
        {"cores=1 / memory=1", "\"memory\" in task; a task takes cpus"                        },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(slips); i++) {
        g_autofree char *name = g_strdup_printf("slip%zu", i);
        g_assert_cmpint(trp_profile_from(ctx, name, slips[i][0], &p), ==, TRP_EINVAL);
        assert_error(ctx, slips[i][1]);
    }
    g_assert_cmpint(trp_profile_new(ctx, "q", &p), ==, 0);
    g_assert_cmpint(trp_profile_executor(p, "cores", 1), ==, 0);
    g_assert_cmpint(trp_profile_executor(p, "gpu", 1), ==, 0);
    g_assert_cmpint(trp_profile_task_text(p, "gpu", "2"), ==, 0);
    g_assert_cmpint(trp_profile_build(p), ==, TRP_EINVAL);
    assert_error(ctx, "gpu");
    g_assert_cmpint(trp_finalize(ctx), ==, 2);
}

/* ---- bytes from outside ---- */

TEST("a stage's broken description is refused")
{
    trp_context *ctx = fake_init();
    int64_t one = 1;
    trp_dataset *d = trp_map(trp_range(ctx, 0, 3, 2), add_number, &one, sizeof(one));
    uint64_t offsets[] = {0, 1};
    d = trp_coalesce(trp_union(d, trp_records(ctx, "x", offsets, 1, 1)), 2);
    struct trp_chain_end end = {.kind = TRP_DO_FOREACH, .step.name = "nothing"};
    struct trp_buf b = {0};
    g_assert_cmpint(trp_chain_walk(d), ==, 0);
    g_assert_cmpint(trp_chain_put(&b, ctx, &end), ==, 0);
    trp_error err;
    struct trp_chain *c;
    for (size_t n = 0; n < b.size; n++) {
        g_autofree uint8_t *cut = g_memdup2(b.data, n ? n : 1);
        g_assert_cmpint(trp_chain_get(cut, n, &c, &err), ==, TRP_EPROTO);
    }
    struct trp_path_step steps[TRP_STEPS_MAX];
    uint32_t nsteps, part;
    struct trp_members m;
    struct trp_keeps keeps;
    for (size_t i = 0; i < b.size * 255; i++) { /* every byte, every other value */
        uint8_t was = b.data[i / 255];
        b.data[i / 255] = (uint8_t)(was + 1 + i % 255);
        if (trp_chain_get(b.data, b.size, &c, &err) == 0) {
            for (uint32_t task = 0; task < 5; task++) {
                int most = 100; /* a count that was changed may be any */
                m.n = 0;
                do
                    trp_chain_path(c, task, &m, steps, &nsteps, &part, &keeps);
                while (trp_members_next(&m, 0) && --most);
            }
            trp_chain_free(c);
        }
        b.data[i / 255] = was;
    }
    g_assert_cmpint(trp_chain_get(b.data, b.size, &c, &err), ==, 0);
    m.n = 0;
    g_assert_cmpint(trp_chain_path(c, 1, &m, steps, &nsteps, &part, &keeps), >=, 0);
    g_assert_cmpuint(nsteps, ==, 1);
    g_assert_cmpuint(part, ==, 1);
    g_assert_true(trp_members_next(&m, 0));
    g_assert_cmpint(trp_chain_path(c, 1, &m, steps, &nsteps, &part, &keeps), >=, 0);
    g_assert_cmpuint(nsteps, ==, 0);
    g_assert_cmpuint(part, ==, 0);
    g_assert_false(trp_members_next(&m, 0));
    trp_chain_free(c);
    trp_buf_free(&b);
    trp_finalize(ctx);
}

TEST("a stage's key depends on its functions only")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 3, 2);
    trp_dataset *v[] = {d, trp_filter(d, is_even, NULL, 0),
                        trp_transform(d, words, NULL, 0)};
    uint64_t keys[3];
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = 0; i < 3; i++) {
            struct trp_buf b = {0};
            struct trp_chain_end end = {.kind = TRP_DO_COUNT};
            trp_chain_walk(v[i]);
            trp_chain_put(&b, ctx, &end);
            trp_error err;
            void *stage = trp_runner.stage_open(b.data, b.size, &err);
            g_assert_nonnull(stage);
            uint64_t key = trp_runner.stage_key(stage);
            if (twice)
                g_assert_cmpuint(key, ==, keys[i]);
            keys[i] = key;
            trp_runner.stage_close(stage);
            trp_buf_free(&b);
        }
    }
    g_assert_cmpuint(keys[0], !=, keys[1]);
    g_assert_cmpuint(keys[1], !=, keys[2]);
    trp_finalize(ctx);
}

TEST("a broken batch is refused")
{
    trp_writer w;
    trp_writer_init(&w);
    for (int i = 0; i < 5; i++)
        g_assert_cmpint(trp_emit(&w, "key", (size_t)i % 4, "value", (size_t)i), ==, 0);
    trp_batch b = trp_writer_batch(&w), back;
    uint8_t *data;
    uint32_t size;
    g_assert_cmpint(trp_batch_encode(&b, &data, &size), ==, 0);
    for (uint32_t n = 0; n < size; n++)
        g_assert_cmpint(trp_batch_decode(data, n, &back), ==, TRP_EPROTO);
    for (size_t i = 0; i < (size_t)size * 255; i++) {
        uint8_t was = data[i / 255];
        data[i / 255] = (uint8_t)(was + 1 + i % 255);
        uint64_t seen = 0;
        if (trp_batch_decode(data, size, &back) == 0)
            for (size_t k = 0; k < back.count; k++) {
                size_t n, nk;
                const uint8_t *v = trp_value(&back, k, &n);
                const uint8_t *key = trp_key(&back, k, &nk);
                seen += (n ? v[n - 1] : 0) + (nk ? key[nk - 1] : 0);
            }
        g_assert_cmpuint(seen, <, 1 << 20);
        data[i / 255] = was;
    }
    g_assert_cmpint(trp_batch_decode(data, size, &back), ==, 0);
    g_assert_cmpuint(back.count, ==, 5);
    free(data);
    trp_writer_free(&w);
}

TEST("a column is fixed until a width differs")
{
    trp_writer w;
    trp_writer_init(&w);
    for (int i = 0; i < 3; i++)
        trp_emit(&w, NULL, 0, "abcd", 4);
    trp_batch b = trp_writer_batch(&w);
    g_assert_cmpuint(b.value_width, ==, 4);
    g_assert_null(b.value_offsets);
    trp_emit(&w, NULL, 0, "efg", 3);
    b = trp_writer_batch(&w);
    g_assert_cmpuint(b.value_width, ==, 0);
    g_assert_cmpuint(b.value_offsets[3], ==, 12);
    g_assert_cmpuint(b.value_offsets[4], ==, 15);
    trp_writer_clear(&w);
    trp_emit(&w, NULL, 0, "", 0);
    b = trp_writer_batch(&w);
    g_assert_cmpuint(b.value_width, ==, 0);
    size_t n = 99;
    g_assert_nonnull(trp_value(&b, 0, &n));
    g_assert_cmpuint(n, ==, 0);
    trp_writer_free(&w);
}

TEST("there is one context and it needs a run")
{
    trp_context *ctx = fake_init(), *other = NULL;
    g_setenv("TROUPE_DRIVER", "/nowhere", TRUE);
    if (g_test_subprocess()) {
        g_assert_cmpint(trp_init(NULL, NULL, &other), ==, TRP_ESTATE);
        trp_finalize(ctx);
        g_unsetenv("TROUPE_DRIVER");
        g_unsetenv("OMPI_COMM_WORLD_SIZE");
        g_assert_cmpint(trp_init(NULL, NULL, &other), ==, TRP_EINVAL);
        return;
    }
    trp_finalize(ctx);
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*there is a context already*troupe run -- *mpirun -n*");
}

TEST("the nearest preference of a partition is its task's")
{
    const char *first[] = {"a, b", NULL, "", "c"};
    const char *nearer[] = {NULL, "d", NULL, "e,"};
    const char *other[] = {"f"};
    trp_context *ctx = fake_init();
    uint64_t n;
    trp_dataset *d = trp_prefer(trp_range(ctx, 0, 8, 4), first);
    first[0] = "copied";
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpstr(fake.places, ==, "a b|||c|");
    d = trp_prefer(trp_filter(d, is_even, NULL, 0), nearer);
    d = trp_union(trp_range(ctx, 0, 2, 2),
                  trp_union(d, trp_prefer(trp_range(ctx, 0, 1, 1), other)));
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 2 + 4 + 1);
    g_assert_cmpstr(fake.places, ==, "||a b|d||e|f|");
    uint32_t all = d->partitions;
    g_assert_cmpint(trp_count(trp_coalesce(d, 3), &n), ==, 0);
    g_assert_cmpstr(fake.places, ==, "|a b d|e f|");
    d = trp_union(d, d);
    g_assert_cmpint(trp_count(trp_coalesce(trp_coalesce(d, all), 1), &n), ==, 0);
    g_assert_cmpstr(fake.places, ==, "a b d e f|"); /* each once */
    const char *last[] = {NULL, "g"};
    g_assert_cmpint(trp_count(trp_prefer(trp_coalesce(d, 2), last), &n), ==, 0);
    g_assert_cmpstr(fake.places, ==, "a b d e f|g|");
    g_assert_cmpint(trp_count(trp_range(ctx, 0, 8, 4), &n), ==, 0);
    g_assert_cmpstr(fake.places, ==, "");
    g_assert_null(trp_prefer(d, NULL));
    g_assert_cmpstr(trp_error_text(ctx), ==, "trp_prefer: no hosts given");
    g_assert_null(trp_prefer(NULL, first));
    trp_finalize(ctx);
}

/* ---- helpers of troupe.h ---- */

TEST("keys of several parts are in the order of their parts, and come apart")
{
    static const char *const texts[] = {"", "\0", "\0\1", "a", "a\0b", "ab", "b"};
    static const size_t sizes[] = {0, 1, 2, 1, 3, 2, 1};
    static const double numbers[] = {-INFINITY, -2.5, -0.0, 1e-300, 7, INFINITY, NAN};
    trp_composite last = {0};
    for (size_t t = 0; t < G_N_ELEMENTS(texts); t++)
        for (size_t d = 0; d < G_N_ELEMENTS(numbers); d++)
            for (int64_t i = -1; i <= 1; i++) {
                trp_composite k = {0};
                char text[8];
                g_assert_cmpint(trp_composite_text(&k, texts[t], sizes[t]), ==, 0);
                g_assert_cmpint(trp_composite_f64(&k, numbers[d]), ==, 0);
                g_assert_cmpint(trp_composite_i64(&k, i), ==, 0);
                size_t both = k.size < last.size ? k.size : last.size;
                int order = memcmp(last.bytes, k.bytes, both);
                g_assert_true(order < 0 || (order == 0 && last.size < k.size));
                last = k;
                trp_composite_parts p = trp_composite_of(k.bytes, k.size);
                size_t n = trp_composite_next_text(&p, text, sizeof(text));
                g_assert_cmpmem(text, n, texts[t], sizes[t]);
                double v = trp_composite_next_f64(&p);
                g_assert_true(isnan(numbers[d]) ? isnan(v) : v == numbers[d]);
                g_assert_cmpint(trp_composite_next_i64(&p), ==, i);
                g_assert_true(p.at == p.end);
            }
    trp_composite full = {.size = sizeof(full.bytes) - 7};
    g_assert_cmpint(trp_composite_i64(&full, 1), <, 0);
    g_assert_cmpint(trp_composite_text(&full, "abcdef", 6), <, 0);
    g_assert_cmpint(trp_composite_text(&full, "abcde", 5), ==, 0);
    trp_composite_parts none = trp_composite_of(NULL, 0);
    g_assert_cmpint(trp_composite_next_i64(&none), ==, INT64_MIN);
}

struct point {
    float x;
    int32_t n;
};

TRP_FUNCTION(moves_points);
int moves_points(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        struct point p;
        double wide;
        if (TRP_GET(in, i, &p) < 0 || TRP_GET(in, i, &wide) < 0 ||
            TRP_GET_KEY(in, i, &p) == 0)
            return -1;
        p.x += 0.5f;
        if (trp_emit_i32(out, NULL, 0, p.n) < 0 || trp_emit_f32(out, NULL, 0, p.x) < 0)
            return -1;
    }
    return 0;
}

TEST("structs and numbers of four bytes go through functions")
{
    trp_context *ctx = fake_init();
    const struct point points[] = {
        {1.0f,  7 },
        {-2.0f, -9}
    };
    const trp_batch *b = collected(trp_transform(
        trp_array(ctx, points, 2, sizeof(*points), 1), moves_points, NULL, 0));
    g_assert_cmpuint(b->count, ==, 4);
    g_assert_cmpint(trp_get_i32(b, 0), ==, 7);
    g_assert_cmpfloat(trp_get_f32(b, 1), ==, 1.5f);
    g_assert_cmpint(trp_get_i32(b, 2), ==, -9);
    g_assert_cmpfloat(trp_get_f32(b, 3), ==, -1.5f);
    g_assert_cmpint(trp_get_key_i32(b, 0), ==, 0);
    g_assert_cmpfloat(trp_as_f32("", 0), ==, 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}
