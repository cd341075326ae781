/*
 * Records that are hard on what sorts and moves them (hostile.bats).
 *
 *     hostile distinct N PARTITIONS   N records, each with a key of its own, are counted
 *     hostile one N PARTITIONS        N records of one key: summed, and sorted
 *     hostile keys N PARTITIONS       N keys of 1 MiB and as many of 0 bytes, sorted
 *     hostile compare N PARTITIONS    sorted by a comparison that is no order
 *     hostile large BYTES PARTITIONS  one record of so many bytes, sorted
 *     hostile join N PARTITIONS       three records and N of 100 bytes, all of one key, joined
 *     hostile group N PARTITIONS      N records of 100 bytes and one key, in a group
 *     hostile cogroup N PARTITIONS    the same, beside three of that key
 *     hostile kept N PARTITIONS       N records of 100 bytes, kept on the disk, read twice
 *
 * Prints what came of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

enum { MAPS = 8, LARGE_KEY = 1 << 20 };

static int64_t i64(const void *p)
{
    int64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Numbers are keys, spread over all of 64 bits, each only once; with an argument there is
 * one key. */
TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        int64_t n = i64(trp_value(in, i, NULL));
        uint64_t key = arg ? 1 : (uint64_t)n * 0x9e3779b97f4a7c15u;
        if (trp_emit(out, &key, sizeof key, &n, sizeof n) < 0)
            return -1;
    }
    return 0;
}

/* Of each number two records: a key of 1 MiB that ends in it, and one of nothing. */
TRP_FUNCTION(large_keys);
int large_keys(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    char *key = calloc(1, LARGE_KEY);
    int rc = key ? 0 : -1;
    for (size_t i = 0; i < in->count && rc == 0; i++) {
        int64_t n = i64(trp_value(in, i, NULL));
        snprintf(key + LARGE_KEY - 20, 20, "%019lld", (long long)(n * 7919 % 100003));
        if (trp_emit(out, key, LARGE_KEY, &n, sizeof n) < 0 ||
            trp_emit(out, "", 0, &n, sizeof n) < 0)
            rc = -1;
    }
    free(key);
    return rc;
}

/* Of one key, with 100 bytes. */
TRP_FUNCTION(padded);
int padded(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char value[100] = {0};
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        memcpy(value, trp_value(in, i, NULL), sizeof(int64_t));
        if (trp_emit(out, "k", 1, value, sizeof value) < 0)
            return -1;
    }
    return 0;
}

/* How many pairs of a batch stand where they belong: left values in order, and with each
 * the right ones in order. */
TRP_FUNCTION(pairs_in_order);
int pairs_in_order(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    int64_t good = 1, was[2] = {0};
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n, m;
        const void *left = trp_left(in, i, &n), *right = trp_right(in, i, &m);
        const int64_t is[2] = {i64(left), i64(right)};
        good += i > 0 && (is[0] == was[0] ? is[1] == was[1] + 1
                                          : is[0] == was[0] + 1 && is[1] == 0);
        memcpy(was, is, sizeof was);
    }
    return trp_emit(out, NULL, 0, &good, sizeof good);
}

/* How many values of a group, or of the right side, stand where they belong: number n is
 * the n-th. */
TRP_FUNCTION(group_in_order);
int group_in_order(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    int64_t good = 0, n = 0;
    size_t size;
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        trp_group_values v = trp_group(in, i);
        for (const void *p; (p = trp_group_next(&v, &size)); n++)
            good += size == 100 && i64(p) == n;
    }
    return trp_emit(out, NULL, 0, &good, sizeof good);
}

TRP_COGROUP(right_in_order);
int right_in_order(trp_task *t, const void *key, size_t nk, const trp_batch *a,
                   const trp_batch *b, trp_writer *out, const void *arg)
{
    int64_t good = 0;
    (void)t, (void)key, (void)nk, (void)arg;
    for (size_t i = 0; i < b->count && a->count == 3; i++) {
        size_t size;
        const void *p = trp_value(b, i, &size);
        good += size == 100 && i64(p) == (int64_t)i;
    }
    return trp_emit(out, NULL, 0, &good, sizeof good);
}

TRP_FUNCTION(one_large);
int one_large(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)in;
    size_t size = (size_t)i64(arg);
    char *value = calloc(1, size);
    int rc = value ? trp_emit(out, "k", 1, value, size) : -1;
    free(value);
    return rc;
}

TRP_COMPARE(no_order);
int no_order(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    (void)na, (void)nb, (void)arg;
    uint64_t x = (uint64_t)i64(a) % 3, y = (uint64_t)i64(b) % 3;
    return x == y ? 0 : (y - x + 3) % 3 == 1 ? -1 : 1; /* stone, scissors, paper */
}

/* How many neighbours of a partition are in order: by key, and of one key by number. */
TRP_FUNCTION(in_order);
int in_order(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    int64_t good = 1;
    for (size_t i = 1; i < in->count; i++) {
        size_t n, m;
        const void *a = trp_key(in, i - 1, &n), *b = trp_key(in, i, &m);
        int c = memcmp(a, b, n < m ? n : m);
        c = c ? c : (n > m) - (n < m);
        good += c < 0 || (c == 0 && i64(trp_value(in, i - 1, NULL)) <
                                        i64(trp_value(in, i, NULL)));
    }
    return trp_emit(out, NULL, 0, &good, sizeof good);
}

TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    (void)na, (void)nb, (void)arg;
    int64_t sum = i64(a) + i64(b);
    return trp_emit(out, NULL, 0, &sum, sizeof sum);
}

static int sum_of(trp_dataset *d, int64_t *ret)
{
    void *value = NULL;
    size_t size;
    *ret = 0;
    int rc = trp_reduce(d, add, NULL, 0, &value, &size);
    if (rc == 0 && value)
        *ret = i64(value);
    free(value);
    return rc;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 4)
        return 2;
    const char *what = argv[1];
    int64_t n = strtoll(argv[2], NULL, 10), good = 0;
    uint32_t partitions = (uint32_t)strtoul(argv[3], NULL, 10);
    trp_dataset *numbers = trp_range(ctx, 0, n, MAPS);
    uint64_t count = 0;
    int rc = 0;
    if (strcmp(what, "distinct") == 0) {
        trp_dataset *d = trp_transform(numbers, keyed, NULL, 0);
        rc = trp_count(trp_reduce_by_key(d, TRP_COUNT, partitions), &count);
    } else if (strcmp(what, "one") == 0) {
        trp_dataset *d = trp_transform(numbers, keyed, "1", 1);
        rc = trp_count(trp_reduce_by_key(d, TRP_SUM_I64, partitions), &count);
        trp_dataset *sorted = trp_sort_by_key(d, TRP_BYTES, partitions);
        rc = rc ? rc : sum_of(trp_transform(sorted, in_order, NULL, 0), &good);
    } else if (strcmp(what, "keys") == 0) {
        trp_dataset *d = trp_transform(numbers, large_keys, NULL, 0);
        trp_dataset *sorted = trp_sort_by_key(d, TRP_BYTES, partitions);
        rc = trp_count(sorted, &count);
        rc = rc ? rc : sum_of(trp_transform(sorted, in_order, NULL, 0), &good);
    } else if (strcmp(what, "join") == 0) {
        trp_dataset *few = trp_transform(trp_range(ctx, 0, 3, 1), padded, NULL, 0);
        trp_dataset *d = trp_transform(numbers, padded, NULL, 0);
        d = trp_join(few, d, TRP_INNER, partitions);
        rc = trp_count(d, &count);
        rc = rc ? rc : sum_of(trp_transform(d, pairs_in_order, NULL, 0), &good);
    } else if (strcmp(what, "group") == 0) {
        trp_dataset *d = trp_transform(numbers, padded, NULL, 0);
        d = trp_group_by_key(d, partitions);
        rc = trp_count(d, &count);
        rc = rc ? rc : sum_of(trp_transform(d, group_in_order, NULL, 0), &good);
    } else if (strcmp(what, "cogroup") == 0) {
        trp_dataset *few = trp_transform(trp_range(ctx, 0, 3, 1), padded, NULL, 0);
        trp_dataset *d = trp_transform(numbers, padded, NULL, 0);
        d = trp_cogroup(few, d, right_in_order, NULL, 0, partitions);
        rc = trp_count(d, &count);
        rc = rc ? rc : sum_of(d, &good);
    } else if (strcmp(what, "kept") == 0) {
        trp_dataset *d = trp_range(ctx, 0, n, partitions);
        d = trp_persist(trp_transform(d, padded, NULL, 0), TRP_DISK_ONLY);
        rc = trp_count(d, &count);
        uint64_t again = 0;
        rc = rc ? rc : trp_count(d, &again);
        good = (int64_t)again;
    } else if (strcmp(what, "compare") == 0) {
        trp_dataset *d = trp_transform(numbers, keyed, NULL, 0);
        rc = trp_count(trp_sort_by(d, no_order, NULL, 0, partitions), &count);
    } else {
        trp_dataset *one = trp_range(ctx, 0, 1, 1);
        trp_dataset *d = trp_transform(one, one_large, &n, sizeof n);
        rc = trp_count(trp_sort_by_key(d, TRP_BYTES, partitions), &count);
    }
    if (rc < 0)
        fprintf(stderr, "hostile: %s\n", trp_error_text(ctx));
    else
        printf("%llu records, %lld in order\n", (unsigned long long)count,
               (long long)good);
    return trp_finalize(ctx);
}
