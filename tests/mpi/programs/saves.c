/* saves DIR [RECORDS [PARTITIONS]]: writes the squares of 0 … RECORDS - 1 with their
 * numbers as keys. Prints "saved". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(square);
int square(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t v;
        memcpy(&v, trp_value(in, i, NULL), sizeof(v));
        char key[32], value[32];
        int nk = snprintf(key, sizeof(key), "%lld", (long long)v);
        int n = snprintf(value, sizeof(value), "%lld", (long long)v * v);
        if (trp_emit(out, key, (size_t)nk, value, (size_t)n) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 2) {
        fprintf(stderr, "usage: saves DIR [RECORDS [PARTITIONS]]\n");
        return 2;
    }
    int64_t records = argc > 2 ? atoll(argv[2]) : 100;
    uint32_t parts = argc > 3 ? (uint32_t)atoi(argv[3]) : 4;
    trp_dataset *d = trp_map(trp_range(ctx, 0, records, parts), square, NULL, 0);
    if (trp_save(d, argv[1]) < 0)
        fprintf(stderr, "saves: %s\n", trp_error_text(ctx));
    else
        printf("saved\n");
    return trp_finalize(ctx);
}
