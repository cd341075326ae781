/*
 * kinds KIND ARGUMENT…: small programs of kinds that are common, each with its result on
 * stdout or in a folder, to be held against what others compute.
 *
 *     sessions FILE       lines "USER TIME": of each user, how many there are in each run of
 *                         times that are less than 30 apart, "USER N N …" in order of time
 *     top FILE N          the N lines of FILE that begin with the greatest numbers
 *     take FILE N         the first N lines
 *     sort FILES FOLDER   records of 16 bytes by their first 8, to FOLDER
 *     lines FILE          how many lines each of 4 partitions has, by two jobs beside each
 *                         other, whichever is first
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

enum { GAP = 30, WIDTH = 16, PARTS = 4 };

struct visit {
    int64_t time;
};

TRP_FUNCTION(by_user);
int by_user(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        char line[64] = "", user[64];
        size_t n;
        struct visit v;
        long long time;
        const void *text = trp_value(in, i, &n);
        memcpy(line, text, n < sizeof(line) ? n : 0);
        if (sscanf(line, "%63s %lld", user, &time) != 2)
            return trp_task_error(t, "bad line: %s", line), -1;
        v.time = time;
        if (TRP_EMIT(out, user, strlen(user), &v) < 0)
            return -1;
    }
    return 0;
}

TRP_COMPARE(by_time);
int by_time(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    int64_t x = trp_as_i64(a, na), y = trp_as_i64(b, nb);
    (void)arg;
    return (x > y) - (x < y);
}

TRP_FUNCTION(sessions);
int sessions(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        char line[1024];
        size_t nk, n;
        const void *user = trp_key(in, i, &nk);
        trp_group_values all = trp_group(in, i);
        int64_t last = 0;
        int count = 0,
            at = snprintf(line, sizeof(line), "%.*s", (int)nk, (const char *)user);
        for (const void *p; (p = trp_group_next(&all, &n)); count++) {
            int64_t time = trp_as_i64(p, n);
            if (count && time - last >= GAP) {
                at += snprintf(line + at, sizeof(line) - (size_t)at, " %d", count);
                count = 0;
            }
            last = time;
        }
        snprintf(line + at, sizeof(line) - (size_t)at, " %d", count);
        if (trp_emit_text(out, NULL, 0, line) < 0)
            return -1;
    }
    return 0;
}

static long long number(const void *p, size_t n)
{
    char text[32] = "";
    memcpy(text, p, n < sizeof(text) - 1 ? n : sizeof(text) - 1);
    return atoll(text);
}

TRP_COMPARE(by_number);
int by_number(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    long long x = number(a, na), y = number(b, nb);
    (void)arg;
    return (x > y) - (x < y);
}

TRP_FUNCTION(with_key);
int with_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *record = trp_value(in, i, &n);
        if (trp_emit(out, record, 8, record, n) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(without_key);
int without_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *record = trp_value(in, i, &n);
        if (trp_emit(out, NULL, 0, record, n) < 0)
            return -1;
    }
    return 0;
}

TRP_BEGIN(count_begin);
int count_begin(trp_task *t, void **state, trp_writer *out, const void *arg)
{
    (void)t, (void)out, (void)arg;
    *state = calloc(1, sizeof(int64_t));
    return *state ? 0 : -1;
}

TRP_BATCH(count_batch);
int count_batch(trp_task *t, void *state, const trp_batch *in, trp_writer *out,
                const void *arg)
{
    (void)t, (void)out, (void)arg;
    *(int64_t *)state += (int64_t)in->count;
    return 0;
}

TRP_END(count_end);
int count_end(trp_task *t, void *state, trp_writer *out, const void *arg)
{
    (void)arg;
    int64_t n = *(int64_t *)state, part = trp_task_index(t);
    free(state);
    return out ? trp_emit_i64(out, &part, sizeof(part), n) : 0;
}

static int print_lines(int rc, trp_rows *rows)
{
    for (size_t i = 0; rc == 0 && i < trp_rows_batch(rows)->count; i++) {
        size_t n;
        const void *line = trp_value(trp_rows_batch(rows), i, &n);
        printf("%.*s\n", (int)n, (const char *)line);
    }
    return rc;
}

static int count_lines(trp_dataset *text)
{
    trp_dataset *d = trp_partitions(text, count_begin, count_batch, count_end, NULL, 0);
    trp_job *jobs[] = {trp_collect_async(d, NULL), trp_count_async(text, NULL)};
    const void *result;
    int first = trp_job_wait_any(jobs, 2);
    if (first < 0 || trp_job_test(jobs[first]) != 1 ||
        trp_job_wait_for(jobs[first], 0, &result, NULL) < 0 ||
        trp_job_wait(jobs[0], &result, NULL) < 0)
        return -1;
    const trp_batch *b = result;
    int64_t sum = 0;
    for (size_t i = 0; i < b->count; i++)
        sum += trp_get_i64(b, i);
    if (trp_job_wait_for(jobs[1], 600, &result, NULL) < 0 ||
        *(const uint64_t *)result != (uint64_t)sum)
        return -1;
    printf("%zu %lld\n", b->count, (long long)sum);
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_rows *rows = NULL;
    int rc = -1;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 3)
        return 2;
    const char *kind = argv[1];
    if (strcmp(kind, "sort") == 0 && argc > 3) {
        trp_dataset *d = trp_binary_files(ctx, argv[2], WIDTH, PARTS);
        d = trp_sort_by_key(trp_transform(d, with_key, NULL, 0), TRP_BYTES, PARTS);
        rc = trp_save_binary(trp_transform(d, without_key, NULL, 0), argv[3]);
    } else {
        trp_dataset *text = trp_text_files(ctx, argv[2], PARTS);
        if (strcmp(kind, "sessions") == 0) {
            trp_dataset *d = trp_transform(text, by_user, NULL, 0);
            d = trp_group_sorted_by(d, by_time, NULL, 0, PARTS);
            rc = trp_collect(trp_transform(d, sessions, NULL, 0), &rows);
        } else if (strcmp(kind, "top") == 0 && argc > 3) {
            rc = trp_top(text, (size_t)atoi(argv[3]), by_number, &rows);
        } else if (strcmp(kind, "take") == 0 && argc > 3) {
            rc = trp_take(text, (size_t)atoi(argv[3]), &rows);
        } else if (strcmp(kind, "lines") == 0) {
            rc = count_lines(text);
        }
        if (rows)
            rc = print_lines(rc, rows);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
