/* shells COMMAND: one task, a function that has the shell run it. */
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(have_run);
int have_run(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)in, (void)out;
    return system(arg) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 2)
        return 2;
    trp_foreach(trp_range(ctx, 0, 1, 1), have_run, argv[1], strlen(argv[1]) + 1);
    return trp_finalize(ctx);
}
