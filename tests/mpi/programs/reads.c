/* reads TASKS BATCHES MS LONG FACTOR: each task reads BATCHES batches and rests MS ms
 * after each; task 0 reads LONG of them and rests FACTOR times as long. Prints "read N",
 * the batches of all. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "troupe.h"

enum { BATCH = 4096 }; /* records that come together from a range */

struct rest {
    long ms, factor;
};

TRP_FUNCTION(take);
int take(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    struct rest r;
    memcpy(&r, arg, sizeof(r));
    long ms = trp_task_index(t) == 0 ? r.ms * r.factor : r.ms;
    for (; ms > 0 && !trp_task_killed(t); ms -= 10) {
        struct timespec rest = {.tv_nsec = (ms < 10 ? ms : 10) * 1000000};
        nanosleep(&rest, NULL);
    }
    return in->count ? trp_emit(out, NULL, 0, "", 1) : 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc != 6)
        return 2;
    int64_t others = atoi(argv[1]) - 1, batches = atoi(argv[2]), first = atoi(argv[4]);
    struct rest rest = {.ms = atol(argv[3]), .factor = atol(argv[5])};
    trp_dataset *d =
        trp_union(trp_range(ctx, 0, first * BATCH, 1),
                  trp_range(ctx, 0, others * batches * BATCH, (uint32_t)others));
    uint64_t n;
    if (trp_count(trp_transform(d, take, &rest, sizeof(rest)), &n) < 0)
        fprintf(stderr, "reads: %s\n", trp_error_text(ctx));
    else
        printf("read %llu\n", (unsigned long long)n);
    return trp_finalize(ctx);
}
