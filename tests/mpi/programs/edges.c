/*
 * edges empty: every wide operation on no records; prints how many come out of each.
 * edges keys: the same on records whose keys have 0 bytes and 1 MiB, each record as
 *   "KEY SIZE:LAST BYTE VALUE SIZE".
 * edges stubborn|obedient [plain]: task 0 fails when task 1 has begun to emit, which it
 *   goes on with until it is told to end, or for ever; into a map output, with `plain`
 *   into what is collected. The obedient one makes ./told then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe.h"

enum { LONG = 1 << 20, PARTS = 3 };

/* Records 0 to 6: three with the empty key, two with each of two long ones. */
TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char *key = malloc(LONG);
    int rc = key ? 0 : -1;
    (void)t, (void)arg;
    for (size_t i = 0; rc == 0 && i < in->count; i++) {
        int64_t v = trp_get_i64(in, i);
        memset(key, 'k', LONG);
        key[LONG - 1] = (char)('a' + v % 2);
        rc = trp_emit_i64(out, key, v < 3 ? 0 : LONG, v);
    }
    free(key);
    return rc;
}

TRP_COGROUP(sizes);
int sizes(trp_task *t, const void *key, size_t nk, const trp_batch *a,
          const trp_batch *b, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    return trp_emit_i64(out, key, nk, (int64_t)(10 * a->count + b->count));
}

TRP_COMBINE(last);
int last(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
         const void *arg)
{
    (void)a, (void)na, (void)arg;
    return trp_emit(out, NULL, 0, b, nb);
}

static int show(trp_context *ctx, const char *what, trp_dataset *d)
{
    trp_rows *rows;
    if (trp_collect(d, &rows) < 0) {
        fprintf(stderr, "edges: %s\n", trp_error_text(ctx));
        return -1;
    }
    const trp_batch *b = trp_rows_batch(rows);
    printf("%s %zu", what, b->count);
    for (size_t i = 0; i < b->count; i++) {
        size_t nk, nv;
        const char *key = trp_key(b, i, &nk);
        trp_value(b, i, &nv);
        printf(" %zu:%c:%zu", nk, nk ? key[nk - 1] : '-', nv);
    }
    printf("\n");
    trp_rows_free(rows);
    return 0;
}

/* All of them; the sorted one in one partition. */
static void show_all(trp_context *ctx, trp_dataset *d)
{
    show(ctx, "reduce", trp_reduce_by_key(d, TRP_SUM_I64, 1));
    show(ctx, "combine", trp_combine_by_key(d, last, NULL, 0, 1));
    show(ctx, "group", trp_group_by_key(d, 1));
    show(ctx, "distinct", trp_distinct(d, 1));
    show(ctx, "repartition", trp_repartition(d, 1));
    show(ctx, "sort", trp_sort_by_key(d, TRP_BYTES, PARTS));
    show(ctx, "back", trp_sort_by_key(d, TRP_BYTES | TRP_DESCENDING, PARTS));
    show(ctx, "inner", trp_join(d, d, TRP_INNER, 1));
    show(ctx, "outer", trp_join(d, trp_range(ctx, 0, 0, 2), TRP_OUTER, 1));
    show(ctx, "cogroup", trp_cogroup(d, d, sizes, NULL, 0, 1));
    show(ctx, "coalesce", trp_coalesce(trp_distinct(d, PARTS), 1));
}

TRP_FUNCTION(emit_on);
int emit_on(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const char *how = arg;
    (void)in;
    if (trp_task_index(t) == 0) {
        while (access("emitting", F_OK) != 0 && !trp_task_killed(t))
            usleep(10000);
        trp_task_error(t, "enough");
        return 3;
    }
    for (int64_t i = 0;; i++) {
        if (i == 1000)
            fclose(fopen("emitting", "w"));
        if (trp_emit_i64(out, &i, sizeof(i), i) < 0 && strcmp(how, "obedient") == 0) {
            fclose(fopen("told", "w"));
            return -1;
        }
    }
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    uint64_t n;
    if (argc < 2 || trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (strcmp(argv[1], "empty") == 0 || strcmp(argv[1], "keys") == 0) {
        trp_dataset *d = trp_range(ctx, 0, *argv[1] == 'k' ? 7 : 0, PARTS);
        show_all(ctx, trp_map(d, keyed, NULL, 0));
        return trp_finalize(ctx);
    }
    trp_dataset *d = trp_range(ctx, 0, 2, 2);
    d = trp_transform(d, emit_on, argv[1], strlen(argv[1]) + 1);
    if (argc < 3)
        d = trp_reduce_by_key(d, TRP_SUM_I64, 2);
    if (trp_count(d, &n) < 0)
        fprintf(stderr, "edges: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
