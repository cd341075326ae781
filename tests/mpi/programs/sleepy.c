/* sleepy TASKS MS: each task makes the file begun.TASK, sleeps MS milliseconds, or until
 * there is a file `go`, and looks every 10 ms whether it was given up; then it makes the
 * file gave-up.TASK. Prints "slept N". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "troupe.h"

static void tell(const char *what, const trp_task *t)
{
    char path[64];
    snprintf(path, sizeof(path), "%s.%u", what, trp_task_index(t));
    FILE *f = fopen(path, "we");
    if (f)
        fclose(f);
}

TRP_FUNCTION(doze);
int doze(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    long ms;
    memcpy(&ms, arg, sizeof(ms));
    tell("begun", t);
    for (; ms > 0 && access("go", F_OK) < 0; ms -= 10) {
        struct timespec rest = {.tv_nsec = (ms < 10 ? ms : 10) * 1000000};
        nanosleep(&rest, NULL);
        if (trp_task_killed(t)) {
            tell("gave-up", t);
            return 1;
        }
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
    uint32_t tasks = argc > 1 ? (uint32_t)atoi(argv[1]) : 4;
    long ms = argc > 2 ? atol(argv[2]) : 200;
    trp_dataset *d = trp_range(ctx, 0, tasks, tasks);
    uint64_t n;
    if (trp_count(trp_map(d, doze, &ms, sizeof(ms)), &n) < 0)
        fprintf(stderr, "sleepy: %s\n", trp_error_text(ctx));
    else
        printf("slept %llu\n", (unsigned long long)n);
    return trp_finalize(ctx);
}
