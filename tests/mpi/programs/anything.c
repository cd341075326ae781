/*
 * anything SEED STEPS: makes datasets of datasets at random, by every operation there is,
 * and prints what actions make of some of them: a line each, which depends on the seed
 * alone. So what it prints without executors is what it has to print with them, whatever
 * happens to them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "troupe.h"

enum { MOST = 24, RECORDS = 6000, KEYS = 500 };

static uint64_t state;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 27)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

static uint32_t below(uint32_t n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mix(state) % n);
}

static uint64_t hash(uint64_t h, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    h = mix(h + n + 1);
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return mix(h);
}

static uint64_t hash_record(const trp_batch *b, size_t i)
{
    size_t nk, nv;
    const void *key = trp_key(b, i, &nk), *value = trp_value(b, i, &nv);
    return hash(hash(key != NULL, key, nk), value, nv);
}

/* ---- functions: of each record alone, whatever it is ---- */

struct use {
    struct trp_accumulator sum;
    struct trp_broadcast table;
};

/* None to three numbers with a number as key. */
TRP_FUNCTION(numbers);
int numbers(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct use *use = arg;
    size_t size;
    const uint8_t *table = trp_broadcast_get(t, use->table, &size);
    for (size_t i = 0; table && i < in->count; i++) {
        uint64_t h = hash_record(in, i);
        if (trp_add(t, use->sum, (int64_t)(h % 100)) < 0)
            return -1;
        for (uint64_t k = table[h % size] % 4; k > 0; k--) {
            int64_t key = (int64_t)(mix(h + k) % KEYS) - KEYS / 2;
            if (trp_emit_i64(out, &key, sizeof(key), (int64_t)mix(h - k)) < 0)
                return -1;
        }
    }
    return table ? 0 : -1;
}

/* Bytes of some length, with a short key. */
TRP_FUNCTION(bytes);
int bytes(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char value[64];
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        uint64_t h = hash_record(in, i);
        memset(value, 'a' + (int)(h % 26), sizeof(value));
        if (trp_emit(out, value, h % 4, value, mix(h) % sizeof(value)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(some);
int some(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int32_t keep = hash_record(in, i) % 3 != 0;
        if (trp_emit(out, NULL, 0, &keep, sizeof(keep)) < 0)
            return -1;
    }
    return 0;
}

TRP_COMBINE(both); /* associative, and not commutative: the order is seen */
int both(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
         const void *arg)
{
    uint64_t m[2][2] = {
        {0, 1},
        {0, 1}
    }; /* x -> x * m[1] + m[0], one after the other */
    (void)arg;
    const void *side[] = {a, b};
    size_t size[] = {na, nb};
    for (int i = 0; i < 2; i++) {
        if (size[i] == sizeof(m[i]))
            memcpy(m[i], side[i], sizeof(m[i]));
        else
            m[i][0] = hash(7, side[i], size[i]), m[i][1] = m[i][0] | 1;
    }
    uint64_t r[] = {m[0][0] * m[1][1] + m[1][0], m[0][1] * m[1][1]};
    return trp_emit(out, NULL, 0, r, sizeof(r));
}

TRP_COMPARE(from_behind);
int from_behind(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    const uint8_t *x = a, *y = b;
    (void)arg;
    for (size_t i = 1; i <= na && i <= nb; i++)
        if (x[na - i] != y[nb - i])
            return x[na - i] - y[nb - i];
    return na < nb ? -1 : na > nb;
}

TRP_PARTITION(by_length);
uint32_t by_length(const void *key, size_t n, uint32_t partitions, const void *arg)
{
    (void)arg;
    return (uint32_t)(hash(n, key, n) % 7 % partitions);
}

TRP_COGROUP(sides);
int sides(trp_task *t, const void *key, size_t n, const trp_batch *a,
          const trp_batch *b, trp_writer *out, const void *arg)
{
    uint64_t h = 1;
    (void)t, (void)arg;
    for (size_t i = 0; i < a->count; i++)
        h = mix(h + hash_record(a, i));
    for (size_t i = 0; i < b->count; i++)
        h = mix(h ^ hash_record(b, i));
    return trp_emit_i64(out, key, n, (int64_t)h);
}

/* ---- datasets ---- */

struct made {
    trp_dataset *d, *kept;
    bool keyed, numbers, wide; /* all values, all keys are 8 bytes */
};

static trp_context *ctx;
static struct use use;
static struct made made[MOST];
static uint32_t nmade;
static trp_profile *shapes[3];

static struct made source(void)
{
    struct made m = {0};
    uint32_t n = below(4) ? below(2000) : 0, parts = 1 + below(6);
    uint64_t offsets[2001] = {0};
    static uint8_t values[2000 * 40];
    for (uint32_t i = 0; i < sizeof(values); i++)
        values[i] = (uint8_t)below(256);
    for (uint32_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + below(40);
    switch (below(3)) {
    case 0:
        m.d = trp_range(ctx, -(int64_t)below(1000), n, parts);
        m.numbers = true;
        break;
    case 1:
        m.d = trp_array(ctx, values, n, 1 + below(40), parts);
        break;
    default:
        m.d = trp_records(ctx, values, offsets, n, parts);
    }
    return m;
}

static trp_dataset *shuffled(struct made *m, const struct made *a, const struct made *b,
                             uint32_t parts)
{
    static const unsigned orders[] = {TRP_BYTES, TRP_I64, TRP_BYTES | TRP_DESCENDING,
                                      TRP_I64 | TRP_DESCENDING};
    bool numbers = a->numbers;
    m->numbers = false;
    uint32_t which = below(9);
    m->wide = a->wide && (which < 6 || b->wide);
    switch (which) {
    case 0:
        m->numbers = true;
        if (!numbers)
            return trp_reduce_by_key(a->d, TRP_COUNT, parts);
        return trp_reduce_by_key(a->d, (enum trp_sum)(TRP_SUM_I64 + below(3)), parts);
    case 1:
        return trp_combine_by_key(a->d, both, NULL, 0, parts);
    case 2:
        return trp_group_by_key(a->d, parts);
    case 3:
        m->numbers = numbers;
        return trp_sort_by_key(a->d, orders[a->wide ? below(4) : 2 * below(2)], parts);
    case 4:
        m->numbers = numbers;
        return trp_sort_by(a->d, from_behind, NULL, 0, parts);
    case 5:
        m->numbers = numbers;
        return trp_partition_by(a->d, by_length, NULL, 0, parts);
    case 6:
        m->numbers = true;
        return trp_cogroup(a->d, b->d, sides, NULL, 0, parts);
    default:
        return trp_join(a->d, b->d, (enum trp_join)(TRP_INNER + below(3)), parts);
    }
}

static trp_dataset *any(struct made *m, const struct made *a, const struct made *b)
{
    uint32_t parts = 1 + below(7);
    *m = *a;
    m->kept = NULL;
    switch (below(12)) {
    case 0:
        m->keyed = m->numbers = m->wide = true;
        return trp_transform(a->d, numbers, &use, sizeof(use));
    case 1:
        m->keyed = true, m->numbers = m->wide = false;
        return trp_map(a->d, bytes, NULL, 0);
    case 2:
        return trp_filter(a->d, some, NULL, 0);
    case 3:
        if (a->keyed != b->keyed)
            return a->d;
        m->numbers = a->numbers && b->numbers;
        m->wide = a->wide && b->wide;
        return trp_union(a->d, b->d);
    case 4:
        return trp_coalesce(a->d, parts);
    case 5:
        return trp_repartition(a->d, parts);
    case 6:
        return trp_distinct(a->d, parts);
    case 7:
        m->kept = trp_persist(a->d, (enum trp_storage)(TRP_MEMORY_ONLY + below(3)));
        return m->kept;
    default:
        if (a->keyed && b->keyed)
            return trp_with_resources(shuffled(m, a, b, parts), shapes[below(3)]);
        m->keyed = m->numbers = m->wide = true;
        return trp_transform(a->d, numbers, &use, sizeof(use));
    }
}

/* ---- actions ---- */

static void fail(const char *what)
{
    fprintf(stderr, "anything: %s: %s\n", what, trp_error_text(ctx));
    exit(trp_finalize(ctx));
}

static void print_all(uint32_t which, const trp_batch *b)
{
    uint64_t h = 0;
    for (size_t i = 0; i < b->count; i++)
        h = mix(h + hash_record(b, i));
    printf("%" PRIu32 ": %zu records, %016" PRIx64 "\n", which, b->count, h);
}

static void act(uint32_t which)
{
    trp_dataset *d = made[which].d;
    trp_rows *rows;
    void *value;
    size_t size;
    uint64_t n;
    trp_job *job[2];
    const void *result = NULL;
    switch (below(4)) {
    case 0:
        if (trp_count(d, &n) < 0)
            fail("count");
        printf("%" PRIu32 ": %" PRIu64 " records\n", which, n);
        break;
    case 1:
        if (trp_reduce(d, both, NULL, 0, &value, &size) < 0)
            fail("reduce");
        printf("%" PRIu32 ": %016" PRIx64 "\n", which, hash(0, value, size));
        free(value);
        break;
    case 2:
        job[0] = trp_collect_async(d, NULL);
        job[1] = trp_count_async(made[below(nmade)].d, NULL);
        if (!job[0] || !job[1] || trp_job_wait(job[1], &result, NULL) < 0)
            fail("count_async");
        memcpy(&n, result, sizeof(n));
        printf("another: %" PRIu64 " records\n", n);
        if (trp_job_wait(job[0], &result, &size) < 0)
            fail("collect_async");
        print_all(which, result);
        break;
    default:
        if (trp_collect(d, &rows) < 0)
            fail("collect");
        print_all(which, trp_rows_batch(rows));
        trp_rows_free(rows);
    }
}

/* A dataset that has grown too large gives way to a source. */
static void bound(uint32_t which)
{
    uint64_t n;
    if (trp_count(made[which].d, &n) < 0)
        fail("size");
    if (n > RECORDS)
        made[which] = source();
}

int main(int argc, char **argv)
{
    static const char *const texts[] = {"cores=1 memory=256m / cpus=1",
                                        "cores=2 memory=300m / cpus=1",
                                        "cores=1 memory=200m / cpus=1"};
    uint8_t table[256];
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint32_t steps = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20;
    for (uint32_t i = 0; i < sizeof(table); i++)
        table[i] = (uint8_t)below(256);
    use = (struct use){trp_accumulator(ctx, "sum"),
                       trp_broadcast(ctx, table, sizeof(table))};
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof(name), "shape%d", i);
        if (trp_profile_from(ctx, name, texts[i], &shapes[i]) < 0)
            fail(name);
    }
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t at = nmade < MOST ? nmade++ : below(MOST);
        struct made m;
        if (at < 2) {
            made[at] = source();
            continue;
        }
        m.d = any(&m, &made[below(at)], &made[below(at)]);
        if (!m.d)
            fail("a dataset");
        if (made[at].kept && trp_unpersist(made[at].kept) < 0)
            fail("unpersist");
        made[at] = m;
        bound(at);
        if (below(2))
            act(at);
    }
    printf("sum %" PRId64 "\n", trp_accumulator_value(use.sum));
    return trp_finalize(ctx);
}
