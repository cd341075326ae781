/* bigresult [MIB [PARTITIONS]]: collects MIB mebibytes and checks every byte. Prints
 * "collected N bytes in N records". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

enum { RECORD = 4096 };

TRP_FUNCTION(fill);
int fill(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    uint8_t record[RECORD];
    for (size_t i = 0; i < in->count; i++) {
        int64_t n;
        memcpy(&n, trp_value(in, i, NULL), sizeof(n));
        memset(record, (int)(n % 251), sizeof(record));
        memcpy(record, &n, sizeof(n));
        if (trp_emit(out, NULL, 0, record, sizeof(record)) < 0)
            return -1;
    }
    return 0;
}

static int check(const trp_batch *b, int64_t records)
{
    if (b->count != (size_t)records || b->value_width != RECORD)
        return -1;
    for (int64_t i = 0; i < records; i++) {
        uint8_t want[RECORD];
        memset(want, (int)(i % 251), sizeof(want));
        memcpy(want, &i, sizeof(i));
        if (memcmp(want, trp_value(b, (size_t)i, NULL), RECORD) != 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    int64_t records = (argc > 1 ? atoll(argv[1]) : 50) * ((1 << 20) / RECORD);
    uint32_t parts = argc > 2 ? (uint32_t)atoi(argv[2]) : 3;
    trp_dataset *d = trp_map(trp_range(ctx, 0, records, parts), fill, NULL, 0);
    trp_rows *rows;
    if (trp_collect(d, &rows) < 0) {
        fprintf(stderr, "bigresult: %s\n", trp_error_text(ctx));
        return trp_finalize(ctx);
    }
    if (check(trp_rows_batch(rows), records) < 0) {
        fprintf(stderr, "bigresult: the records are not what was sent\n");
        trp_finalize(ctx);
        return 1;
    }
    printf("collected %lld bytes in %lld records\n", (long long)records * RECORD,
           (long long)records);
    return trp_finalize(ctx);
}
