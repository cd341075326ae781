/* memory MIB [TASKS]: in an executor of 256 MiB and two slots, the function of task 1
 * takes MIB mebibytes; the others sleep meanwhile. Prints "count N". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "troupe.h"

static void **kept; /* all that was taken: it is the point */

TRP_FUNCTION(hog);
int hog(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    long mib;
    memcpy(&mib, arg, sizeof(mib));
    struct timespec rest = {.tv_nsec = 20 * 1000000L};
    for (long i = 0; trp_task_index(t) == 1 && i < mib; i++) {
        void **p = malloc(1 << 20);
        if (!p)
            return 1;
        memset(p, (int)i, 1 << 20);
        *p = kept;
        kept = p;
        if (i % 16 == 0)
            nanosleep(&rest, NULL);
    }
    for (int i = 0; trp_task_index(t) != 1 && i < 25; i++)
        nanosleep(&rest, NULL);
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit(out, NULL, 0, trp_value(in, i, NULL), 8) < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    long mib = argc > 1 ? atol(argv[1]) : 1024;
    uint32_t tasks = argc > 2 ? (uint32_t)atoi(argv[2]) : 4;
    trp_profile *p;
    trp_profile_new(ctx, "tight", &p);
    trp_profile_executor(p, "cores", 2);
    trp_profile_executor_text(p, "memory", "192m");
    trp_profile_executor_text(p, "memoryOverhead", "64m");
    if (trp_profile_build(p) < 0) {
        fprintf(stderr, "memory: %s\n", trp_error_text(ctx));
        trp_finalize(ctx);
        return 3;
    }
    trp_dataset *d = trp_with_resources(trp_range(ctx, 0, tasks, tasks), p);
    uint64_t n;
    if (trp_count(trp_map(d, hog, &mib, sizeof(mib)), &n) < 0)
        fprintf(stderr, "memory: %s\n", trp_error_text(ctx));
    else
        printf("count %llu\n", (unsigned long long)n);
    return trp_finalize(ctx);
}
