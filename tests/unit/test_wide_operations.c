/* Each wide operation but trp_reduce_by_key, held against plain loops over the same
 * records. Orders of values are checked as well: they are promised. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "unit.h"

enum { NUMBERS = 6000, KEYS = 97 };

/* ---- records: number n has the key and the value of a formula ---- */

static int64_t key_of(int64_t n)
{
    return (n * 7919 + n / 13) % KEYS - KEYS / 2;
}

TRP_FUNCTION(by_number);
int by_number(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t n;
        memcpy(&n, trp_value(in, i, NULL), sizeof(n));
        int64_t key = key_of(n);
        if (trp_emit(out, &key, sizeof(key), &n, sizeof(n)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(as_text);
int as_text(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t n;
        size_t nk;
        char text[32];
        memcpy(&n, trp_value(in, i, NULL), sizeof(n));
        const void *key = trp_key(in, i, &nk);
        int size = snprintf(text, sizeof(text), "%lld,", (long long)n);
        if (trp_emit(out, key, nk, text, (size_t)size) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(few_values);
int few_values(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        int64_t n;
        memcpy(&n, trp_value(in, i, NULL), sizeof(n));
        int64_t key = n % 3, value = n % 10;
        int rc = arg ? trp_emit(out, &key, sizeof(key), &value, sizeof(value))
                     : trp_emit(out, NULL, 0, &value, sizeof(value));
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Keys that are doubles, words of sizes 0 to 5, and 7 bytes. */
TRP_FUNCTION(other_keys);
int other_keys(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    char what;
    memcpy(&what, arg, 1);
    for (size_t i = 0; i < in->count; i++) {
        int64_t n;
        memcpy(&n, trp_value(in, i, NULL), sizeof(n));
        double d = n % 50 == 0 ? NAN : (double)key_of(n) / 7;
        char word[] = "aaaaaa";
        word[2] = (char)('a' + n % 25);
        int rc = what == 'd'   ? trp_emit(out, &d, sizeof(d), &n, sizeof(n))
                 : what == 'w' ? trp_emit(out, word, (size_t)(n % 6), &n, sizeof(n))
                               : trp_emit(out, "1234567", 7, &n, sizeof(n));
        if (rc < 0)
            return -1;
    }
    return 0;
}

static trp_dataset *numbers(trp_context *ctx, uint32_t partitions)
{
    return trp_transform(trp_range(ctx, 0, NUMBERS, partitions), by_number, NULL, 0);
}

static int64_t i64(const void *p, size_t n)
{
    int64_t v;
    g_assert_cmpuint(n, ==, 8);
    memcpy(&v, p, 8);
    return v;
}

static int64_t key_at(const trp_batch *b, size_t i)
{
    size_t n;
    const void *key = trp_key(b, i, &n);
    return i64(key, n);
}

static int64_t value_at(const trp_batch *b, size_t i)
{
    size_t n;
    const void *value = trp_value(b, i, &n);
    return i64(value, n);
}

/* ---- one key's values ---- */

TRP_COMBINE(concatenate);
int concatenate(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
                const void *arg)
{
    g_autofree char *both = g_malloc(na + nb + 1);
    (void)arg;
    memcpy(both, a, na);
    memcpy(both + na, b, nb);
    return trp_emit(out, NULL, 0, both, na + nb);
}

TRP_COMBINE(twice);
int twice(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
          const void *arg)
{
    (void)b, (void)nb, (void)arg;
    trp_emit(out, NULL, 0, a, na);
    return trp_emit(out, NULL, 0, a, na);
}

TRP_COMBINE(mixes);
int mixes(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
          const void *arg)
{
    (void)b, (void)nb, (void)arg;
    trp_emit(out, "k", 1, a, na);
    trp_emit(out, NULL, 0, a, na);
    return 0;
}

TRP_COMBINE(refuses);
int refuses(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
            const void *arg)
{
    (void)a, (void)na, (void)b, (void)nb, (void)out, (void)arg;
    return 77;
}

static char *texts_of(int64_t key)
{
    GString *s = g_string_new("");
    for (int64_t n = 0; n < NUMBERS; n++)
        if (key_of(n) == key)
            g_string_append_printf(s, "%lld,", (long long)n);
    return g_string_free(s, FALSE);
}

TEST("a combiner gets values in order")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(numbers(ctx, 7), as_text, NULL, 0);
    const trp_batch *b = collected(trp_combine_by_key(d, concatenate, NULL, 0, 5));
    g_assert_cmpuint(b->count, ==, KEYS);
    for (size_t i = 0; i < b->count; i++) {
        size_t n;
        const void *text = trp_value(b, i, &n);
        g_autofree char *want = texts_of(key_at(b, i));
        g_assert_cmpmem(text, n, want, strlen(want));
    }
    uint64_t n;
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
    ctx = fake_init();
    d = numbers(ctx, 2);
    g_assert_cmpint(trp_count(trp_combine_by_key(d, twice, NULL, 0, 5), &n), <, 0);
    assert_error(ctx, "twice: a combine function must emit exactly one value");
    g_assert_cmpint(trp_count(trp_combine_by_key(d, refuses, NULL, 0, 5), &n), <, 0);
    assert_error(ctx, "function refuses returned 77");
    uint32_t attempts = fake.attempts;
    g_assert_cmpint(trp_count(trp_combine_by_key(d, mixes, NULL, 0, 5), &n), <, 0);
    assert_error(ctx, "mixes: some records have a key and some have none");
    g_assert_cmpuint(fake.attempts, ==, attempts + 1);
    char *value;
    size_t size;
    d = trp_range(ctx, 0, 10, 1);
    attempts = fake.attempts;
    g_assert_cmpint(trp_reduce(d, mixes, NULL, 0, (void **)&value, &size), <, 0);
    assert_error(ctx, "mixes some records have a key and some have none");
    g_assert_cmpuint(fake.attempts, ==, attempts + 1);
    d = numbers(ctx, 2);
    g_assert_null(trp_combine_by_key(d, NULL, NULL, 0, 5));
    assert_error(ctx, "trp_combine_by_key: the function is not known by a name");
    trp_finalize(ctx);
}

TEST("a group has all values in order")
{
    trp_context *ctx = fake_init();
    const trp_batch *b = collected(trp_group_by_key(numbers(ctx, 7), 5));
    size_t all = 0;
    g_assert_cmpuint(b->count, ==, KEYS);
    for (size_t i = 0; i < b->count; i++) {
        trp_group_values v = trp_group(b, i);
        int64_t last = -1, key = key_at(b, i);
        size_t n;
        for (const void *p; (p = trp_group_next(&v, &n)); all++) {
            int64_t number = i64(p, n);
            g_assert_cmpint(key_of(number), ==, key);
            g_assert_cmpint(number, >, last);
            last = number;
        }
    }
    g_assert_cmpuint(all, ==, NUMBERS);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- records as a whole ---- */

TEST("distinct records come once")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, NUMBERS, 5);
    const trp_batch *b =
        collected(trp_distinct(trp_transform(d, few_values, NULL, 0), 3));
    uint32_t seen = 0;
    g_assert_cmpuint(b->count, ==, 10);
    g_assert_null(b->keys);
    for (size_t i = 0; i < b->count; i++)
        seen |= 1u << value_at(b, i);
    g_assert_cmpuint(seen, ==, 1023);
    b = collected(trp_distinct(trp_transform(d, few_values, "k", 1), 3));
    gboolean pairs[3][10] = {{FALSE}};
    g_assert_cmpuint(b->count, ==, 30);
    for (size_t i = 0; i < b->count; i++) {
        gboolean *at = &pairs[key_at(b, i)][value_at(b, i)];
        g_assert_false(*at);
        *at = TRUE;
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TRP_FUNCTION(how_many);
int how_many(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    int64_t part = trp_task_index(t), n = (int64_t)in->count;
    return trp_emit(out, &part, sizeof(part), &n, sizeof(n));
}

TEST("repartitioned records are spread")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_repartition(trp_range(ctx, 0, NUMBERS, 3), 8);
    const trp_batch *b = collected(d);
    g_autofree uint8_t *seen = g_new0(uint8_t, NUMBERS);
    g_assert_cmpuint(b->count, ==, NUMBERS);
    g_assert_null(b->keys);
    for (size_t i = 0; i < b->count; i++)
        g_assert_cmpuint(seen[value_at(b, i)]++, ==, 0);
    b = collected(trp_transform(d, how_many, NULL, 0));
    g_assert_cmpuint(b->count, ==, 8);
    for (size_t i = 0; i < 8; i++)
        g_assert_cmpint(ABS(value_at(b, i) - NUMBERS / 8), <=, 3);
    b = collected(trp_repartition(numbers(ctx, 2), 3));
    g_assert_cmpuint(b->count, ==, NUMBERS);
    for (size_t i = 0; i < b->count; i++)
        g_assert_cmpint(key_at(b, i), ==, key_of(value_at(b, i)));
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- sorting ---- */

TRP_COMPARE(by_last_digit);
int by_last_digit(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    (void)arg;
    int64_t x = i64(a, na), y = i64(b, nb);
    return (int)(((x % 10) + 10) % 10 - ((y % 10) + 10) % 10);
}

static int order_of(unsigned order, const trp_batch *b, size_t i, size_t k)
{
    size_t n, m;
    const void *x = trp_key(b, i, &n), *y = trp_key(b, k, &m);
    if (order == 0)
        return by_last_digit(x, n, y, m, NULL);
    if (order == TRP_BYTES) {
        int rc = memcmp(x, y, n < m ? n : m);
        return rc ? rc : (int)n - (int)m;
    }
    int sign = order & TRP_DESCENDING ? -1 : 1;
    if ((order & ~(unsigned)TRP_DESCENDING) == TRP_I64)
        return sign * (int)(i64(x, n) - i64(y, m));
    double p, q;
    memcpy(&p, x, 8);
    memcpy(&q, y, 8);
    return isnan(p) || isnan(q) ? sign * (!!isnan(p) - !!isnan(q))
                                : sign * ((p > q) - (p < q));
}

/* All records are there, in order; those of equal keys as they were. */
static void check_sorted(trp_dataset *d, unsigned order)
{
    const trp_batch *b = collected(d);
    g_autofree uint8_t *seen = g_new0(uint8_t, NUMBERS);
    g_assert_cmpuint(b->count, ==, NUMBERS);
    for (size_t i = 0; i < b->count; i++) {
        g_assert_cmpuint(seen[value_at(b, i)]++, ==, 0);
        if (i == 0)
            continue;
        int rc = order_of(order, b, i - 1, i);
        g_assert_cmpint(rc, <=, 0);
        if (rc == 0)
            g_assert_cmpint(value_at(b, i - 1), <, value_at(b, i));
    }
}

TEST("sorted by each order")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = numbers(ctx, 5);
    trp_dataset *doubles =
        trp_transform(trp_range(ctx, 0, NUMBERS, 4), other_keys, "d", 1);
    trp_dataset *words =
        trp_transform(trp_range(ctx, 0, NUMBERS, 4), other_keys, "w", 1);
    check_sorted(trp_sort_by_key(d, TRP_I64, 6), TRP_I64);
    check_sorted(trp_sort_by_key(d, TRP_I64 | TRP_DESCENDING, 6),
                 TRP_I64 | TRP_DESCENDING);
    check_sorted(trp_sort_by_key(d, TRP_I64, 1), TRP_I64);
    check_sorted(trp_sort_by_key(d, TRP_I64, 500), TRP_I64);
    check_sorted(trp_sort_by_key(doubles, TRP_F64, 6), TRP_F64);
    check_sorted(trp_sort_by_key(doubles, TRP_F64 | TRP_DESCENDING, 6),
                 TRP_F64 | TRP_DESCENDING);
    check_sorted(trp_sort_by_key(words, TRP_BYTES, 6), TRP_BYTES);
    check_sorted(trp_sort_by(d, by_last_digit, NULL, 0, 4), 0);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("ranges hold about as many")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_sort_by_key(numbers(ctx, 5), TRP_I64, 8);
    const trp_batch *b = collected(trp_transform(d, how_many, NULL, 0));
    g_assert_cmpuint(b->count, ==, 8);
    for (size_t i = 0; i < b->count; i++) {
        g_assert_cmpint(value_at(b, i), <, NUMBERS / 8 * 2);
        g_assert_cmpint(value_at(b, i), >, NUMBERS / 8 / 2);
    }
    uint64_t n;
    g_assert_cmpint(trp_count(trp_sort_by_key(trp_transform(trp_range(ctx, 0, 0, 3),
                                                            by_number, NULL, 0),
                                              TRP_I64, 4),
                              &n),
                    ==, 0);
    g_assert_cmpuint(n, ==, 0);
    d = trp_transform(trp_range(ctx, 0, 10, 2), other_keys, "7", 1);
    g_assert_cmpint(trp_count(trp_sort_by_key(d, TRP_I64, 4), &n), <, 0);
    assert_error(ctx, "trp_sort_by_key: a key has 7 bytes; there must be 8");
    g_assert_null(trp_sort_by_key(d, 9, 4));
    assert_error(ctx, "trp_sort_by_key: no order 9");
    trp_finalize(ctx);
}

/* ---- samples of long texts ---- */

enum { LINES = 400000, LINE = 64, DIGITS = 9 };
static uint64_t lines_seen; /* by all tasks, which run here */

/* Lines by their numbers; with an argument one in 5,000. */
TRP_FUNCTION(by_line);
int by_line(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    lines_seen += in->count;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const char *line = trp_value(in, i, &n);
        int64_t number = g_ascii_strtoll(line, NULL, 10);
        if (arg && number % 5000 != 0)
            continue;
        if (trp_emit(out, line, DIGITS, &number, sizeof(number)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(in_first_task);
int in_first_task(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    int64_t n = trp_task_index(t) == 0 ? (int64_t)in->count : 0;
    return trp_emit(out, NULL, 0, &n, sizeof(n));
}

/* Of a file that is in order already, so that its beginning says nothing of its end. */
static void check_ranges_of_lines(trp_context *ctx, const char *path, const char *few,
                                  int64_t records)
{
    trp_dataset *d = trp_transform(trp_text_files(ctx, path, 2), by_line, few, !!few);
    trp_dataset *sorted = trp_sort_by_key(d, TRP_BYTES, 2);
    const trp_batch *b = collected(trp_transform(sorted, in_first_task, NULL, 0));
    int64_t first = 0;
    for (size_t i = 0; i < b->count; i++)
        first += value_at(b, i);
    g_assert_cmpint(first, >, records / 4);
    g_assert_cmpint(first, <, records / 4 * 3);
    uint64_t n = 0;
    g_assert_cmpint(trp_count(sorted, &n), ==, 0);
    g_assert_cmpuint(n, ==, (uint64_t)records);
}

TEST("long texts are read in part")
{
    trp_context *ctx = fake_init();
    g_autofree char *folder = g_dir_make_tmp("troupe-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "lines", NULL);
    FILE *f = fopen(path, "we");
    for (int i = 0; i < LINES; i++)
        fprintf(f, "%0*d%*s\n", DIGITS, i, LINE - DIGITS - 1, "");
    fclose(f);
    lines_seen = 0;
    check_ranges_of_lines(ctx, path, NULL, LINES);
    g_assert_cmpuint(lines_seen, <, LINES + LINES / 4);
    lines_seen = 0;
    check_ranges_of_lines(ctx, path, "f", LINES / 5000); /* windows had too few */
    g_assert_cmpuint(lines_seen, >, (uint64_t)2 * LINES);
    unlink(path);
    rmdir(folder);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* ---- two sides ---- */

static trp_dataset *left_of(trp_context *ctx)
{
    return trp_transform(trp_range(ctx, 0, 300, 3), by_number, NULL, 0);
}
static trp_dataset *right_of(trp_context *ctx)
{
    return trp_transform(trp_range(ctx, 290, 360, 2), by_number, NULL, 0);
}

/* Pairs of the join in a table by numbers; a missing one is NUMBERS. */
static void check_join(enum trp_join type)
{
    trp_context *ctx = fake_init();
    const trp_batch *b = collected(trp_join(left_of(ctx), right_of(ctx), type, 4));
    g_autoptr(GHashTable) got = g_hash_table_new(g_direct_hash, g_direct_equal);
    uint32_t want = 0;
    for (size_t i = 0; i < b->count; i++) {
        size_t n, m;
        const void *l = trp_left(b, i, &n), *r = trp_right(b, i, &m);
        int64_t x = l ? i64(l, n) : NUMBERS, y = r ? i64(r, m) : NUMBERS;
        g_assert_true(l || r);
        g_assert_cmpint(key_at(b, i), ==, key_of(l ? x : y));
        g_assert_true(g_hash_table_add(got, GSIZE_TO_POINTER(x * 10000 + y)));
    }
    gboolean has[2][10000] = {{FALSE}};
    for (int64_t x = 0; x < 300; x++)
        for (int64_t y = 290; y < 360; y++)
            if (key_of(x) == key_of(y)) {
                has[0][x] = has[1][y] = TRUE;
                g_assert_true(
                    g_hash_table_contains(got, GSIZE_TO_POINTER(x * 10000 + y)));
                want++;
            }
    for (int64_t x = 0; type != TRP_INNER && x < 300; x++)
        want += !has[0][x];
    for (int64_t y = 290; type == TRP_OUTER && y < 360; y++)
        want += !has[1][y];
    g_assert_cmpuint(b->count, ==, want);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("joins")
{
    check_join(TRP_INNER);
    check_join(TRP_LEFT);
    check_join(TRP_OUTER);
}

/* ---- groups that memory does not hold ---- */

enum { MANY = 400000, LATE = 150000 };

/* How many bytes the value of a number has: "w", all the same; "l", some more from LATE
 * on; "e", none. */
static size_t size_in_group(const void *how, int64_t n)
{
    return *(const char *)how == 'e'                ? 0
           : *(const char *)how == 'l' && n >= LATE ? 19
                                                    : 16;
}

TRP_FUNCTION(of_one_key);
int of_one_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        char value[19] = "01234567abcdefghij";
        const int64_t n = value_at(in, i);
        memcpy(value, &n, sizeof(n));
        if (trp_emit(out, "k", 1, value, size_in_group(arg, n)) < 0)
            return -1;
    }
    return 0;
}

static void check_one_of_group(const void *how, int64_t number, const char *value,
                               size_t n)
{
    g_assert_cmpuint(n, ==, size_in_group(how, number));
    if (n == 0)
        return;
    g_assert_cmpmem(value, 8, &number, 8);
    g_assert_cmpmem(value + 8, n - 8, "abcdefghij", n - 8);
}

TRP_FUNCTION(group_size);
int group_size(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        size_t nk, n;
        int64_t count = 0;
        const void *key = trp_key(in, i, &nk);
        g_assert_cmpmem(key, nk, "k", 1);
        trp_group_values v = trp_group(in, i);
        for (const void *p; (p = trp_group_next(&v, &n)); count++)
            check_one_of_group(arg, count, p, n);
        if (trp_emit(out, NULL, 0, &count, sizeof(count)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(keeps_all);
int keeps_all(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const int32_t yes = 1;
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit(out, NULL, 0, &yes, sizeof(yes)) < 0)
            return -1;
    return 0;
}

TRP_COGROUP(both_sizes);
int both_sizes(trp_task *t, const void *key, size_t nk, const trp_batch *a,
               const trp_batch *b, trp_writer *out, const void *arg)
{
    (void)t;
    const trp_batch *sides[] = {a, b};
    g_assert_cmpmem(key, nk, "k", 1);
    for (int k = 0; k < 2; k++) {
        const size_t last = size_in_group(arg, (int64_t)sides[k]->count - 1);
        g_assert_cmpuint(sides[k]->value_width, ==, last == 16 ? 16 : 0);
        for (size_t i = 0; i < sides[k]->count; i++) {
            size_t n;
            const char *value = trp_value(sides[k], i, &n);
            check_one_of_group(arg, (int64_t)i, value, n);
        }
    }
    const int64_t all = (int64_t)(a->count + b->count);
    return trp_emit(out, NULL, 0, &all, sizeof(all));
}

/* What would copy it says so. */
static void check_no_copies(trp_context *ctx, trp_dataset *groups)
{
    g_autofree char *folder = g_build_filename(fake.folder, "checkpoint", NULL);
    trp_rows *rows;
    uint64_t n;
    g_assert_cmpint(trp_collect(groups, &rows), <, 0);
    assert_error(ctx, "trp_group_by_key: the values of one key take 7 MiB, more than");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_count(trp_repartition(groups, 2), &n), <, 0);
    assert_error(ctx, "trp_group_by_key: the values of one key take 7 MiB, more than");
    trp_error_clear(ctx);
    g_assert_cmpint(trp_count(trp_checkpoint(groups, folder), &n), <, 0);
    assert_error(ctx, "trp_group_by_key: the values of one key take 7 MiB, more than");
    trp_error_clear(ctx);
}

static void check_spilled(trp_dataset *d, int64_t want)
{
    fake.spilled = 0;
    const trp_batch *b = collected(d);
    g_assert_cmpuint(b->count, ==, 1);
    g_assert_cmpint(value_at(b, 0), ==, want);
    /* what is above the half of 1 MiB lay on the disk */
    g_assert_cmpuint(fake.spilled, >, 700000);
}

TEST("a group may be larger than memory")
{
    trp_context *ctx = fake_init();
    for (const char *how = "wle"; *how; how++) {
        trp_dataset *d = trp_transform(trp_range(ctx, 0, MANY, 1), of_one_key, how, 1);
        trp_dataset *few = trp_transform(trp_range(ctx, 0, 3, 1), of_one_key, how, 1);
        trp_dataset *groups = trp_group_by_key(d, 1);
        check_spilled(trp_transform(groups, group_size, how, 1), MANY);
        groups = trp_filter(trp_filter(groups, keeps_all, NULL, 0), keeps_all, NULL, 0);
        check_spilled(trp_transform(groups, group_size, how, 1), MANY);
        uint64_t n;
        g_assert_cmpint(trp_count(groups, &n), ==, 0);
        g_assert_cmpuint(n, ==, 1);
        /* it is computed again, since there is no room to keep it */
        trp_dataset *kept = trp_persist(groups, TRP_MEMORY_AND_DISK);
        if (*how == 'w')
            for (int i = 0; i < 2; i++)
                check_spilled(trp_transform(kept, group_size, how, 1), MANY);
        g_assert_cmpuint(fake.hits, ==, 0);
        if (*how == 'w')
            check_no_copies(ctx, groups);
        check_spilled(trp_cogroup(d, d, both_sizes, how, 1, 1), INT64_C(2) * MANY);
        check_spilled(trp_cogroup(few, d, both_sizes, how, 1, 1), MANY + 3);
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TRP_COGROUP(counts);
int counts(trp_task *t, const void *key, size_t nk, const trp_batch *a,
           const trp_batch *b, trp_writer *out, const void *arg)
{
    (void)t;
    g_assert_cmpmem(arg, 3, "arg", 3);
    int64_t n[2] = {(int64_t)a->count, (int64_t)b->count};
    for (size_t i = 1; i < a->count; i++)
        g_assert_cmpint(value_at(a, i - 1), <, value_at(a, i));
    return trp_emit(out, key, nk, n, sizeof(n));
}

TEST("a cogroup has both sides")
{
    trp_context *ctx = fake_init();
    const trp_batch *b =
        collected(trp_cogroup(left_of(ctx), right_of(ctx), counts, "arg", 3, 3));
    uint32_t keys = 0;
    for (int64_t key = -KEYS; key < KEYS; key++) {
        int64_t want[2] = {0, 0};
        for (int64_t n = 0; n < 300; n++)
            want[0] += key_of(n) == key;
        for (int64_t n = 290; n < 360; n++)
            want[1] += key_of(n) == key;
        keys += want[0] + want[1] > 0;
        for (size_t i = 0; i < b->count; i++) {
            size_t n;
            const void *value = trp_value(b, i, &n);
            if (key_at(b, i) == key)
                g_assert_cmpmem(value, n, want, sizeof(want));
        }
    }
    g_assert_cmpuint(b->count, ==, keys);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* Each of two sides may be lost. */
TEST("a side that is lost is made again")
{
    trp_context *ctx = fake_init();
    trp_dataset *j = trp_join(left_of(ctx), right_of(ctx), TRP_INNER, 3);
    uint64_t n, again;
    g_assert_cmpint(trp_count(j, &n), ==, 0);
    for (uint32_t side = 0; side < 2; side++) {
        g_autofree char *path =
            g_strdup_printf("%s/%u-1-%llu", fake.folder, side,
                            (unsigned long long)fake.datasets[side].outputs[1]);
        g_assert_cmpint(unlink(path), ==, 0);
        g_assert_cmpint(trp_count(j, &again), ==, 0);
        g_assert_cmpuint(again, ==, n);
        g_assert_cmpuint(fake.maps_again, ==, side + 1);
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* How many datasets the driver is told of for an action on `d`. */
static uint32_t told_for(trp_dataset *d)
{
    uint32_t before = fake.ndatasets;
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    return fake.ndatasets - before;
}

/* What stays the same in each round is dealt out in the first. */
TEST("what is dealt out alike is dealt out once")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = left_of(ctx), *round = right_of(ctx);
    for (uint32_t i = 0; i < 3; i++) {
        round = trp_join(d, round, TRP_LEFT, 4);
        g_assert_cmpuint(told_for(round), ==, i ? 2 : 3);
    }
    g_assert_cmpuint(told_for(trp_join(d, d, TRP_INNER, 4)), ==, 1);
    g_assert_cmpuint(told_for(trp_join(d, d, TRP_INNER, 3)), ==, 2);
    g_assert_cmpuint(told_for(trp_group_by_key(d, 4)), ==, 1);
    g_assert_cmpuint(told_for(trp_cogroup(d, d, counts, "arg", 3, 4)), ==, 1);
    g_assert_cmpuint(told_for(trp_reduce_by_key(d, TRP_SUM_I64, 4)), ==, 2);
    g_assert_cmpuint(told_for(trp_reduce_by_key(d, TRP_MAX_I64, 4)), ==, 2);
    g_assert_cmpuint(told_for(trp_reduce_by_key(d, TRP_SUM_I64, 4)), ==, 1);
    g_assert_cmpuint(told_for(trp_distinct(d, 4)), ==, 2);
    g_assert_cmpuint(told_for(trp_sort_by_key(d, TRP_I64, 4)), ==, 3); /* a sample */
    g_assert_cmpuint(told_for(trp_sort_by_key(d, TRP_I64, 4)), ==, 1);
    g_assert_cmpuint(told_for(trp_sort_by_key(d, TRP_I64 | TRP_DESCENDING, 4)), >, 1);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* Every byte of a plan, cut and changed: it is read, or refused. */
TEST("broken plans")
{
    struct trp_wide_plan p = {.kind = TRP_WIDE_SORT,
                              .order = TRP_I64,
                              .function = "",
                              .arg = "arg",
                              .arg_size = 3,
                              .partitions = 3,
                              .nsides = 1};
    trp_put_bytes(&p.bounds, "12345678", 8);
    trp_put_bytes(&p.bounds, "87654321", 8);
    struct trp_buf b = {0};
    struct trp_wide_plan got;
    trp_wide_plan_put(&b, &p);
    for (size_t n = 0; n <= b.size; n++) {
        struct trp_view v = trp_view_of(b.data, n);
        g_assert_cmpint(trp_wide_plan_get(&v, &got), ==, n == b.size);
        trp_wide_plan_free(&got);
    }
    for (size_t i = 0; i < b.size * 255; i++) {
        uint8_t was = b.data[i / 255];
        b.data[i / 255] = (uint8_t)(was + 1 + i % 255);
        struct trp_view v = trp_view_of(b.data, b.size);
        if (trp_wide_plan_get(&v, &got))
            g_assert_cmpuint(got.nranges, <, got.partitions);
        trp_wide_plan_free(&got);
        b.data[i / 255] = was;
    }
    trp_buf_free(&b);
    trp_buf_free(&p.bounds);
}

/* ---- values in order, functions with a task ---- */

/* Numbers below 40 by their last digit; the value is the number times 7, modulo 40. */
TRP_FUNCTION(scattered);
int scattered(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i), key = v % 3;
        if (trp_emit_i64(out, &key, sizeof(key), v * 7 % 40) < 0)
            return -1;
    }
    return 0;
}

TRP_COMPARE(by_tens);
int by_tens(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    int64_t x = trp_as_i64(a, na) / 10, y = trp_as_i64(b, nb) / 10;
    (void)arg;
    return (x > y) - (x < y);
}

/* By a table that is a broadcast. */
TRP_TASK_COMPARE(by_table);
int by_table(trp_task *t, const void *a, size_t na, const void *b, size_t nb,
             const void *arg)
{
    size_t size = 0;
    const int64_t *table =
        t ? trp_broadcast_get(t, *(const struct trp_broadcast *)arg, &size) : NULL;
    int64_t x = trp_as_i64(a, na), y = trp_as_i64(b, nb);
    if (t && !table)
        return 0;
    if ((x == 39 || y == 39) && size < 2 * sizeof(*table))
        trp_task_error(t, "the table has no place for %d", 39);
    return table && table[0] ? (x > y) - (x < y) : (x < y) - (x > y);
}

/* Groups as text: "KEY: VALUE …|", in order. */
static char *groups_of(trp_dataset *d)
{
    const trp_batch *b = collected(d);
    GString *s = g_string_new("");
    for (size_t i = 0; i < b->count; i++) {
        size_t n;
        trp_group_values v = trp_group(b, i);
        g_string_append_printf(s, "%d:", (int)trp_get_key_i64(b, i));
        for (const void *p; (p = trp_group_next(&v, &n));)
            g_string_append_printf(s, " %d", (int)trp_as_i64(p, n));
        g_string_append_c(s, '|');
    }
    return g_string_free(s, FALSE);
}

/* The same, computed here. */
static char *groups_wanted(int (*order)(int64_t a, int64_t b))
{
    GString *s = g_string_new("");
    for (int key = 0; key < 3; key++) {
        int64_t v[40];
        int n = 0;
        for (int64_t i = key; i < 40; i += 3) {
            int64_t x = i * 7 % 40;
            int at = n++;
            for (; at > 0 && order(v[at - 1], x) > 0; at--)
                v[at] = v[at - 1];
            v[at] = x;
        }
        g_string_append_printf(s, "%d:", key);
        for (int i = 0; i < n; i++)
            g_string_append_printf(s, " %d", (int)v[i]);
        g_string_append_c(s, '|');
    }
    return g_string_free(s, FALSE);
}

static int up(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}
static int down(int64_t a, int64_t b)
{
    return up(b, a);
}
static int tens(int64_t a, int64_t b)
{
    return up(a / 10, b / 10);
}

TEST("the values of a group come in order")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 40, 4), scattered, NULL, 0);
    g_autofree char *a = groups_wanted(up), *b = groups_wanted(down),
                    *c = groups_wanted(tens);
    g_autofree char *ga = groups_of(trp_group_sorted(d, TRP_I64, 1)),
                    *gb = groups_of(trp_group_sorted(d, TRP_I64 | TRP_DESCENDING, 1)),
                    *gc = groups_of(trp_group_sorted_by(d, by_tens, NULL, 0, 1));
    g_assert_cmpstr(ga, ==, a);
    g_assert_cmpstr(gb, ==, b);
    g_assert_cmpstr(gc, ==, c);
    g_assert_null(trp_group_sorted(d, 9, 1));
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TRP_FUNCTION(one_key_of_all);
int one_key_of_all(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, "k", 1, trp_get_i64(in, i) * 7919 % 200003) < 0)
            return -1;
    return 0;
}

/* Emits how many values there are, if they are in order. */
TRP_FUNCTION(falling);
int falling(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        trp_group_values v = trp_group(in, i);
        int64_t n = 0, before = INT64_MAX;
        size_t size;
        for (const void *p; (p = trp_group_next(&v, &size)); n++) {
            if (trp_as_i64(p, size) >= before)
                return -1;
            before = trp_as_i64(p, size);
        }
        if (trp_emit_i64(out, NULL, 0, n) < 0)
            return -1;
    }
    return 0;
}

TEST("the values of a group that memory does not hold come in order")
{
    trp_context *ctx = fake_init();
    fake.memory = 1; /* a group has 1 MiB */
    trp_dataset *d =
        trp_transform(trp_range(ctx, 1, 200001, 4), one_key_of_all, NULL, 0);
    d = trp_group_sorted(d, TRP_I64 | TRP_DESCENDING, 1);
    const trp_batch *b = collected(trp_transform(d, falling, NULL, 0));
    g_assert_cmpuint(b->count, ==, 1);
    g_assert_cmpint(trp_get_i64(b, 0), ==, 200000);
    g_assert_cmpuint(fake.spilled, >, 2000000);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TRP_TASK_COMBINE(add_up_to);
int add_up_to(trp_task *t, const void *a, size_t na, const void *b, size_t nb,
              trp_writer *out, const void *arg)
{
    int64_t sum = trp_as_i64(a, na) + trp_as_i64(b, nb);
    if (sum > *(const int64_t *)arg) {
        trp_task_error(t, "%d is too much", (int)sum);
        return -1;
    }
    return trp_emit_i64(out, NULL, 0, sum);
}

TRP_TASK_PARTITION(in_turn);
uint32_t in_turn(trp_task *t, const void *key, size_t nk, uint32_t partitions,
                 const void *arg)
{
    int64_t v = trp_as_i64(key, nk);
    (void)arg;
    if (v >= partitions)
        trp_task_error(t, "no place for %d", (int)v);
    return (uint32_t)(v % partitions);
}

TEST("functions that have their task read a broadcast, and say why they fail")
{
    trp_context *ctx = fake_init();
    int64_t table[] = {1, 0}, most = 10000, little = 5;
    uint64_t n;
    void *sum;
    size_t size;
    struct trp_broadcast all = trp_broadcast(ctx, table, sizeof(table)),
                         part = trp_broadcast(ctx, table, sizeof(table[0]));
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 40, 4), scattered, NULL, 0);
    g_autofree char *want = groups_wanted(up);
    g_autofree char *got =
        groups_of(trp_group_sorted_by_with_task(d, by_table, &all, sizeof(all), 1));
    g_assert_cmpstr(got, ==, want);
    g_assert_cmpint(
        trp_count(trp_group_sorted_by_with_task(d, by_table, &part, sizeof(part), 1),
                  &n),
        <, 0);
    assert_error(ctx, "the table has no place for 39");
    g_assert_cmpint(
        trp_count(trp_sort_by_with_task(d, by_table, &all, sizeof(all), 1), &n), ==, 0);
    g_assert_cmpint(
        trp_count(trp_combine_by_key_with_task(d, add_up_to, &most, sizeof(most), 2),
                  &n),
        ==, 0);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpint(
        trp_count(
            trp_combine_by_key_with_task(d, add_up_to, &little, sizeof(little), 2), &n),
        <, 0);
    assert_error(ctx, "is too much");
    g_assert_cmpint(trp_count(trp_partition_by_with_task(d, in_turn, NULL, 0, 3), &n),
                    ==, 0);
    g_assert_cmpint(trp_count(trp_partition_by_with_task(d, in_turn, NULL, 0, 2), &n),
                    <, 0);
    assert_error(ctx, "no place for 2");
    g_assert_cmpint(
        trp_reduce_with_task(d, add_up_to, &most, sizeof(most), &sum, &size), ==, 0);
    g_assert_cmpint(trp_as_i64(sum, size), ==, 780);
    free(sum);
    trp_error_clear(ctx);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}
