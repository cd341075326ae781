/* crash once|always|assert|exit [TASKS]: in task 3 a function dies of SIGSEGV, at its first
 * attempt or at every one, or of an assertion at its first, or calls exit(0). Prints
 * "count N", which must be TASKS * 10. */
#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(die);
int die(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const char *how = arg;
    bool first = trp_task_attempt(t) == 0;
    if (trp_task_index(t) == 3 && strcmp(how, "exit") == 0)
        exit(0);
    if (trp_task_index(t) == 3 && strcmp(how, "assert") == 0)
        assert(!first);
    else if (trp_task_index(t) == 3 && (first || strcmp(how, "always") == 0))
        raise(SIGSEGV);
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
    const char *how = argc > 1 ? argv[1] : "once";
    uint32_t tasks = argc > 2 ? (uint32_t)atoi(argv[2]) : 20;
    trp_dataset *d = trp_range(ctx, 0, 10 * (int64_t)tasks, tasks);
    uint64_t n;
    if (trp_count(trp_map(d, die, how, strlen(how) + 1), &n) < 0)
        fprintf(stderr, "crash: %s\n", trp_error_text(ctx));
    else
        printf("count %llu\n", (unsigned long long)n);
    return trp_finalize(ctx);
}
