/* fails TIMES [TASKS [MORE]]: the function of task 1 returns 37 at its first TIMES
 * attempts, with a text. Prints "count N". MORE jobs follow whose tasks do not fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(refuse);
int refuse(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    uint32_t times;
    memcpy(&times, arg, sizeof(times));
    if (trp_task_index(t) == 1 && trp_task_attempt(t) < times) {
        trp_task_error(t, "attempt %u is no good", trp_task_attempt(t));
        return 37;
    }
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
    uint32_t times = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    uint32_t tasks = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
    uint32_t more = argc > 3 ? (uint32_t)atoi(argv[3]) : 0, never = 0;
    trp_dataset *d = trp_range(ctx, 0, 10 * (int64_t)tasks, tasks);
    uint64_t n;
    if (trp_count(trp_map(d, refuse, &times, sizeof(times)), &n) < 0)
        fprintf(stderr, "fails: %s\n", trp_error_text(ctx));
    else
        printf("count %llu\n", (unsigned long long)n);
    for (; more > 0; more--)
        trp_count(trp_map(d, refuse, &never, sizeof(never)), &n);
    return trp_finalize(ctx);
}
