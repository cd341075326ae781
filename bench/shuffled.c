/*
 * Records between stages, as a program of a user's: run by `troupe run`.
 *
 *     shuffled N sort FILES PARTITIONS FOLDER   lines of FILES (a pattern) sorted by
 *                                               their first ten bytes, into FOLDER
 *     shuffled N move MIB PARTITIONS            MIB of records of 100 bytes with keys of
 *                                               ten, made where they are, sorted by key
 *                                               and read in another stage
 *     shuffled N words FILES PARTITIONS         words of lines are counted
 *     shuffled N kept MIB PARTITIONS            such records, kept in memory before it
 *                                               measures, are copied one by one
 *
 * Before it measures, N executors of one core have come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "troupe.h"

enum { KEY = 10, RECORD = 100, EACH = 10000 };

/* Key and value of a line, with what is between them left out. */
TRP_FUNCTION(split);
int split(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const char *line = trp_value(in, i, &n);
        if (n <= KEY || trp_emit(out, line, KEY, line + KEY + 1, n - KEY - 1) < 0)
            return -1;
    }
    return 0;
}

/* EACH records for a number, always the same ones. */
TRP_FUNCTION(make);
int make(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char record[RECORD];
    (void)t, (void)arg;
    memset(record, 'x', sizeof record);
    for (size_t i = 0; i < in->count; i++) {
        int64_t number;
        memcpy(&number, trp_value(in, i, NULL), sizeof number);
        uint64_t state = (uint64_t)number * 0x9e3779b97f4a7c15u + 1;
        for (int k = 0; k < EACH; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            memcpy(record, &state, sizeof state);
            memcpy(record + sizeof state, &state, KEY - sizeof state);
            if (trp_emit(out, record, KEY, record + KEY, RECORD - KEY) < 0)
                return -1;
        }
    }
    return 0;
}

TRP_FUNCTION(words);
int words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n, from = 0;
        const char *line = trp_value(in, i, &n);
        for (size_t k = 0; k <= n; k++) {
            if (k < n && line[k] != ' ' && line[k] != '\t')
                continue;
            if (k > from && trp_emit(out, line + from, k - from, "", 0) < 0)
                return -1;
            from = k + 1;
        }
    }
    return 0;
}

TRP_FUNCTION(nothing);
int nothing(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)in, (void)out, (void)arg;
    return 0;
}

/* Somewhere that stays in the processor's cache. */
TRP_FUNCTION(copied);
int copied(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    static __thread char to[RECORD * 64];
    (void)t, (void)out, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n, m;
        const void *key = trp_key(in, i, &n), *value = trp_value(in, i, &m);
        char *at = to + i % 64 * RECORD;
        if (n + m > RECORD)
            return -1;
        memcpy(at, key, n);
        memcpy(at + n, value, m);
    }
    return 0;
}

static int warm_up(trp_context *ctx, uint32_t executors)
{
    trp_dataset *d = trp_barrier(trp_range(ctx, 0, executors, executors));
    return trp_foreach(d, nothing, NULL, 0);
}

static trp_dataset *dataset(trp_context *ctx, char **argv, uint32_t partitions)
{
    const int kept = strcmp(argv[1], "kept") == 0;
    if (kept || strcmp(argv[1], "move") == 0) {
        uint32_t mib = trp_bench_number("MIB", argv[2], 65536);
        int64_t n = ((int64_t)mib << 20) / ((int64_t)EACH * RECORD);
        trp_dataset *d = trp_transform(trp_range(ctx, 0, n, partitions), make, NULL, 0);
        return kept ? trp_persist(d, TRP_MEMORY_ONLY) : trp_group_by_key(d, partitions);
    }
    trp_dataset *d = trp_text_files(ctx, argv[2], partitions);
    if (strcmp(argv[1], "sort") == 0)
        return trp_sort_by_key(trp_transform(d, split, NULL, 0), TRP_BYTES, partitions);
    return trp_reduce_by_key(trp_transform(d, words, NULL, 0), TRP_COUNT, partitions);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 5)
        return 2;
    int rc = warm_up(ctx, trp_bench_number("N", argv[1], 100));
    argv++;
    trp_dataset *d = dataset(ctx, argv, trp_bench_number("PARTITIONS", argv[3], 10000));
    uint64_t words = 0;
    const int kept = strcmp(argv[1], "kept") == 0;
    if (rc == 0 && kept)
        rc = trp_foreach(d, copied, NULL, 0);
    int64_t begin = trp_bench_now();
    if (rc == 0 && strcmp(argv[1], "sort") == 0 && argc > 5)
        rc = trp_save(d, argv[4]);
    else if (rc == 0 && strcmp(argv[1], "words") == 0)
        rc = trp_count(d, &words);
    else if (rc == 0)
        rc = trp_foreach(d, kept ? copied : nothing, NULL, 0);
    if (rc < 0)
        fprintf(stderr, "shuffled: %s\n", trp_error_text(ctx));
    trp_bench_print("seconds", (double)(trp_bench_now() - begin) / 1e9);
    trp_bench_print("words", (double)words);
    return trp_finalize(ctx);
}
