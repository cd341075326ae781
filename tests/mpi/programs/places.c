/* places SECONDS HOST… (64 at most): a task for each HOST ("-": none), which it
 * prefers; each emits the host it ran on. Tasks take SECONDS and run in a task-only
 * profile. Prints a line for each: "task T wants HOST ran on HOST". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "troupe.h"

TRP_FUNCTION(tell_host);
int tell_host(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    double seconds, whole;
    memcpy(&seconds, arg, sizeof(seconds));
    struct timespec rest = {.tv_nsec = (long)(modf(seconds, &whole) * 1e9)};
    rest.tv_sec = (time_t)whole;
    nanosleep(&rest, NULL);
    const char *host = trp_task_host(t);
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit(out, NULL, 0, host, strlen(host)) < 0)
            return -1;
    return 0;
}

static int run(trp_context *ctx, double seconds, uint32_t n, const char **hosts)
{
    trp_profile *light;
    trp_rows *rows;
    if (trp_profile_new(ctx, "light", &light) < 0 ||
        trp_profile_task(light, "cpus", 1) < 0 || trp_profile_build(light) < 0)
        return -1;
    trp_dataset *d = trp_prefer(trp_range(ctx, 0, n, n), hosts);
    d = trp_transform(d, tell_host, &seconds, sizeof(seconds));
    if (trp_collect(trp_with_resources(d, light), &rows) < 0)
        return -1;
    const trp_batch *b = trp_rows_batch(rows);
    for (size_t i = 0; i < b->count; i++) {
        size_t size;
        const char *host = trp_value(b, i, &size);
        printf("task %zu wants %s ran on %.*s\n", i, hosts[i] ? hosts[i] : "none",
               (int)size, host);
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    const char *hosts[64];
    int n = argc - 2;
    if (n < 1 || n > 64)
        return 2;
    for (int i = 0; i < n; i++)
        hosts[i] = strcmp(argv[i + 2], "-") == 0 ? NULL : argv[i + 2];
    if (run(ctx, atof(argv[1]), (uint32_t)n, hosts) < 0)
        fprintf(stderr, "places: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
