/* prints N: N tasks, each of which prints a line to stdout and one to stderr. */
#include <stdio.h>
#include <stdlib.h>

#include "troupe.h"

TRP_FUNCTION(speak);
int speak(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)in, (void)out, (void)arg;
    printf("task %u speaks\n", trp_task_index(t));
    fprintf(stderr, "task %u complains\n", trp_task_index(t));
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    trp_foreach(trp_range(ctx, 0, n, n), speak, NULL, 0);
    return trp_finalize(ctx);
}
