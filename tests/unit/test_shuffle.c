/* Shuffle files: what is written comes back in order, whole, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/block_file.h"
#include "data/value_list.h"
#include "os/held.h"
#include "shuffle_data.h"
#include "unit.h"

#define MIB ((size_t)1 << 20)

/* ---- writing and reading what is made -------------------------------------------- */

static struct trp_shuffle_spec spec_of(const char *folder, uint32_t map,
                                       uint32_t partitions)
{
    return (struct trp_shuffle_spec){.folder = folder,
                                     .shuffle = 1,
                                     .map = map,
                                     .attempt = 100 + map,
                                     .partitions = partitions,
                                     .memory = 64 * MIB};
}

static void write_map(const struct trp_shuffle_spec *spec, GPtrArray *records,
                      struct trp_shuffle_counts *ret, uint64_t *sizes)
{
    trp_error err = {0};
    trp_shuffle_writer *w = NULL;
    g_assert_cmpint(trp_shuffle_writer_open(spec, &w, &err), ==, 0);
    g_autoptr(GArray) all =
        g_array_new(FALSE, FALSE, sizeof(struct trp_shuffle_record));
    g_autoptr(GArray) partitions = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (guint i = 0; i < records->len; i++) {
        const struct made_record *r = records->pdata[i];
        struct trp_shuffle_record add;
        add.key = g_bytes_get_data(r->key, &add.nk);
        add.value = g_bytes_get_data(r->value, &add.nv);
        if (r->map != spec->map)
            continue;
        g_array_append_val(all, add);
        g_array_append_val(partitions, r->partition);
    }
    for (guint at = 0, n, times = 0; at < all->len; at += n, times++) {
        n = MIN(times * times % 100 + 1, all->len - at); /* one, some, many at once */
        const struct trp_shuffle_record *r =
            &g_array_index(all, struct trp_shuffle_record, at);
        const uint32_t *p = &g_array_index(partitions, uint32_t, at);
        int rc = n == 1 ? trp_shuffle_add(w, *p, r->key, r->nk, r->value, r->nv, &err)
                        : trp_shuffle_add_all(w, p, r, n, &err);
        g_assert_cmpstr(err.text, ==, "");
        g_assert_cmpint(rc, ==, 0);
    }
    int rc = trp_shuffle_commit(w, sizes, ret, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(rc, ==, 0);
    trp_shuffle_writer_free(w);
}

struct setting {
    const char *folder;
    uint32_t maps, partitions;
    size_t memory, read_memory;
    int compress;
    struct trp_shuffle_order order;
    struct trp_shuffle_counts counts; /* of the last map */
    uint64_t written;                 /* records, by all maps */
    struct trp_shuffle_reader_counts read_counts;
};

static const struct trp_data_host here = {.name = "here", .here = true};

static struct trp_shuffle_read read_of(const struct setting *s, uint32_t partition,
                                       struct trp_shuffle_source *sources)
{
    for (uint32_t i = 0; i < s->maps; i++)
        sources[i] = (struct trp_shuffle_source){i, 100 + i, 0};
    return (struct trp_shuffle_read){.folder = s->folder,
                                     .shuffle = 1,
                                     .partition = partition,
                                     .partitions = s->partitions,
                                     .sources = sources,
                                     .nsources = s->maps,
                                     .hosts = &here,
                                     .nhosts = 1,
                                     .memory =
                                         s->read_memory ? s->read_memory : 64 * MIB,
                                     .order = s->order};
}

static trp_shuffle_reader *open_reader(const struct trp_shuffle_read *read)
{
    trp_error err = {0};
    trp_shuffle_reader *r = NULL;
    int rc = trp_shuffle_reader_open(read, &r, NULL, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(rc, ==, 0);
    return r;
}

static void write_all(struct setting *s, GPtrArray *records)
{
    s->written = 0;
    for (uint32_t map = 0; map < s->maps; map++) {
        struct trp_shuffle_spec spec = spec_of(s->folder, map, s->partitions);
        spec.memory = s->memory ? s->memory : 64 * MIB;
        spec.compress = s->compress;
        spec.order = s->order;
        write_map(&spec, records, &s->counts, NULL);
        s->written += s->counts.written;
    }
}

/* Writes all records and reads each partition: they come in the order of `expected`,
 * which has them sorted. */
static void check_all(struct setting *s, GPtrArray *records, GPtrArray *expected)
{
    g_autofree struct trp_shuffle_source *sources =
        g_new(struct trp_shuffle_source, s->maps);
    uint64_t nread = 0;
    guint at = 0;
    write_all(s, records);
    for (uint32_t p = 0; p < s->partitions; p++) {
        struct trp_shuffle_read read = read_of(s, p, sources);
        struct trp_shuffle_record got;
        trp_error err = {0};
        trp_shuffle_reader *r = open_reader(&read);
        int rc;
        while ((rc = trp_shuffle_next(r, &got, NULL, &err)) > 0) {
            g_assert_cmpuint(at, <, expected->len);
            const struct made_record *want = expected->pdata[at++];
            g_assert_cmpuint(want->partition, ==, p);
            assert_bytes(got.key, got.nk, want->key);
            assert_bytes(got.value, got.nv, want->value);
        }
        g_assert_cmpstr(err.text, ==, "");
        g_assert_cmpint(rc, ==, 0);
        trp_shuffle_reader_counts(r, &s->read_counts);
        trp_shuffle_reader_free(r);
        nread += s->read_counts.records;
    }
    g_assert_cmpuint(at, ==, expected->len);
    g_assert_cmpuint(nread, ==, s->written);
}

static void check_sorted(struct setting *s, GPtrArray *records)
{
    g_autoptr(GPtrArray) expected = g_ptr_array_copy(records, NULL, NULL);
    g_ptr_array_set_free_func(expected, NULL);
    g_ptr_array_sort(expected, by_key);
    check_all(s, records, expected);
}

/* ---- made-up records ------------------------------------------------------------- */

/* Bytes from a small alphabet make keys that share beginnings; zeros at their ends and
 * keys that are the beginning of others are frequent. */
static void random_bytes(GRand *rand, uint8_t *to, size_t n, int letters)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(g_rand_int_range(rand, 0, letters) * (256 / letters));
}

static GPtrArray *random_records(GRand *rand, const struct setting *s, guint n,
                                 int nk_max, int nv_max, int letters)
{
    g_autofree uint8_t *key = g_malloc(nk_max + 1), *value = g_malloc(nv_max + 1);
    GPtrArray *records = g_ptr_array_new_with_free_func(made_record_free);
    for (guint i = 0; i < n; i++) {
        size_t nk = (size_t)g_rand_int_range(rand, 0, nk_max + 1);
        size_t nv = (size_t)g_rand_int_range(rand, 0, nv_max + 1);
        random_bytes(rand, key, nk, letters);
        random_bytes(rand, value, nv, 256);
        made_record_add(records, g_rand_int_range(rand, 0, (gint32)s->partitions),
                        g_rand_int_range(rand, 0, (gint32)s->maps), key, nk, value, nv);
    }
    return records;
}

static GRand *seeded(void)
{
    guint32 seed = (guint32)g_test_rand_int();
    g_test_message("seed %u", seed);
    return g_rand_new_with_seed(seed);
}

TEST("any records come back sorted")
{
    g_autoptr(GRand) rand = seeded();
    for (int i = 0; i < 60; i++) {
        g_autofree char *folder = NULL;
        struct setting s = {.maps = (uint32_t)g_rand_int_range(rand, 1, 9),
                            .partitions = (uint32_t)g_rand_int_range(rand, 1, 600),
                            .compress = g_rand_int_range(rand, 0, 3) == 0,
                            .folder = folder = shuffle_folder_make()};
        const int letters[] = {1, 2, 4, 256};
        g_autoptr(GPtrArray) records =
            random_records(rand, &s, (guint)g_rand_int_range(rand, 0, 3000),
                           g_rand_int_range(rand, 0, 40), g_rand_int_range(rand, 0, 60),
                           letters[g_rand_int_range(rand, 0, 4)]);
        if (g_rand_boolean(rand))
            s.partitions = 1;
        for (guint k = 0; k < records->len; k++)
            ((struct made_record *)records->pdata[k])->partition %= s.partitions;
        check_sorted(&s, records);
        shuffle_folder_remove(g_steal_pointer(&folder));
    }
}

/* More than the budget of writer and reader: spills, and merges in rounds. */
TEST("more than memory is spilled and merged")
{
    g_autoptr(GRand) rand = seeded();
    for (int i = 0; i < 2; i++) {
        char *folder = shuffle_folder_make();
        struct setting s = {.maps = 3,
                            .partitions = 5,
                            .memory = 1, /* taken as the least */
                            .compress = i,
                            .folder = folder};
        g_autoptr(GPtrArray) records = random_records(rand, &s, 120000, 24, 300, 4);
        check_sorted(&s, records);
        g_assert_cmpuint(s.counts.spills, >, 1);
        g_assert_cmpuint(s.counts.peak_memory, <=, 4 * MIB);
        shuffle_folder_remove(folder);
    }
}

/* A reader with 100 blocks and memory for few of them. */
TEST("more blocks than memory has buffers for are merged in rounds")
{
    g_autoptr(GRand) rand = seeded();
    char *folder = shuffle_folder_make();
    struct setting s = {
        .maps = 100, .partitions = 2, .read_memory = 1, .folder = folder};
    g_autoptr(GPtrArray) records = random_records(rand, &s, 100000, 12, 300, 2);
    check_sorted(&s, records);
    g_assert_cmpuint(s.read_counts.spills, >, 0);
    g_assert_cmpuint(s.read_counts.local_blocks, ==, 100);
    shuffle_folder_remove(folder);
}

/* Far more spills than descriptors, of a writer, then of a reader. */
TEST("there may be more spills than descriptors")
{
    enum { FEW = 20, RECORDS = 130000, MAPS = 600 };
    char *folder = shuffle_folder_make();
    struct rlimit old, few;
    struct setting s = {
        .maps = MAPS, .partitions = 1, .read_memory = 1, .folder = folder};
    struct trp_shuffle_spec spec = spec_of(folder, 0, 1);
    struct trp_shuffle_source sources[MAPS];
    struct trp_shuffle_record got;
    trp_shuffle_writer *w = NULL;
    trp_error err = {0};
    char value[1000] = "";
    getrlimit(RLIMIT_NOFILE, &old);
    few = (struct rlimit){FEW, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    spec.memory = 1;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    for (guint i = 0; i < RECORDS; i++) {
        guint32 key = GUINT32_TO_BE(i * 7 % RECORDS);
        trp_shuffle_add(w, 0, &key, sizeof key, value, sizeof value, &err);
        g_assert_cmpstr(err.text, ==, "");
    }
    trp_shuffle_commit(w, NULL, &s.counts, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpuint(s.counts.spills, >, (guint64)2 * FEW);
    trp_shuffle_writer_free(w);
    for (guint map = 1; map < MAPS; map++) {
        struct trp_shuffle_spec other = spec_of(folder, map, 1);
        g_assert_cmpint(trp_shuffle_writer_open(&other, &w, &err), ==, 0);
        for (guint i = 0; i < 140; i++)
            trp_shuffle_add(w, 0, &i, sizeof i, value, sizeof value, &err);
        g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, 0);
        trp_shuffle_writer_free(w);
    }
    struct trp_shuffle_read read = read_of(&s, 0, sources);
    trp_shuffle_reader *r = open_reader(&read);
    guint n = 0;
    for (int rc; (rc = trp_shuffle_next(r, &got, NULL, &err)) != 0; n++)
        g_assert_cmpint(rc, ==, 1);
    g_assert_cmpuint(n, ==, RECORDS + (MAPS - 1) * 140);
    trp_shuffle_reader_counts(r, &s.read_counts);
    g_assert_cmpuint(s.read_counts.spills, >, FEW);
    trp_shuffle_reader_free(r);
    setrlimit(RLIMIT_NOFILE, &old);
    shuffle_folder_remove(folder);
}

/* Long keys that differ at their ends only, so that bytes are of no help at first. */
TEST("keys may differ late")
{
    g_autoptr(GRand) rand = seeded();
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 2, .folder = folder};
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    for (int i = 0; i < 20000; i++) {
        char key[200];
        memset(key, 'x', sizeof key);
        int n = g_rand_int_range(rand, 150, 190);
        n += g_snprintf(key + n, 10, "%d", g_rand_int_range(rand, 0, 300));
        made_record_add(records, (uint32_t)i % 2, (uint32_t)i / 2 % 2, key, (size_t)n,
                        &i, sizeof i);
    }
    check_sorted(&s, records);
    shuffle_folder_remove(folder);
}

/* Each key is the beginning of all longer ones: prefixes never end the sort. */
TEST("keys may begin others")
{
    char *folder = shuffle_folder_make(), key[4000];
    struct setting s = {.maps = 1, .partitions = 1, .folder = folder};
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    memset(key, 'k', sizeof key);
    for (int i = 0; i < 3000; i++)
        made_record_add(records, 0, 0, key, (size_t)(i * 7919 % 4000), &i, sizeof i);
    check_sorted(&s, records);
    shuffle_folder_remove(folder);
}

TEST("keys of nothing and of 1 MiB, records above the budget")
{
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 3, .memory = 1, .folder = folder};
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    g_autofree uint8_t *large = g_malloc0(9 * MIB);
    for (uint32_t i = 0; i < 40; i++) { /* keys of 1 MiB, records above the budget */
        large[MIB - 1] = (uint8_t)(i * 37);
        size_t nk = i % 4 == 0 ? 0 : i % 4 == 1 ? MIB : i;
        size_t nv = i % 4 == 2 ? 0 : i == 3 ? 9 * MIB : (size_t)i * 1000;
        made_record_add(records, i % 3, i % 2, large, nk, large, nv);
    }
    check_sorted(&s, records);
    shuffle_folder_remove(folder);
}

TEST("all records may have one key")
{
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 3, .partitions = 2, .memory = 1, .folder = folder};
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    for (int i = 0; i < 200000; i++)
        made_record_add(records, 1, (uint32_t)i % 3, "the only key", 12, &i, sizeof i);
    check_sorted(&s, records);
    g_assert_cmpuint(s.counts.spills, >, 0);
    shuffle_folder_remove(folder);
}

TEST("there may be no records")
{
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 1000, .folder = folder};
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    check_sorted(&s, records);
    g_assert_cmpuint(s.counts.records, ==, 0);
    g_assert_cmpuint(s.counts.bytes, <, 200);
    shuffle_folder_remove(folder);
}

/* 100,000 partitions of which few are not empty: the file has little else. */
TEST("empty blocks of 100,000 cost nothing")
{
    char *folder = shuffle_folder_make();
    g_autofree uint64_t *sizes = g_new(uint64_t, 100000);
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    struct trp_shuffle_source source;
    struct setting s = {.maps = 1, .partitions = 100000, .folder = folder};
    const uint32_t full[] = {0, 1, 255, 256, 511, 77777, 99999};
    for (guint i = 0; i < G_N_ELEMENTS(full); i++)
        made_record_add(records, full[i], 0, "key", 3, &i, sizeof i);
    struct trp_shuffle_spec spec = spec_of(folder, 0, 100000);
    write_map(&spec, records, &s.counts, sizes);
    g_assert_cmpuint(s.counts.bytes, <, 12000);
    for (uint32_t p = 0, next = 0; p < 100000; p++) {
        bool is_full = next < G_N_ELEMENTS(full) && full[next] == p;
        g_assert_cmpint(sizes[p] > 0, ==, is_full);
        if (!is_full && p % 7 != 0)
            continue;
        struct trp_shuffle_read read = read_of(&s, p, &source);
        struct trp_shuffle_record got;
        trp_shuffle_reader *r = open_reader(&read);
        g_assert_cmpint(trp_shuffle_next(r, &got, NULL, NULL), ==, is_full);
        if (is_full)
            g_assert_cmpmem(got.value, got.nv, &next, sizeof next);
        next += is_full;
        trp_shuffle_reader_free(r);
    }
    shuffle_folder_remove(folder);
}

/* ---- orders ---------------------------------------------------------------------- */

static gint by_map(gconstpointer a, gconstpointer b)
{
    const struct made_record *x = *(struct made_record *const *)a;
    const struct made_record *y = *(struct made_record *const *)b;
    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    if (x->map != y->map)
        return x->map < y->map ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

TEST("unordered records come as they were written")
{
    g_autoptr(GRand) rand = seeded();
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 4,
                        .partitions = 7,
                        .memory = 1,
                        .order = {.unordered = true},
                        .folder = folder};
    g_autoptr(GPtrArray) records = random_records(rand, &s, 100000, 12, 200, 256);
    g_autoptr(GPtrArray) expected = g_ptr_array_copy(records, NULL, NULL);
    g_ptr_array_set_free_func(expected, NULL);
    g_ptr_array_sort(expected, by_map);
    check_all(&s, records, expected);
    g_assert_cmpuint(s.counts.spills, >, 0);
    shuffle_folder_remove(folder);
}

/* Descending, by the last byte alone: many keys are the same to it. */
static int by_last_byte(void *context, const void *a, size_t na, const void *b,
                        size_t nb)
{
    int x = na ? ((const uint8_t *)a)[na - 1] : -1;
    int y = nb ? ((const uint8_t *)b)[nb - 1] : -1;
    (*(int *)context)++;
    return y - x;
}

static gint by_last_byte_and_map(gconstpointer a, gconstpointer b)
{
    const struct made_record *x = *(struct made_record *const *)a;
    const struct made_record *y = *(struct made_record *const *)b;
    gsize nx, ny;
    int calls = 0;
    const void *kx = g_bytes_get_data(x->key, &nx), *ky = g_bytes_get_data(y->key, &ny);
    int c = by_last_byte(&calls, kx, nx, ky, ny);
    return x->partition != y->partition || c == 0 ? by_map(a, b) : c;
}

TEST("an order of one's own is kept")
{
    g_autoptr(GRand) rand = seeded();
    char *folder = shuffle_folder_make();
    int calls = 0;
    struct setting s = {
        .maps = 3,
        .partitions = 4,
        .memory = 1,
        .order = {.compare = by_last_byte, .context = &calls},
        .folder = folder
    };
    g_autoptr(GPtrArray) records = random_records(rand, &s, 120000, 5, 200, 256);
    g_autoptr(GPtrArray) expected = g_ptr_array_copy(records, NULL, NULL);
    g_ptr_array_set_free_func(expected, NULL);
    g_ptr_array_sort(expected, by_last_byte_and_map);
    check_all(&s, records, expected);
    g_assert_cmpuint(s.counts.spills, >, 0);
    g_assert_cmpint(calls, >, 0);
    shuffle_folder_remove(folder);
}

/* ---- numbers, and downwards ---- */

static int compare_numbers(const void *a, const void *b, enum trp_shuffle_keys keys)
{
    int64_t i, k;
    double x, y;
    memcpy(&i, a, sizeof i);
    memcpy(&k, b, sizeof k);
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (keys == TRP_KEYS_I64)
        return (i > k) - (i < k);
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

static gint by_kind(gconstpointer a, gconstpointer b, gpointer order)
{
    const struct made_record *x = *(struct made_record *const *)a;
    const struct made_record *y = *(struct made_record *const *)b;
    const struct trp_shuffle_order *o = order;
    if (x->partition != y->partition)
        return by_map(a, b);
    int c = o->keys == TRP_KEYS_BYTES
                ? g_bytes_compare(x->key, y->key)
                : compare_numbers(g_bytes_get_data(x->key, NULL),
                                  g_bytes_get_data(y->key, NULL), o->keys);
    c = (c > 0) - (c < 0);
    return c == 0 ? by_map(a, b) : o->descending ? -c : c;
}

/* Numbers of all kinds, many of them more than once. */
static GPtrArray *random_numbers(GRand *rand, const struct setting *s)
{
    static const double odd[] = {0.0,    -0.0, NAN,     -NAN,     INFINITY, -INFINITY,
                                 1e-310, -1.5, DBL_MAX, -DBL_MAX, DBL_MIN};
    GPtrArray *records = g_ptr_array_new_with_free_func(made_record_free);
    for (guint i = 0; i < 60000; i++) {
        uint64_t v = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
        double d = odd[g_rand_int_range(rand, 0, G_N_ELEMENTS(odd))];
        if (i % 3 == 0)
            memcpy(&v, &d, sizeof v);
        else if (i % 3 == 1)
            v = (uint64_t)(int64_t)g_rand_int_range(rand, -50, 50);
        made_record_add(records, g_rand_int(rand) % s->partitions,
                        g_rand_int(rand) % s->maps, &v, sizeof v, &i, sizeof i);
    }
    return records;
}

TEST("numbers are sorted as numbers, and any keys downwards")
{
    g_autoptr(GRand) rand = seeded();
    for (int kind = 0; kind < 6; kind++) {
        char *folder = shuffle_folder_make();
        struct setting s = {
            .maps = 3,
            .partitions = 4,
            .memory = kind % 2 ? 1 : 64 * MIB,
            .order = {.keys = (enum trp_shuffle_keys)(kind / 2),
                      .descending = g_rand_boolean(rand)},
            .folder = folder
        };
        for (int again = 0; again < 2; again++) {
            g_autoptr(GPtrArray) records =
                s.order.keys == TRP_KEYS_BYTES
                    ? random_records(rand, &s, 60000, 30, 100, 3)
                    : random_numbers(rand, &s);
            g_autoptr(GPtrArray) expected = g_ptr_array_copy(records, NULL, NULL);
            g_ptr_array_set_free_func(expected, NULL);
            g_ptr_array_sort_with_data(expected, by_kind, &s.order);
            check_all(&s, records, expected);
            s.order.descending = !s.order.descending;
        }
        shuffle_folder_remove(folder);
    }
}

static int no_order(void *context, const void *a, size_t na, const void *b, size_t nb)
{
    (void)a, (void)na, (void)b, (void)nb;
    return g_rand_int_range(context, -1, 2);
}

/* Stone, scissors, paper: neighbours agree, others do not. */
static int in_a_circle(void *context, const void *a, size_t na, const void *b,
                       size_t nb)
{
    (void)context;
    int x = na ? *(const uint8_t *)a % 3 : 0, y = nb ? *(const uint8_t *)b % 3 : 0;
    return x == y ? 0 : (y - x + 3) % 3 == 1 ? -1 : 1;
}

TEST("a comparison that is no order is found out")
{
    g_autoptr(GRand) rand = seeded();
    const trp_shuffle_compare compare[] = {no_order, in_a_circle};
    for (int i = 0; i < 2; i++) {
        char *folder = shuffle_folder_make();
        struct trp_shuffle_spec spec = spec_of(folder, 0, 1);
        trp_shuffle_writer *w = NULL;
        trp_error err;
        spec.order = (struct trp_shuffle_order){.compare = compare[i], .context = rand};
        g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
        for (int k = 0; k < 5000; k++) {
            uint8_t key = (uint8_t)g_rand_int(rand);
            g_assert_cmpint(trp_shuffle_add(w, 0, &key, 1, "v", 1, &err), ==, 0);
        }
        g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, TRP_EINVAL);
        g_assert_nonnull(strstr(err.text, "is no order"));
        trp_shuffle_writer_free(w);
        g_assert_cmpuint(files_in(folder), ==, 0);
        shuffle_folder_remove(folder);
    }
}

/* ---- combining ------------------------------------------------------------------- */

/* Joins the decimal numbers of two values by commas: shows the order in which they
 * came, and grows. */
static int joined(void *context, const void *a, size_t na, const void *b, size_t nb,
                  const void **ret, size_t *ret_size)
{
    GString *out = context;
    g_string_truncate(out, 0);
    g_string_append_len(out, a, (gssize)na);
    g_string_append_c(out, ',');
    g_string_append_len(out, b, (gssize)nb);
    *ret = out->str;
    *ret_size = out->len;
    return 0;
}

static void combined_is_right(size_t memory, guint n, guint keys)
{
    g_autoptr(GString) out = g_string_new(NULL);
    char *folder = shuffle_folder_make();
    struct setting s = {
        .maps = 3,
        .partitions = 4,
        .memory = memory,
        .read_memory = memory,
        .order = {.combine = joined, .context = out},
        .folder = folder
    };
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    for (guint i = 0; i < n; i++) {
        char key[32], value[32];
        guint k = i * 7919 % keys;
        g_snprintf(key, sizeof key, "%u", k);
        g_snprintf(value, sizeof value, "%u", i);
        made_record_add(records, k % 4, i % 3, key, strlen(key), value, strlen(value));
    }
    g_autoptr(GPtrArray) sorted = g_ptr_array_copy(records, NULL, NULL);
    g_ptr_array_set_free_func(sorted, NULL);
    g_ptr_array_sort(sorted, by_key);
    g_autoptr(GPtrArray) expected = g_ptr_array_new_with_free_func(made_record_free);
    for (guint i = 0, end; i < sorted->len; i = end) {
        const struct made_record *first = sorted->pdata[i];
        g_autoptr(GString) all = g_string_new(NULL);
        for (end = i; end < sorted->len; end++) {
            const struct made_record *r = sorted->pdata[end];
            if (!g_bytes_equal(first->key, r->key))
                break;
            g_string_append_printf(all, "%s%.*s", end > i ? "," : "",
                                   (int)g_bytes_get_size(r->value),
                                   (const char *)g_bytes_get_data(r->value, NULL));
        }
        gsize nk;
        const void *key = g_bytes_get_data(first->key, &nk);
        made_record_add(expected, first->partition, 0, key, nk, all->str, all->len);
    }
    check_all(&s, records, expected);
    g_assert_cmpuint(s.counts.records, >=, s.counts.written);
    shuffle_folder_remove(folder);
}

TEST("values of a key are combined in their order")
{
    combined_is_right(0, 5000, 1);
    combined_is_right(0, 30000, 700);
    combined_is_right(0, 2000, 3000);
    combined_is_right(1, 200000, 50000);
    combined_is_right(1, 20000, 3);       /* values that grow */
    combined_is_right(1, 200000, 190000); /* next to nothing to combine */
}

static int refuses(void *context, const void *a, size_t na, const void *b, size_t nb,
                   const void **ret, size_t *ret_size)
{
    (void)context, (void)a, (void)na, (void)b, (void)nb, (void)ret, (void)ret_size;
    return TRP_EFAILED;
}

TEST("a combiner may fail")
{
    char *folder = shuffle_folder_make();
    struct trp_shuffle_spec spec = spec_of(folder, 0, 1);
    trp_shuffle_writer *w = NULL;
    trp_error err;
    spec.order.combine = refuses;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = trp_shuffle_add(w, 0, "k", 1, "v", 1, &err);
    if (rc == 0)
        rc = trp_shuffle_commit(w, NULL, NULL, &err);
    g_assert_cmpint(rc, ==, TRP_EFAILED);
    trp_shuffle_writer_free(w);
    shuffle_folder_remove(folder);
}

/* ---- what is wrong --------------------------------------------------------------- */

TEST("what cannot be is refused")
{
    char *folder = shuffle_folder_make();
    struct trp_shuffle_spec spec = spec_of(folder, 0, 0);
    trp_shuffle_writer *w = NULL;
    trp_error err;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, TRP_EINVAL);
    spec.partitions = 2;
    spec.order = (struct trp_shuffle_order){.unordered = true, .combine = joined};
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, TRP_EINVAL);
    spec.order = (struct trp_shuffle_order){0};
    spec.folder = "/nonexistent";
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "/nonexistent"));
    spec.folder = folder;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    g_assert_cmpint(trp_shuffle_add(w, 2, "k", 1, "v", 1, &err), ==, TRP_EINVAL);
    g_assert_cmpint(trp_shuffle_add(w, 0, "k", 1, "v", SIZE_MAX - 4, &err), ==,
                    TRP_ELIMIT);
    g_assert_cmpint(trp_shuffle_add(w, 0, "k", (size_t)1 << 31, "v", 1, &err), ==,
                    TRP_ELIMIT);
    /* and goes on */
    g_assert_cmpint(trp_shuffle_add(w, 0, "k", 1, "v", 1, &err), ==, 0);
    g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, 0);
    trp_shuffle_writer_free(w);
    shuffle_folder_remove(folder);
}

/* Nothing is there before the commit, nor after a writer that was given up. */
TEST("what was given up leaves nothing")
{
    char *folder = shuffle_folder_make();
    struct trp_shuffle_spec spec = spec_of(folder, 0, 2);
    volatile int killed = 0;
    trp_shuffle_writer *w = NULL;
    trp_error err;
    char value[1000] = "";
    spec.killed = &killed;
    spec.memory = 1;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    for (int i = 0; i < 10000; i++)
        g_assert_cmpint(trp_shuffle_add(w, 1, &i, 4, value, sizeof value, &err), ==, 0);
    g_assert_cmpuint(files_in(folder), ==, 0);
    killed = 1;
    g_assert_cmpint(trp_shuffle_add(w, 1, "k", 1, "v", 1, &err), ==, TRP_ECANCELLED);
    g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, TRP_ECANCELLED);
    trp_shuffle_writer_free(w);
    g_assert_cmpuint(files_in(folder), ==, 0);
    shuffle_folder_remove(folder);
}

/* The kernel takes no more, in the midst of a spill or of the output. */
TEST("a full disk is told and left clean")
{
    for (int spilling = 0; spilling < 2; spilling++) {
        char *folder = shuffle_folder_make();
        struct trp_shuffle_spec spec = spec_of(folder, 0, 2);
        struct rlimit old, small;
        trp_shuffle_writer *w = NULL;
        trp_error err = {0};
        char value[1000] = "";
        int rc = 0;
        spec.memory = spilling ? 1 : 64 * MIB;
        g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &old);
        small = (struct rlimit){MIB, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &small);
        for (int i = 0; i < 10000 && rc == 0; i++)
            rc = trp_shuffle_add(w, 1, &i, 4, value, sizeof value, &err);
        g_assert_cmpint(rc, ==, spilling ? TRP_ESYSTEM : 0);
        if (rc == 0)
            rc = trp_shuffle_commit(w, NULL, NULL, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        g_assert_cmpint(rc, ==, TRP_ESYSTEM);
        g_assert_nonnull(strstr(err.text, folder));
        g_assert_nonnull(strstr(err.text, g_strerror(EFBIG)));
        trp_shuffle_writer_free(w);
        g_assert_cmpuint(files_in(folder), ==, 0);
        shuffle_folder_remove(folder);
    }
}

/* ---- damage ---------------------------------------------------------------------- */

/* Reads all partitions of the two maps; 0, or the first failure. Records that come are
 * those that were written. */
static int read_damaged(const struct setting *s, struct trp_fetch_problem *ret,
                        trp_error *err)
{
    struct trp_shuffle_source sources[2];
    for (uint32_t p = 0; p < s->partitions; p++) {
        struct trp_shuffle_read read = read_of(s, p, sources);
        struct trp_shuffle_record got;
        trp_shuffle_reader *r = NULL;
        uint32_t last = 0;
        int rc = trp_shuffle_reader_open(&read, &r, ret, err);
        if (rc < 0)
            return rc;
        while ((rc = trp_shuffle_next(r, &got, ret, err)) > 0) {
            uint32_t key;
            g_assert_cmpuint(got.nk, ==, sizeof key);
            memcpy(&key, got.key, sizeof key);
            key = GUINT32_FROM_BE(key);
            g_assert_cmpuint(key % s->partitions, ==, p);
            g_assert_cmpuint(key, >=, last);
            g_assert_cmpmem(got.value, got.nv, got.key, got.nk);
            last = key;
        }
        trp_shuffle_reader_free(r);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void write_numbers(struct setting *s, guint n)
{
    g_autoptr(GPtrArray) records = g_ptr_array_new_with_free_func(made_record_free);
    for (guint i = 0; i < n; i++) {
        guint32 key = GUINT32_TO_BE(i);
        made_record_add(records, i % s->partitions, i % s->maps, &key, 4, &key, 4);
    }
    write_all(s, records);
}

static void check_problem(const struct setting *s)
{
    struct trp_fetch_problem problem = {0};
    trp_error err = {0};
    g_assert_cmpint(read_damaged(s, &problem, &err), ==, TRP_ENOENT);
    g_assert_true(problem.is);
    g_assert_cmpuint(problem.shuffle, ==, 1);
    g_assert_cmpuint(problem.map, ==, 1);
    g_assert_cmpuint(problem.attempt, ==, 101);
    g_assert_cmpuint(problem.host, ==, 0);
    g_assert_nonnull(strstr(err.text, "map 1 of shuffle 1 (attempt 101) on here: "));
}

/* Every byte of a file is covered: whichever is changed, it is noticed, or it is not
 * used. */
TEST("no damage goes unnoticed")
{
    for (int compress = 0; compress < 2; compress++) {
        char *folder = shuffle_folder_make();
        struct setting s = {
            .maps = 2, .partitions = 3, .compress = compress, .folder = folder};
        g_autofree char *path = g_build_filename(folder, "1-1-101", NULL);
        g_autofree char *good = NULL;
        gsize size;
        write_numbers(&s, 300);
        g_assert_true(g_file_get_contents(path, &good, &size, NULL));
        g_assert_cmpint(read_damaged(&s, NULL, NULL), ==, 0);
        for (gsize at = 0; at < size; at++) {
            g_autofree char *bad = g_memdup2(good, size);
            bad[at] ^= (char)(1 << at % 8);
            put_bytes(path, bad, size);
            check_problem(&s);
        }
        for (gsize n = 0; n < size; n++) {
            put_bytes(path, good, n);
            check_problem(&s);
        }
        g_unlink(path);
        check_problem(&s);
        g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
        check_problem(&s);
        g_rmdir(path);
        /* whole, but another map's */
        g_autofree char *other = g_build_filename(folder, "1-0-100", NULL);
        g_autofree char *others = NULL;
        gsize n;
        g_assert_true(g_file_get_contents(other, &others, &n, NULL));
        put_bytes(path, others, n);
        check_problem(&s);
        shuffle_folder_remove(folder);
    }
}

/* What one writer gives back may be kept for the next, which finds nothing of it. */
TEST("memory may be kept for the next")
{
    g_autoptr(GRand) rand = seeded();
    trp_shuffle_keep_memory(true);
    for (int i = 0; i < 3; i++) {
        char *folder = shuffle_folder_make();
        struct setting s = {.maps = 3,
                            .partitions = 5,
                            .memory = (size_t)i * 8 * MIB,
                            .folder = folder};
        g_autoptr(GPtrArray) records =
            random_records(rand, &s, (guint)(i + 1) * 20000, 24, 200, 4);
        check_sorted(&s, records);
        shuffle_folder_remove(folder);
    }
    trp_shuffle_keep_memory(false);
}

/* What the reader is short of is no fault of an output: none is made again for it. */
TEST("too few descriptors are no fault of an output")
{
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 1, .folder = folder};
    struct trp_shuffle_source sources[2];
    const struct trp_data_host host = {.name = "here", .here = true, .folder = folder};
    struct trp_fetch_problem problem = {0};
    trp_shuffle_reader *r = NULL;
    trp_error err = {0};
    struct rlimit old, few;
    write_numbers(&s, 10);
    struct trp_shuffle_read read = read_of(&s, 0, sources);
    read.hosts = &host;
    getrlimit(RLIMIT_NOFILE, &old);
    int next = dup(0);
    close(next);
    for (int more = 1; more <= 2; more++) { /* for its own folder; and the host's */
        few = (struct rlimit){(rlim_t)(next + more), old.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        int rc = trp_shuffle_reader_open(&read, &r, &problem, &err);
        setrlimit(RLIMIT_NOFILE, &old);
        g_assert_cmpint(rc, ==, TRP_ESYSTEM);
        g_assert_false(problem.is);
        g_assert_nonnull(strstr(err.text, g_strerror(EMFILE)));
    }
    shuffle_folder_remove(folder);
}

/* A held folder stays what it was, whatever is put in its place. */
TEST("another folder in the place of its own is none")
{
    char *folder = shuffle_folder_make(), *moved = g_strconcat(folder, ".moved", NULL);
    char *elsewhere = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 3};
    trp_error err = {0};
    g_assert_cmpint(trp_held_folder(folder, NULL, &err), ==, 0);
    g_assert_cmpint(rename(folder, moved), ==, 0);
    g_assert_cmpint(symlink(elsewhere, folder), ==, 0);
    s.folder = folder;
    write_numbers(&s, 10);
    g_assert_cmpint(read_damaged(&s, NULL, &err), ==, 0);
    struct trp_shuffle_source sources[2];
    const struct trp_shuffle_read read = read_of(&s, 0, sources);
    const struct trp_fetch_problem other = {.is = true, .map = 1};
    char name[TRP_BLOCK_NAME];
    bool bad[2] = {false, false};
    trp_shuffle_find_others(&read, &other, bad);
    g_assert_false(bad[0]);
    trp_block_file_name(&(struct trp_output_id){1, 0, 100}, name);
    g_autofree char *first = g_build_filename(moved, name, NULL);
    g_assert_cmpint(unlink(first), ==, 0);
    trp_shuffle_find_others(&read, &other, bad);
    g_assert_true(bad[0]);
    g_assert_false(bad[1]); /* it is the one that is known */
    trp_held_leave(folder);
    g_assert_cmpuint(files_in(elsewhere), ==, 0);
    g_assert_cmpuint(files_in(moved), ==, 1);
    g_assert_cmpint(unlink(folder), ==, 0);
    g_assert_cmpint(rename(moved, folder), ==, 0);
    shuffle_folder_remove(folder);
    shuffle_folder_remove(elsewhere);
    g_free(moved);
}

/* An output of an earlier attempt, with the name that is asked for. */
TEST("an output from before is none")
{
    char *folder = shuffle_folder_make();
    struct setting s = {.maps = 2, .partitions = 3, .folder = folder};
    g_autofree char *now = g_build_filename(folder, "1-1-101", NULL);
    g_autofree char *before = g_build_filename(folder, "1-1-99", NULL);
    struct trp_fetch_problem problem = {0};
    trp_error err = {0};
    write_numbers(&s, 300);
    struct trp_shuffle_spec spec = {.folder = folder,
                                    .shuffle = 1,
                                    .map = 1,
                                    .attempt = 99,
                                    .partitions = 3,
                                    .memory = 64 * MIB};
    trp_shuffle_writer *w;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    g_assert_cmpint(trp_shuffle_add(w, 0, "old", 3, "old", 3, &err), ==, 0);
    g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, 0);
    trp_shuffle_writer_free(w);
    g_assert_cmpint(read_damaged(&s, NULL, NULL), ==, 0); /* beside it, it is nothing */
    g_assert_cmpint(rename(before, now), ==, 0);
    g_assert_cmpint(read_damaged(&s, &problem, &err), ==, TRP_ENOENT);
    g_assert_cmpuint(problem.attempt, ==, 101);
    g_assert_nonnull(strstr(err.text, "it is another map output"));
    shuffle_folder_remove(folder);
}

/* More than a buffer has, of any size, and one that is larger than a part. */
TEST("values are read as often as wished")
{
    char *folder = shuffle_folder_make();
    g_autofree char *large = g_malloc0(300000);
    trp_values *v;
    trp_error err;
    const void *value;
    size_t n;
    g_assert_cmpint(trp_values_open(folder, &v, &err), ==, 0);
    for (uint32_t i = 0; i < 5000; i++)
        g_assert_cmpint(trp_values_put(v, large, i == 7 ? 300000 : i % 300, &err), ==,
                        0);
    for (uint32_t k = 0; k < 3; k++) {
        g_assert_cmpint(trp_values_begin(v, &err), ==, 0);
        for (uint32_t i = 0; i < (k == 1 ? 100 : 5000); i++) {
            g_assert_cmpint(trp_values_next(v, &value, &n, &err), ==, 1);
            g_assert_cmpuint(n, ==, i == 7 ? 300000 : i % 300);
            g_assert_cmpint(memcmp(value, large, n), ==, 0);
        }
    }
    g_assert_cmpint(trp_values_next(v, &value, &n, &err), ==, 0);
    g_assert_cmpuint(trp_values_bytes(v), >, 5000 * 149);
    trp_values_free(v);
    shuffle_folder_remove(folder);
    g_assert_cmpint(trp_values_open("/nowhere/at/all", &v, &err), ==, TRP_ESYSTEM);
}
