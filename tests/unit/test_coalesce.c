/* Coalesced datasets, and partitions by a function of the program: lineages made by
 * chance are held against lists of lists that plain loops make. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver.h"
#include "unit.h"

/* ---- functions that tasks run ---- */

TRP_FUNCTION(one_more);
int one_more(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, NULL, 0, trp_get_i64(in, i) + 1) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(is_even);
int is_even(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int32_t keep = trp_get_i64(in, i) % 2 == 0;
        trp_emit(out, NULL, 0, &keep, sizeof(keep));
    }
    return 0;
}

/* The value as key, too. */
TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i);
        if (trp_emit_i64(out, &v, sizeof(v), v) < 0)
            return -1;
    }
    return 0;
}

/* The partition as key. */
TRP_FUNCTION(stamped);
int stamped(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    int64_t index = trp_task_index(t);
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_i64(out, &index, sizeof(index), trp_get_i64(in, i)) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(not_57);
int not_57(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (trp_get_i64(in, i) == 57)
            return 3;
        else
            trp_emit_i64(out, NULL, 0, trp_get_i64(in, i));
    return 0;
}

TRP_COMBINE(sum);
int sum(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    (void)arg;
    int64_t x, y;
    g_assert_cmpuint(na, ==, sizeof(x));
    g_assert_cmpuint(nb, ==, sizeof(y));
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return trp_emit_i64(out, NULL, 0, x + y);
}

/* A number's place: behind as many as the argument says. */
TRP_PARTITION(by_rest);
uint32_t by_rest(const void *key, size_t size, uint32_t partitions, const void *arg)
{
    int64_t v, more;
    g_assert_cmpuint(size, ==, sizeof(v));
    memcpy(&v, key, sizeof(v));
    memcpy(&more, arg, sizeof(more));
    return (uint32_t)((v + more) % partitions);
}

TRP_PARTITION(too_far);
uint32_t too_far(const void *key, size_t size, uint32_t partitions, const void *arg)
{
    (void)key, (void)size, (void)arg;
    return partitions;
}

/* ---- lineages by chance ---- */

struct model {
    trp_dataset *d;
    GPtrArray *parts; /* of GArray of int64_t */
};

static void free_part(void *part)
{
    g_array_free(part, TRUE);
}

static GArray *part_of(const struct model *m, uint32_t i)
{
    return g_ptr_array_index(m->parts, i);
}

static void add_parts(struct model *m, uint32_t n)
{
    while (n--)
        g_ptr_array_add(m->parts, g_array_new(FALSE, FALSE, sizeof(int64_t)));
}

static struct model source(trp_context *ctx, GRand *r)
{
    uint32_t n = (uint32_t)g_rand_int_range(r, 0, 60);
    uint32_t parts = (uint32_t)g_rand_int_range(r, 1, 7);
    int64_t first = g_rand_int_range(r, 0, 1000), v[60];
    uint64_t offsets[61] = {0};
    struct model m = {.parts = g_ptr_array_new_with_free_func(free_part)};
    add_parts(&m, parts);
    for (uint32_t i = 0, part = 0; i < n; i++) {
        while (i >= (uint64_t)n * (part + 1) / parts)
            part++;
        v[i] = first + i;
        offsets[i + 1] = offsets[i] + sizeof(v[i]);
        g_array_append_val(part_of(&m, part), v[i]);
    }
    switch (g_rand_int_range(r, 0, 3)) {
    case 0:
        m.d = trp_range(ctx, first, first + n, parts);
        break;
    case 1:
        m.d = trp_array(ctx, v, n, sizeof(v[0]), parts);
        break;
    default:
        m.d = trp_records(ctx, v, offsets, n, parts);
    }
    return m;
}

static struct model both(struct model a, struct model b)
{
    a.d = trp_union(a.d, b.d);
    while (b.parts->len)
        g_ptr_array_add(a.parts, g_ptr_array_steal_index(b.parts, 0));
    g_ptr_array_free(b.parts, TRUE);
    return a;
}

static struct model coalesced(struct model a, uint32_t partitions)
{
    struct model m = {.d = trp_coalesce(a.d, partitions),
                      .parts = g_ptr_array_new_with_free_func(free_part)};
    uint32_t had = a.parts->len, n = MIN(partitions, had), i = 0;
    add_parts(&m, n);
    for (uint32_t k = 0; k < n; k++)
        for (; i < had * (k + 1) / n; i++)
            g_array_append_vals(part_of(&m, k), part_of(&a, i)->data,
                                part_of(&a, i)->len);
    g_assert_cmpuint(trp_partition_count(m.d), ==, n);
    g_ptr_array_free(a.parts, TRUE);
    return m;
}

/* As the bytes of keys are compared; equal ones are alike. */
static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(int64_t));
}

static struct model partitioned(struct model a, uint32_t partitions, int64_t more)
{
    trp_dataset *d = trp_transform(a.d, keyed, NULL, 0);
    struct model m = {.parts = g_ptr_array_new_with_free_func(free_part)};
    m.d = trp_partition_by(d, by_rest, &more, sizeof(more), partitions);
    add_parts(&m, partitions);
    for (uint32_t i = 0; i < a.parts->len; i++)
        for (uint32_t k = 0; k < part_of(&a, i)->len; k++) {
            int64_t v = g_array_index(part_of(&a, i), int64_t, k);
            g_array_append_val(part_of(&m, (uint32_t)((v + more) % partitions)), v);
        }
    for (uint32_t i = 0; i < partitions; i++)
        g_array_sort(part_of(&m, i), by_bytes);
    g_ptr_array_free(a.parts, TRUE);
    return m;
}

static struct model mapped(struct model a)
{
    a.d = trp_map(a.d, one_more, NULL, 0);
    for (uint32_t i = 0; i < a.parts->len; i++)
        for (uint32_t k = 0; k < part_of(&a, i)->len; k++)
            g_array_index(part_of(&a, i), int64_t, k)++;
    return a;
}

static struct model filtered(struct model a)
{
    a.d = trp_filter(a.d, is_even, NULL, 0);
    for (uint32_t i = 0; i < a.parts->len; i++)
        for (uint32_t k = part_of(&a, i)->len; k-- > 0;)
            if (g_array_index(part_of(&a, i), int64_t, k) % 2)
                g_array_remove_index(part_of(&a, i), k);
    return a;
}

/* What is kept is the same, also when it was, and when it is there twice. */
static struct model kept(struct model a, GRand *r)
{
    a.d = trp_persist(a.d, (enum trp_storage)g_rand_int_range(r, 1, 4));
    if (g_rand_int_range(r, 0, 8) == 0)
        g_assert_cmpint(trp_unpersist(a.d), ==, 0);
    if (g_rand_int_range(r, 0, 4))
        return a;
    a.d = trp_union(a.d, a.d);
    for (uint32_t i = 0, n = a.parts->len; i < n; i++) {
        add_parts(&a, 1);
        g_array_append_vals(part_of(&a, n + i), part_of(&a, i)->data,
                            part_of(&a, i)->len);
    }
    return a;
}

static struct model by_chance(trp_context *ctx, GRand *r, int depth)
{
    if (depth == 0)
        return source(ctx, r);
    struct model a = by_chance(ctx, r, depth - 1);
    switch (g_rand_int_range(r, 0, 8)) {
    case 0:
        return both(a, by_chance(ctx, r, depth - 1));
    case 1:
    case 2:
        return coalesced(a, (uint32_t)g_rand_int_range(r, 1, (int)a.parts->len + 2));
    case 3:
        return mapped(a);
    case 4:
        return filtered(a);
    case 5:
    case 6:
        return kept(a, r);
    default:
        return partitioned(a, (uint32_t)g_rand_int_range(r, 1, 6),
                           g_rand_int_range(r, 0, 9));
    }
}

static void check(const struct model *m)
{
    const trp_batch *b = collected(trp_transform(m->d, stamped, NULL, 0));
    uint64_t n = 0, count;
    int64_t all = 0;
    g_assert_cmpuint(trp_partition_count(m->d), ==, m->parts->len);
    for (uint32_t i = 0; i < m->parts->len; i++)
        for (uint32_t k = 0; k < part_of(m, i)->len; k++, n++) {
            g_assert_cmpuint(n, <, b->count);
            g_assert_cmpint(trp_get_key_i64(b, n), ==, i);
            g_assert_cmpint(trp_get_i64(b, n), ==,
                            g_array_index(part_of(m, i), int64_t, k));
            all += trp_get_i64(b, n);
        }
    g_assert_cmpuint(n, ==, b->count);
    g_assert_cmpint(trp_count(m->d, &count), ==, 0);
    g_assert_cmpuint(count, ==, n);
    void *value;
    size_t size;
    g_assert_cmpint(trp_reduce(m->d, sum, NULL, 0, &value, &size), ==, 0);
    g_assert_cmpuint(size, ==, n ? sizeof(all) : 0);
    g_assert_cmpmem(value, size, &all, size);
    free(value);
}

TEST("lineages by chance")
{
    uint64_t hits = 0;
    for (uint32_t seed = 0; seed < 300; seed++) {
        g_autoptr(GRand) r = g_rand_new_with_seed(seed);
        trp_context *ctx = fake_init();
        g_test_message("seed %u", seed); /* what the log of a failure ends with */
        if (seed % 3 == 0)
            fake_pool(300 + seed);
        struct model m = by_chance(ctx, r, 1 + (int)seed % 8);
        check(&m);
        g_ptr_array_free(m.parts, TRUE);
        g_assert_cmpint(trp_finalize(ctx), ==, 0);
        hits += fake.hits;
    }
    g_assert_cmpuint(hits, >, 200);
}

/* ---- partitions by a function ---- */

TEST("a partition that is not there is a mistake")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 10, 2);
    uint64_t n;
    g_assert_cmpint(trp_count(trp_partition_by(trp_transform(d, keyed, NULL, 0),
                                               too_far, NULL, 0, 3),
                              &n),
                    <, 0);
    assert_error(ctx, "trp_partition_by: too_far returned 3; there are 3 partitions");
    g_assert_cmpint(trp_count(trp_partition_by(d, too_far, NULL, 0, 3), &n), <, 0);
    assert_error(ctx, "trp_partition_by: a record has no key");
    g_assert_null(trp_partition_by(d, NULL, NULL, 0, 3));
    assert_error(ctx, "trp_partition_by: the function is not known by a name; write "
                      "TRP_PARTITION(name)");
    g_assert_null(trp_partition_by(d, too_far, NULL, 0, 0));
    assert_error(ctx, "trp_partition_by: 0 partitions");
    g_assert_null(trp_partition_by(d, too_far, NULL, 8, 3));
    assert_error(ctx, "8 bytes of argument for too_far");
    trp_finalize(ctx);
}

/* ---- what else a coalesced dataset is ---- */

static char *content(const char *dir, uint32_t part)
{
    g_autofree char *path = g_strdup_printf("%s/part-%05u", dir, part);
    char *text;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    unlink(path);
    return text;
}

/* Lines with their files as keys, and records without, each part as its members'. */
TEST("parts are saved whole")
{
    g_autofree char *folder = g_dir_make_tmp("coalesce-XXXXXX", NULL);
    g_autofree char *text = g_build_filename(folder, "t.txt", NULL);
    g_autofree char *before = g_build_filename(folder, "before", NULL);
    g_autofree char *after = g_build_filename(folder, "after", NULL);
    g_autoptr(GString) lines = g_string_new("");
    for (int i = 0; i < 500; i++)
        g_string_append_printf(lines, "line %d\n", i);
    g_assert_true(g_file_set_contents(text, lines->str, (gssize)lines->len, NULL));
    trp_context *ctx = fake_init();
    uint64_t offsets[] = {0, 3, 3, 9};
    trp_dataset *d = trp_records(ctx, "onethree", offsets, 2, 2);
    d = trp_union(trp_text_files(ctx, text, 7), d);
    uint32_t had = trp_partition_count(d);
    g_assert_cmpuint(had, >=, 8);
    g_assert_cmpint(trp_save(d, before), ==, 0);
    g_assert_cmpint(trp_save(trp_coalesce(d, 3), after), ==, 0);
    for (uint32_t i = 0, k = 0; i < 3; i++) {
        g_autoptr(GString) want = g_string_new("");
        for (; k < had * (i + 1) / 3; k++) {
            g_autofree char *part = content(before, k);
            g_string_append(want, part);
        }
        g_autofree char *got = content(after, i);
        g_assert_cmpstr(got, ==, want->str);
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
    unlink(text);
    g_assert_cmpint(rmdir(before) | rmdir(after) | rmdir(folder), ==, 0);
}

/* A member that reads map outputs hides none of what others have read from outside. */
TEST("what tasks read is counted")
{
    trp_context *ctx = fake_init();
    trp_dataset *wide = trp_repartition(trp_range(ctx, 0, 40, 2), 2);
    trp_dataset *d = trp_union(trp_range(ctx, 0, 100, 3), wide);
    uint64_t n;
    g_assert_cmpint(trp_count(trp_coalesce(d, 1), &n), ==, 0);
    g_assert_cmpuint(n, ==, 140);
    g_assert_cmpuint(fake.records_in, ==, 140);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

TEST("a lost output is made again")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 300, 3), keyed, NULL, 0);
    trp_dataset *c = trp_coalesce(trp_sort_by_key(d, TRP_I64, 5), 2);
    uint64_t n;
    g_assert_cmpint(trp_count(c, &n), ==, 0);
    uint32_t side = fake.datasets[fake.dataset].parents[0];
    g_autofree char *path =
        g_strdup_printf("%s/%u-1-%llu", fake.folder, side,
                        (unsigned long long)fake.datasets[side].outputs[1]);
    g_assert_cmpint(unlink(path), ==, 0);
    const trp_batch *b = collected(c);
    g_assert_cmpuint(fake.maps_again, ==, 1);
    g_assert_cmpuint(b->count, ==, 300);
    for (size_t i = 0; i < b->count; i++)
        g_assert_cmpint(trp_get_i64(b, i), ==, i);
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

/* Profile and barrier count from below it as from above. */
TEST("a stage of coalesced partitions")
{
    trp_context *ctx = fake_init();
    trp_profile *p;
    uint64_t n;
    g_assert_cmpint(trp_profile_from(ctx, "p", "cores=2", &p), ==, 0);
    trp_dataset *d = trp_with_resources(trp_range(ctx, 0, 10, 5), p);
    d = trp_map(trp_coalesce(trp_barrier(d), 2), one_more, NULL, 0);
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    const struct fake_dataset *stage = &fake.datasets[fake.dataset];
    g_assert_cmpstr(stage->name, ==, "count trp_range → trp_coalesce → one_more");
    g_assert_cmpuint(stage->profile.n, ==, p->id.n);
    g_assert_true(stage->barrier);
    g_assert_cmpuint(stage->partitions, ==, 2);
    d = trp_coalesce(trp_map(trp_range(ctx, 0, 100, 9), not_57, NULL, 0), 2);
    g_assert_cmpint(trp_count(d, &n), ==, TRP_EFAILED);
    assert_error(ctx, "task 1 ");
    assert_error(ctx, "function not_57 returned 3");
    trp_error_clear(ctx);
    trp_finalize(ctx);
}

TEST("limits")
{
    trp_context *ctx = fake_init();
    trp_dataset *d = trp_range(ctx, 0, 1000, 300);
    uint64_t n;
    g_assert_null(trp_coalesce(NULL, 1));
    g_assert_null(trp_coalesce(d, 0));
    assert_error(ctx, "trp_coalesce: 0 partitions");
    for (uint32_t i = 0; i < TRP_STEPS_MAX - 1; i++)
        d = trp_coalesce(d, 299 - i);
    g_assert_cmpint(trp_count(d, &n), ==, 0);
    g_assert_cmpuint(n, ==, 1000);
    g_assert_null(trp_coalesce(d, 1));
    assert_error(ctx, "trp_coalesce: more than 255 functions in one chain");
    /* A doubled dataset costs its bytes, which are refused, not the driver's memory. */
    int64_t v = 1;
    d = trp_array(ctx, &v, 1, sizeof(v), 1);
    for (int i = 0; d && i < 60; i++)
        d = trp_coalesce(trp_union(d, d), 1);
    g_assert_null(d);
    assert_error(ctx, "trp_coalesce: partition 0 would have more than 64 MiB of input; "
                      "use more partitions");
    trp_finalize(ctx);
}
