/* many: a join of 60 and 60 map outputs; prints how many pairs there are. */
#include <inttypes.h>
#include <stdio.h>

#include "troupe.h"

TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t value = trp_get_i64(in, i), key = value % 1000;
        if (trp_emit_i64(out, &key, sizeof(key), value) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    uint64_t n = 0;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_dataset *a = trp_transform(trp_range(ctx, 0, 6000, 60), keyed, NULL, 0);
    trp_dataset *b = trp_transform(trp_range(ctx, 0, 6000, 60), keyed, NULL, 0);
    if (trp_count(trp_join(a, b, TRP_INNER, 4), &n) == 0)
        printf("%" PRIu64 " pairs\n", n);
    return trp_finalize(ctx);
}
