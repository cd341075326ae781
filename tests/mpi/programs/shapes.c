/* shapes [RESOURCE]: two stages in two profiles, the second with half a RESOURCE (gpu)
 * a task. `shapes -t CPUS`: one stage in a task-only profile; `shapes -d RESOURCE`: one
 * in the default profile. Prints a line for each
 * task: "STAGE task T cpus C RESOURCE=ADDRESSES". */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "troupe.h"

/* The name of the resource, "" for none, comes as `arg`. */
TRP_FUNCTION(tell);
int tell(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const char *resource = arg, *addresses[8];
    struct timespec rest = {.tv_nsec = 200 * 1000000L};
    nanosleep(&rest, NULL); /* so that tasks overlap */
    char line[512];
    int n = snprintf(line, sizeof(line), "task %u cpus %u %s=", trp_task_index(t),
                     trp_task_cpus(t), resource);
    uint32_t count = trp_task_resource(t, resource, addresses, 8);
    for (uint32_t i = 0; i < count && i < 8; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%s", i ? "," : "",
                      addresses[i]);
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit(out, NULL, 0, line, (size_t)n) < 0)
            return -1;
    return 0;
}

static int print_stage(trp_context *ctx, const char *stage, trp_dataset *d,
                       const char *resource)
{
    trp_rows *rows;
    if (trp_collect(trp_map(d, tell, resource, strlen(resource) + 1), &rows) < 0) {
        fprintf(stderr, "shapes: %s\n", trp_error_text(ctx));
        return -1;
    }
    const trp_batch *b = trp_rows_batch(rows);
    for (size_t i = 0; i < b->count; i++) {
        size_t n;
        const char *line = trp_value(b, i, &n);
        printf("%s %.*s\n", stage, (int)n, line);
    }
    trp_rows_free(rows);
    return 0;
}

static int refused(trp_context *ctx)
{
    fprintf(stderr, "shapes: %s\n", trp_error_text(ctx));
    trp_finalize(ctx);
    return 3;
}

static int task_only(trp_context *ctx, const char *cpus)
{
    trp_profile *light;
    trp_profile_new(ctx, "light", &light);
    trp_profile_task_text(light, "cpus", cpus);
    if (trp_profile_build(light) < 0)
        return refused(ctx);
    print_stage(ctx, "light", trp_with_resources(trp_range(ctx, 0, 4, 4), light), "");
    return trp_finalize(ctx);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc > 2 && strcmp(argv[1], "-t") == 0)
        return task_only(ctx, argv[2]);
    if (argc > 2 && strcmp(argv[1], "-d") == 0) {
        print_stage(ctx, "plain", trp_range(ctx, 0, 6, 6), argv[2]);
        return trp_finalize(ctx);
    }
    const char *resource = argc > 1 ? argv[1] : "gpu";
    trp_profile *wide, *device;
    trp_profile_new(ctx, "wide", &wide);
    trp_profile_executor(wide, "cores", 2);
    trp_profile_executor_text(wide, "memory", "256m");
    trp_profile_new(ctx, "device", &device);
    trp_profile_executor(device, "cores", 2);
    trp_profile_executor_text(device, "memory", "256m");
    trp_profile_executor(device, resource, 1);
    trp_profile_task(device, resource, 0.5);
    if (trp_profile_build(wide) < 0 || trp_profile_build(device) < 0)
        return refused(ctx);
    trp_dataset *d = trp_range(ctx, 0, 6, 6);
    if (print_stage(ctx, "wide", trp_with_resources(d, wide), "") == 0)
        print_stage(ctx, "device", trp_with_resources(d, device), resource);
    return trp_finalize(ctx);
}
