/* leaves [STATUS [finalize]]: runs a stage and exits with STATUS, without trp_finalize
 * or after it; nothing of the run may stay behind. */
#include <stdio.h>
#include <stdlib.h>

#include "troupe.h"

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    uint64_t n;
    if (trp_count(trp_range(ctx, 0, 1000, 10), &n) < 0)
        fprintf(stderr, "leaves: %s\n", trp_error_text(ctx));
    else
        printf("count %llu\n", (unsigned long long)n);
    if (argc > 2)
        trp_finalize(ctx);
    return argc > 1 ? atoi(argv[1]) : 0;
}
