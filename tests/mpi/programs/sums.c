/*
 * sums WHAT…: accumulators, broadcasts and large results.
 *
 *   once           counts records that are made once, whatever runs how often
 *   lost           sums twice; the test removes the outputs in between
 *   table SIZE     reads a broadcast of SIZE bytes in tasks; frees it; tries again
 *   large PARTS MIB  collects PARTS partitions of MIB each
 *   silent PARTS MIB the same, and sleeps before it waits
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe.h"

struct args {
    struct trp_accumulator seen, odd;
    struct trp_broadcast table;
    uint64_t size;
};

/* Adds as it goes, and fails at the end of the first attempts of every third partition.
 */
TRP_FUNCTION(counts);
int counts(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct args *a = arg;
    uint32_t i = trp_task_index(t);
    for (size_t k = 0; k < in->count; k++) {
        int64_t v = trp_get_i64(in, k), key = v % 7;
        if (trp_add(t, a->seen, 1) < 0 || (v % 2 && trp_add(t, a->odd, v) < 0) ||
            trp_emit_i64(out, &key, sizeof(key), v) < 0)
            return 1;
    }
    return i % 3 == 0 && trp_task_attempt(t) == 0 ? 7 : 0;
}

TRP_FUNCTION(each);
int each(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct args *a = arg;
    (void)out;
    return trp_add(t, a->seen, (int64_t)in->count) < 0;
}

static void show(const char *what, struct trp_accumulator a)
{
    printf("%s: %" PRId64 "\n", what, trp_accumulator_value(a));
    fflush(stdout);
}

static void once(trp_context *ctx)
{
    struct args a = {
        trp_accumulator(ctx, "records seen"), trp_accumulator(ctx, "odd"), {0}, 0};
    struct args b = {trp_accumulator(ctx, "in foreach"), {0}, {0}, 0};
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 8000, 8), counts, &a, sizeof(a));
    trp_dataset *sums = trp_reduce_by_key(d, TRP_SUM_I64, 3);
    uint64_t n = 0;
    show("before", a.seen);
    trp_count(sums, &n);
    show("seen", a.seen);
    show("odd", a.odd);
    /* the same partitions again: by jobs at once, a sort's sample, another stage */
    trp_job *j = trp_count_async(d, NULL), *k = trp_collect_async(d, NULL);
    trp_job_wait(k, NULL, NULL);
    trp_job_wait(j, NULL, NULL);
    trp_count(trp_sort_by_key(d, TRP_I64, 3), &n);
    trp_count(trp_coalesce(d, 3), &n);
    show("seen", a.seen);
    show("odd", a.odd);
    trp_foreach(trp_coalesce(trp_range(ctx, 0, 100, 8), 3), each, &b, sizeof(b));
    trp_foreach(trp_range(ctx, 0, 10, 2), each, &b, sizeof(b));
    show("each", b.seen);
}

/* Tells the test, and waits for it. */
static void meet(const char *here, const char *go)
{
    FILE *f = fopen(here, "w");
    if (f)
        fclose(f);
    while (access(go, F_OK) != 0)
        usleep(10000);
}

static void lost(trp_context *ctx)
{
    struct args a = {
        trp_accumulator(ctx, "records seen"), trp_accumulator(ctx, "odd"), {0}, 0};
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 8000, 8), counts, &a, sizeof(a));
    trp_dataset *sums = trp_reduce_by_key(d, TRP_SUM_I64, 3);
    uint64_t n = 0;
    for (int i = 0; i < 2; i++) {
        trp_count(sums, &n);
        show("seen", a.seen);
        show("odd", a.odd);
        if (i == 0)
            meet("counted", "go");
    }
}

/* The sum of the table's bytes, once a partition, and where it is mapped. */
TRP_FUNCTION(reads);
int reads(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct args *a = arg;
    size_t size;
    int64_t sum = 0;
    const char *first =
        getenv("SUMS_FIRST"); /* the host whose turn is before that file is there */
    while (first && strcmp(trp_task_host(t), first) != 0 &&
           access(getenv("SUMS_SECOND"), F_OK) != 0)
        usleep(10000);
    const uint8_t *table = trp_broadcast_get(t, a->table, &size);
    (void)in;
    if (!table || size != a->size || table != trp_broadcast_get(t, a->table, NULL))
        return 3;
    if (getenv("SUMS_MAPPED")) {
        close(open("mapped", O_CREAT | O_WRONLY, 0600));
        while (access(getenv("SUMS_MAPPED"), F_OK) != 0)
            usleep(10000);
    }
    for (size_t i = 0; i < size; i++)
        sum += table[i];
    usleep(100000); /* all slots get some */
    return trp_emit_i64(out, NULL, 0, sum) < 0;
}

static int64_t add_up(trp_dataset *d)
{
    trp_rows *rows;
    int64_t sum = 0;
    if (trp_collect(d, &rows) < 0)
        return -1;
    const trp_batch *b = trp_rows_batch(rows);
    for (size_t i = 0; i < b->count; i++)
        sum += trp_get_i64(b, i);
    return sum;
}

static void table(trp_context *ctx, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    int64_t sum = 0;
    uint64_t n;
    for (size_t i = 0; bytes && i < size; i++)
        sum += bytes[i] = (uint8_t)(i * 2654435761U >> 13);
    struct args a = {{0}, {0}, trp_broadcast(ctx, bytes, size), size};
    free(bytes);
    while (getenv("SUMS_DAMAGE") && access(getenv("SUMS_DAMAGE"), F_OK) != 0)
        usleep(10000);
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 12, 12), reads, &a, sizeof(a));
    printf("%s\n", add_up(d) == 12 * sum ? "right" : "wrong");
    fflush(stdout);
    if (getenv("SUMS_WAIT"))
        while (access("go", F_OK) != 0)
            usleep(10000);
    trp_broadcast_free(ctx, a.table);
    trp_broadcast_free(ctx, a.table);
    printf("freed\n");
    fflush(stdout);
    if (getenv("SUMS_WAIT"))
        while (access("on", F_OK) != 0)
            usleep(10000);
    printf("after: %d %s\n", trp_count(d, &n), trp_error_text(ctx));
    trp_error_clear(ctx);
}

/* A partition of so many MiB, of 1 MiB records. */
TRP_FUNCTION(large);
int large(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    uint32_t mib, words = (1 << 20) / sizeof(uint64_t);
    uint64_t *record = malloc(1 << 20);
    int rc = record == NULL;
    memcpy(&mib, arg, sizeof(mib));
    (void)in;
    for (uint64_t i = 0; rc == 0 && i < mib; i++) {
        for (uint64_t k = 0; k < words; k++)
            record[k] = ((uint64_t)trp_task_index(t) << 40) + (i << 20) + k;
        rc = trp_emit(out, NULL, 0, record, 1 << 20) < 0;
    }
    free(record);
    return rc;
}

static void collect(trp_context *ctx, uint32_t parts, uint32_t mib, int silent)
{
    trp_dataset *d =
        trp_transform(trp_range(ctx, 0, parts, parts), large, &mib, sizeof(mib));
    trp_job *j = trp_collect_async(d, NULL);
    const void *result = NULL;
    size_t n = 0, wrong = 0;
    if (silent)
        while (access("go", F_OK) != 0)
            usleep(10000);
    int rc = trp_job_wait(j, &result, &n);
    const trp_batch *b = result;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        uint64_t first, last;
        size_t size;
        const uint8_t *record = trp_value(b, i, &size);
        uint64_t want = ((uint64_t)(i / mib) << 40) + ((uint64_t)(i % mib) << 20);
        memcpy(&first, record, sizeof(first));
        memcpy(&last, record + size - sizeof(last), sizeof(last));
        wrong += size != 1 << 20 || first != want || last != want + size / 8 - 1;
    }
    printf("collected: %d %zu, %zu wrong%s%s\n", rc, n, wrong, rc ? " " : "",
           rc ? trp_error_text(ctx) : "");
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "lost") == 0)
        lost(ctx);
    else if (strcmp(what, "once") == 0)
        once(ctx);
    else if (strcmp(what, "table") == 0 && argc > 2)
        table(ctx, (size_t)atoll(argv[2]));
    else if (argc > 3)
        collect(ctx, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]),
                strcmp(what, "silent") == 0);
    return trp_finalize(ctx);
}
