/*
 * Shuffles twice and until FILE has BYTES, and looks at what came of each (flood.bats).
 *
 *     flooded FILE BYTES KEYS      with so many keys in 8 partitions
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "troupe.h"

enum { MAPS = 8, NUMBERS = 100000 };

TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    int64_t keys;
    (void)t;
    memcpy(&keys, arg, sizeof keys);
    for (size_t i = 0; i < in->count; i++) {
        int64_t n = trp_get_i64(in, i), key = n % keys;
        if (trp_emit_i64(out, &key, sizeof key, n) < 0)
            return -1;
    }
    return 0;
}

/* Whether each key is there once, with the sum of its numbers. */
static int is_right(const trp_batch *b, int64_t keys)
{
    int64_t all = 0;
    for (size_t i = 0; i < b->count; i++) {
        int64_t key = trp_get_key_i64(b, i), last = (NUMBERS - 1 - key) / keys;
        if (trp_get_i64(b, i) != key * (last + 1) + keys * (last * (last + 1) / 2))
            return 0;
        all += key;
    }
    return b->count == (size_t)keys && all == keys * (keys - 1) / 2;
}

static int has(const char *file, const char *bytes)
{
    struct stat st;
    return stat(file, &st) == 0 && st.st_size >= atoll(bytes);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 4)
        return 2;
    int64_t keys = strtoll(argv[3], NULL, 10);
    int round = 0, rc = 0;
    while (rc == 0 && (round < 2 || !has(argv[1], argv[2]))) {
        trp_rows *rows;
        trp_dataset *d = trp_range(ctx, 0, NUMBERS, MAPS);
        d = trp_transform(d, keyed, &keys, sizeof keys);
        rc = trp_collect(trp_reduce_by_key(d, TRP_SUM_I64, MAPS), &rows);
        if (rc < 0) {
            fprintf(stderr, "flooded: %s\n", trp_error_text(ctx));
            break;
        }
        printf("round %d: %s\n", ++round,
               is_right(trp_rows_batch(rows), keys) ? "right" : "wrong");
        trp_rows_free(rows);
    }
    printf("rounds: %d\n", round);
    return trp_finalize(ctx);
}
